/* What `tidemark status` says of a pipeline that does not run, for people. */
#pragma once

#include "app/state/checkpoint_print.h"

/**
 * Appends lines of the newest checkpoint: which it is, what is asked for, the sinks, and a line for
 * each table with what its sinks have of it. `arena` is for what is put together.
 */
void tide_status_print_stopped(struct tide_buf *buf, const struct tide_checkpoint_shown *shown,
                               struct tide_arena *arena);
