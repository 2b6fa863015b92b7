/* tidemark dead-letters: look at the records that sinks did not take. */
#include "app/commands.h"
#include "app/dead_letters/dead_letters_names.h"
#include "app/dead_letters/dead_letters_print.h"
#include "app/dead_letters/dead_letters_replay.h"
#include "app/state/state_find.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 3

enum action {
    ACTION_NONE,
    ACTION_LIST,
    ACTION_SHOW,
    ACTION_REPLAY,
};

struct dead_letters_command {
    const char *arguments[ARGUMENTS_MAX]; /* the action, FILE or DIR, ID */
    size_t argument_count;
    enum action action;
    const char *sink;
    struct tide_table_globs globs;
    bool has_replayed;
    bool is_json;
    bool is_count;
    bool is_raw;
    bool is_forced;
};

enum {
    OPTION_JSON = 256,
    OPTION_COUNT,
    OPTION_RAW,
    OPTION_FORCE,
};

static const struct argp_option option_table[] = {
    {"sink", 's', "NAME", 0, "list, replay: only those of this sink", 0},
    {"tables", 't', "GLOB,…", 0, "list, replay: only those of tables whose name matches (* and ?)",
     0},
    {"all", 'a', NULL, 0, "list: also those that were replayed", 0},
    {"count", OPTION_COUNT, NULL, 0, "list: say how many there are", 0},
    {"json", OPTION_JSON, NULL, 0, "list, show: as JSON, a line each", 0},
    {"raw", OPTION_RAW, NULL, 0, "show: only what was kept of the record, byte by byte", 0},
    {"force", OPTION_FORCE, NULL, 0,
     "replay: also when the sink would refuse the same records again", 0},
    {0},
};

static enum action action_of(const char *word)
{
    return strcmp(word, "list") == 0     ? ACTION_LIST
           : strcmp(word, "show") == 0   ? ACTION_SHOW
           : strcmp(word, "replay") == 0 ? ACTION_REPLAY
                                         : ACTION_NONE;
}

static bool is_id(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= TIDE_DEAD_LETTER_ID_LEN && strspn(text, "0123456789abcdef") == len;
}

static void check_options(struct argp_state *state, const struct dead_letters_command *command)
{
    bool is_list = command->action == ACTION_LIST;
    if (command->action == ACTION_SHOW && (command->sink != NULL || command->globs.count > 0)) {
        argp_error(state, "--sink and --tables are for list and replay");
    } else if (!is_list && (command->has_replayed || command->is_count)) {
        argp_error(state, "--all and --count are for list");
    } else if (command->action != ACTION_SHOW && command->is_raw) {
        argp_error(state, "--raw is for show");
    } else if (command->action == ACTION_REPLAY ? command->is_json : command->is_forced) {
        argp_error(state,
                   command->is_json ? "--json is for list and show" : "--force is for replay");
    } else if (command->is_json && (command->is_raw || command->is_count)) {
        argp_error(state, "--json goes with neither --raw nor --count");
    }
}

