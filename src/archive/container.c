#include "archive/container.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive_db.h"
#include "archive/gather_vfs.h"
#include "archive/schema.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"

#define HEADER_BYTES     100
#define WAIT_MS          5000 /* for another's lock */
#define EDIT_WAIT_MS     1000
#define CHECKPOINT_BYTES (4 * TIDE_MIB)
#define SHRINK_PAGES     4096 /* in a transaction */

tide_status tide_archive_require_one_name(const char *path, uint64_t names, struct tide_error *err)
{
    return names <= 1
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "%s has %" PRIu64 " names (hard links), and an archive is written by "
                           "one only: stop what writes it and remove the others (`find DIRECTORY "
                           "-samefile %s` lists them), or make a copy with `tidemark archive copy`",
                           path, names, path);
}

static tide_status require_file(const char *path, bool is_writing, struct tide_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return tide_fail(err, errno == ENOENT || errno == ENOTDIR ? TIDE_INVALID : TIDE_IO,
                         "cannot open the archive %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_INVALID, "%s is not a file; give the path of an archive", path);
    }
    return is_writing ? tide_archive_require_one_name(path, st.st_nlink, err) : TIDE_OK;
}

static uint32_t u32be(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/*
 * Reads the header through SQLite's own file, before any statement: to open and close the file
 * ourselves would take away the locks that this process may hold on it.
 */
static tide_status read_stamp(struct tide_archive *archive, struct tide_archive_stamp *ret_stamp,
                              struct tide_error *err)
{
    unsigned char header[HEADER_BYTES] = {0};
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(archive->db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file);
    if (rc == SQLITE_OK && file != NULL && file->pMethods != NULL) {
        rc = file->pMethods->xRead(file, header, HEADER_BYTES, 0);
    }
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ) {
        return tide_archive_fail(archive, rc, err);
    }
    *ret_stamp = (struct tide_archive_stamp){
        .is_archive = rc == SQLITE_OK && memcmp(header, "SQLite format 3", 16) == 0 &&
                      u32be(header + 68) == TIDE_ARCHIVE_APPLICATION_ID,
        .version = u32be(header + 60),
    };
    return TIDE_OK;
}

enum medium {
    MEDIUM_USUAL,
    MEDIUM_READ_ONLY, /* nobody can write there: no lock is taken, and no file made beside it */
};

/* SQLite takes some names for more than a path: ":memory:", and "file:…" where URIs are on. */
static void append_name(struct tide_buf *name, const char *path, enum medium medium)
{
    const char *here = path[0] == '/' ? "" : "./";
    if (medium == MEDIUM_USUAL) {
        tide_buf_printf(name, "%s%s", here, path);
        return;
    }
    tide_buf_printf(name, "file:%s", here);
    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || strchr("-._~/", c) != NULL;
        tide_buf_printf(name, is_plain ? "%c" : "%%%02X", c);
    }
    tide_buf_append_str(name, TIDE_STR("?immutable=1"));
}

