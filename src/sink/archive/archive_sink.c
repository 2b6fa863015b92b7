#include "sink/archive/archive_sink.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "sink/archive/archive_rows.h"
#include "sink/archive/archive_seal.h"
#include "sink/archive/archive_target.h"
#include "sink/archive/archive_upkeep.h"

#include <stdlib.h>

struct tide_sink {
    struct tide_archive_target target;
    struct tide_progress pending; /* once all that was written is held */
    struct tide_archive_rows rows;
    struct tide_archive_sealer sealer;
    struct tide_archive_upkeep *upkeep;
    struct tide_buf destination;
    tide_status sealing; /* not OK: how it failed, for good */
    struct tide_error sealing_err;
};

static void archive_close(struct tide_sink *sink)
{
    if (sink != NULL) {
        tide_archive_upkeep_free(sink->upkeep); /* it uses the target */
        tide_archive_rows_done(&sink->rows);
        tide_archive_target_close(&sink->target);
        tide_progress_done(&sink->pending);
        tide_buf_done(&sink->destination);
        free(sink);
    }
}

static void close_ptr(struct tide_sink **sink)
{
    archive_close(*sink);
}

static tide_status archive_open(const struct tide_sink_options *options,
                                struct tide_sink **ret_sink, struct tide_error *err)
{
    TIDE_CLEANUP(close_ptr) struct tide_sink *sink = tide_alloc(1, sizeof(*sink));
    sink->target.place.lock_fd = -1;
    TIDE_TRY(tide_archive_target_open(&sink->target, options, err));
    tide_buf_printf(&sink->destination, "archive:%.*s", TIDE_STR_ARG(options->place));
    tide_archive_rows_init(&sink->rows, &sink->target, options, tide_buf_str(&sink->destination));
    tide_archive_sealer_init(&sink->sealer, &options->segments);
    tide_progress_copy(&sink->pending, &sink->target.held);
    sink->upkeep = tide_archive_upkeep_new(&sink->target, options);
    tide_archive_upkeep_start(sink->upkeep);
    *ret_sink = sink;
    sink = NULL;
    return TIDE_OK;
}

static void archive_held(struct tide_sink *sink, struct tide_sink_held *ret_held)
{
    tide_progress_held(&sink->target.held, ret_held);
}

static tide_status archive_write_batch(struct tide_sink *sink, const struct tide_batch *batch,
                                       size_t first_change, struct tide_error *err)
{
    TIDE_TRY(batch->snapshot != NULL
                 ? tide_archive_rows_add_part(&sink->rows, batch->snapshot, &sink->pending, err)
                 : tide_archive_rows_add_changes(&sink->rows, batch, first_change, err));
    tide_progress_apply(&sink->pending, batch);
    return TIDE_OK;
}

/* What is written stays written when it cannot be sealed; who watches hears of it all the same. */
static void seal(struct tide_sink *sink)
{
    sink->sealing = tide_archive_seal_tables(&sink->sealer, &sink->rows, false, &sink->sealing_err);
}

static tide_status archive_flush(struct tide_sink *sink, bool is_caught_up, struct tide_error *err)
{
    struct tide_archive_tick tick;
    (void)is_caught_up;
    if (sink->sealing != TIDE_OK) {
        *err = sink->sealing_err;
        return err->status;
    }
    if (sink->rows.row_count == 0 && tide_progress_equal(&sink->pending, &sink->target.held)) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_rows_tick(&sink->rows, &tick, err));
    TIDE_TRY(tide_archive_target_write(&sink->target, &tick, &sink->pending, err));
    tide_archive_rows_forget(&sink->rows);
    seal(sink);
    return TIDE_OK;
}

static bool has_open_snapshot(const struct tide_progress *progress)
{
    return tide_progress_ended_count(progress) < progress->snapshot_count;
}

/* Where every copy that was begun has ended: all that there is goes into segments, and the source
 * counts as whole until it is gone on with. */
static tide_status archive_finish(struct tide_sink *sink, struct tide_error *err)
{
    if (has_open_snapshot(&sink->target.held) || sink->target.held.snapshot_count == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_seal_tables(&sink->sealer, &sink->rows, true, err));
    return tide_archive_finalize_source(sink->target.writer, sink->target.source,
                                        tide_clock_utc_us() * 1000, 0, err);
}

static void archive_counts(const struct tide_sink *sink, struct tide_sink_counts *ret_counts)
{
    tide_archive_rows_counts(&sink->rows, ret_counts);
}

const struct tide_sink_ops tide_archive_sink_ops = {
    .scheme = "archive",
    .has_segments = true,
    .valid = tide_archive_place_valid,
    .open = archive_open,
    .check = tide_archive_sink_check,
    .close = archive_close,
    .held = archive_held,
    .write_batch = archive_write_batch,
    .flush = archive_flush,
    .finish = archive_finish,
    .counts = archive_counts,
};
