#include "app/archive/archive_arguments.h"

#include <string.h>

const char *tide_archive_path(const char *place)
{
    static const char scheme[] = "archive:";
    size_t len = sizeof(scheme) - 1;
    return strncmp(place, scheme, len) == 0 ? place + len : place;
}

static void take_source(struct tide_archive_choice *choice, const char *arg,
                        struct argp_state *state)
{
    choice->has_source = true;
    if (!tide_str_to_i64(tide_str_from(arg), &choice->source)) {
        argp_error(state, "--source wants the number of a source, as info shows them");
    }
}

static void take_place(struct tide_archive_arguments *arguments, const char *arg,
                       struct argp_state *state)
{
    if (arguments->place == NULL) {
        arguments->place = arg;
        arguments->path = tide_archive_path(arg);
    } else if (arguments->to_wanted != NULL && arguments->to == NULL) {
        arguments->to = arg;
    } else {
        argp_error(state, "too many arguments: \"%s\"", arg);
    }
}

static void check_places(const struct tide_archive_arguments *arguments, struct argp_state *state)
{
    if (arguments->place == NULL) {
        argp_error(state, "an ARCHIVE is missing");
    } else if (arguments->to_wanted != NULL && arguments->to == NULL) {
        argp_error(state, "%s is missing", arguments->to_wanted);
    }
}

error_t tide_archive_arguments_take(struct tide_archive_arguments *arguments, int key, char *arg,
                                    struct argp_state *state)
{
    switch (key) {
    case TIDE_ARCHIVE_OPTION_TABLE:
        arguments->choice.table = arg;
        return 0;
    case TIDE_ARCHIVE_OPTION_SOURCE:
        take_source(&arguments->choice, arg, state);
        return 0;
    case TIDE_ARCHIVE_OPTION_JSON:
        arguments->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        take_place(arguments, arg, state);
        return 0;
    case ARGP_KEY_END:
        check_places(arguments, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}
