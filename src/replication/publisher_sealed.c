/*
 * Rows out of a segment, for whoever takes no segments any more: those that were sealed before they
 * were sent; or out of one that no frame takes. The segment is in memory for that, and all of its
 * rows go at once.
 */
#include "archive/change_encoder.h"
#include "base/limits.h"
#include "replication/publisher_state.h"

struct unsealing {
    struct tide_publisher *publisher;
    struct tide_publisher_series *series;
    bool has_sent; /* before this segment */
    int64_t sent_to;
    struct tide_publisher_run run;
    struct tide_buf *out;
};

static tide_status take_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct unsealing *unsealing = context;
    const struct tide_wire_row row = {.series = unsealing->series->name, .ts = ts, .bytes = bytes};
    if (!tide_wire_row_fits(&row)) {
        tide_publisher_leave_out(unsealing->publisher, unsealing->series, "a row", ts, bytes.len);
        return TIDE_OK;
    }
    return unsealing->has_sent && ts <= unsealing->sent_to
               ? TIDE_OK
               : tide_publisher_send_row(unsealing->series, &row, &unsealing->run, unsealing->out,
                                         err);
}

tide_status tide_publisher_send_sealed(struct tide_publisher *publisher,
                                       struct tide_publisher_series *series,
                                       const struct tide_archive_written *segment,
                                       struct tide_buf *out, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct unsealing unsealing = {.publisher = publisher,
                                  .series = series,
                                  .has_sent = series->has_sent,
                                  .sent_to = series->sent_to,
                                  .out = out};
    const struct tide_archive_row_taker taker = {take_row, &unsealing};
    TIDE_TRY(tide_archive_segment_piece(publisher->archive, segment->number, false, 0,
                                        (size_t)segment->bytes_size, &bytes, err));
    const struct tide_archive_segment whole = {
        .seq = segment->seq,
        .rows = segment->rows,
        .first_ts = segment->first_ts,
        .last_ts = segment->ts,
        .bytes = tide_buf_str(&bytes),
    };
    TIDE_TRY(
        tide_change_encoder.decode(tide_change_encoder.context, series->name, &whole, &taker, err));
    tide_publisher_end_run(&unsealing.run, out);
    return TIDE_OK;
}
