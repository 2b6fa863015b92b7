/* What `tidemark checkpoint show` says of a checkpoint, for people. */
#pragma once

#include "base/buf.h"
#include "format/checkpoint.h"

#include <stdint.h>

/* A checkpoint and what is said around it. */
struct tide_checkpoint_shown {
    tide_str file; /* where it was read from */
    enum tide_checkpoint_phase phase;
    int64_t created_us; /* UTC; 0: not said */
    const struct tide_checkpoint *checkpoint;
};

/**
 * Appends lines: position, phase, when, then tables with their last key, copies, sinks and open
 * requests. Control characters are escaped for the sake of terminals. `arena` is for keys that are
 * read.
 */
void tide_checkpoint_print(struct tide_buf *buf, const struct tide_checkpoint_shown *shown,
                           struct tide_arena *arena);
