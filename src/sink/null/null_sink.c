#include "sink/null/null_sink.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "port/frames.h"

#include <stdlib.h>

/* A batch is thrown away in pieces of this size, small enough to stay in the cache. */
#define BUFFER_BYTES ((size_t)256 * 1024)

struct tide_sink {
    struct tide_frames frames;
    struct tide_buf buf;
};

static tide_status null_valid(tide_str place, struct tide_error *err)
{
    return place.len == 0 ? TIDE_OK
                          : tide_fail(err, TIDE_INVALID, "null: takes no path; write null: alone");
}

static tide_status null_open(const struct tide_sink_options *options, struct tide_sink **ret_sink,
                             struct tide_error *err)
{
    TIDE_TRY(null_valid(options->place, err));
    struct tide_sink *sink = tide_alloc(1, sizeof(*sink));
    tide_frames_init(&sink->frames, options, TIDE_STR("null:"));
    *ret_sink = sink;
    return TIDE_OK;
}

static void null_close(struct tide_sink *sink)
{
    if (sink != NULL) {
        tide_frames_done(&sink->frames);
        tide_buf_done(&sink->buf);
        free(sink);
    }
}

static void null_held(struct tide_sink *sink, struct tide_sink_held *ret_held)
{
    (void)sink;
    *ret_held = (struct tide_sink_held){0};
}

static tide_status null_write_batch(struct tide_sink *sink, const struct tide_batch *batch,
                                    size_t first_change, struct tide_error *err)
{
    tide_frames_start(&sink->frames, batch, first_change);
    while (tide_frames_peek(&sink->frames) != NULL) {
        TIDE_TRY(tide_frames_append(&sink->frames, &sink->buf, err));
        if (sink->buf.len >= BUFFER_BYTES) {
            tide_buf_reset(&sink->buf);
        }
    }
    return TIDE_OK;
}

static tide_status null_flush(struct tide_sink *sink, bool is_caught_up, struct tide_error *err)
{
    (void)is_caught_up;
    (void)err;
    tide_buf_reset(&sink->buf);
    return TIDE_OK;
}

static void null_counts(const struct tide_sink *sink, struct tide_sink_counts *ret_counts)
{
    tide_frames_counts(&sink->frames, ret_counts);
}

const struct tide_sink_ops tide_null_sink_ops = {
    .scheme = "null",
    .valid = null_valid,
    .open = null_open,
    .close = null_close,
    .held = null_held,
    .write_batch = null_write_batch,
    .flush = null_flush,
    .counts = null_counts,
};
