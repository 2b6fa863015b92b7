#include "archive/caller_rows.h"

#include "archive/archive_db.h"

tide_status tide_archive_caller_rows_read(struct tide_archive *archive, int64_t source,
                                          tide_str series, int64_t start, int64_t end,
                                          struct tide_arena *arena,
                                          struct tide_archive_caller_row **ret_rows,
                                          size_t *ret_count, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    struct tide_archive_caller_row *rows = NULL;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT ts, blob FROM caller_rows WHERE source_id = ?1 AND "
                                "stream = ?2 AND ts BETWEEN ?3 AND ?4 ORDER BY ts, rowid",
                                "itii", source, series, start, end));
    for (size_t count = 0;; count++) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            *ret_rows = rows;
            *ret_count = count;
            return TIDE_OK;
        }
        rows = tide_arena_grow(arena, rows, count, sizeof(*rows));
        struct tide_archive_caller_row *row = &rows[count];
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &row->ts, err));
        row->bytes = tide_arena_str(arena, tide_archive_column_bytes(stmt, 1));
    }
}

tide_status tide_archive_caller_rows_in_force(struct tide_archive *archive, int64_t source,
                                              tide_str series, int64_t first, int64_t last,
                                              struct tide_arena *arena,
                                              struct tide_archive_caller_row **ret_rows,
                                              size_t *ret_count, struct tide_error *err)
{
    bool is_any = false;
    int64_t start = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &start,
                              "SELECT MAX(ts) FROM caller_rows WHERE source_id = ?1 AND "
                              "stream = ?2 AND ts <= ?3",
                              "iti", source, series, first));
    return tide_archive_caller_rows_read(archive, source, series, is_any ? start : first, last,
                                         arena, ret_rows, ret_count, err);
}
