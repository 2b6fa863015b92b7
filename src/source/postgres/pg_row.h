/* From the tuples of a change to its values, key and old row. Pure. */
#pragma once

#include "model/change.h"
#include "source/postgres/pg_relations.h"

/**
 * Fills key, moved_from, values, before and is_partial of `change` (op and relation are set, the
 * rest is empty) from the message's tuples.
 *
 * Owns:   texts are slices of the message's body; everything else lives in `arena`.
 * Shape:  a value that an update did not send is taken from the old row or old key where that has
 *         it, else it stays UNCHANGED and the change is partial.
 * Errors: TIDE_CORRUPT tuples of another number of columns, a value that is none of its type, a row
 *         without its key; columns are named.
 */
tide_status tide_pg_row_fill(const struct tide_pg_followed *table,
                             const struct tide_pgoutput_change *message, struct tide_arena *arena,
                             struct tide_pg_scratch *scratch, struct tide_change *change,
                             struct tide_error *err);
