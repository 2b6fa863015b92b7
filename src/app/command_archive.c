/* tidemark archive: what an archive holds, and whether it is sound. */
#include "app/archive_print.h"
#include "app/commands.h"
#include "archive/catalogue.h"
#include "archive/container.h"
#include "archive/verify.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct archive_options {
    bool is_json;
    bool is_full;
    const char *action;
    const char *path;
};

enum {
    OPTION_JSON = 256,
    OPTION_FULL,
};

/* Everything that can be wrong with the arguments together. */
static void check_arguments(struct argp_state *state, const struct archive_options *options)
{
    bool is_verify = options->action != NULL && strcmp(options->action, "verify") == 0;
    if (!is_verify && (options->action == NULL || strcmp(options->action, "info") != 0)) {
        argp_error(state, "say what to do: info or verify");
    } else if (options->path == NULL) {
        argp_error(state, "%s wants one ARCHIVE", options->action);
    } else if (!is_verify && options->is_full) {
        argp_error(state, "--full is for verify");
    }
}

static void take_argument(struct argp_state *state, struct archive_options *options, char *arg)
{
    if (options->action == NULL) {
        options->action = arg;
    } else if (options->path == NULL) {
        options->path = strncmp(arg, "archive:", 8) == 0 ? arg + 8 : arg;
    } else {
        argp_error(state, "too many arguments");
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct archive_options *options = state->input;
    switch (key) {
    case OPTION_JSON:
        options->is_json = true;
        return 0;
    case OPTION_FULL:
        options->is_full = true;
        return 0;
    case ARGP_KEY_ARG:
        take_argument(state, options, arg);
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option argp_options[] = {
    {"full", OPTION_FULL, NULL, 0, "verify: compare indexes with their tables too", 0},
    {"json", OPTION_JSON, NULL, 0, "print one line of JSON", 0},
    {0},
};

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "info ARCHIVE\nverify ARCHIVE",
    .doc = "Looks at an archive, also while it is written.\vinfo says what it holds: sources, and "
           "of each series its segments and live rows. verify checks the pages of the file and the "
           "rules of its tables; segments are not opened.\n\nExit status: 0 done, 1 it is not "
           "sound, 2 wrong usage, or no archive, 3 it could not be read.",
};

static tide_status info(struct tide_archive *archive, const struct archive_options *options,
                        struct tide_buf *out, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    struct stat st;
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    uint64_t size = stat(options->path, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (options->is_json) {
        tide_archive_print_info_json(out, options->path, size, &catalogue);
    } else {
        tide_archive_print_info(out, options->path, size, &catalogue);
    }
    return TIDE_OK;
}

static tide_status verify(struct tide_archive *archive, const struct archive_options *options,
                          struct tide_buf *out, bool *ret_is_sound, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_findings findings;
    TIDE_TRY(tide_archive_verify(archive, options->is_full, &arena, &findings, err));
    if (options->is_json) {
        tide_archive_print_findings_json(out, options->path, &findings);
    } else {
        tide_archive_print_findings(out, options->path, &findings);
    }
    *ret_is_sound = findings.harmful == 0;
    return TIDE_OK;
}

static tide_status act(const struct archive_options *options, bool *ret_is_sound,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    TIDE_TRY(tide_archive_open(options->path, TIDE_ARCHIVE_READ, &archive, err));
    if (strcmp(options->action, "info") == 0) {
        TIDE_TRY(info(archive, options, &out, err));
    } else {
        TIDE_TRY(verify(archive, options, &out, ret_is_sound, err));
    }
    (void)fwrite(out.ptr, 1, out.len, stdout); /* a failure shows when the program ends */
    return TIDE_OK;
}

int tide_command_archive(int argc, char **argv)
{
    struct archive_options options = {0};
    struct tide_error err = {0};
    bool is_sound = true;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return TIDE_EXIT_USAGE;
    }
    tide_status status = act(&options, &is_sound, &err);
    return status == TIDE_OK && !is_sound ? TIDE_EXIT_NO
                                          : tide_command_end("archive", status, &err);
}
