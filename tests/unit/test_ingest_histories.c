/*
 * The real ingest engine against random histories of a scripted source: every copy must end equal
 * to the source, row for row and column for column, every snapshot complete, and on the way no row
 * may go back to an older version (replay after a crash aside). Then each part of the rule is
 * broken, to show that the histories notice it.
 *
 * TIDEMARK_SOAK=1 runs 600,000 histories instead of 12,000.
 */
#include "cmocka_prelude.h"

#include "base/limits.h"
#include "base/log.h"
#include "engine/ingest_state.h"
#include "format/envelope.h"
#include "format/reassembler.h"
#include "scripted_source.h"
#include "stream/channel.h"

#include <stdio.h>
#include <stdlib.h>

#define SINKS_MAX          2
#define UNACKNOWLEDGED_MAX 64
#define CHUNK_BYTES        (1 << 20)
#define BATCH_BYTES        12000 /* of a few rows or changes, with all that belongs to them */

/* Parts of the rule that a history can be run without, beside the source's own faults. */
enum broken {
    BROKEN_NOTHING,
    BROKEN_REMEMBER, /* only changes that come after the read withhold a row */
    BROKEN_AHEAD,    /* forgotten as soon as one chunk sees it, although another waits */
    BROKEN_LIST,     /* the keys to read again are not in the checkpoint */
    BROKEN_ATTACH,   /* remembering starts before the new sink's lane is attached */
    BROKEN_ACKED,    /* the copy's checkpoint moves on when a chunk is sent */
    BROKEN_REPLAY,   /* a sink applies again what its row already holds */
    BROKEN_BEHIND,   /* copies begin before what sinks hold past the checkpoint */
};

/* A sink that applies frames as every consumer must (docs/envelope.md, "Rebuilding a table"). */
struct sink {
    struct tide_lane_consumer consumer;
    struct tide_delivery unacknowledged[UNACKNOWLEDGED_MAX];
    size_t unacknowledged_count;
    struct scripted_row rows[SCRIPTED_KEYS];
    struct tide_place places[SCRIPTED_KEYS];
    size_t versions[SCRIPTED_KEYS];
    struct tide_place last_change[SCRIPTED_KEYS];
    bool in_snapshot[SCRIPTED_KEYS];
    struct tide_place changes_from;
    char snapshot_id[TIDE_UUID_LEN + 1];
    bool is_complete;
    bool went_back;
    uint64_t replay_until;
    struct tide_reassembler *reassembler; /* fed every frame, over all restarts */
    bool is_away;                         /* its lane was dropped */
};

struct world {
    struct scripted_source source;
    enum broken broken;
    struct tide_stream *stream;
    struct tide_ingest *ingest;
    struct sink sinks[SINKS_MAX];
    unsigned sink_count;
    char *kept[2]; /* checkpoints, newest first */
    bool has_chunk;
    struct tide_chunk chunk;
    bool has_small_memory; /* every remembered change is one too many */
    bool was_torn;         /* a checkpoint was lost: an attempt's number may have been used twice */
    bool is_disturbed;     /* tables change, sinks are detached, backfills are asked for */
    size_t budget_bytes;   /* 0: none */
    struct tide_budget *budget;
    struct tide_source_ops ops; /* with a tick, which lets sinks go on while ingest waits */
    struct tide_buf frame;
};

static const char *const sink_names[SINKS_MAX] = {"one", "two"};

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        fail_msg("%s: %s", tide_status_name(status), err->message);
    }
}

static tide_status save(void *context, tide_str json, enum tide_checkpoint_phase phase,
                        struct tide_error *err)
{
    struct world *world = context;
    (void)phase;
    (void)err;
    free(world->kept[1]);
    world->kept[1] = world->kept[0];
    world->kept[0] = strndup(json.ptr, json.len);
    return TIDE_OK;
}

static uint32_t number_of(struct tide_value value)
{
    uint64_t number = 0;
    assert_true(tide_str_to_u64(tide_value_str(value), &number));
    return (uint32_t)number;
}

