/* tidemark archive cat: a table as it was, or its changes. */
#include "app/archive/archive_cat.h"
#include "app/archive/archive_commands.h"

#include <stdio.h>

struct cat_command {
    struct tide_archive_arguments arguments;
    struct tide_archive_cat cat;
    bool is_changes;
};

enum {
    OPTION_AS_OF = 256,
    OPTION_CHANGES,
    OPTION_FROM,
    OPTION_TO,
    OPTION_FORMAT,
};

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_CHOICE_OPTIONS,
    {"as-of", OPTION_AS_OF, "MOMENT", 0, "The table as it was then (default: as it is)", 0},
    {"changes", OPTION_CHANGES, NULL, 0, "The rows of copies and the changes, as they came", 0},
    {"from", OPTION_FROM, "MOMENT", 0, "With --changes: only from then on", 0},
    {"to", OPTION_TO, "MOMENT", 0, "With --changes: only up to then", 0},
    {"format", OPTION_FORMAT, "FORMAT", 0,
     "ndjson (default; with --changes frames, which tidemark verify reads), csv or table", 0},
    {0},
};

static void check_arguments(const struct cat_command *command, struct argp_state *state)
{
    if (command->is_changes && command->cat.as_of.is_given) {
        argp_error(state, "--as-of is for a state, --changes has --from and --to");
    } else if (!command->is_changes && (command->cat.from.is_given || command->cat.to.is_given)) {
        argp_error(state, "--from and --to go with --changes; a state has --as-of");
    } else if (tide_archive_moments_are_reversed(&command->cat.from, &command->cat.to)) {
        argp_error(state, "--from is later than --to: nothing is in between");
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct cat_command *command = state->input;
    switch (key) {
    case OPTION_AS_OF:
        tide_archive_moment_take(&command->cat.as_of, "--as-of", arg, state);
        return 0;
    case OPTION_CHANGES:
        command->is_changes = true;
        return 0;
    case OPTION_FROM:
        tide_archive_moment_take(&command->cat.from, "--from", arg, state);
        return 0;
    case OPTION_TO:
        tide_archive_moment_take(&command->cat.to, "--to", arg, state);
        return 0;
    case OPTION_FORMAT:
        if (!tide_row_format_parse(arg, &command->cat.format)) {
            argp_error(state, "--format wants ndjson, csv or table, not \"%s\"", arg);
        }
        return 0;
    case ARGP_KEY_SUCCESS:
        check_arguments(command, state);
        return 0;
    default:
        return tide_archive_arguments_take(&command->arguments, key, arg, state);
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc = "Prints a table of an archive as it was at a moment, or its changes; also while it is "
           "written.\vMOMENT is " TIDE_ARCHIVE_MOMENT_HELP ". A time stands for all that had been "
           "committed by then, a position for that and all before it.\n\n"
           "Rows are printed in the order of their keys' bytes, values as frames have them. A "
           "state needs a copy that was complete at that moment; before the first one's end it is "
           "refused, saying from when on it can be had.\n\n"
           "Exit status: 0 done, 1 no copy was complete then, or what is printed is in doubt "
           "(which is said), 2 wrong usage or no such table, 3 it could not be read or printed.",
};

static tide_status run(const struct cat_command *command, bool *ret_is_whole,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(tide_archive_open(command->arguments.path, TIDE_ARCHIVE_READ, &archive, err));
    return command->is_changes ? tide_archive_cat_changes(archive, &command->cat, err)
                               : tide_archive_cat_state(archive, &command->cat, ret_is_whole, err);
}

int tide_archive_command_cat(int argc, char **argv)
{
    struct cat_command command = {0};
    struct tide_error err = {0};
    bool is_whole = true;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    command.cat.path = command.arguments.path;
    command.cat.choice = command.arguments.choice;
    tide_status status = run(&command, &is_whole, &err);
    if (status == TIDE_CLOSED) {
        return TIDE_EXIT_FAILED; /* who left early knows */
    }
    if (status == TIDE_END) {
        (void)fprintf(stderr, "tidemark: archive cat: %s\n", err.message);
        return TIDE_EXIT_NO;
    }
    return status == TIDE_OK && !is_whole ? TIDE_EXIT_NO
                                          : tide_command_end("archive cat", status, &err);
}
