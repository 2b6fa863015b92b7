/* Goes on from a checkpoint: reads what is installed and sees whether the log is whole for it. */
#include "source/sqlite/sqlite_installed.h"

#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>

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

static tide_status check_log(sqlite3 *db, int64_t position, struct tide_error *err)
{
    int64_t last = 0;
    TIDE_TRY(tide_sqlite_log_last(db, &last, err));
    if (last < position) {
        return tide_fail(err, TIDE_STALE,
                         "the log in the database ends at %" PRId64
                         ", before what this copy has read (%" PRId64
                         "): the database was restored from a backup; " TIDE_SQLITE_ANEW,
                         last, position);
    }
    return TIDE_OK;
}

tide_status tide_sqlite_installed_load(sqlite3 *db, tide_str pipeline, int64_t position,
                                       struct tide_sqlite_installed *ret_installed,
                                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_sqlite_installed installed = {0};
    struct tide_sqlite_pipeline row;
    TIDE_TRY(tide_sqlite_whole_check(db, err));
    TIDE_TRY(tide_sqlite_version_check(db, err));
    TIDE_TRY(tide_sqlite_describe(db, pipeline, &arena, &installed, &row, err));
    TIDE_TRY(check_log(db, position, err));
    *ret_installed = installed;
    return TIDE_OK;
}
