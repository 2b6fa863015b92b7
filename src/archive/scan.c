#include "archive/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/archive_db.h"
#include "archive/catalogue.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"

#define PART_ROWS  ((size_t)1024)
#define PART_BYTES TIDE_MIB

struct tide_archive_scan {
    struct tide_archive *archive;
    struct tide_archive_range range;
    struct sqlite3_stmt *segments;
    struct sqlite3_stmt *live; /* NULL: no row can be live in the range */
    bool is_live;              /* all segments have been given */
    bool is_done;
    struct tide_arena arena; /* of the rows of one part */
    struct tide_archive_live_row *rows;
};

/* The index by time is kept out of it: by it the segments, bytes and all, would be gathered and
 * sorted before the first is given. */
static tide_status query_segments(struct tide_archive_scan *scan, struct tide_error *err)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT seq, rows, first_ts, last_ts, bytes, %s FROM segments WHERE "
                   "source_id = ?1 AND stream = ?2 AND +last_ts >= ?3 AND first_ts <= ?4 "
                   "ORDER BY seq",
                   scan->archive->has_caller_index ? "caller_index" : "NULL");
    return tide_archive_query(scan->archive, &scan->segments, err, sql, "itii", scan->range.source,
                              scan->range.series, scan->range.start_ts, scan->range.end_ts);
}

static tide_status query_live(struct tide_archive_scan *scan, struct tide_error *err)
{
    bool is_any = false;
    int64_t start = 0;
    TIDE_TRY(tide_archive_live_start(scan->archive, scan->range.source, scan->range.series, &is_any,
                                     &start, err));
    if (!is_any) {
        return TIDE_OK;
    }
    start = start > scan->range.start_ts ? start : scan->range.start_ts;
    return tide_archive_query(scan->archive, &scan->live, err,
                              "SELECT ts, wall_offset, row FROM wal WHERE source_id = ?1 AND "
                              "stream = ?2 AND ts BETWEEN ?3 AND ?4 ORDER BY ts",
                              "itii", scan->range.source, scan->range.series, start,
                              scan->range.end_ts);
}

tide_status tide_archive_scan_open(struct tide_archive *archive,
                                   const struct tide_archive_range *range,
                                   struct tide_archive_scan **ret_scan, struct tide_error *err)
{
    archive->doing = "reading a series";
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_scan_close_ptr)
    struct tide_archive_scan *scan = tide_alloc(1, sizeof(*scan));
    scan->archive = archive;
    scan->range = *range;
    scan->rows = tide_alloc(PART_ROWS, sizeof(*scan->rows));
    TIDE_TRY(query_segments(scan, err));
    TIDE_TRY(query_live(scan, err));
    *ret_scan = scan;
    scan = NULL;
    return TIDE_OK;
}

void tide_archive_scan_close(struct tide_archive_scan *scan)
{
    if (scan == NULL) {
        return;
    }
    tide_archive_stmt_done(&scan->segments);
    tide_archive_stmt_done(&scan->live);
    tide_archive_snapshot_end(scan->archive);
    tide_arena_done(&scan->arena);
    free(scan->rows);
    free(scan);
}

void tide_archive_scan_close_ptr(struct tide_archive_scan **scan)
{
    tide_archive_scan_close(*scan);
    *scan = NULL;
}

static tide_status next_segment(struct tide_archive_scan *scan,
                                struct tide_archive_segment *ret_segment, struct tide_error *err)
{
    struct tide_archive *archive = scan->archive;
    bool is_row = false;
    TIDE_TRY(tide_archive_step(archive, scan->segments, &is_row, err));
    if (!is_row) {
        return TIDE_END;
    }
    struct tide_archive_segment segment = {0};
    TIDE_TRY(tide_archive_column_i64(archive, scan->segments, 0, &segment.seq, err));
    TIDE_TRY(tide_archive_column_count(archive, scan->segments, 1, &segment.rows, err));
    TIDE_TRY(tide_archive_column_i64(archive, scan->segments, 2, &segment.first_ts, err));
    TIDE_TRY(tide_archive_column_i64(archive, scan->segments, 3, &segment.last_ts, err));
    segment.bytes = tide_archive_column_bytes(scan->segments, 4);
    segment.index = tide_archive_column_bytes(scan->segments, 5);
    *ret_segment = segment;
    return TIDE_OK;
}

static tide_status next_rows(struct tide_archive_scan *scan, size_t *ret_count,
                             struct tide_error *err)
{
    struct tide_archive *archive = scan->archive;
    size_t count = 0;
    size_t size = 0;
    bool is_row = scan->live != NULL;
    tide_arena_reset(&scan->arena);
    while (is_row && count < PART_ROWS && size < PART_BYTES) {
        TIDE_TRY(tide_archive_step(archive, scan->live, &is_row, err));
        if (is_row) {
            struct tide_archive_live_row *row = &scan->rows[count++];
            TIDE_TRY(tide_archive_column_i64(archive, scan->live, 0, &row->ts, err));
            TIDE_TRY(tide_archive_column_i64(archive, scan->live, 1, &row->wall_offset, err));
            row->bytes = tide_arena_str(&scan->arena, tide_archive_column_bytes(scan->live, 2));
            size += row->bytes.len;
        }
    }
    scan->is_done = !is_row;
    *ret_count = count;
    return count == 0 ? TIDE_END : TIDE_OK;
}

