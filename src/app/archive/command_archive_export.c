/* tidemark archive export: tables as Parquet files. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_state.h"
#include "app/archive/archive_tables.h"
#include "app/pipeline/progress.h"
#include "app/safe_text.h"
#include "archive/change_export.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "sink/file/file_name.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUFFIX         ".parquet"
#define FILE_BYTES_MAX (256 * TIDE_MIB) /* a file is made in memory */

struct export_command {
    struct tide_archive_arguments arguments;
    struct tide_archive_moment as_of;
    bool is_changes;
};

enum {
    OPTION_AS_OF = 256,
    OPTION_CHANGES,
};

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_CHOICE_OPTIONS,
    {"as-of", OPTION_AS_OF, "MOMENT", 0, "The tables as they were then (default: as they are)", 0},
    {"changes", OPTION_CHANGES, NULL, 0,
     "The rows of copies and the changes, as segments have them", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct export_command *command = state->input;
    switch (key) {
    case OPTION_AS_OF:
        tide_archive_moment_take(&command->as_of, "--as-of", arg, state);
        return 0;
    case OPTION_CHANGES:
        command->is_changes = true;
        return 0;
    case ARGP_KEY_SUCCESS:
        if (command->is_changes && command->as_of.is_given) {
            argp_error(state, "--as-of is for a state, not for --changes");
        }
        return 0;
    default:
        return tide_archive_arguments_take(&command->arguments, key, arg, state);
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE DIR",
    .doc = "Writes the tables of an archive as Parquet files, one each; also while it is written.\v"
           "DIR is made where it is not there, and may hold no Parquet files yet. A file has its "
           "name (TABLE.parquet) once it is whole and on the disk; a table of more than 256 MiB, "
           "and with --changes one whose columns changed, is several (TABLE~2.parquet).\n\n"
           "MOMENT is " TIDE_ARCHIVE_MOMENT_HELP ".\n\n"
           "Exit status: 0 done, 1 a table had no complete copy then and was left out, or a state "
           "is in doubt (which is said), 2 wrong usage or no such table, 3 failed.",
};

/* The files of one table. */
struct table_files {
    const char *dir;
    struct tide_buf name; /* without number and suffix */
    size_t count;
    uint64_t bytes;
};

static void table_files_done(struct table_files *files)
{
    tide_buf_done(&files->name);
}

static tide_status write_file(void *context, size_t number, tide_str bytes, struct tide_error *err)
{
    struct table_files *files = context;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_buf_append_str(&name, tide_buf_str(&files->name));
    if (number > 1) {
        tide_buf_printf(&name, "~%zu", number); /* in no name of a table */
    }
    tide_buf_append_str(&name, TIDE_STR(SUFFIX));
    TIDE_TRY(tide_file_replace(files->dir, tide_buf_cstr(&name), bytes, err));
    files->count = number;
    files->bytes += bytes.len;
    return TIDE_OK;
}

/* Two sources may have tables of one name. */
static void name_files(const struct tide_archive_catalogue *catalogue, size_t at,
                       struct tide_buf *name)
{
    const struct tide_archive_series_info *series = &catalogue->series[at];
    size_t same = 0;
    for (size_t i = 0; i < catalogue->series_count; i++) {
        same += tide_str_equal(catalogue->series[i].name, series->name);
    }
    tide_file_name_append(name, series->name);
    name->len -= strlen(".ndjson");
    if (same > 1) {
        tide_buf_printf(name, "~source-%" PRId64, series->source);
    }
}

static void say(const struct tide_archive_series_info *series, const struct table_files *files,
                const struct tide_change_exported *exported)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf line = {0};
    char rows[32];
    char size[32];
    tide_format_count(rows, exported->rows);
    tide_format_bytes(size, files->bytes);
    tide_append_safe(&line, series->name);
    tide_buf_printf(&line, ": %s rows in %zu file%s, %s\n", rows, files->count,
                    files->count == 1 ? "" : "s", size);
    (void)fwrite(line.ptr, 1, line.len, stdout); /* a failure shows when the program ends */
}

