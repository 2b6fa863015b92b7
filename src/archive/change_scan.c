#include "archive/change_scan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "archive/archive_db.h"
#include "archive/caller_rows.h"
#include "archive/change_encoder.h"
#include "archive/change_position.h"
#include "archive/change_read.h"
#include "archive/change_value.h"
#include "base/alloc.h"

struct tide_change_scan {
    struct tide_archive *archive;
    struct tide_archive_range range;
    bool is_of_heads;
    struct tide_archive_scan *parts;
    struct tide_archive_part part;
    bool has_part;
    size_t next;                       /* of a live part */
    struct tide_change_reader *reader; /* of a segment */
    int64_t count;                     /* of rows that the segment gave, and the last one's time */
    int64_t last_ts;
    const struct tide_change_columns *columns; /* of the rows that come */
    struct tide_change_columns **known;
    size_t known_count;
    struct tide_archive_caller_row *callers; /* of the live tail */
    size_t caller_count;
    size_t next_caller;
    bool has_callers;
    struct tide_arena arena; /* columns and caller rows */
    struct tide_arena row_arena;
};

tide_status tide_change_scan_open(struct tide_archive *archive,
                                  const struct tide_archive_range *range,
                                  struct tide_change_scan **ret_scan, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr)
    struct tide_change_scan *scan = tide_alloc(1, sizeof(*scan));
    scan->archive = archive;
    scan->range = *range;
    TIDE_TRY(tide_archive_scan_open(archive, range, &scan->parts, err));
    TIDE_TRY(tide_archive_encoder_check(archive, range->source, &tide_change_encoder, err));
    *ret_scan = scan;
    scan = NULL;
    return TIDE_OK;
}

void tide_change_scan_want_heads(struct tide_change_scan *scan)
{
    TIDE_ASSERT(!scan->has_part);
    scan->is_of_heads = true;
}

void tide_change_scan_close(struct tide_change_scan *scan)
{
    if (scan == NULL) {
        return;
    }
    tide_change_reader_free(scan->reader);
    tide_archive_scan_close(scan->parts);
    tide_arena_done(&scan->arena);
    tide_arena_done(&scan->row_arena);
    free(scan->known);
    free(scan);
}

void tide_change_scan_close_ptr(struct tide_change_scan **scan)
{
    tide_change_scan_close(*scan);
    *scan = NULL;
}

/* Columns */

struct tide_relation tide_change_relation_of(const struct tide_change_schema *schema,
                                             struct tide_arena *arena)
{
    struct tide_relation relation = {
        .refs = 1,
        .schema = schema->schema,
        .name = schema->table,
        .store = schema->store,
        .column_count = schema->column_count,
        .columns = tide_arena_alloc(arena, schema->column_count, sizeof(*relation.columns)),
        .key_count = schema->key_count,
        .key_columns = tide_arena_alloc(arena, schema->key_count, sizeof(*relation.key_columns)),
    };
    for (size_t i = 0; i < schema->column_count; i++) {
        relation.columns[i] = schema->columns[i];
    }
    for (size_t i = 0; i < schema->key_count; i++) {
        relation.key_columns[i] = schema->key_columns[i];
    }
    return relation;
}

static tide_status use_columns(struct tide_change_scan *scan, tide_str json, struct tide_error *err)
{
    for (size_t i = scan->known_count; i > 0; i--) { /* mostly those that were used last */
        if (tide_str_equal(scan->known[i - 1]->json, json)) {
            scan->columns = scan->known[i - 1];
            return TIDE_OK;
        }
    }
    struct tide_change_columns *columns = tide_arena_alloc(&scan->arena, 1, sizeof(*columns));
    *columns = (struct tide_change_columns){.json = tide_arena_str(&scan->arena, json)};
    TIDE_TRY(tide_change_schema_decode(columns->json, &scan->arena, &columns->schema, err));
    columns->relation = tide_change_relation_of(&columns->schema, &scan->arena);
    columns->position_kind = tide_change_position_kind(columns->schema.position_kind);
    scan->known =
        tide_realloc(scan->known, scan->known_count + 1, sizeof(struct tide_change_columns *));
    scan->known[scan->known_count++] = columns;
    scan->columns = columns;
    return TIDE_OK;
}

/* Segments */

static tide_status fail_segment(const struct tide_change_scan *scan, struct tide_error *err)
{
    return tide_fail_context(err, "%s: segment %" PRId64 " of %.*s", scan->archive->path,
                             scan->part.segment.seq, TIDE_STR_ARG(scan->range.series));
}

static tide_status open_segment(struct tide_change_scan *scan, struct tide_error *err)
{
    tide_change_reader_free(scan->reader);
    scan->reader = NULL;
    scan->count = 0;
    TIDE_TRY(tide_change_reader_new(scan->part.segment.bytes, &scan->reader, err));
    if (scan->is_of_heads) {
        tide_change_reader_want_heads(scan->reader);
    }
    return use_columns(scan, tide_change_reader_json(scan->reader), err);
}

/* What a segment gives is checked against the catalogue, as for every other reader. */
static tide_status check_time(struct tide_change_scan *scan, int64_t ts, struct tide_error *err)
{
    const struct tide_archive_segment *segment = &scan->part.segment;
    if (ts < segment->first_ts || ts > segment->last_ts ||
        (scan->count > 0 && ts <= scan->last_ts)) {
        return tide_fail(err, TIDE_CORRUPT,
                         "its row %" PRId64 " has the time %" PRId64
                         ", which is out of order or outside of the segment",
                         scan->count, ts);
    }
    scan->count++;
    scan->last_ts = ts;
    return TIDE_OK;
}