tide_status tide_archive_scan_next(struct tide_archive_scan *scan,
                                   struct tide_archive_part *ret_part, struct tide_error *err)
{
    struct tide_archive_part part = {0};
    scan->archive->doing = "reading a series";
    if (!scan->is_live) {
        tide_status status = next_segment(scan, &part.segment, err);
        scan->is_live = status == TIDE_END;
        if (status != TIDE_END) {
            *ret_part = status == TIDE_OK ? part : *ret_part;
            return status;
        }
    }
    if (scan->is_done) {
        return TIDE_END;
    }
    TIDE_TRY(next_rows(scan, &part.row_count, err));
    part.is_live = true;
    part.rows = scan->rows;
    *ret_part = part;
    return TIDE_OK;
}

/* Counts what a segment gives, and passes on what is in the range. */
struct trim {
    const struct tide_archive_range *range;
    const struct tide_archive_segment *segment;
    const struct tide_archive_row_taker *taker;
    int64_t count;
    bool has_last;
    int64_t last_ts;
};

static tide_status take_trimmed(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct trim *trim = context;
    if (ts < trim->segment->first_ts || ts > trim->segment->last_ts ||
        (trim->has_last && ts <= trim->last_ts)) {
        return tide_fail(err, TIDE_CORRUPT,
                         "its row %" PRId64 " has the time %" PRId64
                         ", which is out of order or outside of the segment",
                         trim->count, ts);
    }
    trim->has_last = true;
    trim->last_ts = ts;
    trim->count++;
    if (ts < trim->range->start_ts || ts > trim->range->end_ts) {
        return TIDE_OK;
    }
    return trim->taker->take(trim->taker->context, ts, bytes, err);
}

static tide_status read_segment(const struct tide_archive *archive,
                                const struct tide_archive_range *range,
                                const struct tide_archive_segment *segment,
                                const struct tide_archive_encoder *encoder,
                                const struct tide_archive_row_taker *taker, struct tide_error *err)
{
    struct trim trim = {.range = range, .segment = segment, .taker = taker};
    struct tide_archive_row_taker to_trim = {take_trimmed, &trim};
    tide_status status = encoder->decode(encoder->context, range->series, segment, &to_trim, err);
    if (status == TIDE_OK && trim.count != segment->rows) {
        status =
            tide_fail(err, TIDE_CORRUPT, "it holds %" PRId64 " rows, the catalogue says %" PRId64,
                      trim.count, segment->rows);
    }
    return status == TIDE_OK
               ? TIDE_OK
               : tide_fail_context(err, "%s: segment %" PRId64 " of %.*s", archive->path,
                                   segment->seq, TIDE_STR_ARG(range->series));
}

static tide_status read_part(const struct tide_archive *archive,
                             const struct tide_archive_range *range,
                             const struct tide_archive_part *part,
                             const struct tide_archive_encoder *encoder,
                             const struct tide_archive_row_taker *taker, struct tide_error *err)
{
    if (!part->is_live) {
        return read_segment(archive, range, &part->segment, encoder, taker, err);
    }
    for (size_t i = 0; i < part->row_count; i++) {
        TIDE_TRY(taker->take(taker->context, part->rows[i].ts, part->rows[i].bytes, err));
    }
    return TIDE_OK;
}

tide_status tide_archive_rows_read(struct tide_archive *archive,
                                   const struct tide_archive_range *range,
                                   const struct tide_archive_encoder *encoder,
                                   const struct tide_archive_row_taker *taker,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_scan_close_ptr) struct tide_archive_scan *scan = NULL;
    TIDE_TRY(tide_archive_scan_open(archive, range, &scan, err));
    TIDE_TRY(tide_archive_encoder_check(archive, range->source, encoder, err));
    for (;;) {
        struct tide_archive_part part;
        tide_status status = tide_archive_scan_next(scan, &part, err);
        if (status != TIDE_OK) {
            return status == TIDE_END ? TIDE_OK : status;
        }
        TIDE_TRY(read_part(archive, range, &part, encoder, taker, err));
    }
}

tide_status tide_archive_encoder_check(struct tide_archive *archive, int64_t source,
                                       const struct tide_archive_encoder *encoder,
                                       struct tide_error *err)
{
    if (encoder == NULL || encoder->version == NULL) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_source found;
    TIDE_TRY(tide_archive_source_read(archive, source, &arena, &found, err));
    tide_str version = tide_archive_pairs_get(&found.metadata, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER));
    if (version.ptr == NULL || tide_str_equal(version, tide_str_from(encoder->version))) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_UNSUPPORTED,
                     "%s: the rows of source %" PRId64
                     " were written by the encoder version \"%.*s\", this is \"%s\"; read it with "
                     "a program that has the former",
                     archive->path, source, (int)(version.len < 100 ? version.len : 100),
                     version.ptr, encoder->version);
}
