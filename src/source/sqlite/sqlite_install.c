#include "source/sqlite/sqlite_install.h"

#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_installed.h"
#include "source/sqlite/sqlite_mend.h"
#include "source/sqlite/sqlite_plan.h"

/* What one installation works on. Everything happens inside its one transaction. */
struct install {
    sqlite3 *db;
    const struct tide_sqlite_choice *choice;
    const char *new_id; /* of the source, when it gets one; NULL: random */
};

/* Nothing here that SQLite 3.7.17 does not know, and no AUTOINCREMENT: it is slower and would leave
 * sqlite_sequence behind for ever. */
static tide_status make_tables(sqlite3 *db, struct tide_error *err)
{
    return tide_sqlite_exec(db,
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_LOG
                            "\" (id INTEGER PRIMARY KEY, t, op, r, k1);"
                            "CREATE TABLE IF NOT EXISTS main.\"" TIDE_SQLITE_TABLES
                            "\" (t INTEGER PRIMARY KEY, name, spec);"
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
    int64_t last = 0;
    TIDE_TRY(tide_sqlite_log_last(install->db, &last, err));
    if (last == 0) {
        TIDE_TRY(forget_own_id(install, err));
        TIDE_TRY(tide_sqlite_exec(
            install->db,
            "INSERT INTO main.\"" TIDE_SQLITE_LOG "\" (id, t, op) VALUES (1, 0, 0);"
            "DELETE FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'source_id'",
            err));
    }
    return tide_sqlite_execf(install->db, err,
                             "INSERT OR IGNORE INTO main.\"" TIDE_SQLITE_STATE
                             "\" (k, v) SELECT 'source_id', coalesce(%Q, "
                             "lower(hex(randomblob(%d)))) UNION ALL SELECT 'format_version', %d",
                             install->new_id, TIDE_SQLITE_HEX_LEN / 2, TIDE_SQLITE_FORMAT_VERSION);
}

/* Some table must be left to follow. */
static tide_status check_choice(struct install *install, struct tide_error *err)
{
    const struct tide_sqlite_choice *choice = install->choice;
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_TRY(tide_sqlite_tables_read(install->db, choice->connection, choice->globs,
                                     choice->glob_count, &tables, err));
    tide_str problem = TIDE_STR("there is none");
    for (size_t i = 0; i < tables.count; i++) {
        if (tables.items[i]->identity != TIDE_SQLITE_NOT_FOLLOWED) {
            return TIDE_OK;
        }
        problem = tables.items[i]->problem;
    }
    return tide_fail(err, TIDE_INVALID,
                     "none of the chosen tables can be followed: %.*s; `tidemark check` says more",
                     TIDE_STR_ARG(problem));
}

static tide_status write_pipeline(struct install *install, struct tide_error *err)
{
    return tide_sqlite_execf(install->db, err,
                             "INSERT OR REPLACE INTO main.\"" TIDE_SQLITE_PIPELINES
                             "\" (name, confirmed, nonce, tables) VALUES "
                             "(%.*Q, 0, lower(hex(randomblob(%d))), ',')",
                             (int)install->choice->pipeline.len, install->choice->pipeline.ptr,
                             TIDE_SQLITE_HEX_LEN / 2);
}

/* The stream starts behind what installing has written into the log. */
static tide_status start_at_end(struct install *install, struct tide_error *err)
{
    return tide_sqlite_execf(install->db, err,
                             "UPDATE main.\"" TIDE_SQLITE_PIPELINES "\" SET confirmed = "
                             "(SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\") WHERE name = %.*Q",
                             (int)install->choice->pipeline.len, install->choice->pipeline.ptr);
}

static tide_status mend(struct install *install, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_plan_done) struct tide_sqlite_plan plan = {0};
    TIDE_TRY(tide_sqlite_plan_make(install->db, install->choice, &plan, err));
    return tide_sqlite_mend_apply(install->db, &plan, true, err);
}

static tide_status install_all(struct install *install, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_version_check(install->db, err));
    TIDE_TRY(check_choice(install, err));
    TIDE_TRY(make_tables(install->db, err));
    TIDE_TRY(begin_log(install, err));
    TIDE_TRY(write_pipeline(install, err));
    TIDE_TRY(mend(install, err));
    return start_at_end(install, err);
}

tide_status tide_sqlite_install(sqlite3 *db, const struct tide_sqlite_choice *choice,
                                const char *source_id, struct tide_sqlite_installed *ret_installed,
                                struct tide_error *err)
{
    TIDE_ASSERT(choice->pipeline.len > 0);
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct install install = {.db = db, .choice = choice, .new_id = source_id};
    struct tide_sqlite_installed installed = {0};
    struct tide_sqlite_pipeline row;
    TIDE_TRY(tide_sqlite_begin_write(db, err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(install_all(&install, err));
    TIDE_TRY(tide_sqlite_describe(db, choice->pipeline, &arena, &installed, &row, err));
    if (source_id != NULL && strcmp(installed.source_id, source_id) != 0) {
        return tide_fail_retriable(err, TIDE_IO,
                                   "another copy has just been set up on this database; nothing of "
                                   "ours was put into it, run the same command again");
    }
    TIDE_TRY(tide_sqlite_exec(open_db, "COMMIT", err));
    *ret_installed = installed;
    return TIDE_OK;
}
