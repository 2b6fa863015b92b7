/* The argument of commands that take exactly one. */
#pragma once

#include <argp.h>

/* How a command speaks of its argument. */
struct tide_one_argument {
    const char *wanted; /* "one source", when there is a second */
    const char *needed; /* when there is none; NULL: it may be missing */
};

/**
 * The keys of argp that have to do with the argument, which is kept in `*argument`; the others are
 * ARGP_ERR_UNKNOWN. A second one, or none where it is needed, ends the program.
 */
error_t tide_one_argument_parse(const struct tide_one_argument *one, int key, char *arg,
                                struct argp_state *state, const char **argument);
