/* Feeding: what every frame leaves behind. Judging is in reassembler_judge.c. */
#include "format/reassembler.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "format/json_reader.h"
#include "format/reassembler_state.h"

#include <stdlib.h>

struct tide_reassembler *tide_reassembler_new(void)
{
    return tide_alloc(1, sizeof(struct tide_reassembler));
}

static void free_attempt(struct tide_snapshot_attempt *attempt)
{
    tide_interval_set_done(&attempt->seen);
    tide_interval_set_done(&attempt->stubs);
    tide_interval_set_done(&attempt->again);
    tide_interval_set_done(&attempt->both);
    tide_interval_set_done(&attempt->different);
    free(attempt);
}

static void free_text(tide_str text)
{
    free((void *)(uintptr_t)text.ptr);
}

static void free_snapshot(struct tide_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->attempt_count; i++) {
        free_attempt(snapshot->attempts[i]);
    }
    free(snapshot->attempts);
    free(snapshot->starts);
    free(snapshot->end.completed_at);
    tide_buf_done(&snapshot->latest_position);
    free_text(snapshot->id);
    free_text(snapshot->store);
    free_text(snapshot->snapshot_at);
    free_text(snapshot->other_store);
    free(snapshot);
}

void tide_reassembler_free(struct tide_reassembler *reassembler)
{
    if (reassembler == NULL) {
        return;
    }
    for (size_t i = 0; i < reassembler->count; i++) {
        free_snapshot(reassembler->snapshots[i]);
    }
    size_t at = 0;
    struct tide_map_entry *entry;
    while ((entry = tide_map_next(&reassembler->by_store, &at)) != NULL) {
        struct tide_store_changes *changes = entry->value.ptr;
        tide_change_chain_done(&changes->chain);
        free_text(changes->store);
        free(changes);
    }
    tide_recheck_free(reassembler->recheck);
    free(reassembler->snapshots);
    tide_map_done(&reassembler->by_id);
    tide_map_done(&reassembler->by_store);
    tide_arena_done(&reassembler->scratch);
    free(reassembler);
}

static tide_str copy_text(tide_str text)
{
    return (tide_str){tide_strndup(text.ptr, text.len), text.len};
}

/* The frame's store with its escapes resolved; lives until the next frame. */
static tide_str store_of(struct tide_reassembler *reassembler, const struct tide_frame *frame)
{
    if (!frame->store_has_escapes) {
        return frame->store;
    }
    const struct tide_json_token token = {
        .type = TIDE_JSON_STRING, .has_escapes = true, .text = frame->store};
    tide_arena_reset(&reassembler->scratch);
    return tide_json_unescape(&token, &reassembler->scratch);
}

static struct tide_snapshot *new_snapshot(struct tide_reassembler *reassembler,
                                          const struct tide_frame *frame, tide_str store)
{
    struct tide_snapshot *snapshot = tide_alloc(1, sizeof(*snapshot));
    struct tide_error ignored;
    snapshot->id = copy_text(frame->snapshot_id);
    snapshot->store = copy_text(store);
    snapshot->snapshot_at = copy_text(frame->snapshot_at);
    if (tide_rfc3339_parse(frame->snapshot_at, &snapshot->at_us, &ignored) != TIDE_OK) {
        snapshot->at_us = 0;
    }
    if (reassembler->count == reassembler->cap) {
        reassembler->cap = reassembler->cap == 0 ? 8 : reassembler->cap * 2;
        reassembler->snapshots =
            tide_realloc(reassembler->snapshots, reassembler->cap, sizeof(struct tide_snapshot *));
    }
    reassembler->snapshots[reassembler->count++] = snapshot;
    return snapshot;
}

static struct tide_snapshot *snapshot_of(struct tide_reassembler *reassembler,
                                         const struct tide_frame *frame)
{
    tide_str store = store_of(reassembler, frame);
    struct tide_snapshot *snapshot = reassembler->latest;
    if (snapshot == NULL || !tide_str_equal(snapshot->id, frame->snapshot_id)) {
        bool is_new = false;
        union tide_map_value *value =
            tide_map_put(&reassembler->by_id, frame->snapshot_id, &is_new);
        if (is_new) {
            value->ptr = new_snapshot(reassembler, frame, store);
        }
        snapshot = reassembler->latest = value->ptr;
    }
    if (!tide_str_equal(snapshot->store, store) && snapshot->other_store.ptr == NULL) {
        snapshot->other_store = copy_text(store);
    }
    return snapshot;
}

