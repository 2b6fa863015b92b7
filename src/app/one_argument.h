/* The argument of commands that take exactly one. */
#pragma once

#include <argp.h>

/** Keeps the first argument; a second one ends the program, naming what is wanted ("one source").
 */
void tide_one_argument_take(const char **argument, char *arg, const char *wanted,
                            struct argp_state *state);

/** At the end: none ends the program with `needed`. */
void tide_one_argument_require(const char *argument, const char *needed, struct argp_state *state);
