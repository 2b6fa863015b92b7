#include "source/sqlite/sqlite_check.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_installed.h"
#include "source/sqlite/sqlite_plan.h"
#include "source/sqlite/sqlite_tokens.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct check {
    sqlite3 *db;
    const char *path;
    const struct tide_source_options *options;
    struct tide_findings *findings;
};

/* Names may hold anything. What a terminal acts on, or cannot show, becomes \xNN. */
static void append_shown(struct tide_buf *buf, tide_str text)
{
    while (text.len > 0) {
        size_t valid = tide_str_utf8_valid_prefix(text);
        for (size_t i = 0; i < valid; i++) {
            unsigned char c = (unsigned char)text.ptr[i];
            if (c == 0xc2 && (unsigned char)text.ptr[i + 1] < 0xa0) { /* a C1 control */
                tide_buf_printf(buf, "\\x%02x", (unsigned char)text.ptr[++i]);
            } else if (c < 0x20 || c == 0x7f) {
                tide_buf_printf(buf, "\\x%02x", c);
            } else {
                tide_buf_append_char(buf, (char)c);
            }
        }
        text = tide_str_of(text.ptr + valid, text.len - valid);
        if (text.len > 0) {
            tide_buf_printf(buf, "\\x%02x", (unsigned char)text.ptr[0]);
            text = tide_str_of(text.ptr + 1, text.len - 1);
        }
    }
}

static void find(struct check *check, bool is_problem, const char *remedy, const char *fmt, ...)
    TIDE_PRINTF(4, 5);

static void find(struct check *check, bool is_problem, const char *remedy, const char *fmt, ...)
{
    char what[1024];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    TIDE_ASSERT(len >= 0);
    size_t kept = (size_t)len < sizeof(what) ? (size_t)len : sizeof(what) - 1;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf shown = {0};
    append_shown(&shown, tide_str_of(what, kept));
    tide_findings_add(check->findings, is_problem, tide_buf_str(&shown), tide_str_from(remedy));
}

static void check_writable(struct check *check)
{
    if (!tide_sqlite_may_write_file(check->path)) {
        find(check, true, "give this user write access to the file",
             "the database %s cannot be written by this user, and following needs triggers in it",
             check->path);
    }
    if (!tide_sqlite_may_write_folder(check->path)) {
        find(check, true, "give this user write access to the folder",
             "the folder of the database %s cannot be written by this user, and SQLite makes its "
             "journal there",
             check->path);
    }
}

static tide_status check_pragmas(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    TIDE_TRY(tide_sqlite_prepare(
        check->db,
        TIDE_STR("SELECT journal_mode, encoding FROM pragma_journal_mode, pragma_encoding"), &stmt,
        err));
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    if (!is_row) {
        return TIDE_OK;
    }
    tide_str mode = tide_sqlite_column_str(stmt, 0);
    /* Of a database that was opened at rest SQLite does not tell its mode. */
    bool is_at_rest =
        sqlite3_uri_boolean(sqlite3_db_filename(check->db, "main"), "immutable", 0) != 0;
    if (!is_at_rest && !tide_str_equal(mode, TIDE_STR("wal"))) {
        find(check, false, "PRAGMA journal_mode = WAL",
             "journal_mode is %.*s: while we read, a writer without busy_timeout fails with "
             "SQLITE_BUSY; set busy_timeout in the writers, or use WAL, where readers block nobody",
             TIDE_STR_ARG(mode));
    } else if (!is_at_rest) {
        find(
            check, false, "PRAGMA busy_timeout = 1000, in each connection that writes",
            "journal_mode is wal: reading blocks nobody, but about once a second we take the write "
            "lock for some milliseconds, and a writer without busy_timeout that meets it fails "
            "with SQLITE_BUSY");
    }
    if (!tide_str_equal(tide_sqlite_column_str(stmt, 1), TIDE_STR("UTF-8"))) {
        find(
            check, false, "",
            "the database is UTF-16: SQLite converts text as it is read, and half surrogate pairs, "
            "U+FFFE and U+FFFF are lost; rows with them in their key are not copied right");
    }
    return TIDE_OK;
}

/* Whether a column of the key keeps blobs and texts, numbers and texts apart, which JSON does not.
 */
static bool has_untyped_key(const struct tide_sqlite_table *table)
{
    for (size_t i = 0; i < table->key_count; i++) {
        const struct tide_sqlite_column *column = &table->columns[table->key_columns[i]];
        bool is_typed = table->is_strict && !tide_sqlite_names_equal(column->type, TIDE_STR("ANY"));
        if (column->affinity == TIDE_SQLITE_BLOB && !is_typed) {
            return true;
        }
    }
    return false;
}