static bool is_fresh(const struct world *world, const struct sink *sink, unsigned key,
                     struct tide_place place)
{
    return world->broken == BROKEN_REPLAY || tide_place_compare(place, sink->places[key]) > 0;
}

static void note_version(const struct world *world, struct sink *sink, unsigned key,
                         struct tide_place place, uint32_t small)
{
    size_t version = scripted_order_of(&world->source, small);
    if (place.position.lo > sink->replay_until && version < sink->versions[key]) {
        sink->went_back = true;
    }
    sink->versions[key] = version > sink->versions[key] ? version : sink->versions[key];
}

static void apply_truncate(const struct world *world, struct sink *sink, struct tide_place place)
{
    for (unsigned key = 0; key < SCRIPTED_KEYS; key++) {
        sink->last_change[key] = place;
        if (is_fresh(world, sink, key, place)) {
            sink->rows[key] = (struct scripted_row){0};
            sink->places[key] = place;
        }
    }
}

static void apply_change(const struct world *world, struct sink *sink,
                         const struct tide_change *change)
{
    struct tide_place place = change->place;
    if (change->op == TIDE_OP_TRUNCATE) {
        apply_truncate(world, sink, place);
        return;
    }
    unsigned key = number_of(change->key[0]);
    struct scripted_row old = sink->rows[key];
    sink->last_change[key] = place;
    if (change->moved_from != NULL) {
        unsigned from = number_of(change->moved_from[0]);
        sink->last_change[from] = place;
        old = (struct scripted_row){0};
        if (is_fresh(world, sink, from, place)) {
            old = sink->rows[from];
            sink->rows[from] = (struct scripted_row){0};
            sink->places[from] = place;
        }
    }
    if (!is_fresh(world, sink, key, place)) {
        return;
    }
    sink->places[key] = place;
    if (change->op == TIDE_OP_DELETE) {
        sink->rows[key] = (struct scripted_row){0};
        return;
    }
    bool is_partial = change->values[2].kind == TIDE_VALUE_UNCHANGED;
    sink->rows[key] = (struct scripted_row){
        .exists = true,
        .small = number_of(change->values[1]),
        .big = is_partial ? old.big : number_of(change->values[2]),
    };
    note_version(world, sink, key, place, sink->rows[key].small);
}

static void apply_row(const struct world *world, struct sink *sink,
                      const struct tide_snapshot_part *part, const struct tide_value *values)
{
    unsigned key = number_of(values[0]);
    struct tide_place place = {
        .position = part->row_position, .index = TIDE_INDEX_AFTER_ALL, .known = true};
    sink->in_snapshot[key] = true;
    if (!is_fresh(world, sink, key, place)) {
        return;
    }
    sink->places[key] = place;
    sink->rows[key] = (struct scripted_row){
        .exists = true, .small = number_of(values[1]), .big = number_of(values[2])};
    note_version(world, sink, key, place, sink->rows[key].small);
}

/* What is held, is no row of the snapshot and had no change since it began has been deleted. */
static void apply_end(struct sink *sink)
{
    for (unsigned key = 0; key < SCRIPTED_KEYS; key++) {
        if (!sink->in_snapshot[key] &&
            tide_place_compare(sink->last_change[key], sink->changes_from) <= 0) {
            sink->rows[key] = (struct scripted_row){0};
        }
    }
    sink->is_complete = true;
}

static void apply_part(const struct world *world, struct sink *sink,
                       const struct tide_snapshot_part *part)
{
    /* a resume may be the first that is heard of a snapshot */
    if (part->opening != TIDE_OPENING_NONE && strcmp(sink->snapshot_id, part->head.id) != 0) {
        memset(sink->in_snapshot, 0, sizeof(sink->in_snapshot));
        sink->changes_from = part->changes_from;
        memcpy(sink->snapshot_id, part->head.id, sizeof(sink->snapshot_id));
    }
    assert_string_equal(sink->snapshot_id, part->head.id);
    for (size_t i = 0; i < part->row_count; i++) {
        apply_row(world, sink, part, part->rows[i]);
    }
    if (part->is_end) {
        apply_end(sink);
    }
}

