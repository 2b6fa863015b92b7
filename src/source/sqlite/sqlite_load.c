/* Goes on from a checkpoint: reads what is installed and sees whether the log is whole for it. */
#include "source/sqlite/sqlite_installed.h"

#include "base/alloc.h"
#include "base/glob.h"
#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>
#include <stdlib.h>

tide_status tide_sqlite_version_check(sqlite3 *db, struct tide_error *err)
{
    bool has_state = false;
    TIDE_TRY(tide_sqlite_has_table(db, TIDE_SQLITE_STATE, &has_state, err));
    if (!has_state) {
        return TIDE_OK;
    }
    int64_t version = 0;
    TIDE_TRY(tide_sqlite_int(
        db, "SELECT v FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'format_version'",
        TIDE_SQLITE_FORMAT_VERSION, &version, err));
    if (version != TIDE_SQLITE_FORMAT_VERSION) {
        return tide_fail(err, TIDE_INVALID,
                         "another version of Tidemark is at work in this database (its format is "
                         "%" PRId64 ", ours %d); use that version, or detach with it first",
                         version, TIDE_SQLITE_FORMAT_VERSION);
    }
    return TIDE_OK;
}

tide_status tide_sqlite_describe(sqlite3 *db, tide_str pipeline, struct tide_arena *arena,
                                 struct tide_sqlite_installed *ret_installed,
                                 struct tide_sqlite_pipeline *ret_pipeline, struct tide_error *err)
{
    bool is_there = false;
    TIDE_TRY(tide_sqlite_pipeline_find(db, pipeline, arena, &is_there, ret_pipeline, err));
    if (!is_there) {
        return tide_fail(err, TIDE_STALE,
                         "the pipeline %.*s is not installed in this database: it was detached, or "
                         "the database is another one; " TIDE_SQLITE_ANEW,
                         TIDE_STR_ARG(pipeline));
    }
    TIDE_TRY(tide_sqlite_state_read(db, "source_id", ret_installed->source_id, err));
    TIDE_TRY(tide_sqlite_log_width(db, &ret_installed->width, err));
    memcpy(ret_installed->nonce, ret_pipeline->nonce, sizeof(ret_installed->nonce));
    ret_installed->confirmed = ret_pipeline->confirmed;
    return TIDE_OK;
}

tide_status tide_sqlite_fail_gone(sqlite3 *db, int64_t number, tide_str name,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    tide_str now;
    TIDE_TRY(tide_sqlite_triggered_table(db, number, &arena, &now, err));
    if (now.ptr != NULL && !tide_str_equal(now, name)) {
        return tide_fail(err, TIDE_STALE,
                         "table %.*s was renamed to %.*s; " TIDE_SQLITE_DETACH_ANEW,
                         TIDE_STR_ARG(name), TIDE_STR_ARG(now));
    }
    return tide_fail(err, TIDE_STALE,
                     "table %.*s was dropped, or can no longer be followed; take it out of the "
                     "tables to copy, " TIDE_SQLITE_DETACH_ANEW,
                     TIDE_STR_ARG(name));
}

tide_status tide_sqlite_fail_vacuum(const struct tide_sqlite_table *table, struct tide_error *err)
{
    return tide_fail(err, TIDE_STALE,
                     "VACUUM has run and given the rows of table %.*s other rowids, by which we "
                     "tell them apart (it has no key and no index); " TIDE_SQLITE_DETACH_ANEW
                     ", and give the table a primary key",
                     TIDE_STR_ARG(table->name));
}

