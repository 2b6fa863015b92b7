#include "base/clock.h"
#include "engine/ingest_state.h"

#include <stdio.h>

/* While chunks become held fast, saving takes a part of the time in so many: a chunk's checkpoint
 * may come a few milliseconds later, together with the next one's. */
#define SAVE_REST 5

/* What a checkpoint under construction needs. */
struct draft {
    struct tide_ingest *ingest;
    struct tide_arena arena;
    struct tide_checkpoint checkpoint;
};

static tide_str json_of(struct draft *draft,
                        void (*append)(struct tide_ingest *ingest, struct tide_buf *buf))
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    append(draft->ingest, &text);
    return tide_arena_str(&draft->arena, tide_buf_str(&text));
}

static void append_position(struct tide_ingest *ingest, struct tide_buf *buf)
{
    ingest->options.source_ops->position_kind->write(ingest->held, buf);
}

static void append_identity(struct tide_ingest *ingest, struct tide_buf *buf)
{
    ingest->options.source_ops->identity(ingest->options.source, buf);
}

static void append_state(struct tide_ingest *ingest, struct tide_buf *buf)
{
    if (ingest->is_prepared) {
        ingest->options.source_ops->state(ingest->options.source, buf);
    } else {
        tide_buf_append_str(buf, TIDE_STR("null"));
    }
}

static void draft_stores(struct draft *draft)
{
    const struct tide_build *build = &draft->ingest->build;
    struct tide_checkpoint_store *stores =
        tide_arena_alloc(&draft->arena, build->store_count, sizeof(*stores));
    size_t count = 0;
    for (size_t i = 0; i < build->store_count; i++) {
        if (build->list[i]->held.known) {
            stores[count++] = (struct tide_checkpoint_store){.store = build->list[i]->name,
                                                             .place = build->list[i]->held};
        }
    }
    draft->checkpoint.stores = stores;
    draft->checkpoint.store_count = count;
}

/* The tables that could not be copied to the sink. */
static void draft_failed(struct draft *draft, const struct tide_ingest_sink *sink,
                         struct tide_checkpoint_sink *entry)
{
    const struct tide_ingest *ingest = draft->ingest;
    tide_str *failed = NULL;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        bool is_of_sink = (tide_copy_lanes(item->copy) & (tide_lane_set)1 << sink->lane) != 0;
        if (item->copy->state == TIDE_COPY_FAILED && sink->is_attached && is_of_sink) {
            failed = tide_arena_grow(&draft->arena, failed, entry->failed_count, sizeof(*failed));
            failed[entry->failed_count++] = item->copy->relation->store;
        }
    }
    entry->failed_tables = failed;
}

static void draft_sinks(struct draft *draft)
{
    const struct tide_ingest *ingest = draft->ingest;
    struct tide_checkpoint_sink *sinks =
        tide_arena_alloc(&draft->arena, ingest->sink_count, sizeof(*sinks));
    for (size_t i = 0; i < ingest->sink_count; i++) {
        const struct tide_ingest_sink *sink = &ingest->sinks[i];
        sinks[i] = (struct tide_checkpoint_sink){
            .name = tide_str_from(sink->name),
            .is_seeded = sink->is_seeded,
            .is_detached = sink->is_detached,
            .is_paused = sink->is_paused,
        };
        draft_failed(draft, sink, &sinks[i]);
    }
    draft->checkpoint.sinks = sinks;
    draft->checkpoint.sink_count = ingest->sink_count;
}

/* NULL: the lane is gone, and what was under way for it. */
static const char *name_of_lane(const struct draft *draft, unsigned lane)
{
    const struct tide_ingest_sink *sink = tide_ingest_sink_of(draft->ingest, lane);
    return sink == NULL ? NULL : sink->name;
}

static void draft_requests(struct draft *draft)
{
    size_t count = 0;
    for (struct tide_ingest_request *r = draft->ingest->requests; r != NULL; r = r->next) {
        count++;
    }
    struct tide_checkpoint_request *requests =
        tide_arena_alloc(&draft->arena, count, sizeof(*requests));
    size_t at = 0;
    for (struct tide_ingest_request *r = draft->ingest->requests; r != NULL; r = r->next) {
        const char *sink = name_of_lane(draft, r->lane);
        if (sink != NULL) {
            requests[at++] = (struct tide_checkpoint_request){
                .id = r->id,
                .sink = tide_str_from(sink),
                .tables = r->tables,
                .table_count = r->table_count,
            };
        }
    }
    draft->checkpoint.requests = requests;
    draft->checkpoint.request_count = at;
}

static struct tide_checkpoint_key key_of(struct draft *draft, const struct tide_value *values,
                                         size_t count)
{
    if (values == NULL) {
        return (struct tide_checkpoint_key){0};
    }
    return (struct tide_checkpoint_key){.values = tide_values_copy(&draft->arena, values, count),
                                        .count = count};
}

