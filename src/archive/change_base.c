#include "archive/change_base.h"

#include <stdlib.h>

#include "archive/archive_db.h"
#include "archive/change_encoder.h"
#include "archive/change_fold.h"
#include "archive/change_scan.h"
#include "archive/change_segment.h"
#include "base/alloc.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/uuid.h"

enum {
    PIECE_ROWS = 64 * 1024,
    PIECE_BYTES = 8 * 1024 * 1024,
};

/* The end of a segment, as a place to cut at. */
struct cut {
    int64_t seq;
    int64_t rows;
    int64_t first_ts;
    int64_t last_ts;
    struct tide_change_place change; /* the last one up to it */
    bool is_split;                   /* the next one is of the same transaction */
};

struct folding {
    struct tide_archive *archive;
    const struct tide_archive_series_info *series;
    struct cut *cuts; /* segments before the cutoff; count: those that go */
    size_t count;
    struct tide_change_history *history; /* first of all rows, then of those that go */
    struct tide_change_fold *fold;
    int64_t changes;                 /* of those that go, */
    int64_t newest_us;               /* what the newest of them and of the copies has as time, */
    struct tide_change_place change; /* and the last one */
    char id[TIDE_UUID_LEN + 1];
    int64_t rows;       /* of the table */
    int64_t ts;         /* of the next row to be written */
    size_t piece;       /* segments written */
    int64_t piece_rows; /* of the one under way */
    int64_t piece_first_ts;
    struct tide_buf schema; /* JSON */
    struct tide_change_segment *segment;
};

static void folding_done(struct folding *folding)
{
    free(folding->cuts);
    tide_change_fold_free(folding->fold);
    tide_change_history_free(folding->history);
    tide_buf_done(&folding->schema);
    tide_change_segment_free(folding->segment);
}

static tide_status list_cuts(struct folding *folding, int64_t cutoff_ts, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    struct tide_archive *archive = folding->archive;
    bool is_row = false;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT seq, rows, first_ts, last_ts FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND last_ts < ?3 ORDER BY seq",
                                "iti", folding->series->source, folding->series->name, cutoff_ts));
    for (;;) {
        struct cut cut = {0};
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &cut.seq, err));
        TIDE_TRY(tide_archive_column_count(archive, stmt, 1, &cut.rows, err));
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 2, &cut.first_ts, err));
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &cut.last_ts, err));
        folding->cuts = tide_realloc(folding->cuts, folding->count + 1, sizeof(cut));
        folding->cuts[folding->count++] = cut;
    }
}

static tide_status open_scan(const struct folding *folding, int64_t start_ts, int64_t end_ts,
                             struct tide_change_scan **ret_scan, struct tide_error *err)
{
    const struct tide_archive_range range = {.source = folding->series->source,
                                             .series = folding->series->name,
                                             .start_ts = start_ts,
                                             .end_ts = end_ts};
    return tide_change_scan_open(folding->archive, &range, ret_scan, err);
}

static struct tide_change_place place_of(const struct tide_change_row *row)
{
    return (struct tide_change_place){row->incarnation, row->place};
}

static struct tide_change_place later(struct tide_change_place a, struct tide_change_place b)
{
    return tide_change_place_compare(a, b) >= 0 ? a : b;
}

static bool is_of_one_transaction(struct tide_change_place a, struct tide_change_place b)
{
    return a.place.known && b.place.known && a.incarnation == b.incarnation &&
           tide_position_compare(a.place.position, b.place.position) == 0;
}

/* Where the scan that fills the cuts is. */
struct filling {
    size_t open;    /* the first cut that rows still come before */
    size_t waiting; /* the first one whose next change has not come */
    struct tide_change_place change;
};