tide_status tide_sqlite_whole_check(sqlite3 *db, struct tide_error *err)
{
    static const char *const names[] = {TIDE_SQLITE_LOG, TIDE_SQLITE_TABLES, TIDE_SQLITE_STATE,
                                        TIDE_SQLITE_PIPELINES, TIDE_SQLITE_CANARY};
    size_t found = 0;
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool is_there = false;
        TIDE_TRY(tide_sqlite_has_table(db, names[i], &is_there, err));
        found += is_there;
        missing = is_there ? missing : names[i];
    }
    if (found == 0) {
        return tide_fail(err, TIDE_STALE,
                         "nothing of ours is in the database any more: it was detached, or the "
                         "database is another one; " TIDE_SQLITE_ANEW);
    }
    if (missing != NULL) {
        return tide_fail(err, TIDE_STALE,
                         "our table %s was dropped or renamed%s; " TIDE_SQLITE_DETACH_ANEW, missing,
                         strcmp(missing, TIDE_SQLITE_LOG) == 0
                             ? ", and writes to the followed tables may fail"
                             : "");
    }
    return TIDE_OK;
}

tide_status tide_sqlite_table_judge(const struct tide_sqlite_present *present,
                                    const struct tide_sqlite_table *table, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    tide_str name;
    enum tide_sqlite_fit fit = tide_sqlite_triggers_fit(present, table, &arena, &name);
    switch (fit) {
    case TIDE_SQLITE_FIT:
        return TIDE_OK;
    case TIDE_SQLITE_FIT_MISSING:
        return tide_fail(err, TIDE_STALE,
                         "our trigger %.*s on table %.*s is gone (the table was made anew, or the "
                         "trigger dropped), so changes were missed; " TIDE_SQLITE_DETACH_ANEW,
                         TIDE_STR_ARG(name), TIDE_STR_ARG(table->name));
    case TIDE_SQLITE_FIT_NOT_LAST:
        return tide_fail(err, TIDE_STALE,
                         "the AFTER INSERT trigger %.*s on table %.*s was made after ours and so "
                         "fires before it: where it fails or does RAISE(IGNORE), inserts are "
                         "missed; " TIDE_SQLITE_DETACH_ANEW ", which makes ours the newest",
                         TIDE_STR_ARG(name), TIDE_STR_ARG(table->name));
    case TIDE_SQLITE_FIT_OTHER:
    default:
        return tide_fail(err, TIDE_STALE,
                         "our trigger %.*s is not what table %.*s needs any more (the table or the "
                         "trigger has changed); " TIDE_SQLITE_DETACH_ANEW,
                         TIDE_STR_ARG(name), TIDE_STR_ARG(table->name));
    }
}

/* What one load works on. `all` are the database's tables; `chosen` borrows those it keeps. */
struct load {
    sqlite3 *db;
    const tide_str *globs;
    size_t glob_count;
    int64_t position;
    int64_t canary;
    struct tide_sqlite_tables all;
    struct tide_sqlite_present present;
    struct tide_sqlite_pipeline row;
    struct tide_arena arena;
};

static void load_done(struct load *load)
{
    tide_sqlite_tables_done(&load->all);
    tide_sqlite_present_done(&load->present);
    tide_arena_done(&load->arena);
}

static bool is_chosen(const struct load *load, tide_str name)
{
    for (size_t i = 0; i < load->glob_count; i++) {
        if (tide_glob_matches(load->globs[i], name)) {
            return true;
        }
    }
    return load->glob_count == 0;
}

static tide_status check_table(const struct load *load, const struct tide_sqlite_table *table,
                               tide_str digest, struct tide_error *err)
{
    if (!tide_str_equal(digest, tide_str_from(table->digest))) {
        return tide_fail(err, TIDE_STALE,
                         "the columns, key or unique indexes of table %.*s have "
                         "changed; " TIDE_SQLITE_DETACH_ANEW,
                         TIDE_STR_ARG(table->name));
    }
    TIDE_TRY(tide_sqlite_table_judge(&load->present, table, err));
    if (table->since > load->position) {
        return tide_fail(err, TIDE_STALE,
                         "our triggers on table %.*s were made anew after what this copy has "
                         "read, so changes may have been missed; " TIDE_SQLITE_DETACH_ANEW,
                         TIDE_STR_ARG(table->name));
    }
    if (load->canary != 7 && tide_sqlite_table_is_renumbered(table)) {
        return tide_sqlite_fail_vacuum(table, err);
    }
    return TIDE_OK;
}

