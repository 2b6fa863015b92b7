#include "engine/again.h"

#include "base/alloc.h"

#include <stdlib.h>

#define WAITING 0

struct tide_again_key {
    uint64_t chunk; /* that reads it; WAITING: none */
    struct tide_value *values;
    size_t count;
};

static void key_free(struct tide_again_key *key)
{
    free(key->values);
    free(key);
}

void tide_again_done(struct tide_again *again)
{
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&again->keys, &at)) != NULL;) {
        key_free(entry->value.ptr);
    }
    tide_map_done(&again->keys);
    tide_buf_done(&again->scratch);
    *again = (struct tide_again){0};
}

static tide_str encoded(struct tide_again *again, const struct tide_value *key, size_t count)
{
    tide_buf_reset(&again->scratch);
    tide_values_encode(&again->scratch, key, count);
    return tide_buf_str(&again->scratch);
}

void tide_again_add(struct tide_again *again, const struct tide_value *key, size_t count)
{
    bool is_new = false;
    union tide_map_value *place = tide_map_put(&again->keys, encoded(again, key, count), &is_new);
    if (is_new) {
        struct tide_again_key *made = tide_alloc(1, sizeof(*made));
        size_t size = 0;
        made->values = tide_values_dup(key, count, &size);
        made->count = count;
        place->ptr = made;
        again->waiting++;
        return;
    }
    struct tide_again_key *known = place->ptr;
    again->waiting += known->chunk != WAITING;
    known->chunk = WAITING;
}

bool tide_again_contains(struct tide_again *again, const struct tide_value *key, size_t count)
{
    return again->keys.count > 0 && tide_map_get(&again->keys, encoded(again, key, count)) != NULL;
}

const struct tide_value *const *tide_again_take(struct tide_again *again, uint64_t chunk,
                                                struct tide_arena *arena, size_t *ret_count)
{
    const struct tide_value **taken = tide_arena_alloc(arena, again->waiting, sizeof(*taken));
    size_t count = 0;
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&again->keys, &at)) != NULL;) {
        struct tide_again_key *key = entry->value.ptr;
        if (key->chunk == WAITING) {
            key->chunk = chunk;
            taken[count++] = tide_values_copy(arena, key->values, key->count);
        }
    }
    again->waiting = 0;
    *ret_count = count;
    return taken;
}

void tide_again_restart(struct tide_again *again)
{
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&again->keys, &at)) != NULL;) {
        ((struct tide_again_key *)entry->value.ptr)->chunk = WAITING;
    }
    again->waiting = again->keys.count;
}

static struct tide_map_entry *find_read_by(struct tide_again *again, uint64_t chunk)
{
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&again->keys, &at)) != NULL;) {
        if (((struct tide_again_key *)entry->value.ptr)->chunk == chunk) {
            return entry;
        }
    }
    return NULL;
}

void tide_again_held(struct tide_again *again, uint64_t chunk)
{
    for (struct tide_map_entry *entry; (entry = find_read_by(again, chunk)) != NULL;) {
        key_free(entry->value.ptr);
        (void)tide_map_remove(&again->keys, entry->key);
    }
}

const struct tide_value *const *tide_again_all(const struct tide_again *again,
                                               struct tide_arena *arena, size_t *ret_count)
{
    const struct tide_value **all = tide_arena_alloc(arena, again->keys.count, sizeof(*all));
    size_t count = 0;
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&again->keys, &at)) != NULL;) {
        all[count++] = ((struct tide_again_key *)entry->value.ptr)->values;
    }
    *ret_count = count;
    return all;
}
