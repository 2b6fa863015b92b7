#include "archive/tail.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "archive/archive_db.h"
#include "base/alloc.h"

struct tide_archive_tail {
    struct tide_archive *archive;
    struct sqlite3_stmt *walk; /* behind a number */
    struct sqlite3_stmt *look; /* at a number */
    const char *table;
};

/* The columns of struct tide_archive_written, in its order. */
static const char *const columns_of[TIDE_ARCHIVE_TABLES] = {
    [TIDE_ARCHIVE_SEGMENTS] = "rowid, source_id, stream, last_ts, 0, NULL, seq, rows, first_ts, "
                              "length(bytes)",
    [TIDE_ARCHIVE_LIVE_ROWS] = "rowid, source_id, stream, ts, wall_offset, row, 0, 0, 0, 0",
    [TIDE_ARCHIVE_CALLER_ROWS] = "rowid, source_id, stream, ts, 0, blob, 0, 0, 0, 0",
    [TIDE_ARCHIVE_SOURCES] = "sources.id, sources.id, '', clock_anchor_wall_ns, complete, "
                             "CAST(labels || char(0) || metadata || char(0) "
                             "|| ifnull(uuid, '') AS BLOB), 0, 0, 0, 0",
    [TIDE_ARCHIVE_CLOCK_OFFSETS] = "rowid, source_id, '', ts, offset_ns, NULL, 0, 0, 0, 0",
};

static const char *const names[TIDE_ARCHIVE_TABLES] = {
    [TIDE_ARCHIVE_SEGMENTS] = "segments",       [TIDE_ARCHIVE_LIVE_ROWS] = "wal",
    [TIDE_ARCHIVE_CALLER_ROWS] = "caller_rows", [TIDE_ARCHIVE_CLOCK_OFFSETS] = "clock_offsets",
    [TIDE_ARCHIVE_SOURCES] = "sources",
};

static void append_select(const struct tide_archive *archive, enum tide_archive_table table,
                          struct tide_buf *sql)
{
    bool has_index = table == TIDE_ARCHIVE_SEGMENTS && archive->has_caller_index;
    bool is_old = table == TIDE_ARCHIVE_SOURCES && !archive->has_uuid;
    tide_buf_printf(sql, "SELECT %s, %s FROM %s%s ", columns_of[table],
                    has_index ? "length(caller_index)" : "NULL", names[table],
                    is_old ? ", (SELECT NULL AS uuid)" : "");
}

static tide_status read_numbers(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                struct tide_archive_written *written, struct tide_error *err)
{
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &written->number, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 1, &written->source, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &written->ts, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 4, &written->wall_offset, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 6, &written->seq, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 7, &written->rows, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 8, &written->first_ts, err));
    return tide_archive_column_count(archive, stmt, 9, &written->bytes_size, err);
}

static tide_status read_written(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                struct tide_archive_written *ret_written, struct tide_error *err)
{
    struct tide_archive_written written = {0};
    TIDE_TRY(read_numbers(archive, stmt, &written, err));
    written.series = tide_archive_column_bytes(stmt, 2);
    written.bytes = tide_archive_column_bytes(stmt, 5);
    written.has_index = sqlite3_column_type(stmt, 10) != SQLITE_NULL;
    written.index_size = sqlite3_column_int64(stmt, 10);
    *ret_written = written;
    return TIDE_OK;
}

struct tide_archive_mark tide_archive_mark_of(const struct tide_archive_written *written)
{
    const int64_t numbers[] = {written->source,     written->ts,        written->wall_offset,
                               written->seq,        written->rows,      written->first_ts,
                               written->bytes_size, written->index_size};
    uint64_t digest = XXH3_64bits(numbers, sizeof(numbers));
    digest = XXH3_64bits_withSeed(written->series.ptr, written->series.len, digest);
    digest = XXH3_64bits_withSeed(written->bytes.ptr, written->bytes.len, digest);
    return (struct tide_archive_mark){.number = written->number, .digest = digest};
}

static tide_status prepare(struct tide_archive_tail *tail, enum tide_archive_table table,
                           const char *where, struct sqlite3_stmt **ret_stmt,
                           struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    append_select(tail->archive, table, &sql);
    tide_buf_append_str(&sql, tide_str_from(where));
    return tide_archive_query(tail->archive, ret_stmt, err, tide_buf_cstr(&sql), "");
}

