#include "source/sqlite/sqlite_confirm.h"

#include "base/clock.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_installed.h"
#include "source/sqlite/sqlite_log.h"

#include <unistd.h>

#define BUSY_MS        50
#define PAUSE_US       1000000 /* between two confirms */
#define PIECE_PAUSE_US 4000    /* between two pieces: who waits for the lock gets it */
#define PRUNE_SHARE    4 /* while much is left to prune: this many times as long a pause as work */

static tide_status write_row(sqlite3 *db, tide_str pipeline, int64_t position, const char *nonce,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db,
                                 TIDE_STR("UPDATE main.\"" TIDE_SQLITE_PIPELINES
                                          "\" SET confirmed = max(confirmed, ?1), nonce = ?2"
                                          " WHERE name = ?3"),
                                 &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, position);
    tide_sqlite_bind_str(stmt, 2, tide_str_from(nonce));
    tide_sqlite_bind_str(stmt, 3, pipeline);
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &has_row, err));
    if (sqlite3_changes(db) != 1) {
        return tide_fail(
            err, TIDE_STALE,
            "the pipeline %.*s was detached from the database while it ran; " TIDE_SQLITE_ANEW,
            TIDE_STR_ARG(pipeline));
    }
    return TIDE_OK;
}

/* What every pipeline has, but never the last entry: ids would start anew. */
#define IS_FREE                                                                                    \
    "id <= (SELECT min(confirmed) FROM main.\"" TIDE_SQLITE_PIPELINES "\")"                        \
    " AND id < (SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\")"

static tide_status prune(sqlite3 *db, bool *ret_has_more, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db,
        TIDE_STR("DELETE FROM main.\"" TIDE_SQLITE_LOG "\" WHERE " IS_FREE
                 " AND id < ?1 + (SELECT min(id) FROM main.\"" TIDE_SQLITE_LOG "\")"),
        &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, TIDE_SQLITE_PRUNE_ENTRIES);
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &has_row, err));
    int64_t more = 0;
    TIDE_TRY(tide_sqlite_int(
        db, "SELECT 1 FROM main.\"" TIDE_SQLITE_LOG "\" WHERE " IS_FREE " LIMIT 1", 0, &more, err));
    *ret_has_more = more != 0;
    return TIDE_OK;
}

static tide_status work(sqlite3 *db, struct tide_sqlite_watch *watch, tide_str pipeline,
                        const struct tide_sqlite_nonces *nonces, int64_t position,
                        bool *ret_has_more, struct tide_error *err)
{
    tide_str known[TIDE_SQLITE_NONCES_NOW];
    for (size_t i = 0; i < TIDE_SQLITE_NONCES_NOW; i++) {
        known[i] = tide_str_from(nonces->text[i]);
    }
    TIDE_TRY(tide_sqlite_exec(db, "BEGIN IMMEDIATE", err));
    bool has_moved = false;
    TIDE_TRY(tide_sqlite_watch_look(watch, known, TIDE_SQLITE_NONCES_NOW, &has_moved, err));
    if (has_moved) {
        return tide_fail_retriable(err, TIDE_TIMEOUT, "the schema has moved: reading comes first");
    }
    TIDE_TRY(tide_sqlite_schema_settle(db, err));
    const char *nonce = nonces->text[nonces->is_next_saved ? 1 : 0];
    TIDE_TRY(write_row(db, pipeline, position, nonce, err));
    TIDE_TRY(prune(db, ret_has_more, err));
    return tide_sqlite_exec(db, "COMMIT", err);
}

static tide_status work_once(sqlite3 *db, struct tide_sqlite_watch *watch, tide_str pipeline,
                             const struct tide_sqlite_nonces *nonces, int64_t position,
                             bool *ret_has_more, struct tide_error *err)
{
    tide_status status = work(db, watch, pipeline, nonces, position, ret_has_more, err);
    if (sqlite3_get_autocommit(db) == 0) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

/* Many short locks instead of a long one: in the pauses those who wait get theirs. */
static tide_status work_in_pieces(sqlite3 *db, struct tide_sqlite_watch *watch, tide_str pipeline,
                                  const struct tide_sqlite_nonces *nonces, int64_t position,
                                  bool *ret_has_more, struct tide_error *err)
{
    TIDE_TRY(work_once(db, watch, pipeline, nonces, position, ret_has_more, err));
    for (int piece = 1; piece < TIDE_SQLITE_PRUNE_PIECES && *ret_has_more; piece++) {
        (void)usleep(PIECE_PAUSE_US);
        tide_status status = work_once(db, watch, pipeline, nonces, position, ret_has_more, err);
        if (status == TIDE_TIMEOUT) {
            break; /* a writer has the lock; the position is written */
        }
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

tide_status tide_sqlite_confirm(struct tide_sqlite_confirm *confirm, sqlite3 *db,
                                struct tide_sqlite_watch *watch, tide_str pipeline,
                                struct tide_sqlite_nonces *nonces, int64_t position,
                                struct tide_error *err)
{
    if (position <= confirm->confirmed && !confirm->has_more) {
        return TIDE_OK;
    }
    int64_t start_us = tide_clock_monotonic_us();
    if (start_us < confirm->next_work_us) {
        return tide_fail_retriable(err, TIDE_TIMEOUT, "the last confirm was just now");
    }
    tide_sqlite_set_patience(db, BUSY_MS);
    bool has_more = false;
    tide_status status = work_in_pieces(db, watch, pipeline, nonces, position, &has_more, err);
    tide_sqlite_set_patience(db, TIDE_SQLITE_LOG_PATIENCE_MS);
    int64_t now_us = tide_clock_monotonic_us();
    int64_t pause_us = PRUNE_SHARE * (now_us - start_us);
    confirm->next_work_us = now_us + (has_more && pause_us < PAUSE_US ? pause_us : PAUSE_US);
    TIDE_TRY(status);
    if (nonces->is_next_saved) {
        tide_sqlite_nonces_step(nonces);
    }
    confirm->confirmed = position > confirm->confirmed ? position : confirm->confirmed;
    confirm->has_more = has_more;
    return has_more ? tide_fail_retriable(err, TIDE_TIMEOUT, "more of the log is left to prune")
                    : TIDE_OK;
}
