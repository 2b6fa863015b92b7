#include "source/sqlite/sqlite_watch.h"

#include "base/alloc.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_installed.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct tide_sqlite_watch {
    sqlite3 *db;
    struct tide_arena arena;
    const char *path;
    tide_str pipeline;
    char source_id[TIDE_SQLITE_HEX_LEN + 1];
    struct stat file; /* what the path named when the copy started */
    sqlite3_stmt *version_stmt;
    sqlite3_stmt *row_stmt;
    int64_t schema_version; /* that was found good; -1: none yet */
};

static void free_watch_ptr(struct tide_sqlite_watch **watch)
{
    tide_sqlite_watch_free(*watch);
}

void tide_sqlite_watch_free(struct tide_sqlite_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    tide_sqlite_stmt_done(&watch->version_stmt);
    tide_sqlite_stmt_done(&watch->row_stmt);
    tide_arena_done(&watch->arena);
    free(watch);
}

#define ROW_SQL                                                                                    \
    "SELECT p.nonce, s.v FROM main.\"" TIDE_SQLITE_PIPELINES                                       \
    "\" AS p LEFT JOIN main.\"" TIDE_SQLITE_STATE "\" AS s ON s.k = 'source_id' "                  \
    "WHERE p.name = ?1"

tide_status tide_sqlite_watch_new(sqlite3 *db, const char *path, tide_str pipeline,
                                  const struct tide_sqlite_installed *installed,
                                  struct tide_sqlite_watch **ret_watch, struct tide_error *err)
{
    TIDE_CLEANUP(free_watch_ptr) struct tide_sqlite_watch *watch = tide_alloc(1, sizeof(*watch));
    watch->db = db;
    watch->path = tide_arena_cstr(&watch->arena, tide_str_from(path));
    watch->pipeline = tide_arena_str(&watch->arena, pipeline);
    watch->schema_version = -1;
    memcpy(watch->source_id, installed->source_id, sizeof(watch->source_id));
    if (stat(path, &watch->file) != 0) {
        return tide_fail(err, TIDE_IO, "cannot look at %s: %s", path, strerror(errno));
    }
    TIDE_TRY(
        tide_sqlite_prepare(db, TIDE_STR("PRAGMA main.schema_version"), &watch->version_stmt, err));
    TIDE_TRY(tide_sqlite_prepare(db, TIDE_STR(ROW_SQL), &watch->row_stmt, err));
    tide_sqlite_bind_str(watch->row_stmt, 1, watch->pipeline);
    *ret_watch = watch;
    watch = NULL;
    return TIDE_OK;
}

static tide_status compare_row(struct tide_sqlite_watch *watch, bool is_there,
                               const tide_str *nonces, size_t nonce_count, struct tide_error *err)
{
    if (!is_there) {
        return tide_fail(
            err, TIDE_STALE,
            "pipeline %.*s was detached from the database while it ran; " TIDE_SQLITE_ANEW,
            TIDE_STR_ARG(watch->pipeline));
    }
    tide_str source_id = tide_sqlite_column_str(watch->row_stmt, 1);
    if (!tide_str_equal(source_id, tide_str_from(watch->source_id))) {
        return tide_fail(
            err, TIDE_STALE,
            "the log in the database is another one than this copy began with: it was "
            "emptied, made anew, or comes from another database; " TIDE_SQLITE_DETACH_ANEW);
    }
    tide_str nonce = tide_sqlite_column_str(watch->row_stmt, 0);
    bool is_expected = nonce_count == 0;
    for (size_t i = 0; i < nonce_count; i++) {
        is_expected = is_expected || tide_str_equal(nonce, nonces[i]);
    }
    if (!is_expected) {
        return tide_fail(err, TIDE_STALE,
                         "the database is not in the state in which pipeline %.*s left it: it was "
                         "restored from a backup, or another process runs under the same name; "
                         "stop the other one, or " TIDE_SQLITE_ANEW,
                         TIDE_STR_ARG(watch->pipeline));
    }
    return TIDE_OK;
}

tide_status tide_sqlite_watch_row(struct tide_sqlite_watch *watch, const tide_str *nonces,
                                  size_t nonce_count, struct tide_error *err)
{
    bool is_there = false;
    tide_status status = tide_sqlite_step(watch->row_stmt, &is_there, err);
    if (status == TIDE_OK) {
        status = compare_row(watch, is_there, nonces, nonce_count, err);
    }
    (void)sqlite3_reset(watch->row_stmt);
    return status;
}

static tide_status read_version(struct tide_sqlite_watch *watch, int64_t *ret_version,
                                struct tide_error *err)
{
    bool is_row = false;
    tide_status status = tide_sqlite_step(watch->version_stmt, &is_row, err);
    if (status == TIDE_OK) {
        *ret_version = is_row ? sqlite3_column_int64(watch->version_stmt, 0) : 0;
    }
    (void)sqlite3_reset(watch->version_stmt);
    return status;
}

tide_status tide_sqlite_watch_settle(struct tide_sqlite_watch *watch, struct tide_error *err)
{
    return read_version(watch, &watch->schema_version, err);
}

/* Where our tables are gone the row cannot be looked for. */
static tide_status look_at_tables(struct tide_sqlite_watch *watch, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_whole_check(watch->db, err));
    return tide_sqlite_version_check(watch->db, err);
}

tide_status tide_sqlite_watch_look(struct tide_sqlite_watch *watch, const tide_str *nonces,
                                   size_t nonce_count, bool *ret_has_moved, struct tide_error *err)
{
    int64_t version = 0;
    TIDE_TRY(read_version(watch, &version, err));
    bool has_moved = version != watch->schema_version;
    if (has_moved) {
        TIDE_TRY(look_at_tables(watch, err));
    }
    TIDE_TRY(tide_sqlite_watch_row(watch, nonces, nonce_count, err));
    *ret_has_moved = has_moved;
    return TIDE_OK;
}

tide_status tide_sqlite_watch_file(struct tide_sqlite_watch *watch, struct tide_error *err)
{
    struct stat now;
    int has_moved = 0;
    if (stat(watch->path, &now) != 0) {
        return tide_fail(
            err, TIDE_STALE,
            "the database %s is not there any more (%s); put it back, or " TIDE_SQLITE_ANEW,
            watch->path, strerror(errno));
    }
    (void)sqlite3_file_control(watch->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    if (has_moved != 0 || now.st_dev != watch->file.st_dev || now.st_ino != watch->file.st_ino) {
        return tide_fail(err, TIDE_STALE,
                         "%s is another file than the database that was opened: it was replaced; "
                         "start again, which looks whether the new one continues the copy",
                         watch->path);
    }
    return TIDE_OK;
}