static void fill(struct folding *folding, struct filling *at, const struct tide_change_seen *seen)
{
    for (; at->open < folding->count && seen->ts > folding->cuts[at->open].last_ts; at->open++) {
        folding->cuts[at->open].change = at->change;
    }
    if (seen->row.kind != TIDE_ROW_CHANGE) {
        return;
    }
    for (; at->waiting < at->open; at->waiting++) {
        folding->cuts[at->waiting].is_split =
            is_of_one_transaction(folding->cuts[at->waiting].change, place_of(&seen->row));
    }
    at->change = place_of(&seen->row);
}

/*
 * Behind the last change of all more of its transaction may still come, since a large one is
 * written bit by bit; but not in SQLite, where each change is at a position of its own.
 */
static void fill_last(struct folding *folding, const struct filling *at,
                      const struct tide_position_kind *kind)
{
    for (size_t i = at->waiting; i < folding->count; i++) {
        folding->cuts[i].is_split = at->change.place.known && kind != &tide_position_integer;
    }
}

/* Every row: which copies there are, and what each cut would part. */
static tide_status look(struct folding *folding, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_position_kind *kind = NULL;
    struct filling at = {0};
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    folding->history = tide_change_history_new(NULL);
    TIDE_TRY(open_scan(folding, INT64_MIN, INT64_MAX, &scan, err));
    tide_change_scan_want_heads(scan);
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        kind = seen.columns->position_kind;
        fill(folding, &at, &seen);
        tide_change_history_add(folding->history, seen.ts, &seen.row);
    }
    fill_last(folding, &at, kind);
    return status == TIDE_END ? TIDE_OK : status;
}

/* A copy that has not ended may go on, if none has begun since. */
static bool parts_copy(const struct tide_change_history *history, int64_t last_ts)
{
    size_t count = 0;
    const struct tide_change_snapshot *items = tide_change_history_snapshots(history, &count);
    for (size_t i = 0; i < count; i++) {
        bool may_go_on = items[i].has_end ? items[i].end_ts > last_ts : i + 1 == count;
        if (items[i].begin_ts <= last_ts && may_go_on) {
            return true;
        }
    }
    return false;
}

static void choose(struct folding *folding)
{
    while (folding->count > 0 &&
           (folding->cuts[folding->count - 1].is_split ||
            parts_copy(folding->history, folding->cuts[folding->count - 1].last_ts))) {
        folding->count--;
    }
}

static int64_t end_of(const struct folding *folding)
{
    return folding->cuts[folding->count - 1].last_ts;
}

