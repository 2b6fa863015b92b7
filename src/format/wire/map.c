#include "format/wire/map.h"

#include "format/wire/pieces.h"

#include <stdlib.h>

#define PAIR_SIZE 8 /* of two empty texts */

void tide_wire_pair_append(struct tide_buf *pairs, tide_str key, tide_str value)
{
    TIDE_ASSERT(key.len <= UINT32_MAX && value.len <= UINT32_MAX);
    size_t size = PAIR_SIZE + key.len + value.len;
    char *at = tide_buf_reserve(pairs, size);
    (void)tide_wire_put_bytes(tide_wire_put_bytes(at, key), value);
    pairs->len += size;
}

struct tide_reader tide_wire_map_walk(const struct tide_wire_map *map)
{
    return tide_reader_of(map->pairs);
}

bool tide_wire_map_next(struct tide_reader *walk, struct tide_wire_pair *ret_pair)
{
    if (tide_reader_left(walk) == 0) {
        return false;
    }
    tide_str key = tide_reader_take(walk, tide_reader_u32le(walk));
    tide_str value = tide_reader_take(walk, tide_reader_u32le(walk));
    *ret_pair = (struct tide_wire_pair){key, value};
    return !walk->failed;
}

/* By key, then by place: the texts of one map stand in one piece of memory. */
static int compare_pairs(const void *a, const void *b)
{
    const struct tide_wire_pair *x = a;
    const struct tide_wire_pair *y = b;
    int order = tide_str_compare(x->key, y->key);
    return order != 0 ? order : (x->key.ptr > y->key.ptr) - (x->key.ptr < y->key.ptr);
}

/* Keeps the last of each run of equal keys. */
static size_t keep_last(struct tide_wire_pair *pairs, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 == count || !tide_str_equal(pairs[i].key, pairs[i + 1].key)) {
            pairs[kept++] = pairs[i];
        }
    }
    return kept;
}

tide_status tide_wire_map_read(const struct tide_wire_map *map, struct tide_arena *arena,
                               struct tide_wire_pair **ret_pairs, size_t *ret_count,
                               struct tide_error *err)
{
    if (map->pairs.len > TIDE_WIRE_PAIRS_BYTES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "labels or metadata of a source have %zu bytes; the limit is %zu",
                         map->pairs.len, TIDE_WIRE_PAIRS_BYTES_MAX);
    }
    TIDE_ASSERT(map->count <= map->pairs.len / PAIR_SIZE);
    struct tide_wire_pair *pairs = tide_arena_alloc(arena, map->count, sizeof(*pairs));
    struct tide_reader walk = tide_wire_map_walk(map);
    size_t count = 0;
    while (count < map->count && tide_wire_map_next(&walk, &pairs[count])) {
        count++;
    }
    if (count > 1) {
        qsort(pairs, count, sizeof(*pairs), compare_pairs);
    }
    *ret_pairs = pairs;
    *ret_count = keep_last(pairs, count);
    return TIDE_OK;
}

/* Equal maps are equal bytes: the order is checked on sending, and on receiving it is not. */
const char *tide_wire_map_wrong(const struct tide_wire_map *map)
{
    struct tide_wire_take take = {.reader = tide_reader_of(map->pairs)};
    tide_str before = {"", 0};
    bool is_rising = true;
    for (uint32_t i = 0; i < map->count && !take.reader.failed; i++) {
        tide_str key = tide_wire_take_text(&take);
        (void)tide_wire_take_text(&take);
        is_rising = is_rising && (i == 0 || tide_str_compare(before, key) < 0);
        before = key;
    }
    if (take.wrong != NULL || !tide_reader_is_done(&take.reader)) {
        return "labels or metadata are not encoded pairs of UTF-8";
    }
    return is_rising ? NULL : "keys of labels or metadata do not rise";
}

char *tide_wire_map_put(char *at, const struct tide_wire_map *map)
{
    return tide_wire_put_raw(tide_wire_put_u32(at, map->count), map->pairs);
}

size_t tide_wire_map_size(const struct tide_wire_map *map)
{
    return sizeof(uint32_t) + map->pairs.len;
}

/* No memory is taken for a count: each pair is there, or the loop ends. */
struct tide_wire_map tide_wire_map_take(struct tide_wire_take *take)
{
    struct tide_wire_map map = {.count = tide_reader_u32le(&take->reader)};
    const char *start = take->reader.pos;
    for (uint32_t i = 0; i < map.count && !take->reader.failed; i++) {
        (void)tide_wire_take_text(take);
        (void)tide_wire_take_text(take);
    }
    map.pairs = tide_str_of(start, (size_t)(take->reader.pos - start));
    return map;
}
