/* What rows are read by: caller rows and clock offsets, in the order in which they were written. */
#include "base/limits.h"
#include "replication/publisher_state.h"

/* Caller rows. One may be there twice, so none is sent twice: where the newest that was sent has
 * been removed, it goes on behind the newest that is left of those that were sent last. */
static tide_status find_index_mark(struct tide_publisher *publisher, struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[TIDE_ARCHIVE_CALLER_ROWS];
    uint64_t count = publisher->index_count;
    uint64_t kept = count < TIDE_PUBLISHER_MARKS ? count : TIDE_PUBLISHER_MARKS;
    for (uint64_t i = 1; i <= kept; i++) {
        bool is_there = false;
        struct tide_archive_mark mark = publisher->index_marks[(count - i) % TIDE_PUBLISHER_MARKS];
        TIDE_TRY(tide_archive_tail_has(tail, mark, &is_there, err));
        if (is_there) {
            publisher->marks[TIDE_ARCHIVE_CALLER_ROWS] = mark;
            return TIDE_OK;
        }
    }
    publisher->marks[TIDE_ARCHIVE_CALLER_ROWS] = TIDE_ARCHIVE_MARK_FIRST;
    return kept == count ? TIDE_OK
                         : tide_fail_retriable(err, TIDE_STALE,
                                               "the last %d caller rows that were sent have been "
                                               "forgotten in the archive; connect again",
                                               TIDE_PUBLISHER_MARKS);
}

/*
 * The first of a source is full: it begins all there is. So is, of tables, the first of a series
 * and the first behind a sealing: it has all of the table's columns. In between it says what has
 * changed.
 */
static bool is_full(const struct tide_publisher_series *series)
{
    return !series->source->has_full || (series->source->is_of_tables && series->wants_full);
}

static tide_status send_entry(struct tide_publisher *publisher,
                              const struct tide_archive_written *written, struct tide_buf *out,
                              struct tide_error *err)
{
    struct tide_publisher_series *series = NULL;
    TIDE_TRY(tide_publisher_series(publisher, written->source, written->series, &series, err));
    struct tide_publisher_source *source = series->source;
    struct tide_wire_state state = tide_wire_state_fold(source->state, written->ts, written->bytes);
    struct tide_wire_frame frame = {
        .kind = TIDE_WIRE_INDEX,
        .source = source->number,
        .index =
            {
                .series = written->series,
                .ts = written->ts,
                .is_delta = !is_full(series),
                .state = state,
                .bytes = written->bytes,
            },
    };
    TIDE_TRY(tide_wire_encode(&frame, out, err));
    source->state = state;
    source->has_full = true;
    series->wants_full = false;
    publisher->index_marks[publisher->index_count++ % TIDE_PUBLISHER_MARKS] =
        tide_archive_mark_of(written);
    return TIDE_OK;
}

/* What has been written since the mark, which is where it was sent up to, one after the other. */
static tide_status send_written(struct tide_publisher *publisher, enum tide_archive_table table,
                                tide_status (*send)(struct tide_publisher *publisher,
                                                    const struct tide_archive_written *written,
                                                    struct tide_buf *out, struct tide_error *err),
                                struct tide_buf *out, struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[table];
    tide_archive_tail_begin(tail, publisher->marks[table]);
    while (!tide_publisher_is_full(publisher, out)) {
        struct tide_archive_written written;
        bool is_any = false;
        TIDE_TRY(tide_archive_tail_next(tail, &written, &is_any, err));
        if (!is_any) {
            return TIDE_OK;
        }
        TIDE_TRY(send(publisher, &written, out, err));
        publisher->marks[table] = tide_archive_mark_of(&written);
    }
    return TIDE_OK;
}

/* Whether the row of the mark is still there: what is behind it has not been sent. */
static tide_status has_mark(struct tide_publisher *publisher, enum tide_archive_table table,
                            bool *ret_has, struct tide_error *err)
{
    return tide_archive_tail_has(publisher->tails[table], publisher->marks[table], ret_has, err);
}

tide_status tide_publisher_send_index(struct tide_publisher *publisher, struct tide_buf *out,
                                      struct tide_error *err)
{
    bool has = false;
    TIDE_TRY(has_mark(publisher, TIDE_ARCHIVE_CALLER_ROWS, &has, err));
    if (!has) {
        TIDE_TRY(find_index_mark(publisher, err));
    }
    return send_written(publisher, TIDE_ARCHIVE_CALLER_ROWS, send_entry, out, err);
}

/* Clock offsets: the first of a time stays, so those that come again do no harm. */

static bool is_wanted(const struct tide_publisher *publisher,
                      const struct tide_publisher_source *source,
                      const struct tide_archive_written *written)
{
    if (source->hello != NULL || publisher->options.from == TIDE_PUBLISH_ALL) {
        return true;
    }
    return publisher->options.from == TIDE_PUBLISH_SINCE
               ? written->ts >= publisher->options.since_ts
               : written->number > publisher->opening_offset;
}

static tide_status send_offset(struct tide_publisher *publisher,
                               const struct tide_archive_written *written, struct tide_buf *out,
                               struct tide_error *err)
{
    const struct tide_publisher_source *source = tide_publisher_source(publisher, written->source);
    if (source == NULL || !is_wanted(publisher, source, written)) {
        return TIDE_OK;
    }
    const struct tide_wire_frame frame = {
        .kind = TIDE_WIRE_CLOCK_OFFSET,
        .source = source->number,
        .clock_offset = {.ts = written->ts, .offset_ns = written->wall_offset},
    };
    return tide_wire_encode(&frame, out, err);
}

tide_status tide_publisher_send_offsets(struct tide_publisher *publisher, struct tide_buf *out,
                                        struct tide_error *err)
{
    bool has = false;
    TIDE_TRY(has_mark(publisher, TIDE_ARCHIVE_CLOCK_OFFSETS, &has, err));
    if (!has) {
        publisher->marks[TIDE_ARCHIVE_CLOCK_OFFSETS] = TIDE_ARCHIVE_MARK_FIRST;
        publisher->opening_offset = INT64_MIN;
    }
    return send_written(publisher, TIDE_ARCHIVE_CLOCK_OFFSETS, send_offset, out, err);
}