static void draft_read_again(struct draft *draft, const struct tide_copy *copy,
                             struct tide_checkpoint_copy *entry)
{
    size_t count = 0;
    const struct tide_value *const *keys = tide_again_all(&copy->again, &draft->arena, &count);
    entry->read_again = tide_arena_alloc(&draft->arena, count, sizeof(*entry->read_again));
    entry->read_again_count = count;
    for (size_t i = 0; i < count; i++) {
        entry->read_again[i] = key_of(draft, keys[i], copy->relation->key_count);
    }
}

static void draft_key_columns(struct draft *draft, const struct tide_relation *relation,
                              struct tide_checkpoint_copy *entry)
{
    tide_str *names = tide_arena_alloc(&draft->arena, relation->key_count, sizeof(*names));
    for (size_t i = 0; i < relation->key_count; i++) {
        names[i] = relation->columns[relation->key_columns[i]].name;
    }
    entry->key_columns = names;
    entry->key_column_count = relation->key_count;
}

/* One entry for each lane's share; they are put together again by snapshot id, or by table. */
static void draft_copy(struct draft *draft, const struct tide_copy *copy,
                       const struct tide_copy_share *share, const char *sink_name,
                       struct tide_checkpoint_copy *entry)
{
    tide_str *sink = tide_arena_alloc(&draft->arena, 1, sizeof(*sink));
    *sink = tide_str_from(sink_name);
    *entry = (struct tide_checkpoint_copy){
        .request_id = share->request_id,
        .sinks = sink,
        .sink_count = 1,
        .table = copy->relation->name,
        .store = copy->relation->store,
        /* one that failed starts anew, under another snapshot: what it has may not fit any more */
        .is_begun = copy->is_begun && copy->state != TIDE_COPY_FAILED,
        .is_done = copy->state == TIDE_COPY_DONE,
    };
    draft_key_columns(draft, copy->relation, entry);
    if (!entry->is_begun) {
        return;
    }
    memcpy(entry->snapshot_id, copy->head.id, sizeof(entry->snapshot_id));
    entry->snapshot_at_us = copy->head.at_us;
    entry->attempt = copy->head.attempt;
    entry->starts = copy->head.starts;
    entry->next_seq = copy->held_seq;
    entry->last_pk = key_of(draft, copy->held_key.values, copy->relation->key_count);
    draft_read_again(draft, copy, entry);
}

static void draft_copies(struct draft *draft)
{
    size_t count = 0;
    for (struct tide_ingest_copy *item = draft->ingest->copies; item != NULL; item = item->next) {
        count += item->copy->share_count;
    }
    struct tide_checkpoint_copy *copies = tide_arena_alloc(&draft->arena, count, sizeof(*copies));
    size_t at = 0;
    for (struct tide_ingest_copy *item = draft->ingest->copies; item != NULL; item = item->next) {
        for (size_t i = 0; i < item->copy->share_count; i++) {
            const struct tide_copy_share *share = &item->copy->shares[i];
            const char *sink = name_of_lane(draft, share->lane);
            if (sink != NULL) {
                draft_copy(draft, item->copy, share, sink, &copies[at++]);
            }
        }
    }
    draft->checkpoint.copies = copies;
    draft->checkpoint.copy_count = at;
}

static enum tide_checkpoint_phase phase_of(const struct tide_ingest *ingest)
{
    bool is_begun = false;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        is_begun = is_begun || item->copy->is_begun;
    }
    if (ingest->requests != NULL || ingest->copies == NULL) {
        return is_begun ? TIDE_PHASE_SNAPSHOT_PROGRESS : TIDE_PHASE_FULL_SYNC_START;
    }
    return ingest->must_save ? TIDE_PHASE_FULL_SYNC_END : TIDE_PHASE_CATCH_UP_PROGRESS;
}

static void note_saved(struct tide_ingest *ingest)
{
    ingest->saved[1] = ingest->saved[0];
    ingest->saved[0] = ingest->held;
    ingest->saved_count += ingest->saved_count < 2;
    ingest->saved_at_us = tide_clock_monotonic_us();
    ingest->must_save = false;
    atomic_fetch_add(&ingest->stats.checkpoints_saved, 1);
}