static tide_status connect(const char *path, enum medium medium, bool is_writing,
                           struct tide_archive **ret_archive, struct tide_error *err)
{
    TIDE_TRY(require_file(path, is_writing, err));
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    append_name(&name, path, medium);
    TIDE_CLEANUP(tide_archive_close_ptr)
    struct tide_archive *archive = tide_alloc(1, sizeof(*archive));
    archive->path = tide_strndup(path, strlen(path));
    archive->doing = "opening";
    int flags = (is_writing ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX |
                (medium == MEDIUM_READ_ONLY ? SQLITE_OPEN_URI : 0);
    int rc = sqlite3_open_v2(tide_buf_cstr(&name), &archive->db, flags,
                             is_writing ? tide_gather_vfs() : NULL);
    if (rc != SQLITE_OK) {
        return tide_archive_fail(archive, rc, err);
    }
    *ret_archive = archive;
    archive = NULL;
    return TIDE_OK;
}

bool tide_archive_has_moved(const struct tide_archive *archive)
{
    int moved = 0;
    (void)sqlite3_file_control(archive->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

/*
 * A reader that is the last leaves an empty log and its index beside the file, which it may not
 * remove, since it does not write. A connection that may does so when it is closed, if nobody else
 * has the archive open; with an empty log it has nothing to write into the file.
 */
static void remove_empty_log(const char *path)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf wal = {0};
    struct stat st;
    sqlite3 *db = NULL;
    tide_buf_printf(&wal, "%s-wal", path);
    if (stat(tide_buf_cstr(&wal), &st) != 0 || st.st_size > 0) {
        return;
    }
    append_name(&name, path, MEDIUM_USUAL);
    if (sqlite3_open_v2(tide_buf_cstr(&name), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) == SQLITE_OK) {
        (void)sqlite3_exec(db, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
    }
    (void)sqlite3_close_v2(db);
}

void tide_archive_close(struct tide_archive *archive)
{
    if (archive == NULL) {
        return;
    }
    bool is_last_maybe = archive->is_open && archive->access == TIDE_ARCHIVE_READ &&
                         !archive->is_immutable && !tide_archive_has_moved(archive);
    (void)sqlite3_close_v2(archive->db);
    if (is_last_maybe) {
        remove_empty_log(archive->path);
    }
    free(archive->path);
    free(archive);
}

void tide_archive_close_ptr(struct tide_archive **archive)
{
    tide_archive_close(*archive);
    *archive = NULL;
}

tide_status tide_archive_sniff(const char *path, struct tide_archive_stamp *ret_stamp,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(connect(path, MEDIUM_USUAL, false, &archive, err));
    return read_stamp(archive, ret_stamp, err);
}

static tide_status fail_no_archive(const char *path, const char *why, struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID, "%s is not an archive: %s; give the path of an archive",
                     path, why);
}

static bool has_beside(const char *path, const char *suffix)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_buf_printf(&name, "%s%s", path, suffix);
    struct stat st;
    return stat(tide_buf_cstr(&name), &st) == 0 && st.st_size > 0;
}

static bool has_wal(const char *path)
{
    return has_beside(path, "-wal");
}

/* What a kill leaves of an archive that is being filled: see tide_archive_set_filling. */
static bool has_journal(const char *path)
{
    return has_beside(path, "-journal");
}

static tide_status fail_version(const char *path, int64_t version, struct tide_error *err)
{
    return tide_fail(err, TIDE_UNSUPPORTED,
                     "%s is an archive of version %" PRId64
                     "; this program writes and reads version %d: take one that knows it",
                     path, version, TIDE_ARCHIVE_VERSION);
}

/*
 * Judges by the header, before any statement: a statement makes files beside a foreign database,
 * and a connection for writing folds its log in when it is closed. A header is not all there is
 * where a log lies beside the file; then a connection that cannot change anything asks first.
 */
static tide_status judge_header(struct tide_archive *archive, struct tide_error *err)
{
    struct tide_archive_stamp stamp = {0};
    TIDE_TRY(read_stamp(archive, &stamp, err));
    if (stamp.is_archive && stamp.version == TIDE_ARCHIVE_VERSION) {
        return TIDE_OK;
    }
    if (has_wal(archive->path)) {
        TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *asked = NULL;
        return archive->access == TIDE_ARCHIVE_READ
                   ? TIDE_OK
                   : tide_archive_open(archive->path, TIDE_ARCHIVE_READ, &asked, err);
    }
    return stamp.is_archive
               ? fail_version(archive->path, stamp.version, err)
               : fail_no_archive(archive->path, "its header has not the mark of one", err);
}

static tide_status gate(struct tide_archive *archive, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(archive->db, "PRAGMA application_id", -1, &stmt, NULL);
    rc = rc == SQLITE_OK ? sqlite3_step(stmt) : rc;
    if ((rc & 0xff) == SQLITE_NOTADB) {
        return fail_no_archive(archive->path, "it is no SQLite database, or encrypted", err);
    }
    if (rc != SQLITE_ROW) {
        return tide_archive_fail(archive, rc, err);
    }
    int64_t id = sqlite3_column_int64(stmt, 0);
    if (id == 0) {
        return fail_no_archive(archive->path, "it is a plain SQLite database", err);
    }
    if (id != TIDE_ARCHIVE_APPLICATION_ID) {
        return fail_no_archive(archive->path, "it is another application's SQLite database", err);
    }
    bool is_any = false;
    int64_t version = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &version, "PRAGMA user_version", ""));
    if (version != TIDE_ARCHIVE_VERSION) {
        return fail_version(archive->path, version, err);
    }
    return TIDE_OK;
}

