/* tidemark archive info: what an archive holds, and whether it is being written. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_health.h"
#include "app/archive/archive_print.h"
#include "base/alloc.h"

#include <stdio.h>
#include <sys/stat.h>

#define WAIT_US INT64_C(20000000) /* for a heart that beats every 5 s to have stopped */

struct info_command {
    struct tide_archive_arguments arguments;
    bool is_quick;
};

enum {
    OPTION_NO_WAIT = 256,
};

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_JSON_OPTION("Print one line of JSON"),
    {"no-wait", OPTION_NO_WAIT, NULL, 0,
     "Do not wait for a heartbeat: \"unknown\" where it takes one to tell", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct info_command *command = state->input;
    if (key == OPTION_NO_WAIT) {
        command->is_quick = true;
        return 0;
    }
    return tide_archive_arguments_take(&command->arguments, key, arg, state);
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc =
        "Says what an archive holds: its sources, and of each series its segments and live "
        "rows; no row is read.\vEach source is complete (its writer has ended it), live (its "
        "heart beats), stopped (it does not, for three intervals, or nobody has the archive "
        "open) or unknown. While somebody has the archive open it takes a beat to tell, up to "
        "5 s, and 15 s where there is none.\n\nExit status: 0 done, 2 wrong usage or no archive, "
        "3 it could not be read.",
};

static uint64_t size_of(const char *path, const char *suffix)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    struct stat st;
    tide_buf_printf(&name, "%s%s", path, suffix);
    return stat(tide_buf_cstr(&name), &st) == 0 ? (uint64_t)st.st_size : 0;
}

static tide_status run(const struct info_command *command, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_archive_catalogue catalogue;
    const char *path = command->arguments.path;
    bool is_open = tide_archive_may_be_open(path);
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    enum tide_archive_life *lives =
        tide_arena_alloc(&arena, catalogue.source_count, sizeof(*lives));
    TIDE_TRY(tide_archive_health(archive, &catalogue, is_open, command->is_quick ? 0 : WAIT_US,
                                 lives, err));
    const struct tide_archive_about about = {.path = path,
                                             .file_bytes = size_of(path, ""),
                                             .log_bytes = size_of(path, "-wal"),
                                             .catalogue = &catalogue,
                                             .lives = lives};
    if (command->arguments.is_json) {
        tide_archive_print_info_json(&out, &about);
    } else {
        tide_archive_print_info(&out, &about);
    }
    (void)fwrite(out.ptr, 1, out.len, stdout); /* a failure shows when the program ends */
    return TIDE_OK;
}

int tide_archive_command_info(int argc, char **argv)
{
    struct info_command command = {0};
    struct tide_error err = {0};
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    return tide_command_end("archive info", run(&command, &err), &err);
}
