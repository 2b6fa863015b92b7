#include "base/map.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void tide_map_reset(struct tide_map *map)
{
    for (size_t i = 0; i < map->cap; i++) {
        free((void *)(uintptr_t)map->entries[i].key.ptr);
        map->entries[i] = (struct tide_map_entry){0};
    }
    map->count = 0;
}

void tide_map_done(struct tide_map *map)
{
    tide_map_reset(map);
    free(map->entries);
    *map = (struct tide_map){0};
}

/* The place of `key`, or the free place where it would go. */
static struct tide_map_entry *find(const struct tide_map *map, tide_str key, uint64_t hash)
{
    for (size_t i = hash & (map->cap - 1);; i = (i + 1) & (map->cap - 1)) {
        struct tide_map_entry *entry = &map->entries[i];
        if (entry->key.ptr == NULL || (entry->hash == hash && tide_str_equal(entry->key, key))) {
            return entry;
        }
    }
}

static uint64_t hash_of(tide_str key)
{
    return XXH3_64bits(key.len == 0 ? "" : key.ptr, key.len);
}

static void grow(struct tide_map *map)
{
    struct tide_map bigger = {.cap = map->cap == 0 ? 16 : map->cap * 2, .count = map->count};
    bigger.entries = tide_alloc(bigger.cap, sizeof(*bigger.entries));
    for (size_t i = 0; i < map->cap; i++) {
        const struct tide_map_entry *entry = &map->entries[i];
        if (entry->key.ptr != NULL) {
            *find(&bigger, entry->key, entry->hash) = *entry;
        }
    }
    free(map->entries);
    *map = bigger;
}

union tide_map_value *tide_map_get(const struct tide_map *map, tide_str key)
{
    if (map->count == 0) {
        return NULL;
    }
    struct tide_map_entry *entry = find(map, key, hash_of(key));
    return entry->key.ptr == NULL ? NULL : &entry->value;
}

union tide_map_value *tide_map_put(struct tide_map *map, tide_str key, bool *ret_is_new)
{
    if ((map->count + 1) * 4 > map->cap * 3) {
        grow(map);
    }
    uint64_t hash = hash_of(key);
    struct tide_map_entry *entry = find(map, key, hash);
    bool is_new = entry->key.ptr == NULL;
    if (is_new) {
        entry->key = (tide_str){tide_strndup(key.ptr, key.len), key.len};
        entry->hash = hash;
        map->count++;
    }
    if (ret_is_new != NULL) {
        *ret_is_new = is_new;
    }
    return &entry->value;
}

/* Closes the gap at `hole` so that probing needs no tombstones. */
static void shift_back(struct tide_map *map, size_t hole)
{
    size_t mask = map->cap - 1;
    for (size_t i = (hole + 1) & mask; map->entries[i].key.ptr != NULL; i = (i + 1) & mask) {
        size_t home = map->entries[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (struct tide_map_entry){0};
}

bool tide_map_remove(struct tide_map *map, tide_str key)
{
    if (map->count == 0) {
        return false;
    }
    struct tide_map_entry *entry = find(map, key, hash_of(key));
    if (entry->key.ptr == NULL) {
        return false;
    }
    free((void *)(uintptr_t)entry->key.ptr);
    shift_back(map, (size_t)(entry - map->entries));
    map->count--;
    return true;
}

struct tide_map_entry *tide_map_next(const struct tide_map *map, size_t *at)
{
    while (*at < map->cap) {
        struct tide_map_entry *entry = &map->entries[(*at)++];
        if (entry->key.ptr != NULL) {
            return entry;
        }
    }
    return NULL;
}
