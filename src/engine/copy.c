#include "engine/copy.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tide_copy_part {
    struct tide_copy_part *newer;
    uint64_t build;
    uint64_t chunk_number;
    uint64_t next_seq;
    bool is_end;
    struct tide_kept_key last_key;
};

static void key_done(struct tide_kept_key *kept)
{
    free(kept->values);
    *kept = (struct tide_kept_key){0};
}

static void key_set(struct tide_kept_key *kept, const struct tide_value *values, size_t count)
{
    struct tide_kept_key made = {0};
    if (values != NULL) {
        made.values = tide_values_dup(values, count, &made.size);
    }
    key_done(kept);
    *kept = made;
}

static void chunk_done(struct tide_copy_chunk *chunk)
{
    tide_chunk_done(&chunk->chunk);
    tide_arena_done(&chunk->request_arena);
    *chunk = (struct tide_copy_chunk){0};
}

static void drop_chunks(struct tide_copy *copy)
{
    for (size_t i = 0; i < copy->waiting_count; i++) {
        chunk_done(&copy->waiting[i]);
    }
    copy->waiting_count = 0;
    chunk_done(&copy->reading);
    copy->is_reading = false;
}

static void drop_oldest_part(struct tide_copy *copy)
{
    struct tide_copy_part *part = copy->oldest_part;
    copy->oldest_part = part->newer;
    if (copy->oldest_part == NULL) {
        copy->newest_part = NULL;
    }
    key_done(&part->last_key);
    free(part);
}

struct tide_copy *tide_copy_new(const struct tide_relation *relation,
                                const struct tide_copy_options *options)
{
    struct tide_copy *copy = tide_alloc(1, sizeof(*copy));
    copy->relation = tide_relation_ref(relation);
    copy->options = *options;
    copy->head.incarnation = options->incarnation;
    copy->memory.charge =
        (struct tide_charge){.budget = options->budget, .user = TIDE_BUDGET_MEMORY};
    return copy;
}

void tide_copy_free(struct tide_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    drop_chunks(copy);
    while (copy->oldest_part != NULL) {
        drop_oldest_part(copy);
    }
    tide_memory_done(&copy->memory);
    tide_again_done(&copy->again);
    key_done(&copy->read_key);
    key_done(&copy->out_key);
    key_done(&copy->held_key);
    free((void *)(uintptr_t)copy->head.starts);
    tide_relation_unref(copy->relation);
    free(copy);
}

/* Nothing was ever published of it. */
static bool is_new(const struct tide_copy *copy)
{
    return !copy->is_begun || (copy->is_named && copy->head.attempt == 0);
}

bool tide_copy_can_be_joined(const struct tide_copy *copy)
{
    return copy->state == TIDE_COPY_QUEUED && is_new(copy);
}

void tide_copy_add_share(struct tide_copy *copy, unsigned lane, uint64_t request_id)
{
    TIDE_ASSERT(copy->share_count < TIDE_LANES_MAX);
    if (is_new(copy)) {
        copy->is_begun = false;
        copy->is_named = false;
    }
    copy->shares[copy->share_count++] =
        (struct tide_copy_share){.lane = lane, .request_id = request_id};
}

void tide_copy_remove_lane(struct tide_copy *copy, unsigned lane)
{
    size_t kept = 0;
    for (size_t i = 0; i < copy->share_count; i++) {
        if (copy->shares[i].lane != lane) {
            copy->shares[kept++] = copy->shares[i];
        }
    }
    copy->share_count = kept;
}

tide_lane_set tide_copy_lanes(const struct tide_copy *copy)
{
    tide_lane_set lanes = 0;
    for (size_t i = 0; i < copy->share_count; i++) {
        lanes |= (tide_lane_set)1 << copy->shares[i].lane;
    }
    return lanes;
}

void tide_copy_restore(struct tide_copy *copy, const struct tide_copy_held *held)
{
    uint64_t *starts = tide_alloc(held->attempt, sizeof(*starts));
    if (held->attempt > 0) {
        memcpy(starts, held->starts, held->attempt * sizeof(*starts));
    }
    copy->is_begun = true;
    copy->head.at_us = held->snapshot_at_us;
    copy->head.attempt = held->attempt;
    copy->head.starts = starts;
    memcpy(copy->head.id, held->snapshot_id, sizeof(copy->head.id));
    copy->held_seq = held->next_seq;
    key_set(&copy->held_key, held->last_key, copy->relation->key_count);
    copy->state = held->is_done ? TIDE_COPY_DONE : TIDE_COPY_QUEUED;
}

