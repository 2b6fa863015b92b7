#include "port/progress.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void tide_progress_done(struct tide_progress *progress)
{
    free(progress->snapshots);
    *progress = (struct tide_progress){0};
}

void tide_progress_add(struct tide_progress *progress, const struct tide_held_snapshot *snapshot)
{
    if (progress->snapshot_count == progress->snapshot_cap) {
        progress->snapshot_cap = progress->snapshot_cap == 0 ? 4 : progress->snapshot_cap * 2;
        progress->snapshots =
            tide_realloc(progress->snapshots, progress->snapshot_cap, sizeof(*snapshot));
    }
    progress->snapshots[progress->snapshot_count++] = *snapshot;
}

static size_t find(const struct tide_progress *progress, const char *id)
{
    size_t i = 0;
    while (i < progress->snapshot_count && strcmp(progress->snapshots[i].id, id) != 0) {
        i++;
    }
    return i;
}

static void take_out(struct tide_progress *progress, size_t at)
{
    if (at < progress->snapshot_count) {
        progress->snapshot_count--;
        memmove(&progress->snapshots[at], &progress->snapshots[at + 1],
                (progress->snapshot_count - at) * sizeof(progress->snapshots[0]));
    }
}

size_t tide_progress_ended_count(const struct tide_progress *progress)
{
    size_t count = 0;
    for (size_t i = 0; i < progress->snapshot_count; i++) {
        count += progress->snapshots[i].next_seq == TIDE_SEQ_ENDED;
    }
    return count;
}

void tide_progress_held(const struct tide_progress *progress, struct tide_sink_held *ret_held)
{
    *ret_held = (struct tide_sink_held){
        .is_known = true,
        .place = progress->place,
        .snapshots = progress->snapshots,
        .snapshot_count = progress->snapshot_count,
        .lists_all = tide_progress_ended_count(progress) < TIDE_PROGRESS_ENDED_MAX,
    };
}

/* They stand in the order in which they ended. */
static void forget_oldest_ended(struct tide_progress *progress)
{
    if (tide_progress_ended_count(progress) <= TIDE_PROGRESS_ENDED_MAX) {
        return;
    }
    size_t oldest = 0;
    while (progress->snapshots[oldest].next_seq != TIDE_SEQ_ENDED) {
        oldest++;
    }
    take_out(progress, oldest);
}

/* Copies that were begun anew under another id leave theirs open for ever. A lane has one copy
 * under way, and few that wait to go on. */
static void forget_oldest_open(struct tide_progress *progress)
{
    if (progress->snapshot_count - tide_progress_ended_count(progress) <= TIDE_PROGRESS_OPEN_MAX) {
        return;
    }
    size_t oldest = 0;
    while (progress->snapshots[oldest].next_seq == TIDE_SEQ_ENDED) {
        oldest++;
    }
    take_out(progress, oldest);
}

static void apply_snapshot(struct tide_progress *progress, const struct tide_snapshot_part *part)
{
    struct tide_held_snapshot now = {
        .attempt = part->head.attempt,
        .next_seq = part->first_seq + part->row_count,
    };
    memcpy(now.id, part->head.id, sizeof(now.id));
    size_t at = find(progress, now.id);
    bool is_there = at < progress->snapshot_count &&
                    progress->snapshots[at].attempt == now.attempt &&
                    progress->snapshots[at].next_seq >= now.next_seq;
    if (is_there && (!part->is_end || progress->snapshots[at].next_seq == TIDE_SEQ_ENDED)) {
        return; /* it has come again */
    }
    if (part->is_end) {
        now.next_seq = TIDE_SEQ_ENDED;
        take_out(progress, at);
        tide_progress_add(progress, &now);
        forget_oldest_ended(progress);
    } else if (at < progress->snapshot_count) {
        progress->snapshots[at] = now;
    } else {
        tide_progress_add(progress, &now);
        forget_oldest_open(progress);
    }
}

static void advance(struct tide_progress *progress, struct tide_place place)
{
    if (tide_place_compare(place, progress->place) > 0) {
        progress->place = place;
    }
}

void tide_progress_apply(struct tide_progress *progress, const struct tide_batch *batch)
{
    if (batch->snapshot != NULL) {
        apply_snapshot(progress, batch->snapshot);
        return;
    }
    if (batch->change_count > 0) {
        advance(progress, batch->changes[batch->change_count - 1].place);
    }
    if (batch->has_position) {
        advance(progress, (struct tide_place){.position = batch->position,
                                              .index = TIDE_INDEX_AFTER_ALL,
                                              .known = true});
    }
}

void tide_progress_copy(struct tide_progress *into, const struct tide_progress *from)
{
    into->place = from->place;
    into->snapshot_count = 0;
    for (size_t i = 0; i < from->snapshot_count; i++) {
        tide_progress_add(into, &from->snapshots[i]);
    }
}

bool tide_progress_equal(const struct tide_progress *a, const struct tide_progress *b)
{
    if (tide_place_compare(a->place, b->place) != 0 || a->snapshot_count != b->snapshot_count) {
        return false;
    }
    for (size_t i = 0; i < a->snapshot_count; i++) {
        const struct tide_held_snapshot *x = &a->snapshots[i];
        const struct tide_held_snapshot *y = &b->snapshots[i];
        if (strcmp(x->id, y->id) != 0 || x->attempt != y->attempt || x->next_seq != y->next_seq) {
            return false;
        }
    }
    return true;
}