static void feed(struct world *world, struct sink *sink)
{
    struct tide_frame_decoder decoder = {0};
    struct tide_frame frame;
    struct tide_error err;
    must(tide_frame_decode(&decoder, tide_buf_str(&world->frame), &frame, &err), &err);
    tide_reassembler_feed(sink->reassembler, &frame, 0);
    tide_buf_reset(&world->frame);
}

static const struct tide_envelope_options frame_options = {.position_kind = &tide_position_integer,
                                                           .record_bytes_max = 1 << 20};

static void feed_part(struct world *world, struct sink *sink, const struct tide_snapshot_part *part)
{
    size_t oversize = 0;
    if (part->opening != TIDE_OPENING_NONE) {
        tide_envelope_append_opening(&world->frame, &frame_options, part);
        feed(world, sink);
    }
    struct tide_envelope_rows rows;
    tide_envelope_rows_init(&rows, &frame_options, part);
    for (size_t i = 0; i < part->row_count; i++) {
        tide_envelope_rows_append(&world->frame, &rows, i, &oversize, NULL);
        feed(world, sink);
    }
    tide_envelope_rows_done(&rows);
    if (part->is_end) {
        tide_envelope_append_end(&world->frame, &frame_options, part);
        feed(world, sink);
    }
}

static void feed_batch(struct world *world, struct sink *sink, const struct tide_batch *batch)
{
    size_t oversize = 0;
    for (size_t i = 0; i < batch->change_count; i++) {
        tide_envelope_append_change(&world->frame, &frame_options, &batch->changes[i], &oversize,
                                    NULL);
        feed(world, sink);
    }
    if (batch->snapshot != NULL) {
        feed_part(world, sink, batch->snapshot);
    }
}

static void take(struct world *world, struct sink *sink)
{
    struct tide_error err;
    struct tide_delivery delivery;
    if (sink->is_away || sink->unacknowledged_count == UNACKNOWLEDGED_MAX ||
        world->stream->ops->receive(&sink->consumer, 0, &delivery, &err) != TIDE_OK) {
        return;
    }
    if (delivery.item.kind == TIDE_ITEM_BATCH) {
        const struct tide_batch *batch = delivery.item.batch;
        for (size_t i = 0; i < batch->change_count; i++) {
            apply_change(world, sink, &batch->changes[i]);
        }
        if (batch->snapshot != NULL) {
            apply_part(world, sink, batch->snapshot);
        }
        feed_batch(world, sink, batch);
    }
    sink->unacknowledged[sink->unacknowledged_count++] = delivery;
}

static void acknowledge(struct world *world, struct sink *sink)
{
    struct tide_error err;
    for (size_t i = 0; i < sink->unacknowledged_count; i++) {
        must(world->stream->ops->acknowledge(&sink->consumer, &sink->unacknowledged[i], &err),
             &err);
    }
    sink->unacknowledged_count = 0;
}

static void attach_sink(struct world *world, unsigned number)
{
    struct tide_error err;
    unsigned lane = 0;
    tide_str name = tide_str_from(sink_names[number]);
    must(world->stream->ops->add_lane(world->stream, name, &lane, &err), &err);
    must(world->stream->ops->attach(world->stream, lane, &world->sinks[number].consumer, &err),
         &err);
    world->sinks[number].unacknowledged_count = 0;
    if (world->sinks[number].is_away) {
        const struct tide_ingest_post post = {.kind = TIDE_POST_ATTACH, .name = name, .lane = lane};
        (void)tide_ingest_post(world->ingest, &post);
    } else {
        tide_ingest_add_sink(world->ingest, name, lane);
    }
    world->sinks[number].is_away = false;
}

