/*
 * Segments, of each series in their order, in pieces: one may be larger than what is sent at a
 * time.
 */
#include <inttypes.h>
#include <string.h>

#include "base/limits.h"
#include "format/wire/pieces.h"
#include "replication/publisher_state.h"

/* What of a segment is not its bytes: kind, source, length of the name, rows, first and last ts,
 * length of the bytes, whether there is an index. */
#define FIXED_SIZE 38

static void note_due(struct tide_publisher *publisher, struct tide_publisher_series *series)
{
    if (series->is_due) {
        return;
    }
    series->is_due = true;
    series->next_due = NULL;
    if (publisher->last_due == NULL) {
        publisher->first_due = series;
    } else {
        publisher->last_due->next_due = series;
    }
    publisher->last_due = series;
}

static void forget_due(struct tide_publisher *publisher)
{
    publisher->first_due->is_due = false;
    publisher->first_due = publisher->first_due->next_due;
    if (publisher->first_due == NULL) {
        publisher->last_due = NULL;
    }
}

/* Notes the series that have segments which were not there at the last look; joined ones too. */
static tide_status look(struct tide_publisher *publisher, struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[TIDE_ARCHIVE_SEGMENTS];
    struct tide_archive_mark *mark = &publisher->marks[TIDE_ARCHIVE_SEGMENTS];
    bool is_any = false;
    TIDE_TRY(tide_archive_tail_has(tail, *mark, &is_any, err));
    tide_archive_tail_begin(tail, is_any ? *mark : TIDE_ARCHIVE_MARK_FIRST);
    for (;;) {
        struct tide_archive_written written;
        struct tide_publisher_series *series = NULL;
        TIDE_TRY(tide_archive_tail_next(tail, &written, &is_any, err));
        if (!is_any) {
            return TIDE_OK;
        }
        TIDE_TRY(tide_publisher_series(publisher, written.source, written.series, &series, err));
        note_due(publisher, series);
        *mark = tide_archive_mark_of(&written);
    }
}

static size_t index_size_of(const struct tide_archive_written *segment)
{
    return segment->has_index ? sizeof(uint32_t) + (size_t)segment->index_size : 0;
}

static bool fits_a_frame(const struct tide_publisher_series *series,
                         const struct tide_archive_written *segment)
{
    size_t room = TIDE_WIRE_FRAME_BYTES_MAX - FIXED_SIZE - series->name.len;
    return (size_t)segment->bytes_size <= room &&
           index_size_of(segment) <= room - (size_t)segment->bytes_size;
}

static void begin_frame(struct tide_publisher *publisher, struct tide_publisher_series *series,
                        const struct tide_archive_written *segment, struct tide_buf *out)
{
    size_t bytes_size = (size_t)segment->bytes_size;
    size_t index_size = index_size_of(segment);
    size_t fixed = FIXED_SIZE + series->name.len;
    char *at = tide_buf_reserve(out, sizeof(uint32_t) + fixed);
    char *start = at;
    at = tide_wire_put_u32(at, (uint32_t)(fixed + bytes_size + index_size));
    at = tide_wire_put_u8(at, TIDE_WIRE_SEGMENT);
    at = tide_wire_put_u32(at, series->source->number);
    at = tide_wire_put_bytes(at, series->name);
    at = tide_wire_put_i64(at, segment->rows);
    at = tide_wire_put_i64(at, segment->first_ts);
    at = tide_wire_put_i64(at, segment->ts);
    at = tide_wire_put_u32(at, (uint32_t)bytes_size);
    out->len += (size_t)(at - start);
    publisher->sending = (struct tide_publisher_sending){
        .series = series,
        .segment = *segment,
        .mark = tide_archive_mark_of(segment),
    };
}

static void append_index_head(const struct tide_publisher_sending *sending, struct tide_buf *out)
{
    char *at = tide_buf_reserve(out, 1 + sizeof(uint32_t));
    char *start = at;
    at = tide_wire_put_u8(at, sending->segment.has_index ? 1 : 0);
    if (sending->segment.has_index) {
        at = tide_wire_put_u32(at, (uint32_t)sending->segment.index_size);
    }
    out->len += (size_t)(at - start);
}

/* Segments up to there have been sent. */
static void note_sealed_up_to(struct tide_publisher_series *series, int64_t end)
{
    series->has_sealed = true;
    series->sealed_to = end;
    series->wants_full = true;
    series->sent_rows = 0;
    series->skipped_rows = 0;
    if (series->has_sent && series->sent_to <= end) {
        series->has_sent = false;
        series->late_count = 0;
    }
}

/* Sends bytes, then the index, as much as there is room for. */
static tide_status send_pieces(struct tide_publisher *publisher, struct tide_buf *out,
                               struct tide_error *err)
{
    struct tide_publisher_sending *sending = &publisher->sending;
    while (sending->series != NULL && !tide_publisher_is_full(publisher, out)) {
        size_t all =
            (size_t)(sending->is_index ? sending->segment.index_size : sending->segment.bytes_size);
        size_t room = publisher->limit - out->len;
        size_t size = all - sending->offset < room ? all - sending->offset : room;
        if (size > 0) {
            TIDE_TRY(tide_archive_segment_piece(publisher->archive, sending->mark.number,
                                                sending->is_index, sending->offset, size, out,
                                                err));
            sending->offset += size;
        }
        if (sending->offset < all) {
            continue;
        }
        if (!sending->is_index) {
            append_index_head(sending, out);
        }
        if (sending->is_index || !sending->segment.has_index) {
            note_sealed_up_to(sending->series, sending->segment.ts);
            sending->series = NULL;
        } else {
            sending->is_index = true;
            sending->offset = 0;
        }
    }
    return TIDE_OK;
}

