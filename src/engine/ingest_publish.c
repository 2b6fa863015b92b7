#include "engine/ingest_state.h"

#include "base/clock.h"

#define TICK_US 200000

/* What goes on while lanes are full. */
static tide_status serve(struct tide_ingest *ingest, tide_lane_set full, struct tide_error *err)
{
    TIDE_TRY(tide_ingest_serve(ingest, err));
    TIDE_TRY(tide_ingest_receive_requests(ingest, err));
    TIDE_TRY(tide_ingest_keep(ingest, err));
    return tide_ingest_detach_full(ingest, full, err);
}

/* Waits for full lanes in ticks; between them what is held is saved and the source confirmed. */
static tide_status publish(struct tide_ingest *ingest, struct tide_item item, tide_lane_set lanes,
                           uint64_t *ret_build, struct tide_error *err)
{
    const struct tide_stream_ops *ops = ingest->options.stream->ops;
    struct tide_publication publication = {.item = item, .pending = lanes};
    for (;;) {
        tide_status status = ops->publish(ingest->options.stream, &publication, &ingest->waker,
                                          tide_clock_deadline_us(TICK_US), err);
        if (status != TIDE_TIMEOUT) {
            *ret_build = publication.build;
            return status;
        }
        if (tide_ingest_is_stopping(ingest)) {
            return tide_fail(err, TIDE_CANCELLED, "stopped while a lane was full");
        }
        TIDE_TRY(serve(ingest, publication.pending, err));
    }
}

/* The lane that holds the most memory, as a set; empty: none holds any. */
static tide_lane_set fullest_lane(const struct tide_ingest *ingest)
{
    struct tide_stream *stream = ingest->options.stream;
    tide_lane_set fullest = 0;
    size_t most = 0;
    for (tide_lane_set rest = ingest->lanes; rest != 0; rest &= rest - 1) {
        size_t items = 0;
        size_t bytes = 0;
        stream->ops->lane_load(stream, (unsigned)__builtin_ctzll(rest), &items, &bytes);
        if (bytes > most) {
            most = bytes;
            fullest = rest & ~(rest - 1);
        }
    }
    return fullest;
}

/* Waits until sinks have let go of so much that the batch has room beside what is on the lanes.
 * With nothing on them it always has: a large row waits until it is alone. */
static tide_status enter_lanes(struct tide_ingest *ingest, struct tide_batch *batch,
                               struct tide_error *err)
{
    tide_charge_set(&batch->charge, batch->size);
    while (!tide_charge_try_move(&batch->charge, TIDE_BUDGET_LANES)) {
        if (tide_ingest_is_stopping(ingest)) {
            return tide_fail(err, TIDE_CANCELLED, "stopped while no memory was left");
        }
        TIDE_TRY(serve(ingest, fullest_lane(ingest), err));
        (void)tide_waker_wait(&ingest->waker, tide_clock_deadline_us(TICK_US));
    }
    return TIDE_OK;
}

tide_status tide_ingest_publish_batch(struct tide_ingest *ingest, struct tide_batch *batch,
                                      tide_lane_set lanes, uint64_t *ret_build,
                                      struct tide_error *err)
{
    struct tide_item item = {.kind = TIDE_ITEM_BATCH, .batch = batch};
    tide_status status = lanes == 0 ? TIDE_OK : enter_lanes(ingest, batch, err);
    if (status == TIDE_OK) {
        status = publish(ingest, item, lanes, ret_build, err);
    }
    tide_batch_unref(batch);
    return status;
}

tide_status tide_ingest_publish_marker(struct tide_ingest *ingest, struct tide_marker *marker,
                                       unsigned lane, uint64_t *ret_build, struct tide_error *err)
{
    struct tide_item item = {.kind = TIDE_ITEM_SNAPSHOT_COMPLETE, .marker = marker};
    tide_status status = publish(ingest, item, (tide_lane_set)1 << lane, ret_build, err);
    tide_marker_unref(marker);
    return status;
}

tide_status tide_ingest_publish_open(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_batch *batch = tide_build_take(&ingest->build);
    if (batch == NULL) {
        return TIDE_OK;
    }
    uint64_t build = 0;
    (void)tide_batch_ref(batch);
    tide_status status = tide_ingest_publish_batch(ingest, batch, ingest->lanes, &build, err);
    if (status == TIDE_OK) {
        tide_build_published(&ingest->build, batch, build);
        tide_ingest_note_published(ingest, batch);
        atomic_fetch_add(&ingest->stats.changes_published, batch->change_count);
    }
    tide_batch_unref(batch);
    return status;
}