/* A file is not trusted: neither triggers nor views nor functions in its schema are run. */
static void harden(struct tide_archive *archive)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW};
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        (void)sqlite3_db_config(archive->db, off[i], 0, NULL);
    }
    (void)sqlite3_db_config(archive->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_extended_result_codes(archive->db, 1);
    (void)sqlite3_limit(archive->db, SQLITE_LIMIT_LENGTH, TIDE_ARCHIVE_BLOB_BYTES_MAX);
    (void)sqlite3_busy_timeout(archive->db,
                               archive->access == TIDE_ARCHIVE_EDIT ? EDIT_WAIT_MS : WAIT_MS);
}

static tide_status require_wal(struct tide_archive *archive, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(archive, &stmt, err, "PRAGMA journal_mode = WAL", ""));
    bool is_row = false;
    TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
    tide_str mode = tide_archive_column_bytes(stmt, 0);
    if (!is_row || !tide_str_equal(mode, TIDE_STR("wal"))) {
        return tide_fail(err, TIDE_IO,
                         "%s: opening: its file system does not take a write-ahead log; keep "
                         "archives on a local file system",
                         archive->path);
    }
    return TIDE_OK;
}

tide_status tide_archive_set_up_writing(struct tide_archive *archive, int cache_kib,
                                        struct tide_error *err)
{
    bool is_any = false;
    int64_t page_size = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &page_size, "PRAGMA page_size", ""));
    char sql[160];
    (void)snprintf(sql, sizeof(sql),
                   "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
                   "PRAGMA wal_autocheckpoint = %" PRId64 "; PRAGMA cache_size = -%d",
                   (int64_t)CHECKPOINT_BYTES / (page_size > 0 ? page_size : 4096), cache_kib);
    int rc = sqlite3_exec(archive->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(archive, rc, err);
}

static tide_status set_up(struct tide_archive *archive, struct tide_error *err)
{
    if (archive->access == TIDE_ARCHIVE_READ) {
        int rc = sqlite3_exec(archive->db, "PRAGMA cache_size = -16384; PRAGMA query_only = 1",
                              NULL, NULL, NULL);
        return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(archive, rc, err);
    }
    /* A file that was copied out of another is in the older mode. */
    TIDE_TRY(require_wal(archive, err));
    return tide_archive_set_up_writing(archive,
                                       archive->access == TIDE_ARCHIVE_EDIT ? 262144 : 16384, err);
}

/* Alone: the lock is taken with the first read and kept. */
static tide_status lock_out_others(struct tide_archive *archive, struct tide_error *err)
{
    return archive->access == TIDE_ARCHIVE_EDIT
               ? tide_archive_run(archive, err, "PRAGMA locking_mode = EXCLUSIVE", "")
               : TIDE_OK;
}

static tide_status open_on(const char *path, enum medium medium, enum tide_archive_access access,
                           struct tide_archive **ret_archive, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(connect(path, medium, access != TIDE_ARCHIVE_READ, &archive, err));
    archive->access = access;
    TIDE_TRY(judge_header(archive, err));
    harden(archive);
    TIDE_TRY(lock_out_others(archive, err));
    TIDE_TRY(gate(archive, err));
    TIDE_TRY(tide_archive_schema_probe(archive, err));
    TIDE_TRY(set_up(archive, err));
    archive->is_open = true;
    archive->is_immutable = medium == MEDIUM_READ_ONLY;
    *ret_archive = archive;
    archive = NULL;
    return TIDE_OK;
}

static bool may_write_folder(const char *path)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    return faccessat(AT_FDCWD, tide_buf_cstr(&folder), W_OK, AT_EACCESS) == 0;
}

/* Takes back what was half written when a writer was killed, as SQLite does at the first read of
 * a connection that may write. Of a writer that lives nothing is taken. */
static tide_status take_back(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(connect(path, MEDIUM_USUAL, true, &archive, err));
    archive->access = TIDE_ARCHIVE_WRITE;
    TIDE_TRY(judge_header(archive, err));
    harden(archive);
    return gate(archive, err);
}

static bool may_write(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 && may_write_folder(path);
}