tide_status tide_archive_tail_open(struct tide_archive *archive, enum tide_archive_table table,
                                   struct tide_archive_tail **ret_tail, struct tide_error *err)
{
    struct tide_archive_tail *tail = tide_alloc(1, sizeof(*tail));
    tail->archive = archive;
    tail->table = names[table];
    tide_status status = prepare(tail, table, "WHERE rowid > ?1 ORDER BY rowid", &tail->walk, err);
    status =
        status == TIDE_OK ? prepare(tail, table, "WHERE rowid = ?1", &tail->look, err) : status;
    if (status != TIDE_OK) {
        tide_archive_tail_close(tail);
        return status;
    }
    *ret_tail = tail;
    return TIDE_OK;
}

void tide_archive_tail_close(struct tide_archive_tail *tail)
{
    if (tail != NULL) {
        tide_archive_stmt_done(&tail->walk);
        tide_archive_stmt_done(&tail->look);
        free(tail);
    }
}

tide_status tide_archive_tail_mark(struct tide_archive_tail *tail, int64_t number,
                                   struct tide_archive_mark *ret_mark, struct tide_error *err)
{
    struct tide_archive_mark mark = TIDE_ARCHIVE_MARK_FIRST;
    struct tide_archive_written written = {0};
    bool is_any = false;
    (void)sqlite3_reset(tail->look);
    tide_archive_bind(tail->look, "i", number);
    TIDE_TRY(tide_archive_step(tail->archive, tail->look, &is_any, err));
    if (is_any) {
        TIDE_TRY(read_written(tail->archive, tail->look, &written, err));
        mark = tide_archive_mark_of(&written);
    }
    (void)sqlite3_reset(tail->look);
    *ret_mark = mark;
    return TIDE_OK;
}

tide_status tide_archive_tail_has(struct tide_archive_tail *tail, struct tide_archive_mark mark,
                                  bool *ret_is_there, struct tide_error *err)
{
    struct tide_archive_mark found;
    TIDE_TRY(tide_archive_tail_mark(tail, mark.number, &found, err));
    *ret_is_there = found.number == mark.number && found.digest == mark.digest;
    return TIDE_OK;
}

void tide_archive_tail_begin(struct tide_archive_tail *tail, struct tide_archive_mark mark)
{
    (void)sqlite3_reset(tail->walk);
    tide_archive_bind(tail->walk, "i", mark.number);
}

tide_status tide_archive_tail_next(struct tide_archive_tail *tail,
                                   struct tide_archive_written *ret_written, bool *ret_is_any,
                                   struct tide_error *err)
{
    TIDE_TRY(tide_archive_step(tail->archive, tail->walk, ret_is_any, err));
    return *ret_is_any ? read_written(tail->archive, tail->walk, ret_written, err) : TIDE_OK;
}

void tide_archive_tail_rest(struct tide_archive_tail *tail)
{
    (void)sqlite3_reset(tail->walk);
    (void)sqlite3_reset(tail->look);
}

tide_status tide_archive_tail_newest(struct tide_archive_tail *tail,
                                     struct tide_archive_mark *ret_mark, struct tide_error *err)
{
    char sql[64];
    bool is_any = false;
    int64_t number = INT64_MIN;
    (void)snprintf(sql, sizeof(sql), "SELECT MAX(rowid) FROM %s", tail->table);
    TIDE_TRY(tide_archive_ask(tail->archive, err, &is_any, &number, sql, ""));
    return tide_archive_tail_mark(tail, number, ret_mark, err);
}

tide_status tide_archive_live_number(struct tide_archive *archive, int64_t source, tide_str series,
                                     int64_t ts, bool *ret_is_any, int64_t *ret_number,
                                     struct tide_error *err)
{
    return tide_archive_ask(archive, err, ret_is_any, ret_number,
                            "SELECT rowid FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                            "ts = ?3",
                            "iti", source, series, ts);
}

tide_status tide_archive_sealed_to(struct tide_archive *archive, int64_t source, tide_str series,
                                   bool *ret_is_any, int64_t *ret_ts, struct tide_error *err)
{
    return tide_archive_ask(
        archive, err, ret_is_any, ret_ts,
        "SELECT MAX(last_ts) FROM segments WHERE source_id = ?1 AND stream = ?2", "it", source,
        series);
}

tide_status tide_archive_oldest(struct tide_archive *archive, int64_t source, tide_str series,
                                bool *ret_is_any, int64_t *ret_ts, struct tide_error *err)
{
    return tide_archive_ask(archive, err, ret_is_any, ret_ts,
                            "SELECT COALESCE((SELECT first_ts FROM segments WHERE source_id = ?1 "
                            "AND stream = ?2 ORDER BY last_ts LIMIT 1), (SELECT MIN(ts) FROM wal "
                            "WHERE source_id = ?1 AND stream = ?2))",
                            "it", source, series);
}