tide_status tide_publisher_go_on(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err)
{
    bool is_there = false;
    TIDE_TRY(tide_archive_tail_has(publisher->tails[TIDE_ARCHIVE_SEGMENTS], publisher->sending.mark,
                                   &is_there, err));
    if (!is_there) {
        return tide_fail_retriable(err, TIDE_STALE,
                                   "a segment of %.*s was joined with others or forgotten while "
                                   "it was being sent; connect again",
                                   TIDE_STR_ARG(publisher->sending.series->name));
    }
    return send_pieces(publisher, out, err);
}

/* Towards whoever takes no segments behind rows. */

static tide_status fail_overtaken(const struct tide_publisher_series *series, int64_t end,
                                  struct tide_error *err)
{
    return tide_fail_retriable(
        err, TIDE_STALE,
        "the series %.*s was sealed past what this publisher has sent of it, up to %" PRId64
        ", and whoever follows did not say what it holds; publish again, from before that time on",
        TIDE_STR_ARG(series->name), end);
}

/* How many rows the segments have that have come since, and where the last one ends. */
static tide_status add_up(const struct tide_publisher *publisher,
                          const struct tide_publisher_series *series, int64_t *ret_rows,
                          int64_t *ret_end, struct tide_error *err)
{
    bool has_after = series->has_sealed;
    int64_t after = series->sealed_to;
    *ret_rows = 0;
    for (;;) {
        struct tide_archive_written segment;
        bool is_any = false;
        TIDE_TRY(tide_archive_next_segment(publisher->archive, series->source->id, series->name,
                                           has_after, after, &segment, &is_any, err));
        if (!is_any) {
            *ret_end = after;
            return TIDE_OK;
        }
        has_after = true;
        after = segment.ts;
        *ret_rows += segment.rows;
    }
}

/* How many of the rows that were sent are live behind a time. */
static tide_status count_live(const struct tide_publisher *publisher,
                              const struct tide_publisher_series *series, int64_t ts,
                              int64_t *ret_count, struct tide_error *err)
{
    return tide_archive_live_count(publisher->archive, series->source->id, series->name, true, ts,
                                   publisher->marks[TIDE_ARCHIVE_LIVE_ROWS], ret_count, err);
}

static void note_sealed(struct tide_publisher_series *series, int64_t end, int64_t live)
{
    int64_t sealed = series->sent_rows + series->skipped_rows - live;
    series->skipped_rows = series->skipped_rows > sealed ? series->skipped_rows - sealed : 0;
    series->sent_rows = live - series->skipped_rows;
    series->has_sealed = true;
    series->sealed_to = end;
    series->wants_full = true;
}

/* All rows that have been sealed must have been sent as rows before, or are sent now: those of the
 * next segment. */
static tide_status account(struct tide_publisher *publisher, struct tide_publisher_series *series,
                           const struct tide_archive_written *segment, struct tide_buf *out,
                           struct tide_error *err)
{
    int64_t rows = 0;
    int64_t end = 0;
    int64_t live = 0;
    TIDE_TRY(add_up(publisher, series, &rows, &end, err));
    bool is_behind = !series->has_sent || end > series->sent_to;
    if (is_behind && series->source->is_of_tables) {
        TIDE_TRY(tide_publisher_send_sealed(publisher, series, segment, out, err));
        end = segment->ts;
        is_behind = false;
        rows = 0;
    }
    TIDE_TRY(count_live(publisher, series, end, &live, err));
    if (is_behind || rows > series->sent_rows + series->skipped_rows - live) {
        return fail_overtaken(series, end, err);
    }
    note_sealed(series, end, live);
    return TIDE_OK;
}

/* Its rows go one by one, where they are of tables, but for those that no frame takes either. */
static tide_status send_too_large(struct tide_publisher *publisher,
                                  struct tide_publisher_series *series,
                                  const struct tide_archive_written *segment, struct tide_buf *out,
                                  struct tide_error *err)
{
    if (series->source->is_of_tables) {
        TIDE_TRY(tide_publisher_send_sealed(publisher, series, segment, out, err));
    } else {
        tide_publisher_leave_out(publisher, series, "a segment", segment->ts,
                                 (size_t)segment->bytes_size);
    }
    note_sealed_up_to(series, segment->ts);
    return TIDE_OK;
}

/* Sends the next segment of the series, or finds that it has none. */
static tide_status send_next(struct tide_publisher *publisher, struct tide_publisher_series *series,
                             struct tide_buf *out, struct tide_error *err)
{
    struct tide_archive_written segment;
    bool is_any = false;
    TIDE_TRY(tide_archive_next_segment(publisher->archive, series->source->id, series->name,
                                       series->has_sealed, series->sealed_to, &segment, &is_any,
                                       err));
    if (!is_any) {
        forget_due(publisher);
        return TIDE_OK;
    }
    if (publisher->has_hello || !series->has_rows) {
        if (!fits_a_frame(series, &segment)) {
            return send_too_large(publisher, series, &segment, out, err);
        }
        begin_frame(publisher, series, &segment, out);
        return send_pieces(publisher, out, err);
    }
    return account(publisher, series, &segment, out, err);
}

tide_status tide_publisher_send_segments(struct tide_publisher *publisher, struct tide_buf *out,
                                         struct tide_error *err)
{
    TIDE_TRY(look(publisher, err));
    while (publisher->first_due != NULL && publisher->sending.series == NULL &&
           !tide_publisher_is_full(publisher, out)) {
        TIDE_TRY(send_next(publisher, publisher->first_due, out, err));
    }
    return TIDE_OK;
}