/* One attempt more, from the first seq that is not held. */
static void next_attempt(struct tide_copy *copy)
{
    uint64_t *starts = tide_alloc(copy->head.attempt + 1, sizeof(*starts));
    if (copy->head.attempt > 0) {
        memcpy(starts, copy->head.starts, copy->head.attempt * sizeof(*starts));
    }
    starts[copy->head.attempt++] = copy->held_seq;
    free((void *)(uintptr_t)copy->head.starts);
    copy->head.starts = starts;
}

void tide_copy_name(struct tide_copy *copy, int64_t now_us)
{
    TIDE_ASSERT(copy->state == TIDE_COPY_QUEUED);
    if (is_new(copy)) {
        copy->head.at_us = now_us;
        tide_uuid_v7(now_us, copy->head.id);
    } else {
        next_attempt(copy);
    }
    copy->is_begun = true;
    copy->is_named = true;
}

void tide_copy_start(struct tide_copy *copy, int64_t now_us)
{
    if (!copy->is_named) {
        tide_copy_name(copy, now_us);
    }
    copy->is_named = false;
    copy->next_seq = copy->held_seq;
    key_set(&copy->out_key, copy->held_key.values, copy->relation->key_count);
    copy->state = TIDE_COPY_RUNNING;
    tide_copy_restart_remembering(copy);
}

void tide_copy_restart_remembering(struct tide_copy *copy)
{
    drop_chunks(copy);
    tide_memory_reset(&copy->memory);
    tide_again_restart(&copy->again);
    key_set(&copy->read_key, copy->out_key.values, copy->relation->key_count);
    copy->range_is_read = copy->range_is_out;
    copy->needs_horizon = true;
}

static struct tide_snapshot_part *part_in(struct tide_batch *batch, const struct tide_copy *copy)
{
    struct tide_snapshot_part *part = tide_arena_alloc(&batch->arena, 1, sizeof(*part));
    *part = (struct tide_snapshot_part){
        .relation = copy->relation,
        .head = copy->head,
        .request_id = copy->shares[0].request_id,
        .first_seq = copy->next_seq,
    };
    size_t attempts = copy->head.attempt;
    uint64_t *starts = tide_arena_alloc(&batch->arena, attempts, sizeof(*starts));
    if (attempts > 0) {
        memcpy(starts, copy->head.starts, attempts * sizeof(*starts));
    }
    part->head.starts = starts;
    tide_batch_use_relation(batch, copy->relation);
    batch->snapshot = part;
    return part;
}

static void count_size(struct tide_batch *batch)
{
    batch->size = sizeof(*batch) + batch->arena.size;
}

struct tide_batch *tide_copy_opening(struct tide_copy *copy, struct tide_place changes_from)
{
    struct tide_batch *batch = tide_batch_new();
    batch->charge =
        (struct tide_charge){.budget = copy->options.budget, .user = TIDE_BUDGET_CHUNKS};
    struct tide_snapshot_part *part = part_in(batch, copy);
    part->opening = copy->head.attempt > 0 ? TIDE_OPENING_RESUME : TIDE_OPENING_BEGIN;
    part->changes_from = changes_from;
    count_size(batch);
    return batch;
}

/*
 * A move that left columns unsent: the row's old key may not be out yet, so that no sink holds all
 * of the old row and no chunk is sure to bring the new one. Which keys are out only the source
 * could tell (it alone compares keys), so until the range is out every such key is read again.
 */
static bool must_read_again(struct tide_copy *copy, const struct tide_change *change)
{
    if (!change->is_partial || change->op == TIDE_OP_DELETE) {
        return false;
    }
    if (change->op == TIDE_OP_INSERT) {
        return true;
    }
    return change->moved_from != NULL &&
           (!copy->range_is_out ||
            tide_again_contains(&copy->again, change->moved_from, copy->relation->key_count));
}

