#include "engine/build.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>

/* How much smaller batches are closed while the budget is short. */
#define SHORT_PART 16

struct mark_place {
    struct tide_store *store;
    struct tide_place place;
};

struct tide_build_mark {
    struct tide_build_mark *newer;
    uint64_t build_number;
    size_t count;
    struct mark_place places[];
};

void tide_build_init(struct tide_build *build, size_t changes_max, size_t bytes_max,
                     struct tide_position start)
{
    *build =
        (struct tide_build){.changes_max = changes_max, .bytes_max = bytes_max, .reached = start};
}

void tide_build_done(struct tide_build *build)
{
    tide_batch_unref(build->batch);
    tide_build_held(build, UINT64_MAX);
    for (size_t i = 0; i < build->store_count; i++) {
        free(build->list[i]);
    }
    free((void *)build->list);
    tide_map_done(&build->stores);
    tide_relation_unref(build->last_relation);
    *build = (struct tide_build){0};
}

struct tide_store *tide_build_store(struct tide_build *build, tide_str name)
{
    union tide_map_value *value = tide_map_get(&build->stores, name);
    if (value != NULL) {
        return value->ptr;
    }
    struct tide_store *store = tide_alloc(1, sizeof(*store) + name.len + 1);
    char *copy = (char *)(store + 1);
    memcpy(copy, name.ptr, name.len);
    store->name = tide_str_of(copy, name.len);
    tide_map_put(&build->stores, name, NULL)->ptr = store;
    if (build->store_count == build->store_cap) {
        build->store_cap = build->store_cap == 0 ? 16 : build->store_cap * 2;
        build->list = tide_realloc((void *)build->list, build->store_cap, sizeof(*build->list));
    }
    build->list[build->store_count++] = store;
    return store;
}

static struct tide_store *store_of(struct tide_build *build, const struct tide_relation *relation)
{
    if (build->last_relation != relation) {
        tide_relation_unref(build->last_relation);
        build->last_relation = tide_relation_ref(relation);
        build->last_store = tide_build_store(build, relation->store);
    }
    return build->last_store;
}

static struct tide_batch *open_batch(struct tide_build *build)
{
    if (build->batch == NULL) {
        build->batch = tide_batch_new();
        build->batch->charge =
            (struct tide_charge){.budget = build->budget, .user = TIDE_BUDGET_BUILD};
        build->change_cap = 0;
    }
    return build->batch;
}

struct tide_arena *tide_build_arena(struct tide_build *build)
{
    return &open_batch(build)->arena;
}

static struct tide_place behind(struct tide_position position)
{
    return (struct tide_place){position, TIDE_INDEX_LAST, .known = true};
}

void tide_build_break(struct tide_store *store, struct tide_position position)
{
    store->published = store->committed = store->held = behind(position);
    store->is_changed = true; /* an older place may become the one held meanwhile */
}

const struct tide_change *tide_build_add(struct tide_build *build, const struct tide_change *change)
{
    struct tide_batch *batch = open_batch(build);
    if (batch->change_count == build->change_cap) {
        build->change_cap = build->change_cap == 0 ? 16 : build->change_cap * 2;
        batch->changes = tide_realloc(batch->changes, build->change_cap, sizeof(*batch->changes));
    }
    struct tide_store *store = store_of(build, change->relation);
    struct tide_change *kept = &batch->changes[batch->change_count++];
    *kept = *change;
    kept->prev = store->published;
    /* behind the truncation are rows that no change has brought, and a copy will */
    bool is_emptied = store->is_anew && change->op == TIDE_OP_TRUNCATE;
    store->published = is_emptied ? behind(change->place.position) : change->place;
    store->is_touched = true;
    build->in_transaction = true;
    tide_batch_use_relation(batch, change->relation);
    return kept;
}

void tide_build_commit(struct tide_build *build, struct tide_position position)
{
    for (size_t i = 0; build->in_transaction && i < build->store_count; i++) {
        struct tide_store *store = build->list[i];
        store->is_anew = false;
        if (store->is_touched) {
            store->is_touched = false;
            store->is_changed = true;
            store->committed = store->published;
        }
    }
    build->in_transaction = false;
    if (tide_position_compare(position, build->reached) > 0) {
        build->reached = position;
        build->has_new_position = true;
    }
}

static size_t open_size(const struct tide_build *build)
{
    return sizeof(*build->batch) + build->batch->arena.size +
           build->change_cap * sizeof(*build->batch->changes);
}

void tide_build_count(struct tide_build *build)
{
    if (build->batch != NULL && build->batch->charge.bytes != open_size(build)) {
        tide_charge_set(&build->batch->charge, open_size(build));
    }
}

bool tide_build_is_full(const struct tide_build *build)
{
    if (build->batch == NULL) {
        return false;
    }
    size_t bytes_max = build->bytes_max;
    if (tide_budget_is_short(build->budget)) {
        bytes_max /= SHORT_PART;
    }
    return build->batch->change_count >= build->changes_max ||
           build->batch->arena.size >= bytes_max;
}

struct tide_batch *tide_build_take(struct tide_build *build)
{
    bool has_changes = build->batch != NULL && build->batch->change_count > 0;
    if (!has_changes && !build->has_new_position) {
        return NULL;
    }
    struct tide_batch *batch = open_batch(build);
    batch->has_position = build->has_new_position;
    batch->position = build->reached;
    batch->size = open_size(build);
    build->has_new_position = false;
    build->batch = NULL;
    return batch;
}

static size_t changed_count(const struct tide_build *build)
{
    size_t count = 0;
    for (size_t i = 0; i < build->store_count; i++) {
        count += build->list[i]->is_changed;
    }
    return count;
}

void tide_build_published(struct tide_build *build, const struct tide_batch *batch,
                          uint64_t build_number)
{
    size_t count = batch->has_position ? changed_count(build) : 0;
    if (count == 0) {
        return;
    }
    struct tide_build_mark *mark = tide_alloc(1, sizeof(*mark) + count * sizeof(mark->places[0]));
    mark->build_number = build_number;
    for (size_t i = 0; i < build->store_count; i++) {
        struct tide_store *store = build->list[i];
        if (store->is_changed) {
            store->is_changed = false;
            mark->places[mark->count++] =
                (struct mark_place){.store = store, .place = store->committed};
        }
    }
    if (build->newest_mark == NULL) {
        build->oldest_mark = mark;
    } else {
        build->newest_mark->newer = mark;
    }
    build->newest_mark = mark;
}

void tide_build_held(struct tide_build *build, uint64_t build_number)
{
    while (build->oldest_mark != NULL && build->oldest_mark->build_number <= build_number) {
        struct tide_build_mark *mark = build->oldest_mark;
        for (size_t i = 0; i < mark->count; i++) {
            mark->places[i].store->held = mark->places[i].place;
        }
        build->oldest_mark = mark->newer;
        free(mark);
    }
    if (build->oldest_mark == NULL) {
        build->newest_mark = NULL;
    }
}

void tide_build_abandon(struct tide_build *build)
{
    for (size_t i = 0; i < build->store_count; i++) {
        struct tide_store *store = build->list[i];
        store->is_touched = store->is_anew = false;
        store->published = store->committed;
    }
    build->in_transaction = false;
}
