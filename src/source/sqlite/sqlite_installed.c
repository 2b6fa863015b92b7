#include "source/sqlite/sqlite_installed.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>
#include <stdio.h>

tide_status tide_sqlite_has_table(sqlite3 *db, const char *name, bool *ret_has,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db, TIDE_STR("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1"), &stmt,
        err));
    tide_sqlite_bind_str(stmt, 1, tide_str_from(name));
    return tide_sqlite_step(stmt, ret_has, err);
}

tide_status tide_sqlite_is_installed(sqlite3 *db, bool *ret_is, struct tide_error *err)
{
    return tide_sqlite_has_table(db, TIDE_SQLITE_PIPELINES, ret_is, err);
}

static void copy_hex(char ret_text[TIDE_SQLITE_HEX_LEN + 1], tide_str text)
{
    (void)snprintf(ret_text, TIDE_SQLITE_HEX_LEN + 1, "%.*s", TIDE_STR_ARG(text));
}

tide_status tide_sqlite_state_read(sqlite3 *db, const char *key,
                                   char ret_value[TIDE_SQLITE_HEX_LEN + 1], struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db, TIDE_STR("SELECT v FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = ?1"), &stmt, err));
    tide_sqlite_bind_str(stmt, 1, tide_str_from(key));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    if (!is_row) {
        return tide_fail(
            err, TIDE_STALE,
            "%s has no %s, so what we put into the database is damaged; " TIDE_SQLITE_DETACH_ANEW,
            TIDE_SQLITE_STATE, key);
    }
    copy_hex(ret_value, tide_sqlite_column_str(stmt, 0));
    return TIDE_OK;
}

tide_status tide_sqlite_log_last(sqlite3 *db, int64_t *ret_id, struct tide_error *err)
{
    return tide_sqlite_int(db, "SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\"", 0, ret_id, err);
}

tide_status tide_sqlite_log_width(sqlite3 *db, int64_t *ret_width, struct tide_error *err)
{
    return tide_sqlite_int(db,
                           "SELECT count(*) FROM pragma_table_info('" TIDE_SQLITE_LOG "', 'main') "
                           "WHERE name GLOB 'k[1-9]*'",
                           0, ret_width, err);
}

tide_status tide_sqlite_canary(sqlite3 *db, int64_t *ret_rowid, struct tide_error *err)
{
    return tide_sqlite_int(db, "SELECT max(rowid) FROM main.\"" TIDE_SQLITE_CANARY "\"", 0,
                           ret_rowid, err);
}

tide_status tide_sqlite_schema_versions(sqlite3 *db, int64_t *ret_now, int64_t *ret_known,
                                        struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_int(db, "PRAGMA main.schema_version", 0, ret_now, err));
    return tide_sqlite_int(
        db, "SELECT v FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'schema_version'", 0, ret_known,
        err);
}

tide_status tide_sqlite_schema_settle(sqlite3 *db, struct tide_error *err)
{
    int64_t now = 0;
    int64_t known = 0;
    TIDE_TRY(tide_sqlite_schema_versions(db, &now, &known, err));
    return now == known ? TIDE_OK
                        : tide_sqlite_execf(db, err,
                                            "INSERT OR REPLACE INTO main.\"" TIDE_SQLITE_STATE
                                            "\" (k, v) VALUES ('schema_version', %lld)",
                                            (long long)now);
}

static void copy_pipeline(sqlite3_stmt *stmt, struct tide_arena *arena,
                          struct tide_sqlite_pipeline *ret_pipeline)
{
    ret_pipeline->name = tide_arena_str(arena, tide_sqlite_column_str(stmt, 0));
    ret_pipeline->confirmed = sqlite3_column_int64(stmt, 1);
    copy_hex(ret_pipeline->nonce, tide_sqlite_column_str(stmt, 2));
    ret_pipeline->tables = tide_arena_str(arena, tide_sqlite_column_str(stmt, 3));
}

#define PIPELINES_SQL                                                                              \
    "SELECT name, confirmed, nonce, tables FROM main.\"" TIDE_SQLITE_PIPELINES "\""

tide_status tide_sqlite_pipeline_find(sqlite3 *db, tide_str name, struct tide_arena *arena,
                                      bool *ret_is_there, struct tide_sqlite_pipeline *ret_pipeline,
                                      struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db, TIDE_STR(PIPELINES_SQL " WHERE name = ?1"), &stmt, err));
    tide_sqlite_bind_str(stmt, 1, name);
    TIDE_TRY(tide_sqlite_step(stmt, ret_is_there, err));
    if (*ret_is_there) {
        copy_pipeline(stmt, arena, ret_pipeline);
    }
    return TIDE_OK;
}

tide_status tide_sqlite_pipelines_read(sqlite3 *db, struct tide_arena *arena,
                                       struct tide_sqlite_pipeline **ret_pipelines,
                                       size_t *ret_count, struct tide_error *err)
{
    bool is_installed = false;
    int64_t count = 0;
    TIDE_TRY(tide_sqlite_is_installed(db, &is_installed, err));
    if (is_installed) {
        TIDE_TRY(tide_sqlite_int(db, "SELECT count(*) FROM main.\"" TIDE_SQLITE_PIPELINES "\"", 0,
                                 &count, err));
    }
    *ret_count = 0;
    *ret_pipelines = tide_arena_alloc(arena, (size_t)count, sizeof(**ret_pipelines));
    if (count == 0) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db, TIDE_STR(PIPELINES_SQL " ORDER BY name"), &stmt, err));
    while (*ret_count < (size_t)count) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            break;
        }
        copy_pipeline(stmt, arena, &(*ret_pipelines)[*ret_count]);
        ++*ret_count;
    }
    return TIDE_OK;
}

bool tide_sqlite_numbers_hold(tide_str numbers, int64_t number)
{
    char wanted[24];
    int len = snprintf(wanted, sizeof(wanted), ",%" PRId64 ",", number);
    return numbers.len > 0 && memmem(numbers.ptr, numbers.len, wanted, (size_t)len) != NULL;
}

tide_status tide_sqlite_triggered_table(sqlite3 *db, int64_t number, struct tide_arena *arena,
                                        tide_str *ret_name, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db,
                                 TIDE_STR("SELECT tbl_name FROM main.sqlite_schema WHERE type = "
                                          "'trigger' AND name = '" TIDE_SQLITE_PREFIX
                                          "' || ?1 || '_ad'"),
                                 &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, number);
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    *ret_name =
        is_row ? tide_arena_str(arena, tide_sqlite_column_str(stmt, 0)) : (tide_str){NULL, 0};
    return TIDE_OK;
}
