/* The --tables option of several commands. */
#pragma once

#include "base/str.h"

#include <argp.h>

#define TIDE_TABLE_GLOBS_MAX 256

struct tide_table_globs {
    tide_str globs[TIDE_TABLE_GLOBS_MAX];
    size_t count;
};

/** Adds the globs of a comma-separated list, which is cut up in place and must stay. Too many,
 * or none in it, end the program. */
void tide_table_globs_add(struct tide_table_globs *globs, char *list, struct argp_state *state);
