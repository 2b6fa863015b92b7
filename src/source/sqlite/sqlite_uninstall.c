#include "source/sqlite/sqlite_installed.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>

/* Runs one DROP statement for each name that `stmt` gives, after all have been read: nothing may be
 * read while the schema changes. */
static tide_status drop_each(sqlite3 *db, sqlite3_stmt **stmt, const char *what, size_t *ret_count,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf drops = {0};
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(*stmt, &is_row, err));
        if (!is_row) {
            break;
        }
        tide_buf_printf(&drops, "DROP %s main.", what);
        tide_sqlite_append_name(&drops, tide_sqlite_column_str(*stmt, 0));
        tide_buf_append_char(&drops, ';');
        ++*ret_count;
    }
    tide_sqlite_stmt_done(stmt);
    return tide_sqlite_exec(db, tide_buf_cstr(&drops), err);
}

tide_status tide_sqlite_triggers_drop(sqlite3 *db, int64_t number, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db,
                                 TIDE_STR("SELECT name FROM main.sqlite_schema WHERE type = "
                                          "'trigger' AND name GLOB '" TIDE_SQLITE_PREFIX
                                          "' || ?1 || '_[a-z][a-z]'"),
                                 &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, number);
    size_t count = 0;
    return drop_each(db, &stmt, "TRIGGER", &count, err);
}

tide_status tide_sqlite_strays_drop(sqlite3 *db, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db,
        TIDE_STR("SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND "
                 "name GLOB '" TIDE_SQLITE_PREFIX "[0-9]*_[a-z][a-z]' AND "
                 "CAST(substr(name, length('" TIDE_SQLITE_PREFIX "') + 1) AS INTEGER) NOT IN "
                 "(SELECT t FROM main.\"" TIDE_SQLITE_TABLES "\" WHERE name IS NOT NULL)"),
        &stmt, err));
    size_t count = 0;
    return drop_each(db, &stmt, "TRIGGER", &count, err);
}

tide_status tide_sqlite_number_free(sqlite3 *db, int64_t number, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_execf(db, err,
                               "UPDATE main.\"" TIDE_SQLITE_TABLES
                               "\" SET name = NULL, spec = NULL WHERE t = %lld",
                               (long long)number));
    /* The highest number stays, so that it is not given again. */
    return tide_sqlite_exec(db,
                            "DELETE FROM main.\"" TIDE_SQLITE_TABLES
                            "\" WHERE name IS NULL AND t < (SELECT max(t) FROM "
                            "main.\"" TIDE_SQLITE_TABLES "\")",
                            err);
}

static tide_status next_unwanted(sqlite3 *db, int64_t after, int64_t *ret_number,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db,
        TIDE_STR("SELECT min(t) FROM main.\"" TIDE_SQLITE_TABLES "\" AS r WHERE t > ?1 "
                 "AND name IS NOT NULL "
                 "AND NOT EXISTS (SELECT 1 FROM main.\"" TIDE_SQLITE_PIPELINES "\" AS p "
                 "WHERE instr(p.tables, ',' || r.t || ',') > 0)"),
        &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, after);
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    *ret_number = is_row ? sqlite3_column_int64(stmt, 0) : 0;
    return TIDE_OK;
}

tide_status tide_sqlite_unwanted_drop(sqlite3 *db, struct tide_error *err)
{
    bool has_tables = false;
    TIDE_TRY(tide_sqlite_has_table(db, TIDE_SQLITE_TABLES, &has_tables, err));
    for (int64_t number = 0; has_tables;) {
        TIDE_TRY(next_unwanted(db, number, &number, err));
        if (number == 0) {
            break;
        }
        TIDE_TRY(tide_sqlite_triggers_drop(db, number, err));
        TIDE_TRY(tide_sqlite_number_free(db, number, err));
    }
    return TIDE_OK;
}

static void report(struct tide_findings *findings, struct tide_buf *text)
{
    tide_findings_add(findings, false, tide_buf_str(text), TIDE_STR(""));
    tide_buf_reset(text);
}

/* Every trigger and table of ours, whatever is left of them. Triggers go first: they name the log.
 */