tide_status tide_archive_open(const char *path, enum tide_archive_access access,
                              struct tide_archive **ret_archive, struct tide_error *err)
{
    struct tide_error other;
    tide_status status = open_on(path, MEDIUM_USUAL, access, ret_archive, err);
    if (status == TIDE_INVALID && access == TIDE_ARCHIVE_READ && has_journal(path) &&
        take_back(path, &other) == TIDE_OK) {
        status = open_on(path, MEDIUM_USUAL, access, ret_archive, err);
    }
    bool is_out_of_reach = status == TIDE_IO || status == TIDE_INVALID;
    if (status == TIDE_IO && access != TIDE_ARCHIVE_READ && !may_write(path)) {
        return tide_fail(err, TIDE_INVALID,
                         "%s cannot be written; give us write access to it and to its directory",
                         path);
    }
    /* With a log beside it the file is not all there is, and would be read short. */
    if (!is_out_of_reach || access != TIDE_ARCHIVE_READ || may_write_folder(path) ||
        has_wal(path) || has_journal(path)) {
        return status;
    }
    return open_on(path, MEDIUM_READ_ONLY, access, ret_archive, &other) == TIDE_OK ? TIDE_OK
                                                                                   : status;
}

tide_status tide_archive_snapshot_begin(struct tide_archive *archive, struct tide_error *err)
{
    /* Inside a transaction of its own a handle sees that one's state. */
    if (archive->snapshot_depth == 0 && sqlite3_get_autocommit(archive->db) != 0) {
        TIDE_TRY(tide_archive_run(archive, err, "BEGIN DEFERRED", ""));
        /* The moment is that of the first read. */
        tide_status status = tide_archive_run(archive, err, "SELECT id FROM sources LIMIT 1", "");
        if (status != TIDE_OK) {
            tide_archive_rollback(&archive);
            return status;
        }
        archive->snapshot_is_ours = true;
    }
    archive->snapshot_depth++;
    return TIDE_OK;
}

void tide_archive_snapshot_end(struct tide_archive *archive)
{
    TIDE_ASSERT(archive->snapshot_depth > 0);
    archive->snapshot_depth--;
    if (archive->snapshot_depth == 0 && archive->snapshot_is_ours) {
        archive->snapshot_is_ours = false;
        tide_archive_rollback(&archive);
    }
}

void tide_archive_snapshot_end_ptr(struct tide_archive **archive)
{
    if (*archive != NULL) {
        tide_archive_snapshot_end(*archive);
        *archive = NULL;
    }
}

void tide_archive_shrink(struct tide_archive *archive)
{
    struct tide_error ignored;
    if (archive->access != TIDE_ARCHIVE_EDIT) {
        return; /* who writes does it */
    }
    archive->doing = "giving room back";
    (void)tide_archive_give_back(archive, SHRINK_PAGES, TIDE_NO_DEADLINE, &ignored);
}

static bool is_damaged(struct tide_archive *archive)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    struct tide_error err = {0};
    bool is_row = false;
    if (tide_archive_query(archive, &stmt, &err, "PRAGMA quick_check(1)", "") != TIDE_OK ||
        tide_archive_step(archive, stmt, &is_row, &err) != TIDE_OK) {
        return err.status == TIDE_CORRUPT;
    }
    return is_row && !tide_str_equal(tide_archive_column_bytes(stmt, 0), TIDE_STR("ok"));
}

static void set_query_only(struct tide_archive *archive, bool is_on)
{
    (void)sqlite3_exec(archive->db, is_on ? "PRAGMA query_only = 1" : "PRAGMA query_only = 0", NULL,
                       NULL, NULL);
}

tide_status tide_archive_copy_to(struct tide_archive *archive, const char *path,
                                 struct tide_error *err)
{
    TIDE_ASSERT(archive->snapshot_depth == 0); /* SQLite copies in no transaction */
    archive->doing = "copying";
    /* SQLite would fill an empty file that is there. */
    if (access(path, F_OK) == 0) {
        return tide_fail(err, TIDE_INVALID, "%s is there already; give another name for the copy",
                         path);
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_buf_printf(&name, "%s%s", path[0] == '/' ? "" : "./", path);
    set_query_only(archive, false);
    tide_status status = tide_archive_run(archive, err, "VACUUM INTO ?1", "t", tide_buf_str(&name));
    set_query_only(archive, archive->access == TIDE_ARCHIVE_READ);
    /* A page that makes no sense may look like a file without room. */
    return status == TIDE_IO && is_damaged(archive)
               ? tide_archive_corrupt(archive, "the file is damaged; take it from a copy", err)
               : status;
}
