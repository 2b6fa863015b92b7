/* Live rows, in the order in which they were written, a frame for each run of one source. */
#include <inttypes.h>

#include "base/alloc.h"
#include "replication/publisher_state.h"

void tide_publisher_end_run(struct tide_publisher_run *run, struct tide_buf *out)
{
    if (run->source != NULL) {
        tide_wire_rows_end(&run->draft, out);
        run->source = NULL;
    }
}

static void begin_run(struct tide_publisher_run *run, struct tide_publisher_source *source,
                      struct tide_buf *out)
{
    TIDE_ASSERT(source != NULL);
    tide_publisher_end_run(run, out);
    run->source = source;
    run->draft = tide_wire_rows_begin(source->number, source->seq++, source->state, out);
}

static void note_row_sent(struct tide_publisher_series *series, int64_t ts)
{
    series->has_rows = true;
    series->sent_rows++;
    if (!series->has_sent || ts > series->sent_to) {
        series->has_sent = true;
        series->sent_to = ts;
        series->late_count = 0;
        return;
    }
    if ((series->late_count & (series->late_count - 1)) == 0) {
        size_t cap = series->late_count == 0 ? 1 : series->late_count * 2;
        series->late = tide_realloc(series->late, cap, sizeof(*series->late));
    }
    series->late[series->late_count++] = ts;
}

tide_status tide_publisher_send_row(struct tide_publisher_series *series,
                                    const struct tide_wire_row *row, struct tide_publisher_run *run,
                                    struct tide_buf *out, struct tide_error *err)
{
    if (run->source != series->source || !tide_wire_rows_has_room(&run->draft, row, out)) {
        begin_run(run, series->source, out);
    }
    TIDE_TRY(tide_wire_rows_add(&run->draft, row, out, err));
    note_row_sent(series, row->ts);
    return TIDE_OK;
}

static tide_status take_row(struct tide_publisher *publisher,
                            const struct tide_archive_written *written,
                            struct tide_publisher_run *run, struct tide_buf *out,
                            struct tide_error *err)
{
    struct tide_publisher_series *series = NULL;
    TIDE_TRY(tide_publisher_series(publisher, written->source, written->series, &series, err));
    TIDE_TRY(tide_publisher_sealed_now(publisher, series, err));
    if (series->is_sealed_now && written->ts <= series->sealed_now) {
        return TIDE_OK; /* it is in a segment, and will be removed here */
    }
    if (series->has_skip && written->ts < series->skip_below &&
        written->number <= publisher->opening_number) {
        series->skipped_rows++;
        return TIDE_OK;
    }
    const struct tide_wire_row row = {
        .series = written->series,
        .ts = written->ts,
        .wall_offset = written->wall_offset,
        .bytes = written->bytes,
    };
    if (tide_wire_row_fits(&row)) {
        return tide_publisher_send_row(series, &row, run, out, err);
    }
    if (!publisher->has_hello) { /* else it comes with its segment, which may be smaller */
        series->skipped_rows++;
        tide_publisher_leave_out(publisher, series, "a row", row.ts, row.bytes.len);
    }
    return TIDE_OK;
}

/* Of the rows of a series that were sent, the greatest number that is left of those that count. */
static tide_status newest_left(struct tide_publisher *publisher,
                               struct tide_publisher_series *series, int64_t *number,
                               struct tide_error *err)
{
    TIDE_TRY(tide_publisher_sealed_now(publisher, series, err));
    for (size_t i = 0; i <= series->late_count; i++) {
        int64_t ts = i == series->late_count ? series->sent_to : series->late[i];
        int64_t found = 0;
        bool is_any = false;
        TIDE_TRY(tide_archive_live_number(publisher->archive, series->source->id, series->name, ts,
                                          &is_any, &found, err));
        bool is_live = !series->is_sealed_now || ts > series->sealed_now;
        if (is_any && is_live && found > *number) {
            *number = found;
        }
    }
    return TIDE_OK;
}

/*
 * The row that was sent last has been removed. What is left of those that were sent was written
 * before what was not; of a series, the newest by time is the last that was written, but for those
 * that came late behind it.
 */
static tide_status find_mark(struct tide_publisher *publisher, struct tide_error *err)
{
    int64_t number = INT64_MIN;
    for (size_t i = 0; i < publisher->series_count; i++) {
        if (publisher->series[i]->has_sent) {
            TIDE_TRY(newest_left(publisher, publisher->series[i], &number, err));
        }
    }
    publisher->opening_number = number;
    return tide_archive_tail_mark(publisher->tails[TIDE_ARCHIVE_LIVE_ROWS], number,
                                  &publisher->marks[TIDE_ARCHIVE_LIVE_ROWS], err);
}

tide_status tide_publisher_check_rows(struct tide_publisher *publisher, struct tide_buf *out,
                                      struct tide_error *err)
{
    bool is_there = false;
    (void)out;
    TIDE_TRY(tide_archive_tail_has(publisher->tails[TIDE_ARCHIVE_LIVE_ROWS],
                                   publisher->marks[TIDE_ARCHIVE_LIVE_ROWS], &is_there, err));
    return is_there ? TIDE_OK : find_mark(publisher, err);
}

static tide_status take_rows(struct tide_publisher *publisher, struct tide_publisher_run *run,
                             struct tide_buf *out, struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[TIDE_ARCHIVE_LIVE_ROWS];
    while (!tide_publisher_is_full(publisher, out)) {
        struct tide_archive_written written;
        bool is_any = false;
        TIDE_TRY(tide_archive_tail_next(tail, &written, &is_any, err));
        if (!is_any) {
            return TIDE_OK;
        }
        TIDE_TRY(take_row(publisher, &written, run, out, err));
        publisher->marks[TIDE_ARCHIVE_LIVE_ROWS] = tide_archive_mark_of(&written);
    }
    return TIDE_OK;
}

tide_status tide_publisher_send_rows(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[TIDE_ARCHIVE_LIVE_ROWS];
    struct tide_publisher_run run = {0};
    tide_archive_tail_begin(tail, publisher->marks[TIDE_ARCHIVE_LIVE_ROWS]);
    TIDE_TRY(take_rows(publisher, &run, out, err));
    tide_publisher_end_run(&run, out);
    return TIDE_OK;
}
