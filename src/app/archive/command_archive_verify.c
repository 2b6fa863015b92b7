/* tidemark archive verify: whether an archive is sound. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_print.h"
#include "archive/change_verify.h"

#include <stdio.h>

struct verify_command {
    struct tide_archive_arguments arguments;
    bool is_full;
};

enum {
    OPTION_FULL = 256,
};

static const struct argp_option argp_options[] = {
    {"full", OPTION_FULL, NULL, 0,
     "Compare indexes with their tables, decode every row, and follow the changes of each table",
     0},
    TIDE_ARCHIVE_JSON_OPTION("Print one line of JSON"),
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct verify_command *command = state->input;
    if (key == OPTION_FULL) {
        command->is_full = true;
        return 0;
    }
    return tide_archive_arguments_take(&command->arguments, key, arg, state);
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc = "Checks that an archive is sound, also while it is written.\vChecks the pages of the "
           "file and the rules of its tables; with --full also what is in the rows, and that no "
           "change is missing between two that are there.\n\nExit status: 0 sound, 1 not, 2 wrong "
           "usage or no archive, 3 it could not be read.",
};

static tide_status look(const struct verify_command *command, struct tide_arena *arena,
                        struct tide_archive_findings *findings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(tide_archive_open(command->arguments.path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_verify(archive, command->is_full, arena, findings, err));
    return command->is_full ? tide_change_verify(archive, arena, findings, err) : TIDE_OK;
}

/* Also what is so damaged that it cannot be looked at any further is not sound. */
static tide_status run(const struct verify_command *command, bool *ret_is_sound,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_archive_findings findings = {0};
    const char *path = command->arguments.path;
    tide_status status = look(command, &arena, &findings, err);
    if (status == TIDE_CORRUPT) {
        tide_archive_findings_add(&findings, &arena, false, "%s", err->message);
    } else if (status != TIDE_OK) {
        return status;
    }
    if (command->arguments.is_json) {
        tide_archive_print_findings_json(&out, path, &findings);
    } else {
        tide_archive_print_findings(&out, path, &findings);
    }
    (void)fwrite(out.ptr, 1, out.len, stdout); /* a failure shows when the program ends */
    *ret_is_sound = findings.harmful == 0;
    return TIDE_OK;
}

int tide_archive_command_verify(int argc, char **argv)
{
    struct verify_command command = {0};
    struct tide_error err = {0};
    bool is_sound = true;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    tide_status status = run(&command, &is_sound, &err);
    return status == TIDE_OK && !is_sound ? TIDE_EXIT_NO
                                          : tide_command_end("archive verify", status, &err);
}
