#include "sink/file/file_sink.h"

#include "base/alloc.h"
#include "port/frames.h"
#include "sink/file/file_check.h"
#include "sink/file/file_open.h"
#include "sink/file/file_set.h"

#include <stdlib.h>

/* A file's buffer is written when it has this much, all of them when together they have the other.
 */
#define FILE_BUFFER_BYTES ((size_t)256 * 1024)
#define BUFFERED_BYTES    ((size_t)4 * 1024 * 1024)

struct tide_sink {
    struct tide_file_set set;
    struct tide_progress pending; /* once all that was written is held */
    struct tide_frames frames;
    struct tide_buf destination;
    size_t buffered; /* in all files */
};

static void file_close(struct tide_sink *sink)
{
    if (sink != NULL) {
        tide_file_set_done(&sink->set);
        tide_progress_done(&sink->pending);
        tide_frames_done(&sink->frames);
        tide_buf_done(&sink->destination);
        free(sink);
    }
}

static void close_ptr(struct tide_sink **sink)
{
    file_close(*sink);
}

static tide_status file_open(const struct tide_sink_options *options, struct tide_sink **ret_sink,
                             struct tide_error *err)
{
    TIDE_CLEANUP(close_ptr) struct tide_sink *sink = tide_alloc(1, sizeof(*sink));
    TIDE_TRY(tide_file_set_init(&sink->set, options->place, options->is_resumed, err));
    TIDE_TRY(tide_file_set_prepare(&sink->set, options, err));
    tide_buf_printf(&sink->destination, "file:%.*s", TIDE_STR_ARG(options->place));
    tide_frames_init(&sink->frames, options, tide_buf_str(&sink->destination));
    tide_progress_copy(&sink->pending, &sink->set.held.progress);
    *ret_sink = sink;
    sink = NULL;
    return TIDE_OK;
}

static void file_held(struct tide_sink *sink, struct tide_sink_held *ret_held)
{
    tide_progress_held(&sink->set.held.progress, ret_held);
}

static tide_status append_frame(struct tide_sink *sink, struct tide_frames_file *file,
                                struct tide_error *err)
{
    size_t before = file->buf.len;
    TIDE_TRY(tide_frames_append(&sink->frames, &file->buf, err));
    sink->buffered += file->buf.len - before;
    if (file->buf.len < FILE_BUFFER_BYTES) {
        return TIDE_OK;
    }
    sink->buffered -= file->buf.len < sink->buffered ? file->buf.len : sink->buffered;
    return tide_file_set_write_out(&sink->set, file, err);
}

static tide_status file_write_batch(struct tide_sink *sink, const struct tide_batch *batch,
                                    size_t first_change, struct tide_error *err)
{
    const struct tide_relation *relation;
    const struct tide_relation *last = NULL; /* most batches are of one table, or runs of one */
    struct tide_frames_file *file = NULL;
    tide_frames_start(&sink->frames, batch, first_change);
    while ((relation = tide_frames_peek(&sink->frames)) != NULL) {
        if (relation != last) {
            TIDE_TRY(tide_file_set_find(&sink->set, relation->store, &file, err));
            last = relation;
        }
        TIDE_TRY(append_frame(sink, file, err));
    }
    if (sink->buffered >= BUFFERED_BYTES) {
        TIDE_TRY(tide_file_set_write_out_all(&sink->set, err));
        sink->buffered = 0;
    }
    tide_progress_apply(&sink->pending, batch);
    return TIDE_OK;
}

static tide_status file_flush(struct tide_sink *sink, bool is_caught_up, struct tide_error *err)
{
    (void)is_caught_up;
    sink->buffered = 0;
    return tide_file_set_flush(&sink->set, &sink->pending, err);
}

static void file_counts(const struct tide_sink *sink, struct tide_sink_counts *ret_counts)
{
    tide_frames_counts(&sink->frames, ret_counts);
}

const struct tide_sink_ops tide_file_sink_ops = {
    .scheme = "file",
    .valid = tide_file_place_valid,
    .open = file_open,
    .check = tide_file_check,
    .close = file_close,
    .held = file_held,
    .write_batch = file_write_batch,
    .flush = file_flush,
    .counts = file_counts,
};