static tide_status remove_all(sqlite3 *db, struct tide_findings *findings, bool *ret_is_changed,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    size_t triggers = 0;
    size_t tables = 0;
    TIDE_TRY(tide_sqlite_prepare(
        db,
        TIDE_STR("SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND "
                 "name GLOB '" TIDE_SQLITE_PREFIX "[0-9]*_[a-z][a-z]'"),
        &stmt, err));
    TIDE_TRY(drop_each(db, &stmt, "TRIGGER", &triggers, err));
    TIDE_TRY(tide_sqlite_prepare(
        db,
        TIDE_STR("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name IN "
                 "('" TIDE_SQLITE_LOG "', '" TIDE_SQLITE_TABLES "', '" TIDE_SQLITE_STATE
                 "', '" TIDE_SQLITE_PIPELINES "', '" TIDE_SQLITE_CANARY "')"),
        &stmt, err));
    TIDE_TRY(drop_each(db, &stmt, "TABLE", &tables, err));
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    if (triggers + tables == 0) {
        tide_buf_printf(&text, "nothing of ours is in the database");
    } else {
        tide_buf_printf(&text,
                        "removed all %zu triggers and %zu tables of ours; nothing of ours is left "
                        "in the database",
                        triggers, tables);
    }
    report(findings, &text);
    *ret_is_changed = triggers + tables > 0;
    return TIDE_OK;
}

static tide_status remove_pipeline(sqlite3 *db, tide_str pipeline, bool *ret_is_removed,
                                   struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_execf(db, err,
                               "DELETE FROM main.\"" TIDE_SQLITE_PIPELINES "\" WHERE name = %.*Q",
                               (int)pipeline.len, pipeline.ptr));
    *ret_is_removed = sqlite3_changes(db) > 0;
    return TIDE_OK;
}

static void report_missing(struct tide_findings *findings, tide_str pipeline)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    tide_buf_printf(&text, "pipeline %.*s was not there", TIDE_STR_ARG(pipeline));
    tide_findings_add(findings, true, tide_buf_str(&text),
                      TIDE_STR("tidemark check names those that are there"));
}

static tide_status report_left(sqlite3 *db, tide_str pipeline, bool is_removed,
                               struct tide_findings *findings, size_t *ret_left,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    struct tide_sqlite_pipeline *left = NULL;
    TIDE_TRY(tide_sqlite_pipelines_read(db, &arena, &left, ret_left, err));
    if (is_removed) {
        tide_buf_printf(&text, "removed pipeline %.*s", TIDE_STR_ARG(pipeline));
        report(findings, &text);
    } else {
        report_missing(findings, pipeline);
    }
    for (size_t i = 0; i < *ret_left; i++) {
        tide_buf_printf(&text,
                        "left triggers and log in place for pipeline %.*s, which has confirmed "
                        "%" PRId64,
                        TIDE_STR_ARG(left[i].name), left[i].confirmed);
        report(findings, &text);
    }
    return TIDE_OK;
}

static tide_status uninstall(sqlite3 *db, tide_str pipeline, struct tide_findings *findings,
                             bool *ret_is_changed, struct tide_error *err)
{
    bool has_pipelines = false;
    TIDE_TRY(tide_sqlite_is_installed(db, &has_pipelines, err));
    if (pipeline.len == 0 || !has_pipelines) {
        if (pipeline.len > 0) {
            report_missing(findings, pipeline);
        }
        return remove_all(db, findings, ret_is_changed, err);
    }
    *ret_is_changed = true;
    bool is_removed = false;
    size_t left = 0;
    TIDE_TRY(remove_pipeline(db, pipeline, &is_removed, err));
    TIDE_TRY(report_left(db, pipeline, is_removed, findings, &left, err));
    return left == 0 ? remove_all(db, findings, ret_is_changed, err)
                     : tide_sqlite_unwanted_drop(db, err);
}

tide_status tide_sqlite_uninstall(sqlite3 *db, tide_str pipeline, struct tide_findings *findings,
                                  struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_begin_write(db, err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    bool is_changed = false;
    TIDE_TRY(uninstall(open_db, pipeline, findings, &is_changed, err));
    /* A commit of nothing would still give an empty file its first page. */
    return tide_sqlite_exec(open_db, is_changed ? "COMMIT" : "ROLLBACK", err);
}