void tide_copy_remember(struct tide_copy *copy, const struct tide_change *change)
{
    bool is_waiting = copy->state == TIDE_COPY_QUEUED && !is_new(copy);
    if (copy->state != TIDE_COPY_RUNNING && !is_waiting) {
        return;
    }
    if (must_read_again(copy, change)) {
        tide_again_add(&copy->again, change->key, copy->relation->key_count);
    }
    if (is_waiting) {
        return;
    }
    size_t bytes_max = copy->options.memory_bytes_max;
    bool fits = tide_memory_add(&copy->memory, change);
    if (!fits || (bytes_max > 0 && copy->memory.size > bytes_max)) {
        tide_copy_restart_remembering(copy);
    }
}

bool tide_copy_has_work(const struct tide_copy *copy)
{
    bool is_unread = !copy->range_is_read || copy->again.waiting > 0;
    return copy->state == TIDE_COPY_RUNNING && !copy->is_reading && is_unread &&
           copy->waiting_count < TIDE_CHUNKS_AHEAD;
}

bool tide_copy_wants(struct tide_copy *copy, struct tide_chunk_request *ret_request,
                     bool *ret_needs_horizon)
{
    if (!tide_copy_has_work(copy)) {
        return false;
    }
    struct tide_copy_chunk *reading = &copy->reading;
    reading->number = ++copy->chunk_numbers;
    reading->again = tide_again_take(&copy->again, reading->number, &reading->request_arena,
                                     &reading->again_count);
    *ret_request = (struct tide_chunk_request){
        .relation = copy->relation,
        .after_key = copy->read_key.values,
        .again = reading->again,
        .again_count = reading->again_count,
        .rows_max = copy->options.chunk_rows_max,
        .bytes_max = copy->options.chunk_bytes_max,
        .range_is_done = copy->range_is_read,
    };
    *ret_needs_horizon = copy->needs_horizon;
    copy->needs_horizon = false;
    copy->is_reading = true;
    return true;
}

static void put_back_again_keys(struct tide_copy *copy, const struct tide_copy_chunk *chunk)
{
    for (size_t i = 0; i < chunk->again_count; i++) {
        tide_again_add(&copy->again, chunk->again[i], copy->relation->key_count);
    }
}

void tide_copy_read_failed(struct tide_copy *copy)
{
    TIDE_ASSERT(copy->is_reading);
    put_back_again_keys(copy, &copy->reading);
    chunk_done(&copy->reading);
    copy->is_reading = false;
}

void tide_copy_take(struct tide_copy *copy, struct tide_chunk *chunk)
{
    TIDE_ASSERT(copy->is_reading && copy->waiting_count < TIDE_CHUNKS_AHEAD);
    if (!chunk->is_trusted) {
        tide_chunk_done(chunk);
        tide_copy_read_failed(copy);
        return;
    }
    copy->reading.chunk = *chunk;
    *chunk = (struct tide_chunk){0};
    if (copy->reading.chunk.last_key != NULL) {
        key_set(&copy->read_key, copy->reading.chunk.last_key, copy->relation->key_count);
    }
    copy->range_is_read = copy->range_is_read || copy->reading.chunk.is_last;
    copy->waiting[copy->waiting_count++] = copy->reading;
    copy->reading = (struct tide_copy_chunk){0};
    copy->is_reading = false;
}

void tide_copy_fail(struct tide_copy *copy, const char *why)
{
    drop_chunks(copy);
    tide_memory_reset(&copy->memory);
    copy->state = TIDE_COPY_FAILED;
    (void)snprintf(copy->failure, sizeof(copy->failure), "%s", why);
}

bool tide_copy_is_ready(const struct tide_copy *copy, struct tide_position reached)
{
    return copy->state == TIDE_COPY_RUNNING && copy->waiting_count > 0 &&
           tide_position_compare(copy->waiting[0].chunk.position, reached) <= 0;
}

static void retry_key(void *context, const struct tide_value *key, size_t count)
{
    struct tide_copy *copy = context;
    tide_again_add(&copy->again, key, count);
}

/* Closes the gaps that withheld rows left. */
static void compact_rows(struct tide_chunk *chunk)
{
    size_t kept = 0;
    for (size_t i = 0; i < chunk->row_count; i++) {
        if (chunk->rows[i] != NULL) {
            chunk->rows[kept++] = chunk->rows[i];
        }
    }
    chunk->row_count = kept;
}