/* A sink that was never seeded asks for its backfill. */
static void ask_for_backfill(struct world *world, unsigned number)
{
    struct tide_error err;
    uint64_t id = 0;
    unsigned lane = world->sinks[number].consumer.lane;
    if (tide_ingest_needs_backfill(world->ingest, lane)) {
        must(world->stream->ops->request(world->stream, lane, &world->source.relation->store, 1,
                                         &id, &err),
             &err);
    }
}

/* Ingest waits for memory: any sink may be the one that lets go of some, none has to at once. */
static tide_status tick(struct tide_source *source, struct tide_error *err)
{
    struct world *world = (struct world *)(void *)source; /* its first member */
    (void)err;
    while (tide_budget_is_awaited(world->budget)) {
        struct sink *sink = &world->sinks[scripted_random(&world->source, world->sink_count)];
        if (scripted_random(&world->source, 2) == 0) {
            take(world, sink);
        } else {
            acknowledge(world, sink);
        }
    }
    return TIDE_OK;
}

static struct tide_budget *budget_of(size_t bytes)
{
    size_t floor = bytes / 8;
    const size_t floors[TIDE_BUDGET_USERS] = {floor, floor, floor, floor};
    return bytes == 0 ? NULL : tide_budget_new(bytes, floors);
}

static void new_engine(struct world *world)
{
    struct tide_error err;
    world->budget = budget_of(world->budget_bytes);
    world->ops = scripted_source_ops;
    world->ops.tick = tick;
    const struct tide_channel_options capacity = {.lane_items = 4096, .lane_bytes = 1 << 30};
    must(tide_channel_new(&capacity, &world->stream, &err), &err);
    world->ingest = tide_ingest_new(&(struct tide_ingest_options){
        .source_ops = &world->ops,
        .source = (struct tide_source *)(void *)&world->source,
        .stream = world->stream,
        .keeper = {.save = save, .context = world},
        .copy = {.chunk_rows_max = 2,
                 .chunk_bytes_max = world->budget_bytes > 0 ? 8192 : CHUNK_BYTES,
                 .budget = world->budget,
                 .memory_bytes_max = world->has_small_memory ? 1 : 1 << 20},
        .batch_changes_max = 3,
        .batch_bytes_max = 1 << 20,
        .max_retained_bytes = 1,
        .pipeline = TIDE_STR("test"),
    });
    for (unsigned i = 0; i < world->sink_count; i++) {
        world->sinks[i].is_away = false;
        attach_sink(world, i);
    }
}

static void free_engine(struct world *world)
{
    tide_ingest_free(world->ingest);
    world->stream->ops->free(world->stream);
    tide_chunk_done(&world->chunk);
    world->has_chunk = false;
    tide_budget_free(world->budget); /* aborts when anything is still charged */
}

static void load(struct world *world, const char *json)
{
    struct tide_error err;
    struct tide_arena arena = {0};
    struct tide_checkpoint checkpoint;
    must(tide_checkpoint_decode(tide_str_from(json), &tide_position_integer, &arena, &checkpoint,
                                &err),
         &err);
    must(tide_ingest_load(world->ingest, &checkpoint, &err), &err);
    tide_arena_done(&arena);
    for (struct tide_ingest_copy *item = world->ingest->copies; item != NULL; item = item->next) {
        if (world->broken == BROKEN_LIST) {
            tide_again_done(&item->copy->again);
        }
    }
}

static void start_engine(struct world *world, const char *checkpoint)
{
    struct tide_error err;
    new_engine(world);
    if (checkpoint != NULL) {
        load(world, checkpoint);
    }
    must(tide_ingest_start(world->ingest, &err), &err);
    for (unsigned i = 0; i < world->sink_count; i++) {
        ask_for_backfill(world, i);
    }
}

/* What was published of the transaction under way, and may be since the last commit, comes again.
 */
