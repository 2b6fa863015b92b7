/* Rows of a copy, one by one: each is written, or is there already. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "archive/follow.h"
#include "archive/scan.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/limits.h"

/* The rows of a sealed segment, by time, for those that come again. */
struct tide_archive_opened {
    const struct tide_archive_series *series;
    struct tide_archive_segment segment;
    struct tide_arena arena;
    struct tide_archive_live_row *rows;
    size_t count;
    size_t size;
};

void tide_archive_opened_free(struct tide_archive_writer *writer)
{
    if (writer->opened != NULL) {
        tide_arena_done(&writer->opened->arena);
        free(writer->opened->rows);
        free(writer->opened);
        writer->opened = NULL;
    }
}

static tide_status take_opened(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct tide_archive_opened *opened = context;
    opened->size += bytes.len;
    if (opened->size > TIDE_ARCHIVE_MERGE_BYTES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED, "its rows are more than %zu bytes",
                         TIDE_ARCHIVE_MERGE_BYTES_MAX);
    }
    if ((opened->count & (opened->count - 1)) == 0) {
        opened->rows = tide_realloc(opened->rows, opened->count == 0 ? 1 : opened->count * 2,
                                    sizeof(*opened->rows));
    }
    opened->rows[opened->count++] = (struct tide_archive_live_row){
        .ts = ts,
        .bytes = tide_arena_str(&opened->arena, bytes),
    };
    return TIDE_OK;
}

static tide_status decode(struct tide_archive_opened *opened, struct tide_error *err)
{
    struct tide_archive_writer *writer = opened->series->writer;
    const struct tide_archive_encoder *encoder = writer->options.encoder;
    const struct tide_archive_row_taker taker = {take_opened, opened};
    if (encoder == NULL) {
        return tide_fail(err, TIDE_INVALID, "%s: following: the writer was given no encoder",
                         writer->archive->path);
    }
    if (encoder->decode(encoder->context, opened->series->name, &opened->segment, &taker, err) !=
        TIDE_OK) {
        return tide_fail_context(err, "%s: a segment of %.*s", writer->archive->path,
                                 TIDE_STR_ARG(opened->series->name));
    }
    return TIDE_OK;
}

/* Opens the segment of the series that spans a time; without one, none is open. */
static tide_status open_segment(const struct tide_archive_series *series, int64_t ts,
                                struct tide_error *err)
{
    struct tide_archive_writer *writer = series->writer;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    tide_archive_opened_free(writer);
    TIDE_TRY(tide_archive_query(writer->archive, &stmt, err,
                                "SELECT seq, rows, first_ts, last_ts, bytes FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND last_ts >= ?3 "
                                "ORDER BY last_ts LIMIT 1",
                                "iti", series->source->id, series->name, ts));
    TIDE_TRY(tide_archive_step(writer->archive, stmt, &is_row, err));
    if (!is_row || sqlite3_column_int64(stmt, 2) > ts) {
        return TIDE_OK;
    }
    struct tide_archive_opened *opened = tide_alloc(1, sizeof(*opened));
    writer->opened = opened;
    opened->series = series;
    opened->segment = (struct tide_archive_segment){
        .seq = sqlite3_column_int64(stmt, 0),
        .rows = sqlite3_column_int64(stmt, 1),
        .first_ts = sqlite3_column_int64(stmt, 2),
        .last_ts = sqlite3_column_int64(stmt, 3),
        .bytes = tide_archive_column_bytes(stmt, 4),
    };
    tide_status status = decode(opened, err);
    opened->segment.bytes = (tide_str){NULL, 0}; /* they go with the statement */
    if (status != TIDE_OK) {
        tide_archive_opened_free(writer);
    }
    return status;
}

static int compare_ts(const void *key, const void *item)
{
    int64_t ts = *(const int64_t *)key;
    const struct tide_archive_live_row *row = item;
    return ts < row->ts ? -1 : ts > row->ts;
}

static tide_status find_sealed(const struct tide_archive_series *series, int64_t ts,
                               const struct tide_archive_live_row **ret_row, struct tide_error *err)
{
    const struct tide_archive_opened *opened = series->writer->opened;
    if (opened == NULL || opened->series != series || ts < opened->segment.first_ts ||
        ts > opened->segment.last_ts) {
        TIDE_TRY(open_segment(series, ts, err));
        opened = series->writer->opened;
    }
    *ret_row = opened == NULL || opened->count == 0
                   ? NULL
                   : bsearch(&ts, opened->rows, opened->count, sizeof(*opened->rows), compare_ts);
    return TIDE_OK;
}