/* Everything that can be wrong with the arguments together. */
static void check_arguments(struct argp_state *state, struct dead_letters_command *command)
{
    size_t count = command->argument_count;
    command->action = count == 0 ? ACTION_NONE : action_of(command->arguments[0]);
    if (command->action == ACTION_NONE) {
        argp_error(state, "say what to do: list, show or replay");
    } else if (command->action == ACTION_SHOW && count != 3) {
        argp_error(state, "show wants a FILE or DIR and an ID");
    } else if (command->action != ACTION_SHOW && count != 2) {
        argp_error(state, "%s wants one FILE or DIR", command->arguments[0]);
    } else if (command->action == ACTION_SHOW && !is_id(command->arguments[2])) {
        argp_error(state, "\"%s\" is no id of a letter; list shows them", command->arguments[2]);
    }
    check_options(state, command);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct dead_letters_command *command = state->input;
    switch (key) {
    case 's':
        command->sink = arg;
        return 0;
    case 't':
        tide_table_globs_add(&command->globs, arg, state);
        return 0;
    case 'a':
        command->has_replayed = true;
        return 0;
    case OPTION_COUNT:
        command->is_count = true;
        return 0;
    case OPTION_JSON:
        command->is_json = true;
        return 0;
    case OPTION_RAW:
        command->is_raw = true;
        return 0;
    case OPTION_FORCE:
        command->is_forced = true;
        return 0;
    case ARGP_KEY_ARG:
        if (command->argument_count == ARGUMENTS_MAX) {
            argp_error(state, "too many arguments");
        }
        command->arguments[command->argument_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, command);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "list FILE|DIR\nshow FILE|DIR ID\nreplay FILE|DIR",
    .doc = "Looks at dead letters: records that a sink did not take, kept in the state directory. "
           "FILE is a configuration, DIR a state directory.\v"
           "list says a line each, the oldest first: id, when, sink, table, place, size, reason. "
           "show takes the first digits of an id. replay copies the tables that the letters are of "
           "anew to their sinks, as their rows may be others by now; raise max_record_bytes of the "
           "sink before. The letters are listed no more then, but with --all. All may be used "
           "while the pipeline runs.\n\n"
           "Exit status: 0 done, 1 there is no such letter, 2 wrong usage, or it would be refused "
           "again, 3 something could not be read or asked for.",
};

static void write_out(const struct tide_buf *out)
{
    (void)fwrite(out->ptr, 1, out->len, stdout); /* a failure shows when the program ends */
}

struct listing {
    const struct dead_letters_command *command;
    uint64_t count;
    struct tide_buf out;
};

static tide_status list_letter(void *context, const struct tide_dead_letter_found *found,
                               bool is_replayed, struct tide_error *err)
{
    struct listing *listing = context;
    (void)err;
    listing->count++;
    if (listing->command->is_count) {
        return TIDE_OK;
    }
    tide_buf_reset(&listing->out);
    if (listing->command->is_json) {
        tide_dead_letter_print_json(&listing->out, found->letter, is_replayed);
    } else {
        tide_dead_letter_print_line(&listing->out, found->letter, is_replayed);
    }
    write_out(&listing->out);
    return TIDE_OK;
}

/* TIDE_END: none is as was asked for, which may be a mistyped name. */
static tide_status say_none(const char *dir, const struct tide_dead_letters_view *view,
                            struct tide_error *err)
{
    struct tide_buf said TIDE_CLEANUP(tide_buf_done) = {0};
    TIDE_TRY(tide_dead_letters_say_none(dir, view, &said, err));
    (void)fprintf(stderr, "%s\n", tide_buf_cstr(&said));
    return TIDE_END;
}

/* TIDE_END: there is none of that sink or those tables. */
static tide_status list(const struct dead_letters_command *command, const char *dir,
                        uint64_t *ret_bad_lines, struct tide_error *err)
{
    struct listing listing = {.command = command};
    const struct tide_dead_letters_view view = {
        .sink = command->sink, .globs = &command->globs, .has_replayed = command->has_replayed};
    tide_status status =
        tide_dead_letters_view(dir, &view, list_letter, &listing, ret_bad_lines, err);
    tide_buf_done(&listing.out);
    if (status == TIDE_OK && command->is_count) {
        (void)printf("%llu\n", (unsigned long long)listing.count);
        return TIDE_OK;
    }
    bool is_chosen = command->sink != NULL || command->globs.count > 0;
    if (status == TIDE_OK && listing.count == 0 && is_chosen) {
        return say_none(dir, &view, err);
    }
    return status;
}

/* The letter whose id begins so, as it is to be shown. */
struct showing {
    const struct dead_letters_command *command;
    struct tide_dead_letter_id id;
    bool is_found;
    struct tide_buf out;
};

static void print_shown(struct showing *showing, const struct tide_dead_letter_found *found,
                        bool is_replayed)
{
    if (showing->command->is_raw) {
        tide_buf_append_str(&showing->out, found->letter->record);
    } else if (showing->command->is_json) {
        tide_buf_append_str(&showing->out, found->line);
        tide_buf_append_char(&showing->out, '\n');
    } else {
        tide_dead_letter_print_whole(&showing->out, found->letter, is_replayed);
    }
}

static tide_status show_letter(void *context, const struct tide_dead_letter_found *found,
                               bool is_replayed, struct tide_error *err)
{
    struct showing *showing = context;
    struct tide_dead_letter_id id = found->letter->id;
    if (!showing->is_found) {
        showing->is_found = true;
        showing->id = id;
        print_shown(showing, found, is_replayed);
    } else if (id.hi != showing->id.hi || id.lo != showing->id.lo) {
        return tide_fail(err, TIDE_INVALID,
                         "the ids of several letters begin with %s; say more of it",
                         showing->command->arguments[2]);
    }
    return TIDE_OK;
}

/* TIDE_END: there is none. */
static tide_status show(const struct dead_letters_command *command, const char *dir,
                        uint64_t *ret_bad_lines, struct tide_error *err)
{
    struct showing showing = {.command = command};
    const struct tide_dead_letters_view view = {
        .globs = &command->globs, .id = command->arguments[2], .has_replayed = true};
    tide_status status =
        tide_dead_letters_view(dir, &view, show_letter, &showing, ret_bad_lines, err);
    if (status == TIDE_OK) {
        write_out(&showing.out);
    }
    tide_buf_done(&showing.out);
    if (status == TIDE_OK && !showing.is_found) {
        (void)fprintf(stderr, "there is no dead letter %s in %s\n", command->arguments[2], dir);
        return TIDE_END;
    }
    return status;
}

static tide_status run(const struct dead_letters_command *command, uint64_t *ret_bad_lines,
                       struct tide_error *err)
{
    struct tide_buf dir TIDE_CLEANUP(tide_buf_done) = {0};
    if (command->action == ACTION_REPLAY) {
        const struct tide_dead_letters_replay replay = {.file = command->arguments[1],
                                                        .sink = command->sink,
                                                        .globs = &command->globs,
                                                        .is_forced = command->is_forced};
        return tide_dead_letters_replay(&replay, ret_bad_lines, err);
    }
    TIDE_TRY(tide_state_find(command->arguments[1], &dir, err));
    return command->action == ACTION_LIST ? list(command, tide_buf_cstr(&dir), ret_bad_lines, err)
                                          : show(command, tide_buf_cstr(&dir), ret_bad_lines, err);
}

int tide_command_dead_letters(int argc, char **argv)
{
    struct dead_letters_command command = {0};
    struct tide_error err = {0};
    uint64_t bad_lines = 0;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status = run(&command, &bad_lines, &err);
    int exit_status = tide_command_end("dead-letters", status, &err);
    if (exit_status == TIDE_EXIT_DONE && bad_lines > 0) {
        return TIDE_EXIT_FAILED;
    }
    return status == TIDE_END ? TIDE_EXIT_NO : exit_status;
}