/* The history of the rows that go, alone. */
static tide_status look_again(struct folding *folding, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    tide_change_history_free(folding->history);
    folding->history = NULL;
    folding->newest_us = INT64_MIN;
    TIDE_TRY(open_scan(folding, INT64_MIN, end_of(folding), &scan, err));
    tide_change_scan_want_heads(scan);
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        if (folding->history == NULL) {
            folding->history = tide_change_history_new(seen.columns->position_kind);
        }
        tide_change_history_add(folding->history, seen.ts, &seen.row);
        if (seen.row.commit_us > folding->newest_us) {
            folding->newest_us = seen.row.commit_us; /* rows of copies have 0 */
        }
        if (seen.row.kind == TIDE_ROW_CHANGE) {
            folding->changes++;
            folding->change = later(folding->change, place_of(&seen.row));
        }
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status fold_rows(struct folding *folding, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_change_moment all = {.utc_us = INT64_MAX};
    const struct tide_change_columns *columns = NULL;
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(tide_change_fold_new(folding->history, &all, &folding->fold, err));
    TIDE_TRY(
        open_scan(folding, tide_change_fold_start(folding->fold), end_of(folding), &scan, err));
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        if (seen.columns != columns) {
            TIDE_TRY(tide_change_fold_set_schema(folding->fold, seen.columns->json, err));
            columns = seen.columns;
        }
        TIDE_TRY(tide_change_fold_add(folding->fold, &seen.row, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static bool is_known(const struct tide_change_state *state, size_t column_count)
{
    for (size_t i = 0; state->values != NULL && i < column_count; i++) {
        if (state->values[i].kind == TIDE_VALUE_UNCHANGED) {
            return false;
        }
    }
    return state->values != NULL ? !state->is_stale : state->bytes > 0;
}

/* Counts the rows. A snapshot says of each row what it is, so a row in doubt cannot be in it. */
static const char *count_rows(struct folding *folding)
{
    struct tide_change_doubts doubts = tide_change_fold_doubts(folding->fold);
    const struct tide_change_schema *schema = tide_change_fold_schema(folding->fold);
    struct tide_change_state state;
    if (doubts.gaps > 0 || doubts.is_beyond) {
        return "changes are missing before it";
    }
    if (doubts.has_keyless_stub) {
        return "a row was too long for its key to be known";
    }
    while (tide_change_fold_next(folding->fold, &state)) {
        if (!is_known(&state, schema->column_count)) {
            return "values of a row are not known, since they were not sent or too long";
        }
        folding->rows++;
    }
    tide_change_fold_rewind(folding->fold);
    return NULL;
}

static tide_status end_piece(struct folding *folding, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_archive *archive = folding->archive;
    TIDE_TRY(tide_change_segment_finish(folding->segment, &bytes, err));
    TIDE_TRY(tide_archive_check_size(archive, "a segment", bytes.len, err));
    TIDE_TRY(tide_archive_run(
        archive, err,
        "INSERT INTO segments (source_id, stream, seq, rows, first_ts, last_ts, bytes) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        "itiiiib", folding->series->source, folding->series->name,
        folding->cuts[folding->piece].seq, folding->piece_rows, folding->piece_first_ts,
        folding->ts - 1, tide_buf_str(&bytes)));
    tide_change_segment_free(folding->segment);
    folding->segment = NULL;
    folding->piece++;
    return TIDE_OK;
}

/* There are no more segments than there were, each under the number of one that goes. */
static bool is_full(const struct folding *folding)
{
    return folding->piece + 1 < folding->count &&
           (folding->piece_rows >= PIECE_ROWS ||
            (folding->piece_rows % 1024 == 0 &&
             tide_change_segment_size(folding->segment) >= PIECE_BYTES));
}

static tide_status write_row(struct folding *folding, struct tide_change_row *row,
                             struct tide_error *err)
{
    memcpy(row->snapshot_id, folding->id, sizeof(row->snapshot_id));
    if (folding->segment != NULL && is_full(folding)) {
        TIDE_TRY(end_piece(folding, err));
    }
    if (folding->segment == NULL) {
        TIDE_TRY(tide_change_segment_new(folding->series->name, tide_buf_str(&folding->schema),
                                         &folding->segment, err));
        folding->piece_rows = 0;
        folding->piece_first_ts = folding->ts;
    }
    folding->piece_rows++;
    return tide_change_segment_add(folding->segment, folding->ts++, row, err);
}

/* All changes of its transaction have been taken, so it stands after all of them. */
static tide_status write_state(struct folding *folding, const struct tide_change_state *state,
                               uint64_t seq, struct tide_error *err)
{
    struct tide_change_row row = {
        .kind = TIDE_ROW_SNAPSHOT,
        .place = state->place.place,
        .incarnation = state->place.incarnation,
        .seq = seq,
        .values = state->values,
    };
    row.place.index = TIDE_INDEX_AFTER_ALL;
    if (state->values == NULL) {
        row.kind = TIDE_ROW_STUB;
        row.bytes = state->bytes;
        row.key = state->key;
    }
    return write_row(folding, &row, err);
}

static tide_status write_mark(struct folding *folding, enum tide_change_row_kind kind,
                              struct tide_change_place place, uint64_t seq, struct tide_error *err)
{
    struct tide_change_row row = {
        .kind = kind,
        .place = place.place,
        .incarnation = place.incarnation,
        .commit_us = folding->newest_us,
        .seq = seq,
    };
    return write_row(folding, &row, err);
}

static tide_status write_snapshot(struct folding *folding,
                                  const struct tide_change_snapshot *before, struct tide_error *err)
{
    struct tide_change_place from = later(folding->change, before->changes_from);
    struct tide_change_state state;
    uint64_t seq = 0;
    TIDE_TRY(write_mark(folding, TIDE_ROW_BEGIN, from, 0, err));
    while (tide_change_fold_next(folding->fold, &state)) {
        TIDE_TRY(write_state(folding, &state, seq++, err));
    }
    TIDE_TRY(write_mark(folding, TIDE_ROW_END, later(from, before->changes_to), seq, err));
    return end_piece(folding, err);
}

static void prepare(struct folding *folding)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    const struct tide_change_schema *schema = tide_change_fold_schema(folding->fold);
    struct tide_relation relation = tide_change_relation_of(schema, &arena);
    tide_change_schema_encode(&relation, schema->position_kind, &folding->schema);
    tide_uuid_v7(tide_clock_utc_us(), folding->id);
    folding->ts = end_of(folding) - folding->rows - 1; /* begin, rows, end */
}

static tide_status replace(struct folding *folding, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = folding->archive;
    const struct tide_change_moment all = {.utc_us = INT64_MAX};
    const struct tide_change_snapshot *before = NULL;
    TIDE_TRY(tide_change_history_base(folding->history, &all, &before, err));
    prepare(folding);
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(
        open, err,
        "DELETE FROM segments WHERE source_id = ?1 AND stream = ?2 AND seq BETWEEN ?3 AND ?4",
        "itii", folding->series->source, folding->series->name, folding->cuts[0].seq,
        folding->cuts[folding->count - 1].seq));
    TIDE_TRY(write_snapshot(folding, before, err));
    return tide_archive_commit(open, err);
}

static void sum_up(const struct folding *folding, struct tide_change_base *base)
{
    base->segments = (int64_t)folding->count;
    for (size_t i = 0; i < folding->count; i++) {
        base->rows_before += folding->cuts[i].rows;
    }
    base->rows = folding->rows;
    base->state_us = folding->newest_us;
}

static bool is_bare_copy(const struct folding *folding)
{
    size_t count = 0;
    (void)tide_change_history_snapshots(folding->history, &count);
    return folding->changes == 0 && count == 1;
}

static tide_status write_base(struct folding *folding, int64_t cutoff_ts, bool is_dry,
                              struct tide_change_base *base, struct tide_error *err)
{
    TIDE_TRY(list_cuts(folding, cutoff_ts, err));
    TIDE_TRY(look(folding, err));
    choose(folding);
    if (folding->count == 0) {
        base->why_not = "before that moment no segment ends outside of copies and transactions";
        return TIDE_OK;
    }
    TIDE_TRY(look_again(folding, err));
    if (is_bare_copy(folding)) {
        base->why_not = "there is nothing but a copy before that moment";
        return TIDE_OK;
    }
    TIDE_TRY(fold_rows(folding, err));
    base->why_not = count_rows(folding);
    base->is_doubtful = base->why_not != NULL;
    sum_up(folding, base);
    if (base->why_not != NULL || is_dry) {
        return TIDE_OK;
    }
    /* Every row of the table came in one of its own, and so did a begin and an end. */
    if (base->rows_before < folding->rows + 2 ||
        end_of(folding) - folding->cuts[0].first_ts < folding->rows + 1) {
        return tide_archive_corrupt(folding->archive, "a table has more rows than were written",
                                    err);
    }
    return replace(folding, err);
}

tide_status tide_change_base_write(struct tide_archive *archive,
                                   const struct tide_archive_series_info *series, int64_t cutoff_ts,
                                   bool is_dry, struct tide_change_base *ret_base,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(folding_done)
    struct folding folding = {.archive = archive, .series = series};
    struct tide_change_base base = {0};
    TIDE_TRY(tide_archive_encoder_check(archive, series->source, &tide_change_encoder, err));
    archive->doing = "writing a state as a base";
    TIDE_TRY(write_base(&folding, cutoff_ts, is_dry, &base, err));
    *ret_base = base;
    return TIDE_OK;
}