tide_status tide_archive_live_count(struct tide_archive *archive, int64_t source, tide_str series,
                                    bool has_after, int64_t after_ts, struct tide_archive_mark mark,
                                    int64_t *ret_count, struct tide_error *err)
{
    bool is_any = false;
    if (has_after && after_ts == INT64_MAX) {
        *ret_count = 0;
        return TIDE_OK;
    }
    return tide_archive_ask(archive, err, &is_any, ret_count,
                            "SELECT COUNT(*) FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                            "ts >= ?3 AND rowid <= ?4",
                            "itii", source, series, has_after ? after_ts + 1 : INT64_MIN,
                            mark.number);
}

tide_status tide_archive_live_disorder(struct tide_archive *archive, int64_t source,
                                       tide_str series, bool *ret_is_any, int64_t *ret_ts,
                                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    int64_t start = 0;
    int64_t least = INT64_MAX;
    *ret_is_any = false;
    TIDE_TRY(tide_archive_live_start(archive, source, series, &is_row, &start, err));
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT ts, rowid FROM wal WHERE source_id = ?1 AND stream = ?2 "
                                "AND ts >= ?3 ORDER BY ts DESC LIMIT ?4",
                                "itii", source, series, start, is_row ? INT64_C(-1) : INT64_C(0)));
    for (;;) {
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        int64_t number = sqlite3_column_int64(stmt, 1);
        if (number > least) {
            *ret_is_any = true;
            TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, ret_ts, err));
        }
        least = number < least ? number : least;
    }
}

tide_status tide_archive_next_segment(struct tide_archive *archive, int64_t source, tide_str series,
                                      bool has_after, int64_t after_ts,
                                      struct tide_archive_written *ret_segment, bool *ret_is_any,
                                      struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    if (has_after && after_ts == INT64_MAX) {
        *ret_is_any = false;
        return TIDE_OK;
    }
    append_select(archive, TIDE_ARCHIVE_SEGMENTS, &sql);
    tide_buf_append_str(&sql, TIDE_STR("WHERE source_id = ?1 AND stream = ?2 AND last_ts >= ?3 "
                                       "ORDER BY last_ts LIMIT 1"));
    TIDE_TRY(tide_archive_query(archive, &stmt, err, tide_buf_cstr(&sql), "iti", source, series,
                                has_after ? after_ts + 1 : INT64_MIN));
    TIDE_TRY(tide_archive_step(archive, stmt, ret_is_any, err));
    if (*ret_is_any) {
        TIDE_TRY(read_written(archive, stmt, ret_segment, err));
        ret_segment->series = series; /* the row's goes with the statement */
    }
    return TIDE_OK;
}

tide_status tide_archive_segment_piece(struct tide_archive *archive, int64_t number, bool is_index,
                                       size_t offset, size_t size, struct tide_buf *out,
                                       struct tide_error *err)
{
    sqlite3_blob *blob = NULL;
    char *at = tide_buf_reserve(out, size);
    int rc = sqlite3_blob_open(archive->db, "main", "segments", is_index ? "caller_index" : "bytes",
                               number, 0, &blob);
    if (rc == SQLITE_OK) {
        size_t all = (size_t)sqlite3_blob_bytes(blob);
        rc = offset <= all && size <= all - offset
                 ? sqlite3_blob_read(blob, at, (int)size, (int)offset)
                 : SQLITE_ABORT;
    }
    (void)sqlite3_blob_close(blob);
    if (rc == SQLITE_ABORT || rc == SQLITE_ERROR) {
        return tide_fail_retriable(err, TIDE_STALE, "%s: %s: a segment is not there any more",
                                   archive->path, archive->doing);
    }
    if (rc != SQLITE_OK) {
        return tide_archive_fail(archive, rc, err);
    }
    out->len += size;
    return TIDE_OK;
}

tide_status tide_archive_version(struct tide_archive *archive, int64_t *ret_version,
                                 struct tide_error *err)
{
    bool is_any = false;
    return tide_archive_ask(archive, err, &is_any, ret_version, "PRAGMA data_version", "");
}

tide_status tide_archive_set_cache(struct tide_archive *archive, int kib, struct tide_error *err)
{
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA cache_size = -%d", kib);
    return tide_archive_run(archive, err, sql, "");
}