static void check_table(struct check *check, const struct tide_sqlite_table *table)
{
    if (table->identity != TIDE_SQLITE_NOT_FOLLOWED && has_untyped_key(table)) {
        find(check, false, "give the key's columns a type, and keep to it",
             "a column of the key of table %.*s takes values of any type: x'61' and 'YQ==', or "
             "9e999 "
             "and 'Infinity', are two keys in the database, but one in the copy",
             TIDE_STR_ARG(table->name));
    }
    /* Without globs nobody asked for virtual tables, and their inner ones are not worth a word. */
    bool is_asked_for = check->options->glob_count > 0 || !table->is_virtual;
    if (table->identity == TIDE_SQLITE_NOT_FOLLOWED) {
        if (table->is_shadow && !is_asked_for) {
            return;
        }
        find(check, is_asked_for, "leave it out with --tables",
             "table %.*s cannot be followed: %.*s", TIDE_STR_ARG(table->name),
             TIDE_STR_ARG(table->problem));
        tide_findings_mark_left_out(check->findings);
    } else if (tide_sqlite_table_is_renumbered(table)) {
        find(check, false, "give it a primary key, or any index: then VACUUM keeps the rowids",
             "table %.*s has no key and no index: its rows are told apart by their rowid, which "
             "VACUUM changes; the table must then be copied anew",
             TIDE_STR_ARG(table->name));
    } else if (table->identity == TIDE_SQLITE_ROWID) {
        find(check, false, "give it a primary key",
             "table %.*s has no key: its rows are told apart by their rowid",
             TIDE_STR_ARG(table->name));
    } else if (table->is_nullable) {
        find(
            check, false, "declare the key's columns NOT NULL",
            "the key of table %.*s may be NULL: rows where it is are told apart by their rowid too",
            TIDE_STR_ARG(table->name));
    }
}

/* RAISE, or FAIL as in OR FAIL, anywhere in the text. */
static bool may_abandon(tide_str sql)
{
    struct tide_sqlite_token token;
    for (size_t at = 0; tide_sqlite_token_next(sql, &at, &token);) {
        if (tide_sqlite_token_is(&token, "RAISE") || tide_sqlite_token_is(&token, "FAIL")) {
            return true;
        }
    }
    return false;
}

static tide_status check_triggers(struct check *check, const struct tide_sqlite_tables *tables,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(check->db,
                                 TIDE_STR("SELECT name, tbl_name, sql FROM main.sqlite_schema "
                                          "WHERE type = 'trigger' AND name NOT GLOB "
                                          "'" TIDE_SQLITE_PREFIX "*'"),
                                 &stmt, err));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        tide_str table = tide_sqlite_column_str(stmt, 1);
        tide_str sql = tide_sqlite_column_str(stmt, 2);
        if (tide_sqlite_is_after_insert(sql) && may_abandon(sql) &&
            tide_sqlite_tables_by_name(tables, table) != NULL) {
            find(
                check, false, "",
                "the AFTER INSERT trigger %.*s on table %.*s has RAISE or FAIL: that is fine while "
                "it is older than ours, but making it anew during a copy has the table copied anew",
                TIDE_STR_ARG(tide_sqlite_column_str(stmt, 0)), TIDE_STR_ARG(table));
        }
    }
}

static tide_status check_tables(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    tide_status status =
        tide_sqlite_tables_read(check->db, check->options->connection, check->options->globs,
                                check->options->glob_count, &tables, err);
    if (status == TIDE_INVALID) {
        find(check, true, "", "%s", err->message);
        return TIDE_OK;
    }
    TIDE_TRY(status);
    size_t followed = 0;
    for (size_t i = 0; i < tables.count; i++) {
        check_table(check, tables.items[i]);
        followed += tables.items[i]->identity != TIDE_SQLITE_NOT_FOLLOWED;
    }
    if (followed == 0) {
        find(check, true, "", "there is no table that can be followed");
    }
    return check_triggers(check, &tables, err);
}

static tide_status check_pipelines(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_sqlite_pipeline *pipelines = NULL;
    size_t count = 0;
    int64_t last = 0;
    TIDE_TRY(tide_sqlite_pipelines_read(check->db, &arena, &pipelines, &count, err));
    TIDE_TRY(tide_sqlite_log_last(check->db, &last, err));
    for (size_t i = 0; i < count; i++) {
        find(check, false, "tidemark detach, if nobody runs it any more",
             "pipeline %.*s is installed; it has confirmed %" PRId64 " of %" PRId64
             " log entries, and the log keeps the rest for it",
             TIDE_STR_ARG(pipelines[i].name), pipelines[i].confirmed, last);
    }
    return TIDE_OK;
}

