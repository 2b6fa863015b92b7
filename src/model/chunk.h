/*
 * What a chunk reader brings: some rows of a table in key order, read in one database snapshot,
 * and what is needed to reconcile them with the stream of changes.
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "model/position.h"
#include "model/relation.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which changes a database snapshot includes, by their tx_id: all below xmin, none from xmax on,
 * between them all but those in progress (ascending). SQLite: xmin = xmax = largest log id + 1.
 */
struct tide_visibility {
    uint64_t xmin;
    uint64_t xmax;
    const uint64_t *in_progress;
    size_t in_progress_count;
};

/** Whether a transaction was finished when the snapshot was taken. */
bool tide_visibility_sees(const struct tide_visibility *visibility, uint64_t tx_id);

struct tide_chunk_request {
    const struct tide_relation *relation;
    const struct tide_value *after_key; /* relation->key_count values; NULL: from the beginning */
    const struct tide_value *const *again; /* keys to read again, beside the range */
    size_t again_count;
    size_t rows_max;    /* of the range, at least 1 */
    size_t bytes_max;   /* of the range; a chunk ends early once it is passed */
    bool range_is_done; /* read only the keys of `again` */
};

struct tide_chunk {
    struct tide_arena arena;   /* values, keys, rows, in_progress live here */
    struct tide_charge charge; /* for it; set by ingest, nothing while it is read */
    struct tide_visibility visibility;
    struct tide_position position; /* rows may go out once the stream has reached it */
    bool is_trusted;               /* false: nothing was read, the snapshot was only probed */
    bool is_last;                  /* the range ends with this chunk */
    const struct tide_value *
        *rows; /* each relation->column_count values; in key order, read-again rows last */
    size_t row_count;
    size_t row_cap; /* of the rows array, which grows in the arena; private */
    const struct tide_value
        *last_key;  /* last key of the range that was read; NULL: no row of the range */
    uint64_t epoch; /* of the source's session: a chunk of another one is thrown away */
};

/** Frees what the chunk holds and empties it. `{0}` is an empty chunk. */
void tide_chunk_done(struct tide_chunk *chunk);

/** Room for one more row of `column_count` values, to be filled by the caller; counted at once. */
struct tide_value *tide_chunk_add_row(struct tide_chunk *chunk, size_t column_count);
