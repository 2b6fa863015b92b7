/* tidemark archive compact: small segments become larger ones. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_tables.h"
#include "app/pipeline/progress.h"
#include "app/safe_text.h"
#include "archive/change_encoder.h"
#include "archive/compact.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

#define ROWS_DEFAULT (4 * TIDE_ARCHIVE_SEAL_ROWS)
#define ROWS_MAX     (INT64_C(1) << 32)

struct compact_command {
    struct tide_archive_arguments arguments;
    int64_t rows;
};

enum {
    OPTION_ROWS = 256,
};

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_CHOICE_OPTIONS,
    {"rows", OPTION_ROWS, "NUMBER", 0, "Rows of a segment at most (default 262144)", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct compact_command *command = state->input;
    if (key != OPTION_ROWS) {
        return tide_archive_arguments_take(&command->arguments, key, arg, state);
    }
    if (!tide_str_to_i64(tide_str_from(arg), &command->rows) || command->rows < 2 ||
        command->rows > ROWS_MAX) {
        argp_error(state, "--rows wants a number of rows within 2 and 4294967296");
    }
    return 0;
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc = "Joins small segments of an archive that lie next to each other, and gives back the "
           "space that is free where nobody else has it open.\vRows stay what and where they are. "
           "A pipeline may write the archive meanwhile; it may be killed at any moment.\n\nExit "
           "status: 0 done, 2 "
           "wrong usage or no such table, 3 in use, or failed.",
};

static tide_status compact_series(struct tide_archive *archive,
                                  const struct compact_command *command,
                                  const struct tide_archive_series_info *before,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf line = {0};
    struct tide_archive_series_info after;
    int64_t merged = 0;
    TIDE_TRY(tide_archive_compact(archive, &tide_change_encoder, before->source, before->name,
                                  command->rows, &merged, err));
    TIDE_TRY(tide_archive_series_read(archive, before->source, before->name, &after, err));
    char was[32];
    char is[32];
    tide_append_safe(&line, before->name);
    tide_format_bytes(was, (uint64_t)before->sealed_bytes);
    tide_format_bytes(is, (uint64_t)after.sealed_bytes);
    tide_buf_printf(&line, ": %" PRId64 " segment%s, %s; now %" PRId64 ", %s\n", before->segments,
                    before->segments == 1 ? "" : "s", was, after.segments, is);
    (void)fwrite(line.ptr, 1, line.len, stdout); /* a failure shows when the program ends */
    return TIDE_OK;
}

static tide_status run(const struct compact_command *command, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_open_to_edit(command->arguments.path, &archive, err));
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    TIDE_TRY(tide_archive_choice_check(&command->arguments.choice, command->arguments.path,
                                       &catalogue, err));
    for (size_t i = 0; i < catalogue.series_count; i++) {
        if (tide_archive_choice_has(&command->arguments.choice, &catalogue.series[i])) {
            TIDE_TRY(compact_series(archive, command, &catalogue.series[i], err));
        }
    }
    tide_archive_shrink(archive);
    return TIDE_OK;
}

int tide_archive_command_compact(int argc, char **argv)
{
    struct compact_command command = {.rows = ROWS_DEFAULT};
    struct tide_error err = {0};
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    return tide_command_end("archive compact", run(&command, &err), &err);
}