static void expect_replay(struct world *world)
{
    uint64_t published = world->ingest->build.reached.lo + 1;
    for (unsigned i = 0; i < world->sink_count; i++) {
        struct sink *sink = &world->sinks[i];
        sink->replay_until = published > sink->replay_until ? published : sink->replay_until;
    }
}

/* The process dies: what lies on the lanes is lost; now and then the newest checkpoint is torn. */
static void crash(struct world *world)
{
    bool is_torn = world->kept[1] != NULL && scripted_random(&world->source, 8) == 0 &&
                   strstr(world->kept[1], "\"creating\":true") == NULL;
    world->was_torn = world->was_torn || is_torn;
    expect_replay(world);
    char *checkpoint = strdup(world->kept[is_torn ? 1 : 0]);
    free_engine(world);
    if (world->is_disturbed && scripted_random(&world->source, 3) == 0) {
        scripted_make_anew(&world->source);
    }
    start_engine(world, checkpoint);
    free(checkpoint);
    if (world->broken == BROKEN_BEHIND) {
        world->ingest->is_behind = false;
    }
}

/* The stream's connection is lost and opened again; what is being read belongs to the old one. */
static void lose_connection(struct world *world)
{
    struct tide_error err;
    expect_replay(world);
    must(tide_ingest_reconnect(world->ingest, &err), &err);
}

static void read_chunk(struct world *world)
{
    struct tide_error err;
    struct tide_chunk_request request;
    bool needs_horizon = false;
    world->ingest->read_not_before_us = 0;
    if (world->has_chunk || !tide_ingest_wants_chunk(world->ingest, &request, &needs_horizon)) {
        return;
    }
    struct tide_chunk_reader *reader = (struct tide_chunk_reader *)(void *)&world->source;
    struct tide_copy *copy = world->ingest->current;
    if (needs_horizon) {
        must(scripted_source_ops.reader_remember(reader, request.relation, &err), &err);
    }
    tide_status status = scripted_source_ops.reader_read(reader, &request, &world->chunk, &err);
    if (status != TIDE_OK) {
        must(tide_ingest_chunk_failed(world->ingest, &err), &err);
        return;
    }
    world->has_chunk = true;
    if (world->broken == BROKEN_REMEMBER && world->chunk.is_trusted) {
        tide_memory_reset(&copy->memory);
    }
    if (world->broken == BROKEN_AHEAD && world->chunk.is_trusted) {
        const struct tide_chunk *only = &world->chunk;
        tide_memory_forget(&copy->memory, &only, 1);
    }
}

static void take_chunk(struct world *world)
{
    if (world->has_chunk) {
        tide_ingest_take_chunk(world->ingest, &world->chunk);
        world->has_chunk = false;
    }
}

static void work(struct world *world)
{
    struct tide_error err;
    must(tide_ingest_work(world->ingest, &err), &err);
    if (world->broken != BROKEN_ACKED) {
        return;
    }
    for (struct tide_ingest_copy *item = world->ingest->copies; item != NULL; item = item->next) {
        if (tide_copy_held(item->copy, UINT64_MAX)) {
            must(tide_ingest_save(world->ingest, false, &err), &err);
        }
    }
}

static void pull(struct world *world)
{
    struct tide_error err;
    tide_status status = tide_ingest_pull(world->ingest, NULL, 0, &err);
    if (status != TIDE_TIMEOUT) {
        must(status, &err);
    }
}

static void add_second_sink(struct world *world)
{
    struct sink *sink = &world->sinks[1];
    world->sink_count = 2;
    if (scripted_random(&world->source, 2) == 0) {
        /* it holds an old copy, and missed what was deleted since */
        for (unsigned key = 0; key < SCRIPTED_KEYS; key++) {
            sink->rows[key].exists = true;
            sink->places[key] = (struct tide_place){.known = true};
        }
    }
    attach_sink(world, 1);
    ask_for_backfill(world, 1);
    if (world->broken == BROKEN_ATTACH) {
        world->ingest->lanes &= ~((tide_lane_set)1 << sink->consumer.lane);
    }
}