/* The index of the first attempt numbered `number` or higher. */
static size_t attempt_at(const struct tide_snapshot *snapshot, uint32_t number)
{
    size_t low = 0;
    size_t high = snapshot->attempt_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (snapshot->attempts[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct tide_snapshot_attempt *tide_snapshot_find_attempt(const struct tide_snapshot *snapshot,
                                                         uint32_t number)
{
    size_t at = attempt_at(snapshot, number);
    bool is_there = at < snapshot->attempt_count && snapshot->attempts[at]->number == number;
    return is_there ? snapshot->attempts[at] : NULL;
}

static struct tide_snapshot_attempt *add_attempt(struct tide_snapshot *snapshot, uint32_t number)
{
    struct tide_snapshot_attempt *attempt = tide_alloc(1, sizeof(*attempt));
    attempt->number = number;
    if (snapshot->attempt_count == snapshot->attempt_cap) {
        snapshot->attempt_cap = snapshot->attempt_cap == 0 ? 2 : snapshot->attempt_cap * 2;
        snapshot->attempts = tide_realloc(snapshot->attempts, snapshot->attempt_cap,
                                          sizeof(struct tide_snapshot_attempt *));
    }
    size_t at = attempt_at(snapshot, number);
    memmove(&snapshot->attempts[at + 1], &snapshot->attempts[at],
            (snapshot->attempt_count - at) * sizeof(struct tide_snapshot_attempt *));
    snapshot->attempts[at] = attempt;
    snapshot->attempt_count++;
    return attempt;
}

static struct tide_snapshot_attempt *attempt_of(struct tide_snapshot *snapshot, uint32_t number)
{
    if (snapshot->latest == NULL || snapshot->latest->number != number) {
        struct tide_snapshot_attempt *attempt = tide_snapshot_find_attempt(snapshot, number);
        snapshot->latest = attempt != NULL ? attempt : add_attempt(snapshot, number);
    }
    return snapshot->latest;
}

static void take_seq(struct tide_snapshot_attempt *attempt, uint64_t seq, bool is_stub)
{
    bool is_new = tide_interval_set_insert(&attempt->seen, seq);
    bool was_stub = !is_new && tide_interval_set_contains(&attempt->stubs, seq);
    if (is_stub) {
        (void)tide_interval_set_insert(&attempt->stubs, seq);
    }
    if (is_new) {
        return;
    }
    if (was_stub != is_stub) {
        (void)tide_interval_set_insert(&attempt->both, seq);
    }
    (void)tide_interval_set_insert(&attempt->again, seq);
}

/* The starts of the highest attempt that says them hold for all. */
static void take_starts(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    uint32_t count = frame->starts_count;
    if (count == 0 || count < snapshot->starts_count) {
        return;
    }
    uint64_t *starts = tide_alloc(count, sizeof(*starts));
    tide_frame_read_starts(frame, starts);
    if (count == snapshot->starts_count) {
        bool is_same = memcmp(starts, snapshot->starts, count * sizeof(*starts)) == 0;
        snapshot->starts_differ = snapshot->starts_differ || !is_same;
        free(starts);
        return;
    }
    free(snapshot->starts);
    snapshot->starts = starts;
    snapshot->starts_count = count;
    snapshot->starts_differ = false;
}

static void take_place(struct tide_snapshot *snapshot, const struct tide_ordered_place *place)
{
    enum tide_place_order order = tide_ordered_place_compare(place, &snapshot->latest_place);
    snapshot->is_unordered = snapshot->is_unordered || order == TIDE_PLACE_UNORDERED;
    if (order == TIDE_PLACE_AFTER) {
        snapshot->latest_place = *place;
    }
}

/* A row stands after every change at its position. Most have the position of the row before. */
static void take_position(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    if (frame->position.ptr == NULL ||
        (frame->incarnation == snapshot->latest_incarnation &&
         tide_str_equal(frame->position, tide_buf_str(&snapshot->latest_position)))) {
        return;
    }
    struct tide_ordered_place place =
        tide_ordered_place_of(frame->position, UINT64_MAX, frame->incarnation);
    tide_buf_reset(&snapshot->latest_position);
    tide_buf_append_str(&snapshot->latest_position, frame->position);
    snapshot->latest_incarnation = frame->incarnation;
    take_place(snapshot, &place);
}

static void take_opening(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    struct tide_snapshot_opening *opening = &snapshot->opening;
    uint32_t incarnation = opening->changes_from.incarnation;
    struct tide_ordered_place from =
        tide_ordered_place_from(&frame->changes_from, frame->incarnation);
    take_place(snapshot, &from);
    bool is_better = !opening->is_given || frame->incarnation > incarnation ||
                     (frame->incarnation == incarnation && frame->attempt < opening->attempt);
    if (is_better) {
        opening->is_given = true;
        opening->attempt = frame->attempt;
        opening->changes_from = from;
    }
    snapshot->begin_was_seen = snapshot->begin_was_seen || frame->kind == TIDE_FRAME_BEGIN;
    if (frame->has_total) {
        bool is_first = !snapshot->has_total;
        snapshot->has_total = true;
        snapshot->total_min =
            is_first || frame->total < snapshot->total_min ? frame->total : snapshot->total_min;
        snapshot->total_max =
            is_first || frame->total > snapshot->total_max ? frame->total : snapshot->total_max;
    }
}

static void take_end(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    struct tide_snapshot_end *end = &snapshot->end;
    if (end->is_given && end->attempt > frame->attempt) {
        return;
    }
    if (end->is_given && end->attempt == frame->attempt) {
        if (end->row_count != frame->row_count) {
            end->has_other_count = true;
            end->other_count = frame->row_count;
        }
        return;
    }
    free(end->completed_at);
    *end = (struct tide_snapshot_end){
        .is_given = true, .attempt = frame->attempt, .row_count = frame->row_count};
    end->has_changes = frame->changes_to.is_given;
    end->changes_to = tide_ordered_place_from(&frame->changes_to, 0);
    if (frame->completed_at.ptr != NULL) {
        end->completed_at = tide_strndup(frame->completed_at.ptr, frame->completed_at.len);
    }
}

static struct tide_store_changes *changes_of(struct tide_reassembler *reassembler, tide_str store)
{
    struct tide_store_changes *changes = reassembler->latest_changes;
    if (changes != NULL && tide_str_equal(changes->store, store)) {
        return changes;
    }
    bool is_new = false;
    union tide_map_value *value = tide_map_put(&reassembler->by_store, store, &is_new);
    if (is_new) {
        value->ptr = changes = tide_alloc(1, sizeof(*changes));
        changes->store = copy_text(store);
    }
    reassembler->latest_changes = value->ptr;
    return value->ptr;
}

static void take_change(struct tide_reassembler *reassembler, const struct tide_frame *frame)
{
    struct tide_store_changes *changes = changes_of(reassembler, store_of(reassembler, frame));
    struct tide_ordered_place prev = tide_ordered_place_from(&frame->prev, frame->incarnation);
    struct tide_ordered_place place =
        tide_ordered_place_of(frame->position, frame->index, frame->incarnation);
    tide_change_chain_add(&changes->chain, &prev, &place);
    if (tide_str_equal(frame->op, TIDE_STR("truncate")) &&
        (!changes->has_truncate ||
         tide_ordered_place_compare(&place, &changes->truncate) == TIDE_PLACE_AFTER)) {
        changes->has_truncate = true;
        changes->truncate = place;
    }
}

static void take_received(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    uint64_t received = 0;
    if (frame->received.ptr != NULL && tide_str_to_u64(frame->received, &received) &&
        received > snapshot->received_ms) {
        snapshot->received_ms = received;
    }
}

static void take_snapshot_frame(struct tide_snapshot *snapshot, const struct tide_frame *frame)
{
    if (frame->attempt > snapshot->attempt_high) {
        snapshot->attempt_high = frame->attempt;
    }
    if (frame->incarnation > snapshot->incarnation) {
        snapshot->incarnation = frame->incarnation;
    }
    if (frame->kind == TIDE_FRAME_ROW || frame->kind == TIDE_FRAME_OVERSIZE) {
        take_seq(attempt_of(snapshot, frame->attempt), frame->seq,
                 frame->kind == TIDE_FRAME_OVERSIZE);
        take_position(snapshot, frame);
    } else if (frame->kind == TIDE_FRAME_END) {
        take_starts(snapshot, frame);
        take_end(snapshot, frame);
    } else {
        take_starts(snapshot, frame);
        take_opening(snapshot, frame);
    }
}

void tide_reassembler_feed(struct tide_reassembler *reassembler, const struct tide_frame *frame,
                           uint64_t mark)
{
    if (frame->kind == TIDE_FRAME_CHANGE) {
        take_change(reassembler, frame);
        return;
    }
    struct tide_snapshot *snapshot = snapshot_of(reassembler, frame);
    snapshot->last_mark = mark;
    snapshot->is_compared = false;
    take_received(snapshot, frame);
    take_snapshot_frame(snapshot, frame);
}

size_t tide_reassembler_doubt(struct tide_reassembler *reassembler, uint64_t mark)
{
    size_t count = 0;
    for (size_t i = 0; i < reassembler->count; i++) {
        struct tide_snapshot *snapshot = reassembler->snapshots[i];
        if (snapshot->last_mark == mark) {
            snapshot->is_in_doubt = true;
            count++;
        }
    }
    return count;
}

size_t tide_reassembler_count(const struct tide_reassembler *reassembler)
{
    return reassembler->count;
}

tide_str tide_reassembler_id(const struct tide_reassembler *reassembler, size_t index)
{
    TIDE_ASSERT(index < reassembler->count);
    return reassembler->snapshots[index]->id;
}

bool tide_reassembler_forget(struct tide_reassembler *reassembler, tide_str snapshot_id)
{
    union tide_map_value *value = tide_map_get(&reassembler->by_id, snapshot_id);
    if (value == NULL) {
        return false;
    }
    struct tide_snapshot *snapshot = value->ptr;
    (void)tide_map_remove(&reassembler->by_id, snapshot_id);
    size_t at = 0;
    while (reassembler->snapshots[at] != snapshot) {
        at++;
    }
    reassembler->count--;
    memmove(&reassembler->snapshots[at], &reassembler->snapshots[at + 1],
            (reassembler->count - at) * sizeof(struct tide_snapshot *));
    reassembler->latest = NULL;
    tide_recheck_free(reassembler->recheck);
    reassembler->recheck = NULL;
    free_snapshot(snapshot);
    return true;
}
