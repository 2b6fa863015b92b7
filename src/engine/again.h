/*
 * The keys of a table that must be read again: where a change moved a row to them without sending
 * all of its columns. A key leaves only when a chunk that read it is held.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_again_key; /* private */

struct tide_again {
    struct tide_map keys; /* encoded key -> struct tide_again_key */
    size_t waiting;       /* keys that no chunk has been asked for */
    struct tide_buf scratch;
};

/** `{0}` is an empty list. */
void tide_again_done(struct tide_again *again);

/** Puts the key on the list, waiting (again) to be read. */
void tide_again_add(struct tide_again *again, const struct tide_value *key, size_t count);

/** Whether the key is on the list, in whatever state. */
bool tide_again_contains(struct tide_again *again, const struct tide_value *key, size_t count);

/** All waiting keys, copied into `arena`, now being read by chunk number `chunk`. */
const struct tide_value *const *tide_again_take(struct tide_again *again, uint64_t chunk,
                                                struct tide_arena *arena, size_t *ret_count);

/** What is being read or was published, and is not held, waits again. */
void tide_again_restart(struct tide_again *again);

/** Chunk number `chunk` is held: the keys it read, and that were not put on the list since, go. */
void tide_again_held(struct tide_again *again, uint64_t chunk);

/** Every key on the list, in whatever state, borrowed; array in `arena`. */
const struct tide_value *const *tide_again_all(const struct tide_again *again,
                                               struct tide_arena *arena, size_t *ret_count);