/* The source keeps too much log for a sink that does not take what is on its lane. */
static void detach_sink(struct world *world, unsigned number)
{
    struct tide_error err;
    struct sink *sink = &world->sinks[number];
    if (sink->is_away || tide_ingest_has_posts(world->ingest)) {
        return;
    }
    tide_ingest_let_detach(world->ingest, sink->consumer.lane);
    world->source.retained = 2;
    must(tide_ingest_detach_full(world->ingest, (tide_lane_set)1 << sink->consumer.lane, &err),
         &err);
    world->source.retained = 0;
    sink->unacknowledged_count = 0;
    /* it learns of that, and lets go of what it had in hand */
    struct tide_delivery none;
    assert_int_equal(world->stream->ops->receive(&sink->consumer, 0, &none, &err), TIDE_CLOSED);
    sink->is_away = true;
}

/* It comes back, knowing what it held, and is copied anew. */
static void attach_back(struct world *world)
{
    struct tide_error err;
    uint64_t id = 0;
    for (unsigned i = 0; i < world->sink_count; i++) {
        if (world->sinks[i].is_away) {
            attach_sink(world, i);
            must(world->stream->ops->request(world->stream, world->sinks[i].consumer.lane,
                                             &world->source.relation->store, 1, &id, &err),
                 &err);
        }
    }
}

/* A copy that nobody needed is asked for. */
static void ask_again(struct world *world)
{
    struct tide_error err;
    uint64_t id = 0;
    const struct sink *sink = &world->sinks[scripted_random(&world->source, world->sink_count)];
    if (!sink->is_away) {
        must(world->stream->ops->request(world->stream, sink->consumer.lane,
                                         &world->source.relation->store, 1, &id, &err),
             &err);
    }
}

/* What goes on in a pipeline that runs for months. */
static void disturb(struct world *world)
{
    switch (scripted_random(&world->source, 4)) {
    case 0:
        scripted_change_silently(&world->source);
        break;
    case 1:
        detach_sink(world, (unsigned)scripted_random(&world->source, world->sink_count));
        break;
    case 2:
        attach_back(world);
        break;
    default:
        ask_again(world);
        break;
    }
}

static void attach_late(struct world *world)
{
    if (world->broken == BROKEN_ATTACH && world->sink_count == 2) {
        world->ingest->lanes |= (tide_lane_set)1 << world->sinks[1].consumer.lane;
    }
}

/* What must go on whatever is left: a batch that is filled, one on the lanes, a chunk. */
static void check_budget(const struct world *world)
{
    if (world->budget != NULL) {
        assert_true(tide_budget_used(world->budget) <= world->budget_bytes + 3 * BATCH_BYTES);
    }
}

static void step(struct world *world, bool is_writing)
{
    check_budget(world);
    unsigned choice = (unsigned)scripted_random(&world->source, is_writing ? 20 : 14);
    struct sink *sink = &world->sinks[scripted_random(&world->source, world->sink_count)];
    switch (choice) {
    case 0:
    case 1:
        scripted_commit_record(&world->source);
        break;
    case 2:
        scripted_become_visible(&world->source);
        break;
    case 3:
    case 4:
    case 5:
        pull(world);
        break;
    case 6:
    case 7:
        read_chunk(world);
        break;
    case 8:
        take_chunk(world);
        break;
    case 9:
    case 10:
        work(world);
        break;
    case 11:
    case 12:
        take(world, sink);
        break;
    case 13:
        acknowledge(world, sink);
        break;
    case 14:
        scripted_begin(&world->source);
        break;
    default:
        scripted_write(&world->source);
        break;
    }
}

static void finish_source(struct world *world)
{
    while (world->source.running_count > 0) {
        scripted_commit_record(&world->source);
    }
    while (world->source.hidden_count > 0) {
        scripted_become_visible(&world->source);
    }
}

