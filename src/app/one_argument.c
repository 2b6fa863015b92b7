#include "app/one_argument.h"

#include <stddef.h>

error_t tide_one_argument_parse(const struct tide_one_argument *one, int key, char *arg,
                                struct argp_state *state, const char **argument)
{
    if (key == ARGP_KEY_ARG) {
        if (*argument != NULL) {
            argp_error(state, "%s, and then \"%s\"?", one->wanted, arg);
        }
        *argument = arg;
        return 0;
    }
    if (key == ARGP_KEY_END && *argument == NULL && one->needed != NULL) {
        argp_error(state, "%s", one->needed);
    }
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}