/* Each table of the pipeline must be as it was when its triggers were made. */
static tide_status check_tables(struct load *load, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        load->db, TIDE_STR("SELECT t, name, spec FROM main.\"" TIDE_SQLITE_TABLES "\" ORDER BY t"),
        &stmt, err));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        int64_t number = sqlite3_column_int64(stmt, 0);
        tide_str name = tide_sqlite_column_str(stmt, 1);
        if (!tide_sqlite_numbers_hold(load->row.tables, number) || !is_chosen(load, name)) {
            continue;
        }
        const struct tide_sqlite_table *table = tide_sqlite_tables_by_number(&load->all, number);
        if (table == NULL) {
            return tide_sqlite_fail_gone(load->db, number, name, err);
        }
        TIDE_TRY(check_table(load, table, tide_sqlite_column_str(stmt, 2), err));
    }
}

/* Moves the pipeline's tables out of `all`, in their order. */
static void take_tables(struct load *load, struct tide_sqlite_tables *ret_tables,
                        size_t *ret_uncaptured_count)
{
    ret_tables->items = tide_alloc(load->all.count + 1, sizeof(struct tide_sqlite_table *));
    size_t left = 0;
    for (size_t i = 0; i < load->all.count; i++) {
        struct tide_sqlite_table *table = load->all.items[i];
        bool is_followed = table->identity != TIDE_SQLITE_NOT_FOLLOWED;
        if (is_followed && is_chosen(load, table->name) && table->number > 0 &&
            tide_sqlite_numbers_hold(load->row.tables, table->number)) {
            ret_tables->items[ret_tables->count++] = table;
            continue;
        }
        *ret_uncaptured_count += is_followed && is_chosen(load, table->name);
        load->all.items[left++] = table;
    }
    load->all.count = left;
}

static tide_status check_log(const struct load *load, struct tide_error *err)
{
    int64_t last = 0;
    TIDE_TRY(tide_sqlite_log_last(load->db, &last, err));
    if (last < load->position) {
        return tide_fail(err, TIDE_STALE,
                         "the log in the database ends at %" PRId64
                         ", before what this copy has read (%" PRId64
                         "): the database was restored from a backup; " TIDE_SQLITE_ANEW,
                         last, load->position);
    }
    return TIDE_OK;
}

static tide_status load_all(struct load *load, tide_str pipeline, tide_str connection,
                            struct tide_sqlite_installed *installed, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_whole_check(load->db, err));
    TIDE_TRY(tide_sqlite_version_check(load->db, err));
    TIDE_TRY(tide_sqlite_describe(load->db, pipeline, &load->arena, installed, &load->row, err));
    TIDE_TRY(check_log(load, err));
    TIDE_TRY(tide_sqlite_canary(load->db, &load->canary, err));
    TIDE_TRY(tide_sqlite_tables_read(load->db, connection, NULL, 0, &load->all, err));
    TIDE_TRY(tide_sqlite_present_read(load->db, &load->present, err));
    return check_tables(load, err);
}

tide_status tide_sqlite_installed_load(sqlite3 *db, tide_str pipeline, tide_str connection,
                                       const tide_str *globs, size_t glob_count, int64_t position,
                                       struct tide_sqlite_tables *ret_tables,
                                       struct tide_sqlite_installed *ret_installed,
                                       struct tide_error *err)
{
    TIDE_ASSERT(ret_tables->count == 0);
    TIDE_CLEANUP(load_done)
    struct load load = {.db = db, .globs = globs, .glob_count = glob_count, .position = position};
    struct tide_sqlite_installed installed = {0};
    /* Several questions must be about one state: a transaction of our own, or the caller's. */
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = NULL;
    if (sqlite3_get_autocommit(db) != 0) {
        TIDE_TRY(tide_sqlite_exec(db, "BEGIN", err));
        open_db = db;
    }
    TIDE_TRY(load_all(&load, pipeline, connection, &installed, err));
    take_tables(&load, ret_tables, &installed.uncaptured_count);
    *ret_installed = installed;
    return TIDE_OK;
}
