/* Rows of a copy, one by one: each is written, or is there already. */
#include <inttypes.h>
#include <sqlite3.h>

#include "archive/follow.h"
#include "archive/follow_opened.h"
#include "archive/writer_state.h"

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

/* A row at or before what is sealed: it is in a segment, or it comes late, and is put into one. */
static tide_status copy_sealed(struct tide_archive_series *series,
                               const struct tide_archive_live_row *row, bool *ret_is_held,
                               struct tide_error *err)
{
    const struct tide_archive_live_row *held = NULL;
    TIDE_TRY(tide_archive_opened_find(series, row->ts, &held, err));
    *ret_is_held = held != NULL;
    if (held == NULL) {
        tide_archive_opened_add(series->writer, row);
        return TIDE_OK;
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
        return copy_sealed(series, row, ret_is_held, err);
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
