#include "port/frames.h"

#include <stdio.h>
#include <string.h>

void tide_frames_init(struct tide_frames *frames, const struct tide_sink_options *options,
                      tide_str destination)
{
    *frames = (struct tide_frames){
        .envelope = {.position_kind = options->position_kind,
                     .record_bytes_max = options->record_bytes_max,
                     .incarnation = options->incarnation},
    };
    tide_refusals_init(&frames->refusals, options, destination);
}

void tide_frames_done(struct tide_frames *frames)
{
    tide_envelope_rows_done(&frames->prepared);
    tide_buf_done(&frames->record);
}

void tide_frames_start(struct tide_frames *frames, const struct tide_batch *batch,
                       size_t first_change)
{
    const struct tide_snapshot_part *part = batch->snapshot;
    frames->batch = batch;
    if (part == NULL) {
        frames->at = first_change < batch->change_count ? first_change : batch->change_count;
        frames->end = batch->change_count;
        return;
    }
    frames->at = part->opening == TIDE_OPENING_NONE ? 1 : 0;
    frames->end = 1 + part->row_count + (part->is_end ? 1 : 0);
    tide_envelope_rows_done(&frames->prepared);
    tide_envelope_rows_init(&frames->prepared, &frames->envelope, part);
}

const struct tide_relation *tide_frames_peek(const struct tide_frames *frames)
{
    if (frames->at == frames->end) {
        return NULL;
    }
    const struct tide_batch *batch = frames->batch;
    return batch->snapshot != NULL ? batch->snapshot->relation
                                   : batch->changes[frames->at].relation;
}

/* Only the sink's thread adds, so no locked instruction is needed; others may read meanwhile. */
static void count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + n, memory_order_relaxed);
}

static bool is_row(const struct tide_frames *frames)
{
    return frames->at >= 1 && frames->at <= frames->batch->snapshot->row_count;
}

/* Returns the size of a record that is over the limit, else 0; its bytes are in `record` then. */
static size_t append_snapshot_frame(struct tide_frames *frames, struct tide_buf *buf)
{
    const struct tide_snapshot_part *part = frames->batch->snapshot;
    size_t oversize = 0;
    if (frames->at == 0) {
        tide_envelope_append_opening(buf, &frames->envelope, part);
    } else if (is_row(frames)) {
        tide_envelope_rows_append(buf, &frames->prepared, frames->at - 1, &oversize,
                                  &frames->record);
    } else {
        tide_envelope_append_end(buf, &frames->envelope, part);
    }
    return oversize;
}

static size_t append_change_frame(struct tide_frames *frames, struct tide_buf *buf)
{
    size_t oversize = 0;
    tide_envelope_append_change(buf, &frames->envelope, &frames->batch->changes[frames->at],
                                &oversize, &frames->record);
    return oversize;
}

static tide_status refuse(struct tide_frames *frames, size_t oversize, struct tide_error *err)
{
    const struct tide_batch *batch = frames->batch;
    char reason[80];
    int len = snprintf(reason, sizeof(reason), "%zu bytes, limit %zu", oversize,
                       frames->envelope.record_bytes_max);
    struct tide_refused_record record = {.bytes = tide_buf_str(&frames->record),
                                         .reason = {reason, (size_t)len}};
    return batch->snapshot != NULL
               ? tide_refusals_take_row(&frames->refusals, batch->snapshot, frames->at - 1, &record,
                                        err)
               : tide_refusals_take_change(&frames->refusals, &batch->changes[frames->at], &record,
                                           err);
}

static void count_frame(struct tide_frames *frames, bool is_stub)
{
    if (frames->batch->snapshot == NULL) {
        count(&frames->changes, 1);
    } else if (is_row(frames)) {
        count(is_stub ? &frames->stubs : &frames->rows, 1);
    }
}

/* Raw line ends can only be white space between the tokens of an embedded JSON value. */
static void flatten(char *bytes, size_t len, char line_end)
{
    char *end = bytes + len;
    while ((bytes = memchr(bytes, line_end, (size_t)(end - bytes))) != NULL) {
        *bytes++ = ' ';
    }
}

tide_status tide_frames_append(struct tide_frames *frames, struct tide_buf *buf,
                               struct tide_error *err)
{
    TIDE_ASSERT(frames->at < frames->end);
    size_t before = buf->len;
    tide_buf_reset(&frames->record);
    size_t oversize = frames->batch->snapshot != NULL ? append_snapshot_frame(frames, buf)
                                                      : append_change_frame(frames, buf);
    if (TIDE_UNLIKELY(oversize > 0)) {
        tide_status status = refuse(frames, oversize, err);
        tide_buf_done(&frames->record); /* rare and large: not worth keeping */
        if (status != TIDE_OK) {
            buf->len = before;
            return status;
        }
    }
    count_frame(frames, oversize > 0);
    TIDE_ASSERT(buf->len > before);
    flatten(buf->ptr + before, buf->len - before, '\n');
    flatten(buf->ptr + before, buf->len - before, '\r');
    tide_buf_append_char(buf, '\n');
    count(&frames->bytes, buf->len - before);
    frames->at++;
    return TIDE_OK;
}

void tide_frames_counts(const struct tide_frames *frames, struct tide_sink_counts *ret_counts)
{
    *ret_counts = (struct tide_sink_counts){
        .rows = atomic_load_explicit(&frames->rows, memory_order_relaxed),
        .stubs = atomic_load_explicit(&frames->stubs, memory_order_relaxed),
        .changes = atomic_load_explicit(&frames->changes, memory_order_relaxed),
        .bytes = atomic_load_explicit(&frames->bytes, memory_order_relaxed),
    };
    tide_refusals_counts(&frames->refusals, ret_counts);
}
