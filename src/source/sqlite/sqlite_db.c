#include "source/sqlite/sqlite_db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

void tide_sqlite_db_close(sqlite3 **db)
{
    (void)sqlite3_close_v2(*db);
    *db = NULL;
}

void tide_sqlite_stmt_done(sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
    *stmt = NULL;
}

/* A file that SQLite would make anew is none that can be followed. */
static tide_status require_file(const char *path, struct tide_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return tide_fail(err, TIDE_IO, "cannot open the SQLite database %s: %s", path,
                         strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_INVALID, "%s is not a file; give the path of an SQLite database",
                         path);
    }
    return TIDE_OK;
}

bool tide_sqlite_may_write_file(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

bool tide_sqlite_may_write_folder(const char *path)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    return faccessat(AT_FDCWD, tide_buf_cstr(&folder), W_OK, AT_EACCESS) == 0;
}

static void append_uri(struct tide_buf *uri, const char *path)
{
    tide_buf_append_str(uri, TIDE_STR("file:"));
    tide_buf_append_str(uri, path[0] == '/' ? TIDE_STR("//") : TIDE_STR("./"));
    for (; *path != '\0'; path++) {
        bool is_plain = strchr("?#%", *path) == NULL;
        tide_buf_printf(uri, is_plain ? "%c" : "%%%02x", (unsigned char)*path);
    }
    tide_buf_append_str(uri, TIDE_STR("?immutable=1"));
}

/* SQLite takes some names for more than a path: "file:…" where URIs are on, ":memory:". */
static int open_path(const char *path, enum tide_sqlite_access access, sqlite3 **ret_db)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    int flags = access == TIDE_SQLITE_READ_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    if (access == TIDE_SQLITE_AT_REST) {
        append_uri(&name, path);
        flags |= SQLITE_OPEN_URI;
    } else {
        tide_buf_append_str(&name, path[0] == '/' ? TIDE_STR("") : TIDE_STR("./"));
        tide_buf_append_str(&name, tide_str_from(path));
    }
    return sqlite3_open_v2(tide_buf_cstr(&name), ret_db, flags | SQLITE_OPEN_NOMUTEX, NULL);
}

/* SQLite's own handler waits longer and longer, up to 0.1 s at a time, and starves beside a writer
 * that takes the lock again at once. */
static int wait_a_little(void *context, int count)
{
    if (count >= (int)(intptr_t)context) {
        return 0;
    }
    (void)usleep(1000);
    return 1;
}

void tide_sqlite_set_patience(sqlite3 *db, int wait_ms)
{
    (void)sqlite3_busy_handler(db, wait_a_little, (void *)(intptr_t)wait_ms);
}

static int wait_until_woken(void *context, int count)
{
    const struct tide_sqlite_patience *patience = context;
    if (patience->waker == NULL) {
        return wait_a_little((void *)(intptr_t)patience->wait_ms, count);
    }
    return count < patience->wait_ms &&
           !tide_waker_look(patience->waker, tide_clock_deadline_us(1000));
}

void tide_sqlite_set_interruptible(sqlite3 *db, const struct tide_sqlite_patience *patience)
{
    (void)sqlite3_busy_handler(db, wait_until_woken, (void *)(uintptr_t)patience);
}

/* What an interrupted writer left must be mended by who may write: our own writing connection does
 * so at its next look. */
static bool awaits_recovery(int rc)
{
    return rc == SQLITE_READONLY_RECOVERY || rc == SQLITE_READONLY_ROLLBACK ||
           rc == SQLITE_READONLY_CANTLOCK || rc == SQLITE_READONLY_CANTINIT;
}

static tide_status fail_plainly(int rc, const char *text, const char *doing, struct tide_error *err)
{
    switch (awaits_recovery(rc) ? SQLITE_BUSY : rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "%s: another process kept the database locked for longer than "
                                   "we wait (%s); end its transaction and try again",
                                   doing, text);
    case SQLITE_READONLY:
        return tide_fail(err, TIDE_IO,
                         "%s: the database cannot be written (%s); give us write access to the "
                         "file and its directory",
                         doing, text);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return tide_fail(err, TIDE_IO,
                         "%s: %s; give us access to the file and its directory, for writing too",
                         doing, text);
    case SQLITE_NOTADB:
        return tide_fail(err, TIDE_CORRUPT, "%s: the file is not an SQLite database, or encrypted",
                         doing);
    case SQLITE_CORRUPT:
        return tide_fail(err, TIDE_CORRUPT,
                         "%s: the database is damaged (%s); look with PRAGMA integrity_check",
                         doing, text);
    case SQLITE_INTERRUPT:
        return tide_fail(err, TIDE_CANCELLED, "%s: it was cancelled", doing);
    case SQLITE_FULL: /* room may be made at any moment; what was not written is still to do */
        return tide_fail_retriable(err, TIDE_IO, "%s: %s; make room there", doing, text);
    case SQLITE_SCHEMA:
        return tide_fail_retriable(err, TIDE_IO, "%s: %s", doing, text);
    default:
        return tide_fail(err, TIDE_IO, "%s: %s", doing, text);
    }
}

