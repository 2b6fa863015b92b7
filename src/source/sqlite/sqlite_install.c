#include "source/sqlite/sqlite_install.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_installed.h"

#include <inttypes.h>

/* What one installation works on. Everything happens inside its one transaction. */
struct install {
    sqlite3 *db;
    struct tide_arena arena;
    struct tide_sqlite_present present; /* triggers before anything is made */
    struct tide_sqlite_tables *tables;  /* those that can be followed */
    int64_t last;       /* the log's last id: no marks come while we hold the lock */
    const char *new_id; /* of the source, when it gets one; NULL: random */
};

static void install_done(struct install *install)
{
    tide_sqlite_present_done(&install->present);
    tide_arena_done(&install->arena);
}

/* Nothing here that SQLite 3.7.17 does not know, and no AUTOINCREMENT: it is slower and would leave
 * sqlite_sequence behind for ever. */
static tide_status make_tables(sqlite3 *db, struct tide_error *err)
{
    return tide_sqlite_exec(db,
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_LOG
                            "\" (id INTEGER PRIMARY KEY, t, op, r, k1);"
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_TABLES
                            "\" (t INTEGER PRIMARY KEY, name, spec, since);"
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_STATE
                            "\" (k PRIMARY KEY, v);"
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_PIPELINES
                            "\" (name PRIMARY KEY, confirmed, nonce, tables);"
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_CANARY "\" (v);",
                            err);
}

/* The id that we were opened with is no new one when it is the emptied log's. */
static tide_status forget_own_id(struct install *install, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        install->db, TIDE_STR("SELECT v FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'source_id'"),
        &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    if (is_row && install->new_id != NULL &&
        tide_str_equal(tide_sqlite_column_str(stmt, 0), tide_str_from(install->new_id))) {
        install->new_id = NULL;
    }
    return TIDE_OK;
}

/* An empty log is a new one, also where another was dropped or emptied: its ids start anew, so the
 * source gets a new id, by which other pipelines notice. */
static tide_status begin_log(struct install *install, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_log_last(install->db, &install->last, err));
    if (install->last == 0) {
        install->last = 1;
        TIDE_TRY(forget_own_id(install, err));
        TIDE_TRY(tide_sqlite_exec(
            install->db,
            "INSERT INTO main.\"" TIDE_SQLITE_LOG "\" (id, t, op) VALUES (1, 0, 0);"
            "UPDATE main.\"" TIDE_SQLITE_TABLES "\" SET since = 1;"
            "DELETE FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'source_id'",
            err));
    }
    return tide_sqlite_execf(install->db, err,
                             "INSERT OR IGNORE INTO main.\"" TIDE_SQLITE_STATE
                             "\" (k, v) SELECT 'source_id', coalesce(%Q, "
                             "lower(hex(randomblob(%d)))) UNION ALL SELECT 'format_version', %d",
                             install->new_id, TIDE_SQLITE_HEX_LEN / 2, TIDE_SQLITE_FORMAT_VERSION);
}

/* A registered table that was renamed takes its number along; its triggers went with it. */
static tide_status follow_renames(sqlite3 *db, struct tide_error *err)
{
#define TRIGGERED                                                                                  \
    "(SELECT s.tbl_name FROM main.sqlite_schema AS s WHERE s.type = 'trigger' "                    \
    "AND s.name = '" TIDE_SQLITE_PREFIX "' || r.t || '_ad')"
    return tide_sqlite_exec(db,
                            "UPDATE main.\"" TIDE_SQLITE_TABLES "\" AS r SET name = " TRIGGERED
                            " WHERE " TRIGGERED " IS NOT NULL "
                            "AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema AS s "
                            "WHERE s.type = 'table' AND s.name = r.name) "
                            "AND NOT EXISTS (SELECT 1 FROM main.\"" TIDE_SQLITE_TABLES "\" AS q "
                            "WHERE q.name = " TRIGGERED ")",
                            err);
#undef TRIGGERED
}