tide_status tide_ingest_save(struct tide_ingest *ingest, bool is_closed, struct tide_error *err)
{
    struct draft draft = {.ingest = ingest};
    if (is_closed && !ingest->is_creating) {
        ingest->is_prepared = false; /* nothing of ours is left in the source */
    }
    draft.checkpoint = (struct tide_checkpoint){
        .position_json = json_of(&draft, append_position),
        .has_tidemark = true,
        .sequence = ingest->sequence + 1,
        .pipeline = tide_str_from(ingest->pipeline),
        .identity_json = json_of(&draft, append_identity),
        .source_state_json = json_of(&draft, append_state),
        .incarnation = ingest->options.copy.incarnation,
        .is_creating = ingest->is_creating,
        .is_closed = is_closed,
    };
    draft_stores(&draft);
    draft_sinks(&draft);
    draft_requests(&draft);
    draft_copies(&draft);
    tide_buf_reset(&ingest->encoded);
    tide_checkpoint_encode(&draft.checkpoint, ingest->options.source_ops->position_kind,
                           &ingest->encoded);
    tide_arena_done(&draft.arena);
    enum tide_checkpoint_phase phase = is_closed ? TIDE_PHASE_FULL_SYNC_END : phase_of(ingest);
    int64_t before_us = tide_clock_monotonic_us();
    TIDE_TRY(ingest->options.keeper.save(ingest->options.keeper.context,
                                         tide_buf_str(&ingest->encoded), phase, err));
    ingest->sequence++;
    note_saved(ingest);
    ingest->save_took_us = ingest->saved_at_us - before_us;
    return TIDE_OK;
}

/* The smallest build number that every lane of the copy holds. */
static uint64_t held_by_all(const struct tide_ingest *ingest, const struct tide_copy *copy)
{
    struct tide_stream *stream = ingest->options.stream;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < copy->share_count; i++) {
        uint64_t held = stream->ops->held(stream, copy->shares[i].lane);
        least = held < least ? held : least;
    }
    return least;
}

static void take_in_held(struct tide_ingest *ingest)
{
    struct tide_stream *stream = ingest->options.stream;
    struct tide_position position;
    uint64_t build = 0;
    if (stream->ops->watermark(stream, &position, &build)) {
        ingest->reporting.has_moved |= tide_position_compare(position, ingest->held) != 0;
        ingest->held = position;
        tide_build_held(&ingest->build, build);
    }
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->oldest_part == NULL) {
            continue;
        }
        bool moved = tide_copy_held(item->copy, held_by_all(ingest, item->copy));
        ingest->must_save = ingest->must_save || moved;
        ingest->reporting.has_moved |= moved;
        if (moved && item->copy->state == TIDE_COPY_DONE) {
            atomic_fetch_add(&ingest->stats.copies_done, 1);
            tide_ingest_drop_replaced(ingest, item->copy);
        }
    }
}

/* The source goes no further than the older checkpoint that may still have to be taken. */
static tide_status confirm(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_position both = ingest->saved[1];
    if (ingest->lost.status != TIDE_OK || ingest->saved_count < 2 ||
        tide_position_compare(both, ingest->confirmed) <= 0) {
        return TIDE_OK;
    }
    tide_status status = ingest->options.source_ops->confirm(ingest->options.source, both, err);
    if (status == TIDE_TIMEOUT) {
        return TIDE_OK; /* the next checkpoint tries again */
    }
    if (status != TIDE_OK && err->retriable) {
        ingest->lost = *err;
        return TIDE_OK;
    }
    TIDE_TRY(status);
    ingest->confirmed = both;
    return TIDE_OK;
}

/* A publish under way must not be broken off: what a tick meets is told by the next pull. */
static void tick(struct tide_ingest *ingest)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    if (ops->tick != NULL && ingest->lost.status == TIDE_OK) {
        struct tide_error err;
        if (ops->tick(ingest->options.source, &err) != TIDE_OK) {
            ingest->lost = err;
        }
    }
}

tide_status tide_ingest_keep(struct tide_ingest *ingest, struct tide_error *err)
{
    tick(ingest);
    take_in_held(ingest);
    tide_ingest_look(ingest);
    bool is_behind = tide_position_compare(ingest->held, ingest->confirmed) > 0;
    int64_t passed_us = tide_clock_monotonic_us() - ingest->saved_at_us;
    bool is_time = passed_us >= ingest->options.checkpoint_interval_us;
    bool is_due = ingest->must_save && (is_time || passed_us >= SAVE_REST * ingest->save_took_us);
    if (!is_due && !(is_behind && is_time)) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_ingest_save(ingest, false, err));
    return confirm(ingest, err);
}

tide_status tide_ingest_save_closing(struct tide_ingest *ingest, struct tide_error *err)
{
    ingest->is_creating = true;
    tide_status status = tide_ingest_save(ingest, true, err);
    ingest->is_creating = false;
    return status;
}

tide_status tide_ingest_finish(struct tide_ingest *ingest, struct tide_error *err)
{
    ingest->options.checkpoint_interval_us = 0;
    /* The stream is closed: a marker still to be published is the next run's. */
    tide_ingest_drop_held_requests(ingest);
    TIDE_TRY(tide_ingest_keep(ingest, err));
    return tide_ingest_keep(ingest, err); /* the second lets the source go up to the first */
}