static tide_status open_patiently(const char *path, enum tide_sqlite_access access,
                                  const struct tide_sqlite_patience *patience, sqlite3 **ret_db,
                                  struct tide_error *err)
{
    TIDE_TRY(require_file(path, err));
    TIDE_CLEANUP(tide_sqlite_db_close) sqlite3 *db = NULL;
    int rc = open_path(path, access, &db);
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(db, 1);
        tide_sqlite_set_interruptible(db, patience);
        (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        /* Reads the header: a file that is no database is found here. */
        rc = sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        const char *text = db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
        (void)fail_plainly(rc, text, "cannot be opened", err);
        return tide_fail_context(err, "%s", path);
    }
    *ret_db = db;
    db = NULL;
    return TIDE_OK;
}

tide_status tide_sqlite_db_open(const char *path, enum tide_sqlite_access access,
                                int busy_timeout_ms, sqlite3 **ret_db, struct tide_error *err)
{
    const struct tide_sqlite_patience patience = {.wait_ms = busy_timeout_ms};
    TIDE_TRY(open_patiently(path, access, &patience, ret_db, err));
    tide_sqlite_set_patience(*ret_db, busy_timeout_ms);
    return TIDE_OK;
}

static bool is_beside(const char *path, const char *suffix, off_t min_size)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_buf_printf(&name, "%s%s", path, suffix);
    struct stat st;
    return stat(tide_buf_cstr(&name), &st) == 0 && st.st_size >= min_size;
}

/* Without a WAL that holds anything the file is all there is. */
static bool has_wal(const char *path)
{
    return is_beside(path, "-wal", 1);
}

/* The header's version for readers; read by SQLite's own file, since who closes another one of the
 * same file gives up the locks of the whole process. */
static bool is_wal_file(sqlite3 *db)
{
    enum {
        READ_VERSION_AT = 19,
        READ_VERSION_WAL = 2
    };

    sqlite3_file *file = NULL;
    char version = 0;
    return sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
           file != NULL && file->pMethods != NULL &&
           file->pMethods->xRead(file, &version, 1, READ_VERSION_AT) == SQLITE_OK &&
           version == READ_VERSION_WAL;
}

/* Reading a database in WAL mode makes -wal and -shm beside it, with the file's own rights: where
 * these let nobody write, the two would stay in everybody's way. Before they are there the file is
 * all there is, and nobody has it open. */
static bool open_untouched(const char *path, sqlite3 **ret_db)
{
    struct tide_error ignored;
    TIDE_CLEANUP(tide_sqlite_db_close) sqlite3 *db = NULL;
    if (tide_sqlite_may_write_file(path) || is_beside(path, "-wal", 0) ||
        is_beside(path, "-shm", 0) ||
        tide_sqlite_db_open(path, TIDE_SQLITE_AT_REST, 0, &db, &ignored) != TIDE_OK ||
        !is_wal_file(db)) {
        return false;
    }
    *ret_db = db;
    db = NULL;
    return true;
}

tide_status tide_sqlite_db_open_best(const char *path, const struct tide_sqlite_patience *patience,
                                     sqlite3 **ret_db, struct tide_error *err)
{
    if (open_untouched(path, ret_db)) {
        return TIDE_OK;
    }
    tide_status status = open_patiently(path, TIDE_SQLITE_READ_WRITE, patience, ret_db, err);
    if (status != TIDE_IO ||
        (tide_sqlite_may_write_file(path) && tide_sqlite_may_write_folder(path))) {
        return status;
    }
    struct tide_error ignored;
    if (open_patiently(path, TIDE_SQLITE_READ_ONLY, patience, ret_db, &ignored) == TIDE_OK) {
        return TIDE_OK;
    }
    if (!has_wal(path) &&
        open_patiently(path, TIDE_SQLITE_AT_REST, patience, ret_db, &ignored) == TIDE_OK) {
        return TIDE_OK;
    }
    return status; /* what kept us from writing says more */
}

static const char *path_of(sqlite3 *db)
{
    const char *path = db == NULL ? NULL : sqlite3_db_filename(db, "main");
    return path == NULL || path[0] == '\0' ? "the database" : path;
}

tide_status tide_sqlite_require_writable(sqlite3 *db, struct tide_error *err)
{
    if (sqlite3_db_readonly(db, "main") == 0) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_IO,
                     "%s: the database cannot be written; give us write access to the file and its "
                     "directory",
                     path_of(db));
}