/* VACUUM has run since the canary was set: rows that are told apart by their rowid have others. */
static tide_status reset_canary(struct install *install, struct tide_error *err)
{
    int64_t rowid = 0;
    TIDE_TRY(tide_sqlite_canary(install->db, &rowid, err));
    if (rowid == 7) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables all = {0};
    TIDE_TRY(tide_sqlite_tables_read(install->db, TIDE_STR(""), NULL, 0, &all, err));
    for (size_t i = 0; i < all.count; i++) {
        if (tide_sqlite_table_is_renumbered(all.items[i])) {
            TIDE_TRY(tide_sqlite_execf(install->db, err,
                                       "UPDATE main.\"" TIDE_SQLITE_TABLES
                                       "\" SET since = %lld WHERE t = %lld",
                                       (long long)install->last, (long long)all.items[i]->number));
        }
    }
    return tide_sqlite_exec(install->db,
                            "DELETE FROM main.\"" TIDE_SQLITE_CANARY "\";"
                            "INSERT INTO main.\"" TIDE_SQLITE_CANARY "\" (rowid, v) VALUES (7, 0)",
                            err);
}

static tide_status keep_followed(struct tide_sqlite_tables *tables, struct tide_error *err)
{
    size_t kept = 0;
    tide_str problem = TIDE_STR("there is none");
    for (size_t i = 0; i < tables->count; i++) {
        struct tide_sqlite_table *table = tables->items[i];
        if (table->identity != TIDE_SQLITE_NOT_FOLLOWED) {
            tables->items[i] = tables->items[kept];
            tables->items[kept++] = table;
        } else {
            problem = table->problem;
        }
    }
    if (kept == 0) {
        return tide_fail(err, TIDE_INVALID,
                         "none of the chosen tables can be followed: %.*s; `tidemark check` says "
                         "more",
                         TIDE_STR_ARG(problem));
    }
    for (size_t i = kept; i < tables->count; i++) {
        tide_sqlite_table_free(tables->items[i]);
    }
    tables->count = kept;
    return TIDE_OK;
}

static tide_status widen_log(struct install *install, struct tide_error *err)
{
    int64_t width = 0;
    TIDE_TRY(tide_sqlite_log_width(install->db, &width, err));
    for (size_t i = 0; i < install->tables->count; i++) {
        int64_t wanted = (int64_t)tide_sqlite_table_log_width(install->tables->items[i]);
        for (; width < wanted; width++) {
            TIDE_TRY(tide_sqlite_execf(install->db, err,
                                       "ALTER TABLE main.\"" TIDE_SQLITE_LOG "\" ADD COLUMN k%lld",
                                       (long long)width + 1));
        }
    }
    return TIDE_OK;
}

static tide_status make_triggers(struct install *install, const struct tide_sqlite_table *table,
                                 struct tide_error *err)
{
    if (tide_sqlite_present_has(&install->present, table->number)) {
        TIDE_TRY(tide_sqlite_triggers_drop(install->db, table->number, err));
    }
    struct tide_sqlite_trigger triggers[TIDE_SQLITE_TRIGGERS_MAX];
    size_t count = tide_sqlite_triggers_make(table, &install->arena, triggers);
    for (size_t i = 0; i < count; i++) {
        const char *sql = tide_arena_cstr(&install->arena, triggers[i].sql);
        if (tide_sqlite_exec(install->db, sql, err) != TIDE_OK) {
            return tide_fail_context(err, "making the triggers of table %.*s",
                                     TIDE_STR_ARG(table->name));
        }
    }
    return tide_sqlite_execf(install->db, err,
                             "INSERT OR REPLACE INTO main.\"" TIDE_SQLITE_TABLES
                             "\" (t, name, spec, since) VALUES (%lld, %.*Q, %Q, %lld)",
                             (long long)table->number, (int)table->name.len, table->name.ptr,
                             table->digest, (long long)table->since);
}

/* The digest in _tidemark_tables; ptr NULL: the table is not registered. */
static tide_status registered_digest(struct install *install, int64_t number, tide_str *ret_digest,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        install->db, TIDE_STR("SELECT spec FROM main.\"" TIDE_SQLITE_TABLES "\" WHERE t = ?1"),
        &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, number);
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    *ret_digest = is_row ? tide_arena_str(&install->arena, tide_sqlite_column_str(stmt, 0))
                         : (tide_str){NULL, 0};
    return TIDE_OK;
}

