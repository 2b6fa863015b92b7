/* Reading the dead letters of a state directory, also while a pipeline writes to them. */
#pragma once

#include "format/dead_letter.h"

/* A line of a file of dead letters. */
struct tide_dead_letter_found {
    const char *path;
    uint64_t line_number;
    tide_str line;
    const struct tide_dead_letter_read *letter; /* NULL: it is none */
    const char *why;                            /* then: what is wrong */
};

typedef tide_status (*tide_dead_letter_each)(void *context,
                                             const struct tide_dead_letter_found *found,
                                             struct tide_error *err);

/**
 * Calls `each` with every letter, the oldest first; what it is given lives until it returns. A line
 * that is no letter is given as such and does not end the walk. Of a line without end, which is
 * just being written, nothing is said. Changes nothing.
 *
 * Errors: TIDE_IO, also when `dir` is no directory; that of `each`, which ends the walk.
 */
tide_status tide_dead_letter_walk(const char *dir, tide_dead_letter_each each, void *context,
                                  struct tide_error *err);
