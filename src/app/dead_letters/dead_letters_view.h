/* Which of the dead letters in a state directory a command is about. */
#pragma once

#include "app/config/table_globs.h"
#include "engine/dead_letter_walk.h"

struct tide_dead_letters_view {
    const char *sink; /* NULL: of every sink */
    const struct tide_table_globs *globs;
    const char *id;    /* its first digits; NULL: all */
    bool has_replayed; /* also those that were replayed */
};

typedef tide_status (*tide_dead_letters_take)(void *context,
                                              const struct tide_dead_letter_found *found,
                                              bool is_replayed, struct tide_error *err);

/**
 * Calls `take` with each letter of the view, the oldest first. Lines that are none are said on
 * standard error, FILE:LINE: why; `*ret_bad_lines` counts them.
 * Errors: TIDE_IO; that of `take`, which ends it.
 */
tide_status tide_dead_letters_view(const char *dir, const struct tide_dead_letters_view *view,
                                   tide_dead_letters_take take, void *context,
                                   uint64_t *ret_bad_lines, struct tide_error *err);
