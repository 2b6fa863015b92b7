/*
 * Labels and metadata in a handshake: pairs of texts, that stay encoded.
 *
 *     map = u32 count, so many {text key | text value}
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_wire_take;

struct tide_wire_pair {
    tide_str key;
    tide_str value;
};

struct tide_wire_map {
    uint32_t count;
    tide_str pairs; /* encoded, `count` of them */
};

/** Appends one encoded pair, for a map's `pairs`. They are added by rising key. */
void tide_wire_pair_append(struct tide_buf *pairs, tide_str key, tide_str value);

/** Walks a map; one that was decoded has its pairs in the order of the wire, where keys may come in
 * any order, and again. */
struct tide_reader tide_wire_map_walk(const struct tide_wire_map *map);
bool tide_wire_map_next(struct tide_reader *walk, struct tide_wire_pair *ret_pair);

/**
 * A decoded map by rising key, each key once: where one came again, its last value counts.
 * Owns:   the array is the arena's, its texts borrow from the map.
 * Errors: TIDE_UNSUPPORTED larger than TIDE_WIRE_PAIRS_BYTES_MAX.
 */
tide_status tide_wire_map_read(const struct tide_wire_map *map, struct tide_arena *arena,
                               struct tide_wire_pair **ret_pairs, size_t *ret_count,
                               struct tide_error *err);

/* Within frames. */

/** What keeps a map from being sent: pairs that are none, keys that do not rise. NULL: nothing. */
const char *tide_wire_map_wrong(const struct tide_wire_map *map);

/** Writes a map where there is room for it; returns where to go on. */
char *tide_wire_map_put(char *at, const struct tide_wire_map *map);
size_t tide_wire_map_size(const struct tide_wire_map *map);

/** Takes a map, and looks at all of its pairs. */
struct tide_wire_map tide_wire_map_take(struct tide_wire_take *take);