static tide_status next_of_segment(struct tide_change_scan *scan, struct tide_change_seen *seen,
                                   struct tide_error *err)
{
    tide_status status = tide_change_reader_next(scan->reader, &seen->ts, &seen->row, err);
    if (status == TIDE_OK) {
        return check_time(scan, seen->ts, err);
    }
    if (status == TIDE_END && scan->count != scan->part.segment.rows) {
        return tide_fail(err, TIDE_CORRUPT,
                         "it holds %" PRId64 " rows, the catalogue says %" PRId64, scan->count,
                         scan->part.segment.rows);
    }
    return status;
}

/* The next row of the range in the segment. */
static tide_status take_segment(struct tide_change_scan *scan, struct tide_change_seen *seen,
                                struct tide_error *err)
{
    tide_status status = scan->reader == NULL ? open_segment(scan, err) : TIDE_OK;
    while (status == TIDE_OK) {
        status = next_of_segment(scan, seen, err);
        if (status == TIDE_OK && seen->ts >= scan->range.start_ts &&
            seen->ts <= scan->range.end_ts) {
            return TIDE_OK;
        }
    }
    return status == TIDE_END ? TIDE_END : fail_segment(scan, err);
}

/* Live rows */

/* Those that a live row may be of are the newest before the first one, and all after it. */
static tide_status read_callers(struct tide_change_scan *scan, int64_t first_ts,
                                struct tide_error *err)
{
    scan->has_callers = true;
    return tide_archive_caller_rows_in_force(scan->archive, scan->range.source, scan->range.series,
                                             first_ts, scan->range.end_ts, &scan->arena,
                                             &scan->callers, &scan->caller_count, err);
}

static tide_status columns_at(struct tide_change_scan *scan, int64_t ts, struct tide_error *err)
{
    size_t next = scan->next_caller;
    if (!scan->has_callers) {
        TIDE_TRY(read_callers(scan, ts, err));
    }
    while (next < scan->caller_count && scan->callers[next].ts <= ts) {
        next++;
    }
    if (next == 0) {
        return tide_fail(err, TIDE_CORRUPT, "nothing says which columns it has");
    }
    if (next > scan->next_caller) {
        TIDE_TRY(use_columns(scan, scan->callers[next - 1].bytes, err));
        scan->next_caller = next;
    }
    return TIDE_OK;
}

static tide_status decode_live(struct tide_change_scan *scan, int64_t ts, tide_str bytes,
                               struct tide_change_row *ret_row, struct tide_error *err)
{
    TIDE_TRY(columns_at(scan, ts, err));
    tide_arena_reset(&scan->row_arena);
    return tide_change_row_decode(bytes, scan->columns->schema.column_count,
                                  scan->columns->schema.key_count, &scan->row_arena, ret_row, err);
}

static tide_status take_live(struct tide_change_scan *scan, struct tide_change_seen *seen,
                             struct tide_error *err)
{
    if (scan->next == scan->part.row_count) {
        return TIDE_END;
    }
    const struct tide_archive_live_row *live = &scan->part.rows[scan->next++];
    seen->ts = live->ts;
    seen->is_live = true;
    return decode_live(scan, live->ts, live->bytes, &seen->row, err) == TIDE_OK
               ? TIDE_OK
               : tide_fail_context(err, "%s: live row %" PRId64 " of %.*s", scan->archive->path,
                                   live->ts, TIDE_STR_ARG(scan->range.series));
}

/* Others write what they are given. */
static tide_status check_values(const struct tide_change_scan *scan,
                                const struct tide_change_seen *seen, struct tide_error *err)
{
    const struct tide_change_schema *schema = &seen->columns->schema;
    const struct tide_change_row *row = &seen->row;
    if (!seen->is_live && tide_change_reader_is_sound(scan->reader)) {
        return TIDE_OK;
    }
    if (tide_change_values_are_sound(row->values, schema->column_count) &&
        tide_change_values_are_sound(row->key, schema->key_count) &&
        tide_change_values_are_sound(row->moved_from, schema->key_count)) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "%s: the row of %.*s at %" PRId64 " has a value that is none of its kind",
                     scan->archive->path, TIDE_STR_ARG(scan->range.series), seen->ts);
}

tide_status tide_change_scan_next(struct tide_change_scan *scan, struct tide_change_seen *ret_seen,
                                  struct tide_error *err)
{
    for (;;) {
        struct tide_change_seen seen = {0};
        tide_status status = TIDE_END;
        if (scan->has_part) {
            status =
                scan->part.is_live ? take_live(scan, &seen, err) : take_segment(scan, &seen, err);
        }
        if (status == TIDE_OK) {
            seen.columns = scan->columns;
            TIDE_TRY(check_values(scan, &seen, err));
            *ret_seen = seen;
        }
        if (status != TIDE_END) {
            return status;
        }
        tide_change_reader_free(scan->reader); /* it borrows from the part */
        scan->reader = NULL;
        scan->next = 0;
        scan->has_part = false;
        TIDE_TRY(tide_archive_scan_next(scan->parts, &scan->part, err));
        scan->has_part = true;
    }
}