/* A trigger of ours tells under what name our log is now, where somebody has renamed it. */
static tide_status renamed_log(struct check *check, struct tide_buf *remedy, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        check->db,
        TIDE_STR("SELECT name FROM main.sqlite_schema AS s WHERE type = 'table' AND EXISTS "
                 "(SELECT 1 FROM main.sqlite_schema AS t WHERE t.type = 'trigger' AND t.name GLOB "
                 "'" TIDE_SQLITE_PREFIX "[0-9]*_ad' AND instr(t.sql, 'INSERT INTO \"' || "
                 "replace(s.name, '\"', '\"\"') || '\" (t, op, ') > 0) AND NOT EXISTS (SELECT 1 "
                 "FROM main.sqlite_schema WHERE name = '" TIDE_SQLITE_LOG "')"),
        &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    if (is_row) {
        tide_buf_append_str(remedy, TIDE_STR("ALTER TABLE "));
        tide_sqlite_append_name(remedy, tide_sqlite_column_str(stmt, 0));
        tide_buf_append_str(remedy, TIDE_STR(" RENAME TO \"" TIDE_SQLITE_LOG "\""));
    } else {
        tide_buf_append_str(remedy, TIDE_STR("tidemark detach"));
    }
    return TIDE_OK;
}

/* What has happened since the pipelines ran last, and what the next run will do about it. */
static tide_status check_plan(struct check *check, struct tide_error *err)
{
    struct tide_sqlite_choice choice = {.connection = check->options->connection};
    TIDE_CLEANUP(tide_sqlite_plan_done) struct tide_sqlite_plan plan = {0};
    TIDE_TRY(tide_sqlite_plan_make(check->db, &choice, &plan, err));
    for (size_t i = 0; i < plan.count; i++) {
        const struct tide_sqlite_step *step = &plan.steps[i];
        bool is_made_anew = step->kind == TIDE_SQLITE_STEP_REMAKE;
        const char *what = is_made_anew                          ? "makes its triggers anew"
                           : step->kind == TIDE_SQLITE_STEP_COPY ? "copies it anew"
                                                                 : "leaves it out";
        tide_str reason =
            is_made_anew ? TIDE_STR("one of its UNIQUE indexes is gone, and while our triggers "
                                    "name its columns these cannot be dropped")
                         : step->reason;
        find(check, false, "run the pipeline again, or tidemark detach",
             "table %.*s has changed since its pipelines ran: %.*s; the next run %s",
             TIDE_STR_ARG(step->name), TIDE_STR_ARG(reason), what);
    }
    return TIDE_OK;
}

/* What an earlier installation left, or runs now. */
static tide_status check_installed(struct check *check, struct tide_error *err)
{
    int64_t ours = 0;
    TIDE_TRY(tide_sqlite_int(check->db,
                             "SELECT count(*) FROM main.sqlite_schema WHERE name GLOB "
                             "'" TIDE_SQLITE_PREFIX "*' AND type IN ('table', 'trigger')",
                             0, &ours, err));
    if (ours == 0) {
        return TIDE_OK;
    }
    tide_status status = tide_sqlite_whole_check(check->db, err);
    if (status == TIDE_OK) {
        status = tide_sqlite_version_check(check->db, err);
    }
    if (status == TIDE_STALE || status == TIDE_INVALID) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf remedy = {0};
        char what[sizeof(err->message)];
        (void)snprintf(what, sizeof(what), "%s", err->message);
        TIDE_TRY(renamed_log(check, &remedy, err));
        find(check, true, tide_buf_cstr(&remedy), "%s", what);
        return TIDE_OK;
    }
    TIDE_TRY(status);
    TIDE_TRY(check_plan(check, err));
    return check_pipelines(check, err);
}

static tide_status check_all(struct check *check, struct tide_error *err)
{
    TIDE_TRY(check_pragmas(check, err));
    TIDE_TRY(check_installed(check, err));
    return check_tables(check, err);
}

tide_status tide_sqlite_check(sqlite3 *db, const char *path,
                              const struct tide_source_options *options,
                              struct tide_findings *findings, struct tide_error *err)
{
    struct check check = {.db = db, .path = path, .options = options, .findings = findings};
    check_writable(&check);
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = NULL;
    if (sqlite3_get_autocommit(db) != 0) {
        TIDE_TRY(tide_sqlite_exec(db, "BEGIN", err));
        open_db = db;
    }
    return check_all(&check, err);
}