/* Makes the table's triggers unless they are there and complete. */
static tide_status install_table(struct install *install, struct tide_sqlite_table *table,
                                 struct tide_error *err)
{
    if (table->number == 0) {
        int64_t number = 0;
        TIDE_TRY(tide_sqlite_int(install->db, "SELECT max(t) FROM main.\"" TIDE_SQLITE_TABLES "\"",
                                 0, &number, err));
        tide_sqlite_table_set_number(table, number + 1, install->last);
        return make_triggers(install, table, err);
    }
    tide_str digest;
    tide_str misfit;
    TIDE_TRY(registered_digest(install, table->number, &digest, err));
    enum tide_sqlite_fit fit =
        tide_sqlite_triggers_fit(&install->present, table, &install->arena, &misfit);
    if (fit == TIDE_SQLITE_FIT && tide_str_equal(digest, tide_str_from(table->digest))) {
        return TIDE_OK;
    }
    tide_sqlite_table_set_number(table, table->number, install->last);
    return make_triggers(install, table, err);
}

static tide_status write_pipeline(struct install *install, tide_str pipeline,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf numbers = {0};
    tide_buf_append_char(&numbers, ',');
    for (size_t i = 0; i < install->tables->count; i++) {
        tide_buf_printf(&numbers, "%" PRId64 ",", install->tables->items[i]->number);
    }
    return tide_sqlite_execf(install->db, err,
                             "INSERT OR REPLACE INTO main.\"" TIDE_SQLITE_PIPELINES
                             "\" (name, confirmed, nonce, tables) VALUES "
                             "(%.*Q, %lld, lower(hex(randomblob(%d))), %Q)",
                             (int)pipeline.len, pipeline.ptr, (long long)install->last,
                             TIDE_SQLITE_HEX_LEN / 2, tide_buf_cstr(&numbers));
}

static tide_status install_all(struct install *install, tide_str pipeline, tide_str connection,
                               const tide_str *globs, size_t glob_count, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_version_check(install->db, err));
    TIDE_TRY(make_tables(install->db, err));
    TIDE_TRY(begin_log(install, err));
    TIDE_TRY(follow_renames(install->db, err));
    TIDE_TRY(reset_canary(install, err));
    TIDE_TRY(
        tide_sqlite_tables_read(install->db, connection, globs, glob_count, install->tables, err));
    TIDE_TRY(keep_followed(install->tables, err));
    TIDE_TRY(widen_log(install, err));
    TIDE_TRY(tide_sqlite_present_read(install->db, &install->present, err));
    for (size_t i = 0; i < install->tables->count; i++) {
        TIDE_TRY(install_table(install, install->tables->items[i], err));
    }
    TIDE_TRY(write_pipeline(install, pipeline, err));
    return tide_sqlite_unwanted_drop(install->db, err);
}

tide_status tide_sqlite_install(sqlite3 *db, tide_str pipeline, tide_str connection,
                                const tide_str *globs, size_t glob_count, const char *source_id,
                                struct tide_sqlite_tables *ret_tables,
                                struct tide_sqlite_installed *ret_installed, struct tide_error *err)
{
    TIDE_ASSERT(pipeline.len > 0);
    TIDE_ASSERT(ret_tables->count == 0);
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_CLEANUP(install_done)
    struct install install = {.db = db, .tables = &tables, .new_id = source_id};
    struct tide_sqlite_installed installed = {0};
    struct tide_sqlite_pipeline row;
    TIDE_TRY(tide_sqlite_begin_write(db, err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(install_all(&install, pipeline, connection, globs, glob_count, err));
    TIDE_TRY(tide_sqlite_describe(db, pipeline, &install.arena, &installed, &row, err));
    if (source_id != NULL && strcmp(installed.source_id, source_id) != 0) {
        return tide_fail_retriable(err, TIDE_IO,
                                   "another copy has just been set up on this database; nothing of "
                                   "ours was put into it, run the same command again");
    }
    TIDE_TRY(tide_sqlite_exec(open_db, "COMMIT", err));
    *ret_tables = tables;
    *ret_installed = installed;
    tables = (struct tide_sqlite_tables){0};
    return TIDE_OK;
}