static tide_status fail_other(const struct tide_archive_series *series, int64_t ts, tide_str held,
                              tide_str came, struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "%s: following: the row of %.*s at %" PRId64 " is held with %zu bytes, and "
                     "came with %zu that are not the same: what is followed is not what was "
                     "followed before; follow it into a new file",
                     series->writer->archive->path, TIDE_STR_ARG(series->name), ts, held.len,
                     came.len);
}

/* A row at or before what is sealed: it is in a segment. */
static tide_status check_sealed(const struct tide_archive_series *series,
                                const struct tide_archive_live_row *row, struct tide_error *err)
{
    const struct tide_archive_live_row *held = NULL;
    TIDE_TRY(find_sealed(series, row->ts, &held, err));
    if (held == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: following: a row of %.*s at %" PRId64 " has come late: it was "
                         "sealed here up to %" PRId64 " without that row",
                         series->writer->archive->path, TIDE_STR_ARG(series->name), row->ts,
                         series->state.sealed_to);
    }
    return tide_str_equal(held->bytes, row->bytes)
               ? TIDE_OK
               : fail_other(series, row->ts, held->bytes, row->bytes, err);
}

static tide_status check_live(const struct tide_archive_series *series,
                              const struct tide_archive_live_row *row, struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT row FROM wal WHERE source_id = ?1 AND stream = ?2 AND "
                                "ts = ?3",
                                "iti", series->source->id, series->name, row->ts));
    TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
    tide_str held = is_row ? tide_archive_column_bytes(stmt, 0) : (tide_str){NULL, 0};
    return is_row && tide_str_equal(held, row->bytes)
               ? TIDE_OK
               : fail_other(series, row->ts, held, row->bytes, err);
}

static tide_status prepare(struct tide_archive_writer *writer, struct tide_error *err)
{
    if (writer->copy_row != NULL) {
        return TIDE_OK;
    }
    int rc = sqlite3_prepare_v3(writer->archive->db,
                                "INSERT OR IGNORE INTO wal (source_id, stream, ts, wall_offset, "
                                "row) VALUES (?1, ?2, ?3, ?4, ?5)",
                                -1, SQLITE_PREPARE_PERSISTENT, &writer->copy_row, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(writer->archive, rc, err);
}

static tide_status insert_live(struct tide_archive_series *series,
                               const struct tide_archive_live_row *row, bool *ret_is_new,
                               struct tide_error *err)
{
    struct tide_archive_writer *writer = series->writer;
    bool is_row = false;
    TIDE_TRY(prepare(writer, err));
    tide_archive_bind(writer->copy_row, "itiib", series->source->id, series->name, row->ts,
                      row->wall_offset, row->bytes);
    tide_status status = tide_archive_step(writer->archive, writer->copy_row, &is_row, err);
    *ret_is_new = sqlite3_changes64(writer->archive->db) > 0;
    (void)sqlite3_reset(writer->copy_row);
    (void)sqlite3_clear_bindings(writer->copy_row); /* what was bound is the caller's */
    return status;
}

static tide_status copy_row(struct tide_archive_series *series,
                            const struct tide_archive_live_row *row, bool *ret_is_held,
                            struct tide_error *err)
{
    bool is_new = false;
    if (series->state.is_sealed && row->ts <= series->state.sealed_to) {
        *ret_is_held = true;
        return check_sealed(series, row, err);
    }
    TIDE_TRY(tide_archive_check_size(series->writer->archive, "a row", row->bytes.len, err));
    TIDE_TRY(insert_live(series, row, &is_new, err));
    *ret_is_held = !is_new;
    if (!is_new) {
        return check_live(series, row, err);
    }
    tide_archive_note_row(series, row->ts, row->bytes.len);
    return TIDE_OK;
}

tide_status tide_archive_copy_row(struct tide_archive_series *series,
                                  const struct tide_archive_live_row *row, bool *ret_is_held,
                                  struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(series->writer, "following", err));
    return tide_archive_leave(series->writer, copy_row(series, row, ret_is_held, err), err);
}
