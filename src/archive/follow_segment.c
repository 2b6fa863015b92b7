/* Segments of another archive, taken over as they are. */
#include <inttypes.h>
#include <sqlite3.h>

#include "archive/follow.h"
#include "archive/writer_state.h"
#include "base/limits.h"

/* Looks at each row of the segment beside the live rows that it spans, by time. */
struct comparison {
    const struct tide_archive_series *series;
    struct sqlite3_stmt *live;
    bool has_live; /* the statement stands on a row */
    int64_t count; /* rows of the segment */
    int64_t first_ts;
    int64_t last_ts;
};

static tide_status fail_missing(const struct comparison *comparison, int64_t ts, const char *what,
                                struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "%s: following: the row of %.*s at %" PRId64 " is held unsealed, and the "
                     "segment that spans it %s: what is followed is not what was followed before; "
                     "follow it into a new file",
                     comparison->series->writer->archive->path,
                     TIDE_STR_ARG(comparison->series->name), ts, what);
}

static tide_status next_live(struct comparison *comparison, struct tide_error *err)
{
    return tide_archive_step(comparison->series->writer->archive, comparison->live,
                             &comparison->has_live, err);
}

static void note_ts(struct comparison *comparison, int64_t ts)
{
    comparison->first_ts = comparison->count == 0 ? ts : comparison->first_ts;
    comparison->last_ts = ts;
    comparison->count++;
}

static tide_status compare(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct comparison *comparison = context;
    note_ts(comparison, ts);
    if (!comparison->has_live) {
        return TIDE_OK;
    }
    int64_t live_ts = sqlite3_column_int64(comparison->live, 0);
    if (live_ts < ts) {
        return fail_missing(comparison, live_ts, "has no such row", err);
    }
    if (live_ts > ts) {
        return TIDE_OK;
    }
    return tide_str_equal(tide_archive_column_bytes(comparison->live, 1), bytes)
               ? next_live(comparison, err)
               : fail_missing(comparison, ts, "has another one of that time", err);
}

/* Whose encoder is not named may have written anything. */
static bool can_open(const struct tide_archive_series *series)
{
    const struct tide_archive_encoder *encoder = series->writer->options.encoder;
    return encoder != NULL && (series->source->has_encoder || encoder->version == NULL);
}

static tide_status decode(const struct tide_archive_series *series,
                          const struct tide_archive_segment *segment,
                          const struct tide_archive_row_taker *taker, struct tide_error *err)
{
    const struct tide_archive_encoder *encoder = series->writer->options.encoder;
    if (!can_open(series)) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: following: the rows of %.*s at %" PRId64 " to %" PRId64
                         " come in another segment than they are held in, and its source names no "
                         "encoder that could open it; follow it into a new file",
                         series->writer->archive->path, TIDE_STR_ARG(series->name),
                         segment->first_ts, segment->last_ts);
    }
    tide_status status = encoder->decode(encoder->context, series->name, segment, taker, err);
    if (status == TIDE_CORRUPT) { /* what came is damaged, and not the archive */
        err->status = TIDE_INVALID;
        return tide_fail_context(err, "a segment of %.*s that was sent",
                                 TIDE_STR_ARG(series->name));
    }
    return status;
}

static tide_status check_counts(const struct comparison *comparison,
                                const struct tide_archive_segment *segment, struct tide_error *err)
{
    if (comparison->count == segment->rows && comparison->first_ts == segment->first_ts &&
        comparison->last_ts == segment->last_ts) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID,
                     "a segment of %.*s says %" PRId64 " rows from %" PRId64 " to %" PRId64
                     ", and has %" PRId64 " from %" PRId64 " to %" PRId64,
                     TIDE_STR_ARG(comparison->series->name), segment->rows, segment->first_ts,
                     segment->last_ts, comparison->count, comparison->first_ts,
                     comparison->last_ts);
}

/* Nobody can open the segment: the live rows that it takes the place of, which lie within it by
 * now, are no more than it has. */