/* Nothing is written any more: everything must arrive. */
static bool finish_engine(struct world *world)
{
    for (int turn = 0; turn < 3000; turn++) {
        if (tide_ingest_is_settled(world->ingest) && world->stream->ops->is_idle(world->stream) &&
            world->source.stream_at == world->source.log_count) {
            return true;
        }
        attach_late(world);
        pull(world);
        work(world);
        read_chunk(world);
        take_chunk(world);
        for (unsigned i = 0; i < world->sink_count; i++) {
            take(world, &world->sinks[i]);
            acknowledge(world, &world->sinks[i]);
        }
    }
    return false;
}

/* The newest snapshot is complete by its frames, and no snapshot contradicts itself. */
static bool frames_are_right(const struct sink *sink)
{
    size_t count = tide_reassembler_count(sink->reassembler);
    enum tide_snapshot_status status = TIDE_SNAPSHOT_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        status =
            tide_reassembler_judge(sink->reassembler, tide_reassembler_id(sink->reassembler, i))
                .status;
        if (status == TIDE_SNAPSHOT_CONFLICTING) {
            return false;
        }
    }
    return status == TIDE_SNAPSHOT_COMPLETE;
}

static bool is_right(const struct world *world)
{
    for (unsigned i = 0; i < world->sink_count; i++) {
        const struct sink *sink = &world->sinks[i];
        if (sink->went_back || !sink->is_complete ||
            (!world->was_torn && !frames_are_right(sink))) {
            return false;
        }
        for (unsigned key = 0; key < SCRIPTED_KEYS; key++) {
            const struct scripted_row *mine = &sink->rows[key];
            const struct scripted_row *theirs = &world->source.rows[key];
            if (mine->exists != theirs->exists ||
                (mine->exists && (mine->small != theirs->small || mine->big != theirs->big))) {
                return false;
            }
        }
    }
    return true;
}

static void write_before_start(struct scripted_source *source)
{
    for (uint64_t steps = scripted_random(source, 14); steps > 0; steps--) {
        switch (scripted_random(source, 5)) {
        case 0:
            scripted_begin(source);
            break;
        case 1:
            scripted_commit_record(source);
            break;
        case 2:
            scripted_become_visible(source);
            break;
        default:
            scripted_write(source);
            break;
        }
    }
}

static void run_steps(struct world *world)
{
    for (int i = 0; i < 400; i++) {
        bool is_writing = i < 260;
        if (scripted_random(&world->source, 150) == 0) {
            lose_connection(world);
        } else if (is_writing && scripted_random(&world->source, 100) == 0) {
            crash(world);
        } else if (is_writing && world->sink_count == 1 && world->sinks[0].is_complete &&
                   world->ingest->dropped == 0 && scripted_random(&world->source, 10) == 0) {
            add_second_sink(world);
        } else if (world->is_disturbed && scripted_random(&world->source, 40) == 0) {
            disturb(world);
        } else {
            step(world, is_writing);
        }
        if (scripted_random(&world->source, 16) == 0) {
            attach_late(world);
        }
    }
}

/* One history; true when it ended right. */
static bool run(struct world *world, uint64_t seed, enum broken broken, enum scripted_fault fault)
{
    /* a byte, about a batch, some batches */
    static const size_t budgets[8] = {0, 1, 0, 0, 0, 30000, 160000, 0};
    memset(world->sinks, 0, sizeof(world->sinks));
    for (int i = 0; i < SINKS_MAX; i++) {
        world->sinks[i].reassembler = tide_reassembler_new();
    }
    world->sink_count = 1;
    world->was_torn = false;
    world->has_small_memory = seed % 8 == 0;
    world->budget_bytes = budgets[seed % 8];
    world->broken = broken;
    world->is_disturbed = (broken == BROKEN_NOTHING && fault == SCRIPTED_RIGHT && seed % 2 == 0) ||
                          fault == SCRIPTED_TABLE_UNSAID || broken == BROKEN_BEHIND;
    scripted_init(&world->source, seed);
    world->source.fault = fault;
    /* a list that is lost takes a move and a crash at the right moments to be missed */
    world->source.moves_often = broken == BROKEN_LIST || seed % 4 == 0;
    write_before_start(&world->source);
    start_engine(world, NULL);
    run_steps(world);
    finish_source(world);
    attach_back(world);
    bool ok = finish_engine(world) && is_right(world);
    free_engine(world);
    scripted_done(&world->source);
    for (int i = 0; i < 2; i++) {
        free(world->kept[i]);
        world->kept[i] = NULL;
    }
    for (int i = 0; i < SINKS_MAX; i++) {
        tide_reassembler_free(world->sinks[i].reassembler);
    }
    tide_buf_done(&world->frame);
    return ok;
}

