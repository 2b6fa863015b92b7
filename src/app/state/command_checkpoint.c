/* tidemark checkpoint: look at a checkpoint, or put one into a state directory. */
#include "app/commands.h"
#include "app/state/checkpoint_print.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/state.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ARGUMENTS_MAX 3

struct checkpoint_options {
    bool is_json;
    bool is_forced;
    const char *arguments[ARGUMENTS_MAX];
    size_t argument_count;
};

enum {
    OPTION_JSON = 256,
    OPTION_FORCE,
};

/* Everything that can be wrong with the arguments together. */
static void check_arguments(struct argp_state *state, const struct checkpoint_options *options)
{
    const char *action = options->argument_count == 0 ? "" : options->arguments[0];
    bool is_show = strcmp(action, "show") == 0;
    if (!is_show && strcmp(action, "import") != 0) {
        argp_error(state, "say what to do: show or import");
    } else if (options->argument_count != (is_show ? 2 : 3)) {
        argp_error(state, is_show ? "show wants one DIR or FILE"
                                  : "import wants a DIR and a TEXT, FILE or -");
    } else if (is_show && options->is_forced) {
        argp_error(state, "--force is for import");
    } else if (!is_show && options->is_json) {
        argp_error(state, "--json is for show");
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct checkpoint_options *options = state->input;
    switch (key) {
    case OPTION_JSON:
        options->is_json = true;
        return 0;
    case OPTION_FORCE:
        options->is_forced = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->argument_count == ARGUMENTS_MAX) {
            argp_error(state, "too many arguments");
        }
        options->arguments[options->argument_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option argp_options[] = {
    {"json", OPTION_JSON, NULL, 0, "show: print the checkpoint itself, as one line of JSON", 0},
    {"force", OPTION_FORCE, NULL, 0, "import: replace the checkpoint that is there", 0},
    {0},
};

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "show DIR|FILE\nimport DIR TEXT|FILE|-",
    .doc =
        "Looks at a checkpoint, or puts one into a state directory.\vshow prints the newest "
        "checkpoint of a state directory, or the one in a file; it may be used while a pipeline "
        "runs. import checks a checkpoint, given as text (it begins with { or [), as a file or on "
        "standard input, and makes it the newest of the state directory: the next run goes on from "
        "it.\n\nExit status: 0 done, 1 there is no checkpoint to show, 2 wrong usage, or the "
        "directory is in use or holds a checkpoint already, 3 it could not be read or written.",
};

/* A checkpoint from a file in any of its forms, not yet decoded. */
static tide_status read_file(const char *path, struct tide_arena *arena,
                             struct tide_state_checkpoint *ret_found, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_TRY(tide_file_read(path, TIDE_CHECKPOINT_BYTES_MAX, &bytes, err));
    tide_str kept = tide_arena_str(arena, tide_buf_str(&bytes));
    if (tide_checkpoint_file_decode(kept, arena, &ret_found->json, &ret_found->phase,
                                    &ret_found->created_us, err) != TIDE_OK) {
        return tide_fail_context(err, "%s", path);
    }
    ret_found->file = tide_str_from(path);
    return TIDE_OK;
}

static void warn_of_torn(struct tide_buf *warnings)
{
    if (warnings->len == 0) {
        return; /* and has no memory to point into */
    }
    char *from = warnings->ptr;
    char *end = warnings->ptr + warnings->len;
    while (from < end) {
        char *stop = memchr(from, '\n', (size_t)(end - from));
        stop = stop == NULL ? end : stop;
        tide_log(TIDE_LOG_WARN, "%.*s", (int)(stop - from), from);
        from = stop + 1;
    }
}

static tide_status read_dir(const char *path, struct tide_arena *arena,
                            struct tide_state_checkpoint *ret_found, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf warnings = {0};
    bool found = false;
    TIDE_TRY(tide_state_peek(path, arena, &found, ret_found, &warnings, err));
    warn_of_torn(&warnings);
    if (!found) {
        (void)tide_fail(err, TIDE_OK, "%s holds no checkpoint", path);
        return TIDE_END;
    }
    return TIDE_OK;
}

static tide_status print(const struct tide_state_checkpoint *found, bool is_json,
                         struct tide_arena *arena, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_checkpoint checkpoint = {0};
    if (tide_checkpoint_decode(found->json, NULL, arena, &checkpoint, err) != TIDE_OK) {
        return tide_fail_context(err, "%.*s", TIDE_STR_ARG(found->file));
    }
    if (is_json) {
        tide_buf_append_str(&out, found->json);
        tide_buf_append_char(&out, '\n');
    } else {
        const struct tide_checkpoint_shown shown = {.file = found->file,
                                                    .phase = found->phase,
                                                    .created_us = found->created_us,
                                                    .checkpoint = &checkpoint};
        tide_checkpoint_print(&out, &shown, arena);
    }
    (void)fwrite(out.ptr, 1, out.len, stdout); /* a failure shows when the program ends */
    return TIDE_OK;
}

static tide_status show(const struct checkpoint_options *options, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_state_checkpoint found = {0};
    struct stat st;
    const char *path = options->arguments[1];
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        TIDE_TRY(read_dir(path, &arena, &found, err));
    } else {
        TIDE_TRY(read_file(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &arena, &found, err));
    }
    return print(&found, options->is_json, &arena, err);
}

static bool is_text(const char *argument)
{
    const char *first = argument + strspn(argument, " \t\r\n");
    return *first == '{' || *first == '[';
}

/* The checkpoint to import, decoded too: what is wrong must show before anything is touched. */
static tide_status read_import(const char *argument, struct tide_arena *arena,
                               struct tide_state_checkpoint *ret_found,
                               struct tide_checkpoint *ret_checkpoint, struct tide_error *err)
{
    if (is_text(argument)) {
        TIDE_TRY(tide_checkpoint_file_decode(tide_str_from(argument), arena, &ret_found->json,
                                             &ret_found->phase, &ret_found->created_us, err));
    } else {
        const char *path = strcmp(argument, "-") == 0 ? "/dev/stdin" : argument;
        TIDE_TRY(read_file(path, arena, ret_found, err));
    }
    TIDE_TRY(tide_checkpoint_decode(ret_found->json, NULL, arena, ret_checkpoint, err));
    if (ret_found->phase == TIDE_PHASE_SNAPSHOT_HANDOFF) { /* others write it, we never do */
        ret_found->phase = tide_checkpoint_all_done(ret_checkpoint) ? TIDE_PHASE_FULL_SYNC_END
                                                                    : TIDE_PHASE_SNAPSHOT_PROGRESS;
    }
    return TIDE_OK;
}

/* TIDE_INVALID when something is there already, even torn, and it is not to be replaced. */
static tide_status check_empty(struct tide_state *state, bool is_forced, struct tide_arena *arena,
                               bool *ret_was_there, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf warnings = {0};
    tide_str json = {0};
    enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
    bool found = false;
    tide_status status = tide_state_load(state, arena, &found, &json, &phase, &warnings, err);
    bool is_there = status != TIDE_OK || found;
    if (status == TIDE_IO) {
        return status;
    }
    if (is_there && !is_forced) {
        return tide_fail(err, TIDE_INVALID,
                         "%s holds a checkpoint already: --force replaces it, or name another "
                         "directory",
                         tide_state_dir(state));
    }
    *ret_was_there = is_there;
    return TIDE_OK;
}

static tide_status save(const char *dir, const struct tide_state_checkpoint *found, bool is_forced,
                        struct tide_arena *arena, bool *ret_was_there, struct tide_error *err)
{
    struct tide_state *state = NULL;
    TIDE_TRY(tide_state_open(dir, &state, err));
    tide_status status = check_empty(state, is_forced, arena, ret_was_there, err);
    if (status == TIDE_OK) {
        status = tide_state_save(state, found->json, found->phase, err);
    }
    if (status == TIDE_OK) {
        status = tide_state_drop_older(state, err);
    }
    tide_state_close(state);
    return status;
}

static tide_status import(const struct checkpoint_options *options, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_state_checkpoint found = {0};
    struct tide_checkpoint checkpoint = {0};
    bool was_there = false;
    size_t done = 0;
    const char *dir = options->arguments[1];
    TIDE_TRY(read_import(options->arguments[2], &arena, &found, &checkpoint, err));
    TIDE_TRY(save(dir, &found, options->is_forced, &arena, &was_there, err));
    for (size_t i = 0; i < checkpoint.table_count; i++) {
        done += checkpoint.tables[i].done;
    }
    (void)printf("imported into %s%s: phase %s, %zu of %zu tables done\n", dir,
                 was_there ? ", in place of what was there" : "",
                 tide_checkpoint_phase_name(found.phase), done, checkpoint.table_count);
    return TIDE_OK;
}

int tide_command_checkpoint(int argc, char **argv)
{
    struct checkpoint_options options = {0};
    struct tide_error err = {0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return TIDE_EXIT_USAGE;
    }
    bool is_show = strcmp(options.arguments[0], "show") == 0;
    tide_status status = is_show ? show(&options, &err) : import(&options, &err);
    if (status == TIDE_END) {
        (void)fprintf(stderr, "tidemark: checkpoint: %s\n", err.message);
        return TIDE_EXIT_NO;
    }
    return tide_command_end("checkpoint", status, &err);
}