static tide_status check_live_counts(const struct tide_archive_series *series,
                                     const struct tide_archive_segment *segment,
                                     struct tide_error *err)
{
    const struct tide_archive_series_state *state = &series->state;
    struct comparison comparison = {.series = series};
    bool is_any = false;
    int64_t count = 0;
    TIDE_TRY(tide_archive_ask(series->writer->archive, err, &is_any, &count,
                              "SELECT COUNT(*) FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                              "ts <= ?3 AND (NOT ?4 OR ts > ?5)",
                              "itiii", series->source->id, series->name, segment->last_ts,
                              (int64_t)state->is_sealed, state->sealed_to));
    return count <= segment->rows
               ? TIDE_OK
               : fail_missing(&comparison, segment->last_ts, "has fewer rows than are held", err);
}

/* Each live row up to the segment's end is a row of it. */
static tide_status check_live_rows(const struct tide_archive_series *series,
                                   const struct tide_archive_segment *segment,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    struct comparison comparison = {.series = series};
    const struct tide_archive_row_taker taker = {compare, &comparison};
    if (!can_open(series)) {
        return check_live_counts(series, segment, err);
    }
    TIDE_TRY(tide_archive_query(series->writer->archive, &stmt, err,
                                "SELECT ts, row FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                                "ts <= ?3 AND (NOT ?4 OR ts > ?5) ORDER BY ts",
                                "itiii", series->source->id, series->name, segment->last_ts,
                                (int64_t)series->state.is_sealed, series->state.sealed_to));
    comparison.live = stmt;
    TIDE_TRY(next_live(&comparison, err));
    if (!comparison.has_live) {
        return TIDE_OK; /* it is not opened then */
    }
    TIDE_TRY(decode(series, segment, &taker, err));
    TIDE_TRY(check_counts(&comparison, segment, err));
    return comparison.has_live
               ? fail_missing(&comparison, sqlite3_column_int64(stmt, 0), "has no such row", err)
               : TIDE_OK;
}

static tide_status take_over(struct tide_archive_series *series,
                             const struct tide_archive_segment *segment, struct tide_error *err)
{
    struct tide_archive_segment placed = *segment;
    placed.seq = series->state.next_seq;
    TIDE_TRY(tide_archive_check_size(series->writer->archive, "a segment",
                                     segment->bytes.len + segment->index.len, err));
    TIDE_TRY(check_live_rows(series, segment, err));
    TIDE_TRY(tide_archive_insert_segment(series, &placed, err));
    if (series->state.live_rows > 0) {
        TIDE_TRY(tide_archive_run(series->writer->archive, err,
                                  "DELETE FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                                  "ts <= ?3",
                                  "iti", series->source->id, series->name, segment->last_ts));
    }
    return tide_archive_series_reload(series, err);
}

/* Opening: rows one by one. */
struct opening {
    struct tide_archive_series *series;
    struct tide_archive_adopted *adopted;
    struct comparison comparison;
};

static tide_status take_opened(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct opening *opening = context;
    const struct tide_archive_live_row row = {.ts = ts, .bytes = bytes};
    bool is_held = false;
    note_ts(&opening->comparison, ts);
    TIDE_TRY(tide_archive_copy_row(opening->series, &row, &is_held, err));
    opening->adopted->rows += !is_held;
    opening->adopted->rows_held += is_held;
    return TIDE_OK;
}

static tide_status open_up(struct tide_archive_series *series,
                           const struct tide_archive_segment *segment,
                           struct tide_archive_adopted *adopted, struct tide_error *err)
{
    struct opening opening = {series, adopted, {.series = series}};
    const struct tide_archive_row_taker taker = {take_opened, &opening};
    adopted->what = TIDE_ARCHIVE_OPENED;
    TIDE_TRY(decode(series, segment, &taker, err));
    return check_counts(&opening.comparison, segment, err);
}