/* What SQLite has seen of it, and what the hook of sqlite_files.h has. */
static bool has_other_files(int rc)
{
    return rc == SQLITE_READONLY_DBMOVED || rc == SQLITE_CONSTRAINT_COMMITHOOK;
}

tide_status tide_sqlite_db_fail(sqlite3 *db, int rc, const char *doing, struct tide_error *err)
{
    if (has_other_files(rc)) {
        return tide_fail(err, TIDE_STALE,
                         "%s or its -wal or -shm file was replaced or removed while it was open, "
                         "as by a restore; nothing of ours was written into what is there now; "
                         "start again, which looks whether that continues the copy",
                         path_of(db));
    }
    (void)fail_plainly(rc, sqlite3_errmsg(db), doing, err);
    return tide_fail_context(err, "%s", path_of(db));
}

tide_status tide_sqlite_prepare(sqlite3 *db, tide_str sql, sqlite3_stmt **ret_stmt,
                                struct tide_error *err)
{
    TIDE_ASSERT(sql.len < INT_MAX);
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v3(db, sql.ptr, (int)sql.len, 0, &stmt, NULL);
    if (rc != SQLITE_OK) {
        return tide_sqlite_db_fail(db, rc, "asking SQLite", err);
    }
    *ret_stmt = stmt;
    return TIDE_OK;
}

tide_status tide_sqlite_exec(sqlite3 *db, const char *sql, struct tide_error *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_sqlite_db_fail(db, rc, "asking SQLite", err);
}

tide_status tide_sqlite_execf(sqlite3 *db, struct tide_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *sql = sqlite3_vmprintf(fmt, args);
    va_end(args);
    TIDE_ASSERT(sql != NULL);
    tide_status status = tide_sqlite_exec(db, sql, err);
    sqlite3_free(sql);
    return status;
}

tide_status tide_sqlite_begin_write(sqlite3 *db, struct tide_error *err)
{
    int64_t before_us = tide_clock_monotonic_us();
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        return TIDE_OK;
    }
    tide_status status = tide_sqlite_db_fail(db, rc, "taking the write lock", err);
    if (status == TIDE_TIMEOUT) {
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "%s: another process kept the database locked for longer than "
                                   "%.1f s; end its transaction and try again",
                                   path_of(db),
                                   (double)(tide_clock_monotonic_us() - before_us) / 1e6);
    }
    return status;
}

void tide_sqlite_rollback(sqlite3 **db)
{
    if (*db != NULL && sqlite3_get_autocommit(*db) == 0) {
        (void)sqlite3_exec(*db, "ROLLBACK", NULL, NULL, NULL);
    }
}

tide_status tide_sqlite_step(sqlite3_stmt *stmt, bool *ret_is_row, struct tide_error *err)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        tide_status status =
            tide_sqlite_db_fail(sqlite3_db_handle(stmt), rc, "reading from SQLite", err);
        (void)sqlite3_reset(stmt); /* one that was refused a lock stays open else */
        return status;
    }
    *ret_is_row = rc == SQLITE_ROW;
    return TIDE_OK;
}

tide_status tide_sqlite_int(sqlite3 *db, const char *sql, int64_t otherwise, int64_t *ret_value,
                            struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db, tide_str_from(sql), &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    bool has_value = is_row && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
    *ret_value = has_value ? sqlite3_column_int64(stmt, 0) : otherwise;
    return TIDE_OK;
}

void tide_sqlite_bind_str(sqlite3_stmt *stmt, int place, tide_str text)
{
    /* A NULL pointer would bind NULL. */
    const char *ptr = text.ptr != NULL ? text.ptr : "";
    int rc = sqlite3_bind_text64(stmt, place, ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
    TIDE_ASSERT(rc == SQLITE_OK);
}

tide_str tide_sqlite_column_str(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL) {
        return (tide_str){NULL, 0};
    }
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    TIDE_ASSERT(text != NULL);
    return (tide_str){text, (size_t)sqlite3_column_bytes(stmt, column)};
}

static void append_quoted(struct tide_buf *buf, tide_str text, char quote)
{
    tide_buf_append_char(buf, quote);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == quote) {
            tide_buf_append_char(buf, quote);
        }
        tide_buf_append_char(buf, text.ptr[i]);
    }
    tide_buf_append_char(buf, quote);
}

void tide_sqlite_append_name(struct tide_buf *buf, tide_str name)
{
    append_quoted(buf, name, '"');
}

void tide_sqlite_append_text(struct tide_buf *buf, tide_str text)
{
    append_quoted(buf, text, '\'');
}