static uint64_t history_count(void)
{
    const char *only = getenv("TIDEMARK_HISTORIES");
    uint64_t count = 0;
    if (only != NULL && tide_str_to_u64(tide_str_from(only), &count)) {
        return count;
    }
    return getenv("TIDEMARK_SOAK") != NULL ? 600000 : 12000;
}

static void histories_end_equal_to_the_source(void **state)
{
    (void)state;
    struct world *world = calloc(1, sizeof(*world));
    uint64_t count = history_count();
    uint64_t wrong = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        if (!run(world, seed, BROKEN_NOTHING, SCRIPTED_RIGHT)) {
            print_error("history %llu ended wrong\n", (unsigned long long)seed);
            wrong++;
        }
    }
    free(world);
    print_message("%llu histories, %llu wrong\n", (unsigned long long)count,
                  (unsigned long long)wrong);
    assert_int_equal(wrong, 0);
}

static void broken_rule_is_noticed(void **state) __attribute__((unused));

static void broken_rule_is_noticed(void **state)
{
    static const struct {
        const char *name;
        enum broken broken;
        enum scripted_fault fault;
    } cases[] = {
        {"visibility", BROKEN_NOTHING, SCRIPTED_WATERMARKS},
        {"remember", BROKEN_REMEMBER, SCRIPTED_RIGHT},
        {"trusted", BROKEN_NOTHING, SCRIPTED_ALWAYS_TRUSTED},
        {"horizon", BROKEN_NOTHING, SCRIPTED_HORIZON_FROM_XMAX},
        {"ahead", BROKEN_AHEAD, SCRIPTED_RIGHT},
        {"position", BROKEN_NOTHING, SCRIPTED_NO_POSITION},
        {"merge", BROKEN_NOTHING, SCRIPTED_PARTIAL_AS_WHOLE},
        {"moved", BROKEN_NOTHING, SCRIPTED_MOVE_AS_WHOLE},
        {"table", BROKEN_NOTHING, SCRIPTED_TABLE_UNSAID},
        {"list", BROKEN_LIST, SCRIPTED_RIGHT},
        {"attach", BROKEN_ATTACH, SCRIPTED_RIGHT},
        {"acked", BROKEN_ACKED, SCRIPTED_RIGHT},
        {"replay", BROKEN_REPLAY, SCRIPTED_RIGHT},
        {"behind", BROKEN_BEHIND, SCRIPTED_RIGHT},
    };

    (void)state;
    struct world *world = calloc(1, sizeof(*world));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t seed = 1;
        while (seed <= 100000 && run(world, seed, cases[i].broken, cases[i].fault)) {
            seed++;
        }
        print_message("without %-10s noticed by history %llu\n", cases[i].name,
                      (unsigned long long)seed);
        if (seed > 100000) {
            fail_msg("histories do not notice that %s is broken", cases[i].name);
        }
    }
    free(world);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_end_equal_to_the_source),
#ifndef IS_SANITIZED /* tens of thousands of histories, about the test itself */
        cmocka_unit_test(broken_rule_is_noticed),
#endif
    };
    tide_log_set_level(TIDE_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