static void add_part(struct tide_copy *copy, const struct tide_copy_chunk *out, bool is_end)
{
    struct tide_copy_part *part = tide_alloc(1, sizeof(*part));
    part->chunk_number = out->number;
    part->next_seq = copy->next_seq;
    part->is_end = is_end;
    key_set(&part->last_key, copy->out_key.values, copy->relation->key_count);
    if (copy->newest_part == NULL) {
        copy->oldest_part = part;
    } else {
        copy->newest_part->newer = part;
    }
    copy->newest_part = part;
}

/* What this chunk and every one that waits behind it sees need not be remembered. */
static void forget_seen(struct tide_copy *copy, const struct tide_chunk *out)
{
    const struct tide_chunk *chunks[TIDE_CHUNKS_AHEAD + 1] = {out};
    for (size_t i = 0; i < copy->waiting_count; i++) {
        chunks[i + 1] = &copy->waiting[i].chunk;
    }
    tide_memory_forget(&copy->memory, chunks, copy->waiting_count + 1);
}

static void take_oldest(struct tide_copy *copy, struct tide_copy_chunk *ret_chunk)
{
    *ret_chunk = copy->waiting[0];
    copy->waiting_count--;
    memmove(&copy->waiting[0], &copy->waiting[1], copy->waiting_count * sizeof(copy->waiting[0]));
    copy->waiting[copy->waiting_count] = (struct tide_copy_chunk){0};
}

static void set_end(struct tide_copy *copy, struct tide_snapshot_part *part,
                    struct tide_place changes_to, int64_t now_us)
{
    part->is_end = true;
    part->completed_us = now_us < copy->head.at_us ? copy->head.at_us : now_us;
    part->changes_to = changes_to;
    copy->state = TIDE_COPY_ENDED;
    tide_memory_reset(&copy->memory);
}

struct tide_batch *tide_copy_emit(struct tide_copy *copy, struct tide_position reached,
                                  struct tide_place changes_to, int64_t now_us)
{
    struct tide_copy_chunk out;
    take_oldest(copy, &out);
    tide_memory_reconcile(&copy->memory, &out.chunk, copy->relation, out.again, out.again_count,
                          retry_key, copy);
    forget_seen(copy, &out.chunk);
    compact_rows(&out.chunk);
    if (out.chunk.last_key != NULL) {
        key_set(&copy->out_key, out.chunk.last_key, copy->relation->key_count);
    }
    copy->range_is_out = copy->range_is_out || out.chunk.is_last;

    struct tide_batch *batch = tide_batch_new();
    struct tide_snapshot_part *part = part_in(batch, copy);
    part->rows = (const struct tide_value *const *)out.chunk.rows;
    part->row_count = out.chunk.row_count;
    part->row_position = reached;
    copy->next_seq += out.chunk.row_count;
    copy->rows_published += out.chunk.row_count;
    bool is_end = copy->range_is_out && copy->waiting_count == 0 && !copy->is_reading &&
                  copy->again.waiting == 0;
    if (is_end) {
        set_end(copy, part, changes_to, now_us);
    }
    add_part(copy, &out, is_end);
    tide_arena_adopt(&batch->arena, &out.chunk.arena);
    batch->charge = out.chunk.charge;
    out.chunk.charge = (struct tide_charge){0};
    chunk_done(&out);
    count_size(batch);
    batch->size += sizeof(*copy->newest_part) + copy->newest_part->last_key.size;
    return batch;
}

void tide_copy_published(struct tide_copy *copy, uint64_t build)
{
    TIDE_ASSERT(copy->newest_part != NULL && copy->newest_part->build == 0);
    copy->newest_part->build = build;
}

bool tide_copy_held(struct tide_copy *copy, uint64_t build)
{
    bool moved = false;
    while (copy->oldest_part != NULL && copy->oldest_part->build != 0 &&
           copy->oldest_part->build <= build) {
        const struct tide_copy_part *part = copy->oldest_part;
        key_set(&copy->held_key, part->last_key.values, copy->relation->key_count);
        copy->held_seq = part->next_seq;
        tide_again_held(&copy->again, part->chunk_number);
        if (part->is_end) {
            copy->state = TIDE_COPY_DONE;
            key_done(&copy->read_key);
            key_done(&copy->out_key);
        }
        drop_oldest_part(copy);
        moved = true;
    }
    return moved;
}