static tide_status has_same(const struct tide_archive_series *series,
                            const struct tide_archive_segment *segment, bool *ret_has,
                            struct tide_error *err)
{
    int64_t ignored = 0;
    return tide_archive_ask(series->writer->archive, err, ret_has, &ignored,
                            "SELECT 1 FROM segments WHERE source_id = ?1 AND stream = ?2 AND "
                            "last_ts = ?3 AND first_ts = ?4 AND rows = ?5",
                            "itiii", series->source->id, series->name, segment->last_ts,
                            segment->first_ts, segment->rows);
}

static tide_status adopt(struct tide_archive_series *series,
                         const struct tide_archive_segment *segment,
                         struct tide_archive_adopted *adopted, struct tide_error *err)
{
    const struct tide_archive_series_state *state = &series->state;
    bool is_there = false;
    if (!state->is_sealed || segment->first_ts > state->sealed_to) {
        adopted->what = TIDE_ARCHIVE_ADOPTED;
        TIDE_TRY(tide_archive_enter(series->writer, "following", err));
        return tide_archive_leave(series->writer, take_over(series, segment, err), err);
    }
    TIDE_TRY(has_same(series, segment, &is_there, err));
    if (is_there) {
        adopted->what = TIDE_ARCHIVE_HELD;
        return TIDE_OK;
    }
    return open_up(series, segment, adopted, err);
}

/* Rows that are live and before the segment, which it does not have: of segments that were
 * forgotten before they came here, or that were opened. */
static tide_status count_before(const struct tide_archive_series *series, int64_t first_ts,
                                int64_t *ret_count, struct tide_error *err)
{
    const struct tide_archive_series_state *state = &series->state;
    bool is_any = false;
    *ret_count = 0;
    if (state->live_rows == 0 || state->oldest_live_ts >= first_ts) {
        return TIDE_OK;
    }
    return tide_archive_ask(series->writer->archive, err, &is_any, ret_count,
                            "SELECT COUNT(*) FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                            "ts < ?3 AND (NOT ?4 OR ts > ?5)",
                            "itiii", series->source->id, series->name, first_ts,
                            (int64_t)state->is_sealed, state->sealed_to);
}

static tide_status seal_before(struct tide_archive_series *series, int64_t first_ts,
                               struct tide_error *err)
{
    struct tide_archive_seal_policy policy = tide_archive_seal_policy_default;
    struct tide_archive_seal_counts counts = {.segments = 1};
    int64_t rows = 0;
    TIDE_TRY(count_before(series, first_ts, &rows, err));
    if (rows > 0) {
        TIDE_TRY(tide_archive_group_commit(series->writer, err));
    }
    while (rows > 0 && counts.segments > 0) {
        policy.rows_max = rows < TIDE_ARCHIVE_SEAL_ROWS ? rows : TIDE_ARCHIVE_SEAL_ROWS;
        TIDE_TRY(tide_archive_seal(series->writer, &series, 1, &policy, &counts, err));
        TIDE_TRY(count_before(series, first_ts, &rows, err));
    }
    return TIDE_OK;
}

tide_status tide_archive_adopt(struct tide_archive_series *series,
                               const struct tide_archive_segment *segment,
                               struct tide_archive_adopted *ret_adopted, struct tide_error *err)
{
    struct tide_archive_writer *writer = series->writer;
    struct tide_archive_adopted adopted = {0};
    struct tide_error ignored;
    if (segment->rows <= 0 || segment->first_ts > segment->last_ts) {
        return tide_fail(err, TIDE_INVALID,
                         "a segment of %.*s with %" PRId64 " rows from %" PRId64 " to %" PRId64
                         " is not a segment that can exist",
                         TIDE_STR_ARG(series->name), segment->rows, segment->first_ts,
                         segment->last_ts);
    }
    TIDE_TRY(seal_before(series, segment->first_ts, err));
    TIDE_TRY(tide_archive_group_begin(writer, err));
    TIDE_TRY(tide_archive_step_begin(writer, err));
    tide_status status = adopt(series, segment, &adopted, err);
    status = status == TIDE_OK ? tide_archive_step_end(writer, err) : status;
    if (status != TIDE_OK) {
        (void)tide_archive_step_undo(writer, &ignored);
        return status;
    }
    *ret_adopted = adopted;
    return TIDE_OK;
}
