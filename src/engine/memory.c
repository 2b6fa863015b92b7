#include "engine/memory.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT_ENTRIES 256
/* What rows_by_key takes for an entry, beside the key's bytes: a place in a table that is half full
 * and has grown, and the header of an allocation. */
#define INDEX_BYTES   128
#define SEGMENT_BYTES (sizeof(struct tide_memory_segment) + (size_t)SEGMENT_ENTRIES * INDEX_BYTES)

struct entry {
    uint64_t tx_id;
    enum tide_op op;
    bool is_partial;
    bool is_forgotten;
    tide_str key;                    /* encoded; empty on truncate */
    tide_str moved_from;             /* encoded; ptr NULL: not moved */
    const struct tide_value *values; /* of a partial change: all columns; else NULL */
};

struct tide_memory_segment {
    struct tide_memory_segment *newer;
    struct tide_arena arena;
    size_t count;
    size_t live;
    struct entry entries[SEGMENT_ENTRIES];
};

/* What rows_by_key holds for the key of an unseen change. */
#define NO_ROW   0 /* the chunk has no such row; else its index + 1 */
#define IS_AGAIN ((uint64_t)1 << 63)

static void segment_free(struct tide_memory_segment *segment)
{
    tide_arena_done(&segment->arena);
    free(segment);
}

void tide_memory_reset(struct tide_memory *memory)
{
    while (memory->oldest != NULL) {
        struct tide_memory_segment *newer = memory->oldest->newer;
        segment_free(memory->oldest);
        memory->oldest = newer;
    }
    memory->newest = NULL;
    memory->size = 0;
    tide_charge_done(&memory->charge);
    tide_map_done(&memory->rows_by_key);
}

void tide_memory_done(struct tide_memory *memory)
{
    tide_memory_reset(memory);
    tide_buf_done(&memory->key);
}

static struct tide_memory_segment *segment_with_room(struct tide_memory *memory)
{
    struct tide_memory_segment *segment = memory->newest;
    if (segment != NULL && segment->count < SEGMENT_ENTRIES) {
        return segment;
    }
    segment = tide_alloc(1, sizeof(*segment));
    if (memory->newest == NULL) {
        memory->oldest = segment;
    } else {
        memory->newest->newer = segment;
    }
    memory->newest = segment;
    memory->size += SEGMENT_BYTES;
    return segment;
}

static tide_str encoded(struct tide_memory *memory, struct tide_arena *arena,
                        const struct tide_value *values, size_t count)
{
    tide_buf_reset(&memory->key);
    tide_values_encode(&memory->key, values, count);
    return tide_arena_str(arena, tide_buf_str(&memory->key));
}

bool tide_memory_add(struct tide_memory *memory, const struct tide_change *change)
{
    struct tide_memory_segment *segment = segment_with_room(memory);
    size_t size_before = segment->arena.size;
    size_t key_count = change->relation->key_count;
    struct entry *entry = &segment->entries[segment->count++];
    segment->live++;
    *entry =
        (struct entry){.tx_id = change->tx_id, .op = change->op, .is_partial = change->is_partial};
    if (change->key != NULL) {
        entry->key = encoded(memory, &segment->arena, change->key, key_count);
    }
    if (change->moved_from != NULL) {
        entry->moved_from = encoded(memory, &segment->arena, change->moved_from, key_count);
    }
    if (change->is_partial) {
        entry->values =
            tide_values_copy(&segment->arena, change->values, change->relation->column_count);
    }
    memory->size += segment->arena.size - size_before;
    return tide_charge_try_set(&memory->charge, memory->size);
}

static bool seen_by_all(const struct entry *entry, const struct tide_chunk *const *chunks,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!tide_visibility_sees(&chunks[i]->visibility, entry->tx_id)) {
            return false;
        }
    }
    return true;
}

static void forget_in_segment(struct tide_memory_segment *segment,
                              const struct tide_chunk *const *chunks, size_t count)
{
    for (size_t i = 0; i < segment->count; i++) {
        struct entry *entry = &segment->entries[i];
        if (!entry->is_forgotten && seen_by_all(entry, chunks, count)) {
            entry->is_forgotten = true;
            segment->live--;
        }
    }
}

void tide_memory_forget(struct tide_memory *memory, const struct tide_chunk *const *chunks,
                        size_t count)
{
    struct tide_memory_segment **link = &memory->oldest;
    struct tide_memory_segment *last_kept = NULL;
    while (*link != NULL) {
        struct tide_memory_segment *segment = *link;
        forget_in_segment(segment, chunks, count);
        if (segment->live == 0) {
            *link = segment->newer;
            memory->size -= SEGMENT_BYTES + segment->arena.size;
            segment_free(segment);
        } else {
            last_kept = segment;
            link = &segment->newer;
        }
    }
    memory->newest = last_kept;
    tide_charge_set(&memory->charge, memory->size);
}

/* A walk over the entries that the chunk does not see. */
struct unseen {
    const struct tide_visibility *visibility;
    const struct tide_memory_segment *segment;
    size_t index;
};

static const struct entry *next_unseen(struct unseen *walk)
{
    while (walk->segment != NULL) {
        if (walk->index == walk->segment->count) {
            walk->segment = walk->segment->newer;
            walk->index = 0;
            continue;
        }
        const struct entry *entry = &walk->segment->entries[walk->index++];
        if (!entry->is_forgotten && !tide_visibility_sees(walk->visibility, entry->tx_id)) {
            return entry;
        }
    }
    return NULL;
}

static struct unseen unseen_by(const struct tide_memory *memory, const struct tide_chunk *chunk)
{
    return (struct unseen){.visibility = &chunk->visibility, .segment = memory->oldest};
}

