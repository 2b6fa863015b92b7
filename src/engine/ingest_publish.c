#include "engine/ingest_state.h"

#include "base/clock.h"

#define TICK_US 200000

/* What goes on while lanes are full. */
static tide_status serve(struct tide_ingest *ingest, tide_lane_set full, struct tide_error *err)
{
    tide_ingest_serve_report(ingest);
    TIDE_TRY(tide_ingest_take_posts(ingest, err));
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

tide_status tide_ingest_publish_batch(struct tide_ingest *ingest, struct tide_batch *batch,
                                      tide_lane_set lanes, uint64_t *ret_build,
                                      struct tide_error *err)
{
    struct tide_item item = {.kind = TIDE_ITEM_BATCH, .batch = batch};
    tide_status status = publish(ingest, item, lanes, ret_build, err);
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
