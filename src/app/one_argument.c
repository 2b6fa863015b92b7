#include "app/one_argument.h"

void tide_one_argument_take(const char **argument, char *arg, const char *wanted,
                            struct argp_state *state)
{
    if (*argument != NULL) {
        argp_error(state, "%s, and then \"%s\"?", wanted, arg);
    }
    *argument = arg;
}

void tide_one_argument_require(const char *argument, const char *needed, struct argp_state *state)
{
    if (argument == NULL) {
        argp_error(state, "%s", needed);
    }
}