static tide_status export_state(const struct export_command *command, struct tide_archive *archive,
                                const struct tide_archive_series_info *series,
                                const struct tide_change_file_taker *taker,
                                struct tide_change_exported *exported, bool *ret_is_whole,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_state_done) struct tide_archive_state state = {0};
    TIDE_TRY(tide_archive_state_fold(archive, series, &command->as_of, &state, err));
    if (state.schema == NULL) {
        return tide_fail(err, TIDE_END, "%.*s: nothing in the archive tells its columns",
                         TIDE_STR_ARG(series->name));
    }
    TIDE_TRY(tide_change_export_state(state.fold, state.schema, taker, exported, err));
    *ret_is_whole = tide_archive_state_warn(&state, series, exported->unsure) && *ret_is_whole;
    return TIDE_OK;
}

static tide_status export_table(const struct export_command *command, struct tide_archive *archive,
                                const struct tide_archive_catalogue *catalogue, size_t at,
                                bool *ret_is_whole, struct tide_error *err)
{
    const struct tide_archive_series_info *series = &catalogue->series[at];
    TIDE_CLEANUP(table_files_done) struct table_files files = {.dir = command->arguments.to};
    const struct tide_change_file_taker taker = {write_file, &files, FILE_BYTES_MAX};
    struct tide_change_exported exported = {0};
    name_files(catalogue, at, &files.name);
    tide_status status =
        command->is_changes
            ? tide_change_export_series(archive, series, &taker, &exported, err)
            : export_state(command, archive, series, &taker, &exported, ret_is_whole, err);
    if (status == TIDE_END) { /* of this table; the others are exported all the same */
        tide_log(TIDE_LOG_WARN, "%s", err->message);
        *ret_is_whole = false;
        return TIDE_OK;
    }
    if (status == TIDE_OK) {
        say(series, &files, &exported);
    }
    return status;
}

/* Files of an earlier export would be taken for some of this one. */
static tide_status prepare_dir(const char *path, struct tide_error *err)
{
    TIDE_TRY(tide_dir_make(path, err));
    DIR *dir = opendir(path);
    bool has_some = false;
    if (dir == NULL) {
        return tide_fail(err, TIDE_IO, "%s: %s", path, strerror(errno));
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        has_some = has_some || tide_str_ends_with(tide_str_from(entry->d_name), TIDE_STR(SUFFIX));
    }
    (void)closedir(dir);
    return has_some ? tide_fail(err, TIDE_INVALID,
                                "%s holds Parquet files already, which would be taken for some of "
                                "these; give another directory",
                                path)
                    : TIDE_OK;
}

static tide_status run(const struct export_command *command, bool *ret_is_whole,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_open(command->arguments.path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_TRY(tide_archive_catalogue_read(held, &arena, &catalogue, err));
    TIDE_TRY(tide_archive_choice_check(&command->arguments.choice, command->arguments.path,
                                       &catalogue, err));
    TIDE_TRY(prepare_dir(command->arguments.to, err));
    bool is_noted = false;
    for (size_t i = 0; i < catalogue.series_count; i++) {
        int64_t source = catalogue.series[i].source;
        is_noted = is_noted && source == catalogue.series[i - 1].source;
        if (tide_archive_choice_has(&command->arguments.choice, &catalogue.series[i])) {
            TIDE_TRY(is_noted ? TIDE_OK
                              : tide_archive_state_note_late(held, source, &command->as_of, err));
            is_noted = true;
            TIDE_TRY(export_table(command, held, &catalogue, i, ret_is_whole, err));
        }
    }
    return TIDE_OK;
}

int tide_archive_command_export(int argc, char **argv)
{
    struct export_command command = {.arguments.to_wanted = "a DIR"};
    struct tide_error err = {0};
    bool is_whole = true;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    tide_status status = run(&command, &is_whole, &err);
    return status == TIDE_OK && !is_whole ? TIDE_EXIT_NO
                                          : tide_command_end("archive export", status, &err);
}
