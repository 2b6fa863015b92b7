#include "engine/dead_letter_ids.h"

#include "base/alloc.h"

#include <stdlib.h>

#define SLOTS_MIN ((size_t)64)

void tide_dead_letter_ids_init(struct tide_dead_letter_ids *ids, size_t max)
{
    TIDE_ASSERT(max > 0);
    *ids = (struct tide_dead_letter_ids){.max = max};
}

void tide_dead_letter_ids_done(struct tide_dead_letter_ids *ids)
{
    free(ids->newer.slots);
    free(ids->older.slots);
    *ids = (struct tide_dead_letter_ids){0};
}

/* Ids are hashes; the one that would look like a free slot is taken for its neighbour. */
static struct tide_dead_letter_id usable(struct tide_dead_letter_id id)
{
    id.lo += id.hi == 0 && id.lo == 0;
    return id;
}

/* Where `id` is, or the free slot where it belongs. */
static struct tide_dead_letter_id *find_slot(const struct tide_dead_letter_id_set *set,
                                             struct tide_dead_letter_id id)
{
    size_t at = (size_t)id.lo & (set->cap - 1);
    for (;;) {
        struct tide_dead_letter_id *slot = &set->slots[at];
        bool is_free = slot->hi == 0 && slot->lo == 0;
        if (is_free || (slot->hi == id.hi && slot->lo == id.lo)) {
            return slot;
        }
        at = (at + 1) & (set->cap - 1);
    }
}

static bool set_has(const struct tide_dead_letter_id_set *set, struct tide_dead_letter_id id)
{
    return set->count > 0 && find_slot(set, id)->hi == id.hi && find_slot(set, id)->lo == id.lo;
}

static void grow(struct tide_dead_letter_id_set *set)
{
    struct tide_dead_letter_id_set larger = {
        .cap = set->cap == 0 ? SLOTS_MIN : 2 * set->cap,
        .count = set->count,
    };
    larger.slots = tide_alloc(larger.cap, sizeof(*larger.slots));
    for (size_t i = 0; i < set->cap; i++) {
        if (set->slots[i].hi != 0 || set->slots[i].lo != 0) {
            *find_slot(&larger, set->slots[i]) = set->slots[i];
        }
    }
    free(set->slots);
    *set = larger;
}

static void set_add(struct tide_dead_letter_id_set *set, struct tide_dead_letter_id id)
{
    if (set->count >= set->cap / 2) {
        grow(set);
    }
    *find_slot(set, id) = id;
    set->count++;
}

bool tide_dead_letter_ids_has(const struct tide_dead_letter_ids *ids, struct tide_dead_letter_id id)
{
    return set_has(&ids->newer, usable(id)) || set_has(&ids->older, usable(id));
}

void tide_dead_letter_ids_add(struct tide_dead_letter_ids *ids, struct tide_dead_letter_id id)
{
    if (set_has(&ids->newer, usable(id))) {
        return;
    }
    if (ids->newer.count == ids->max) {
        free(ids->older.slots);
        ids->older = ids->newer;
        ids->newer = (struct tide_dead_letter_id_set){0};
    }
    set_add(&ids->newer, usable(id));
}
