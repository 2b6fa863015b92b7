#include "source/sqlite/sqlite_files.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"

/* SQLite's own, of 1000 pages, belongs to the application's commits. Ours only keep a log short
 * that grows while nobody else commits: seldom, since each is a moment in which files could be
 * replaced unseen. */
#define CHECKPOINT_PAGES 16000

static tide_str wal_path(const struct tide_sqlite_files *files)
{
    return tide_str_from(sqlite3_filename_wal(sqlite3_db_filename(files->db, "main")));
}

static tide_str shm_path(const struct tide_sqlite_files *files, struct tide_buf *buf)
{
    tide_buf_printf(buf, "%s-shm", sqlite3_db_filename(files->db, "main"));
    return tide_str_from(tide_buf_cstr(buf));
}

static struct tide_sqlite_beside look(tide_str path)
{
    struct stat st;
    bool is_there = stat(path.ptr, &st) == 0;
    return is_there ? (struct tide_sqlite_beside){true, st.st_dev, st.st_ino}
                    : (struct tide_sqlite_beside){0};
}

static bool is_other(const struct tide_sqlite_beside *known, tide_str path)
{
    if (!known->is_known) {
        return false;
    }
    struct tide_sqlite_beside now = look(path);
    return !now.is_known || now.device != known->device || now.inode != known->inode;
}

static bool is_in_wal_mode(sqlite3 *db)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    struct tide_error ignored;
    bool has_row = false;
    return tide_sqlite_prepare(db, TIDE_STR("PRAGMA main.journal_mode"), &stmt, &ignored) ==
               TIDE_OK &&
           tide_sqlite_step(stmt, &has_row, &ignored) == TIDE_OK && has_row &&
           tide_str_equal(tide_sqlite_column_str(stmt, 0), TIDE_STR("wal"));
}

/* Another program may turn WAL on at any time, but not off while we have it open. */
static void remember(struct tide_sqlite_files *files)
{
    struct tide_sqlite_beside wal = files->is_wal ? files->wal : look(wal_path(files));
    if (files->is_wal || !wal.is_known || !is_in_wal_mode(files->db)) {
        return;
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    files->is_wal = true;
    files->wal = wal;
    files->shm = look(shm_path(files, &buf));
}

static bool has_moved(sqlite3 *db)
{
    int moved = 0;
    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

/* What is not there any more, or another one; empty: nothing. */
static tide_str changed_file(const struct tide_sqlite_files *files, struct tide_buf *buf)
{
    if (has_moved(files->db)) {
        return tide_str_from(sqlite3_db_filename(files->db, "main"));
    }
    tide_str wal = wal_path(files);
    if (is_other(&files->wal, wal)) {
        return wal;
    }
    tide_str shm = shm_path(files, buf);
    return is_other(&files->shm, shm) ? shm : TIDE_STR("");
}

static bool are_others(const struct tide_sqlite_files *files)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    return changed_file(files, &buf).len > 0;
}

/* Compares only: a hook must not run SQL, as remembering does. */
static int before_commit(void *context)
{
    return are_others(context) ? 1 : 0;
}

static int after_commit(void *context, sqlite3 *db, const char *name, int page_count)
{
    if (page_count >= CHECKPOINT_PAGES && !are_others(context)) {
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    return SQLITE_OK;
}

void tide_sqlite_files_open(struct tide_sqlite_files *files, sqlite3 *db)
{
    *files = (struct tide_sqlite_files){.db = db};
    (void)sqlite3_commit_hook(db, before_commit, files);
    (void)sqlite3_wal_hook(db, after_commit, files); /* in place of SQLite's checkpoints */
    remember(files);
}

tide_status tide_sqlite_files_check(struct tide_sqlite_files *files, struct tide_error *err)
{
    remember(files);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    tide_str changed = changed_file(files, &buf);
    if (changed.len == 0) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_STALE,
                     "%.*s was replaced or removed while it was open, as by a restore; nothing of "
                     "ours was written into what is there now; start again, which looks whether "
                     "that continues the copy",
                     TIDE_STR_ARG(changed));
}

void tide_sqlite_files_close(struct tide_sqlite_files *files)
{
    if (files->db == NULL) {
        return;
    }
    remember(files);
    bool may_write = sqlite3_db_readonly(files->db, "main") == 0;
    if (!may_write || are_others(files)) {
        (void)sqlite3_db_config(files->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    tide_sqlite_db_close(&files->db);
}
