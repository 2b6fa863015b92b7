/*
 * A hash map from byte strings to one machine word (a pointer or a number). Keys are copied.
 * Open addressing, hashed with XXH3. Not for several threads at once.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union tide_map_value {
    void *ptr;
    uint64_t number;
};

struct tide_map_entry {
    tide_str key; /* key.ptr NULL: free place */
    uint64_t hash;
    union tide_map_value value;
};

struct tide_map {
    struct tide_map_entry *entries;
    size_t cap; /* a power of two, or 0 */
    size_t count;
};

/** Frees the table and the keys, not what values point to. `{0}` is an empty map. */
void tide_map_done(struct tide_map *map);

/** The value under `key`, or NULL. Valid until the next put or remove. */
union tide_map_value *tide_map_get(const struct tide_map *map, tide_str key);

/** The value under `key`, made zero when it was not there (`ret_is_new` may be NULL). */
union tide_map_value *tide_map_put(struct tide_map *map, tide_str key, bool *ret_is_new);

/** Removes `key`; false when it was not there. */
bool tide_map_remove(struct tide_map *map, tide_str key);

/** Removes every key and keeps the table. */
void tide_map_reset(struct tide_map *map);

/** Walks: start with *at = 0, ends with NULL. No put or remove between. */
struct tide_map_entry *tide_map_next(const struct tide_map *map, size_t *at);
