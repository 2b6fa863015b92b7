/* Numbers as options take them. */
#pragma once

#include <argp.h>
#include <stdint.h>

/** The number that `option` ("--chunk-rows") was given. One that is none, or is not within the
 * bounds, ends the program with a message that says them. */
uint64_t tide_number_argument(const char *text, uint64_t min, uint64_t max, const char *option,
                              struct argp_state *state);