/* Fills rows_by_key with the keys of unseen changes and where the chunk has their rows. */
static void index_rows(struct tide_memory *memory, struct tide_chunk *chunk,
                       const struct tide_relation *relation, const struct tide_value *const *again,
                       size_t again_count)
{
    struct unseen walk = unseen_by(memory, chunk);
    tide_map_reset(&memory->rows_by_key);
    for (const struct entry *entry = next_unseen(&walk); entry != NULL;
         entry = next_unseen(&walk)) {
        (void)tide_map_put(&memory->rows_by_key, entry->key, NULL);
        if (entry->moved_from.ptr != NULL) {
            (void)tide_map_put(&memory->rows_by_key, entry->moved_from, NULL);
        }
    }
    for (size_t i = 0; i < again_count; i++) {
        tide_buf_reset(&memory->key);
        tide_values_encode(&memory->key, again[i], relation->key_count);
        union tide_map_value *place =
            tide_map_get(&memory->rows_by_key, tide_buf_str(&memory->key));
        if (place != NULL) {
            place->number |= IS_AGAIN;
        }
    }
    for (size_t row = 0; row < chunk->row_count; row++) {
        tide_buf_reset(&memory->key);
        for (size_t k = 0; k < relation->key_count; k++) {
            tide_values_encode(&memory->key, &chunk->rows[row][relation->key_columns[k]], 1);
        }
        union tide_map_value *place =
            tide_map_get(&memory->rows_by_key, tide_buf_str(&memory->key));
        if (place == NULL) {
            continue;
        }
        uint64_t earlier = place->number & ~IS_AGAIN;
        if (earlier != NO_ROW) {
            chunk->rows[earlier - 1] = NULL; /* read by range and by key: once is enough */
        }
        place->number = (place->number & IS_AGAIN) | (row + 1);
    }
}

/* The chunk's row under an encoded key, NULL when it has none (or no longer). */
static const struct tide_value **row_of(const struct tide_memory *memory, struct tide_chunk *chunk,
                                        tide_str key)
{
    uint64_t number = tide_map_get(&memory->rows_by_key, key)->number & ~IS_AGAIN;
    if (number == NO_ROW || chunk->rows[number - 1] == NULL) {
        return NULL;
    }
    return &chunk->rows[number - 1];
}

/* The row with what the partial change sent put over it. */
static const struct tide_value *merged(struct tide_chunk *chunk, const struct tide_value *row,
                                       const struct entry *entry, size_t column_count)
{
    struct tide_value *values = tide_arena_alloc(&chunk->arena, column_count, sizeof(*values));
    for (size_t i = 0; i < column_count; i++) {
        bool is_sent = entry->values[i].kind != TIDE_VALUE_UNCHANGED;
        values[i] = is_sent ? entry->values[i] : row[i];
        if (is_sent) {
            values[i].ptr = tide_arena_str(&chunk->arena, tide_value_str(values[i])).ptr;
        }
    }
    return values;
}

static void withhold_all(struct tide_chunk *chunk)
{
    for (size_t i = 0; i < chunk->row_count; i++) {
        chunk->rows[i] = NULL;
    }
}

static void apply_unseen(struct tide_memory *memory, struct tide_chunk *chunk,
                         const struct entry *entry, size_t column_count)
{
    if (entry->op == TIDE_OP_TRUNCATE) {
        withhold_all(chunk);
        return;
    }
    const struct tide_value **row = NULL;
    if (entry->moved_from.ptr != NULL) {
        row = row_of(memory, chunk, entry->moved_from);
        if (row != NULL) {
            *row = NULL;
        }
    }
    row = row_of(memory, chunk, entry->key);
    if (row == NULL) {
        return;
    }
    bool can_merge = entry->is_partial && entry->moved_from.ptr == NULL;
    *row = can_merge ? merged(chunk, *row, entry, column_count) : NULL;
}

static void retry_again_keys(const struct tide_memory *memory, const struct tide_chunk *chunk,
                             const struct tide_relation *relation,
                             const struct tide_value *const *again, size_t again_count,
                             tide_memory_retry *retry, void *context)
{
    struct unseen walk = unseen_by(memory, chunk);
    struct tide_buf key TIDE_CLEANUP(tide_buf_done) = {0};
    for (const struct entry *entry = next_unseen(&walk); entry != NULL;
         entry = next_unseen(&walk)) {
        if (!entry->is_partial ||
            (tide_map_get(&memory->rows_by_key, entry->key)->number & IS_AGAIN) == 0) {
            continue;
        }
        for (size_t i = 0; i < again_count; i++) {
            tide_buf_reset(&key);
            tide_values_encode(&key, again[i], relation->key_count);
            if (tide_str_equal(tide_buf_str(&key), entry->key)) {
                retry(context, again[i], relation->key_count);
            }
        }
    }
}

void tide_memory_reconcile(struct tide_memory *memory, struct tide_chunk *chunk,
                           const struct tide_relation *relation,
                           const struct tide_value *const *again, size_t again_count,
                           tide_memory_retry *retry, void *context)
{
    struct unseen walk = unseen_by(memory, chunk);
    const struct entry *entry = next_unseen(&walk);
    if (entry == NULL) {
        return; /* the chunk sees all that was remembered: nearly always */
    }
    index_rows(memory, chunk, relation, again, again_count);
    for (; entry != NULL; entry = next_unseen(&walk)) {
        apply_unseen(memory, chunk, entry, relation->column_count);
    }
    if (again_count > 0) {
        retry_again_keys(memory, chunk, relation, again, again_count, retry, context);
    }
    tide_map_done(&memory->rows_by_key); /* what it was counted for may be forgotten next */
}
