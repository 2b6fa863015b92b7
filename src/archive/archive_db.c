#include "archive/archive_db.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

static tide_status fail_plainly(int rc, const char *text, struct tide_error *err)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "the archive is in use by another program (%s); end it or wait "
                                   "for it, and try again",
                                   text);
    case SQLITE_FULL:
        return tide_fail_retriable(err, TIDE_IO, "%s; make room, nothing of it has been written",
                                   text);
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
    case SQLITE_SCHEMA:
    case SQLITE_PROTOCOL:
        return tide_fail_retriable(err, TIDE_IO, "%s; nothing of it has been written", text);
    case SQLITE_READONLY:
        return tide_fail(err, TIDE_INVALID,
                         "the archive cannot be written (%s); give us write access to the file and "
                         "its directory",
                         text);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return tide_fail(err, TIDE_IO,
                         "%s; give us access to the file and, for the files beside it, to its "
                         "directory",
                         text);
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
        return tide_fail(err, TIDE_INVALID, "%s; nothing of it has been written", text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return tide_fail(err, TIDE_CORRUPT, "the file is damaged (%s); take it from a copy", text);
    default: /* our statements are right, so the tables are not */
        return tide_fail(err, TIDE_CORRUPT, "its tables are not those of an archive (%s)", text);
    }
}

tide_status(tide_archive_fail)(const struct tide_archive *archive, int rc, struct tide_error *err)
{
    bool is_of_disk = (rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_IOERR;
    if (is_of_disk && archive->db != NULL && sqlite3_system_errno(archive->db) == ENOSPC) {
        rc = SQLITE_FULL; /* of a file beside it */
    }
    bool is_its_last =
        archive->db != NULL && (sqlite3_extended_errcode(archive->db) & 0xff) == (rc & 0xff);
    (void)fail_plainly(rc, is_its_last ? sqlite3_errmsg(archive->db) : sqlite3_errstr(rc), err);
    return tide_fail_context(err, "%s: %s", archive->path, archive->doing);
}

tide_status tide_archive_corrupt(const struct tide_archive *archive, const char *what,
                                 struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "%s: %s: %s", archive->path, archive->doing, what);
}

void tide_archive_stmt_done(struct sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
    *stmt = NULL;
}

static void bind_one(struct sqlite3_stmt *stmt, int place, char letter, tide_str bytes)
{
    const char *ptr = bytes.ptr == NULL ? "" : bytes.ptr; /* NULL would be bound as NULL */
    int rc = SQLITE_OK;
    if (letter == 't') {
        rc = sqlite3_bind_text64(stmt, place, ptr, bytes.len, SQLITE_STATIC, SQLITE_UTF8);
    } else if (letter == 'o' && bytes.ptr == NULL) {
        rc = sqlite3_bind_null(stmt, place);
    } else {
        rc = sqlite3_bind_blob64(stmt, place, ptr, bytes.len, SQLITE_STATIC);
    }
    TIDE_ASSERT(rc == SQLITE_OK || rc == SQLITE_TOOBIG); /* lengths are checked before */
}

static void bind_all(struct sqlite3_stmt *stmt, int place, const char *letters, va_list args)
{
    for (; *letters != '\0'; letters++, place++) {
        if (*letters == 'i') {
            int rc = sqlite3_bind_int64(stmt, place, va_arg(args, int64_t));
            TIDE_ASSERT(rc == SQLITE_OK);
        } else {
            bind_one(stmt, place, *letters, va_arg(args, tide_str));
        }
    }
}

void tide_archive_bind(struct sqlite3_stmt *stmt, const char *letters, ...)
{
    va_list args;
    va_start(args, letters);
    bind_all(stmt, 1, letters, args);
    va_end(args);
}

void tide_archive_bind_from(struct sqlite3_stmt *stmt, int place, const char *letters, ...)
{
    va_list args;
    va_start(args, letters);
    bind_all(stmt, place, letters, args);
    va_end(args);
}

tide_status tide_archive_check_size(const struct tide_archive *archive, const char *what,
                                    size_t bytes, struct tide_error *err)
{
    /* Names and numbers stand beside them. */
    size_t bytes_max = TIDE_ARCHIVE_BLOB_BYTES_MAX - 4 * TIDE_ARCHIVE_SERIES_BYTES_MAX;
    return bytes <= bytes_max
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "%s: %s: %s of %zu bytes is larger than an archive takes (%zu); make it "
                           "of less",
                           archive->path, archive->doing, what, bytes, bytes_max);
}

static tide_status prepare(struct tide_archive *archive, const char *sql, const char *letters,
                           va_list args, struct sqlite3_stmt **ret_stmt, struct tide_error *err)
{
    struct sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(archive->db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK) {
        return tide_archive_fail(archive, rc, err);
    }
    bind_all(stmt, 1, letters, args);
    *ret_stmt = stmt;
    return TIDE_OK;
}

tide_status tide_archive_query(struct tide_archive *archive, struct sqlite3_stmt **ret_stmt,
                               struct tide_error *err, const char *sql, const char *letters, ...)
{
    va_list args;
    va_start(args, letters);
    tide_status status = prepare(archive, sql, letters, args, ret_stmt, err);
    va_end(args);
    return status;
}

tide_status tide_archive_run(struct tide_archive *archive, struct tide_error *err, const char *sql,
                             const char *letters, ...)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    va_list args;
    va_start(args, letters);
    tide_status status = prepare(archive, sql, letters, args, &stmt, err);
    va_end(args);
    for (bool is_row = true; status == TIDE_OK && is_row;) {
        status = tide_archive_step(archive, stmt, &is_row, err);
    }
    return status;
}

tide_status tide_archive_step(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                              bool *ret_is_row, struct tide_error *err)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        tide_status status = tide_archive_fail(archive, rc, err);
        (void)sqlite3_reset(stmt); /* one that was refused a lock stays open else */
        return status;
    }
    *ret_is_row = rc == SQLITE_ROW;
    return TIDE_OK;
}

tide_status tide_archive_column_i64(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                    int column, int64_t *ret_value, struct tide_error *err)
{
    if (sqlite3_column_type(stmt, column) != SQLITE_INTEGER) {
        char what[160];
        (void)snprintf(what, sizeof(what), "the column %.60s holds something that is no integer",
                       sqlite3_column_name(stmt, column));
        return tide_archive_corrupt(archive, what, err);
    }
    *ret_value = sqlite3_column_int64(stmt, column);
    return TIDE_OK;
}

tide_status tide_archive_column_count(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                      int column, int64_t *ret_value, struct tide_error *err)
{
    int64_t value = 0;
    TIDE_TRY(tide_archive_column_i64(archive, stmt, column, &value, err));
    if (value < 0) {
        char what[160];
        (void)snprintf(what, sizeof(what), "the column %.60s is negative",
                       sqlite3_column_name(stmt, column));
        return tide_archive_corrupt(archive, what, err);
    }
    *ret_value = value;
    return TIDE_OK;
}

tide_str tide_archive_column_bytes(struct sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL) {
        return (tide_str){NULL, 0};
    }
    const char *ptr = sqlite3_column_blob(stmt, column); /* before its length is asked for */
    size_t len = (size_t)sqlite3_column_bytes(stmt, column);
    return (tide_str){ptr == NULL ? "" : ptr, ptr == NULL ? 0 : len};
}

tide_status tide_archive_ask(struct tide_archive *archive, struct tide_error *err, bool *ret_is_any,
                             int64_t *ret_value, const char *sql, const char *letters, ...)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    va_list args;
    va_start(args, letters);
    tide_status status = prepare(archive, sql, letters, args, &stmt, err);
    va_end(args);
    TIDE_TRY(status);
    TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
    *ret_is_any = is_row && sqlite3_column_type(stmt, 0) != SQLITE_NULL;
    return *ret_is_any ? tide_archive_column_i64(archive, stmt, 0, ret_value, err) : TIDE_OK;
}

tide_status tide_archive_has_table(struct tide_archive *archive, tide_str name, bool *ret_has,
                                   struct tide_error *err)
{
    int64_t ignored = 0;
    return tide_archive_ask(archive, err, ret_has, &ignored,
                            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1", "t",
                            name);
}

/*
 * Who edits beside a writer counts its transactions in a table of ours, and so tells the writer
 * that a change was none that would take away what it knows.
 */
static tide_status has_edits(struct tide_archive *archive, bool *ret_has, struct tide_error *err)
{
    return tide_archive_has_table(archive, TIDE_STR("tidemark_edits"), ret_has, err);
}

tide_status tide_archive_allow_edits(struct tide_archive *archive, bool is_allowed,
                                     struct tide_error *err)
{
    bool is_any = false;
    if (is_allowed) {
        TIDE_TRY(tide_archive_run(archive, err,
                                  "CREATE TABLE IF NOT EXISTS tidemark_edits (id INTEGER PRIMARY "
                                  "KEY CHECK (id = 1), allowed INTEGER NOT NULL, edits INTEGER NOT "
                                  "NULL)",
                                  ""));
        TIDE_TRY(tide_archive_run(archive, err,
                                  "INSERT OR IGNORE INTO tidemark_edits VALUES (1, 1, 0)", ""));
    }
    TIDE_TRY(has_edits(archive, &is_any, err));
    if (!is_any) {
        return TIDE_OK;
    }
    archive->allows_edits = is_allowed;
    TIDE_TRY(tide_archive_run(archive, err,
                              "UPDATE tidemark_edits SET allowed = ?1 WHERE allowed <> ?1", "i",
                              (int64_t)is_allowed));
    return tide_archive_ask(archive, err, &is_any, &archive->edits,
                            "SELECT edits FROM tidemark_edits", "");
}

static tide_status require_permission(struct tide_archive *archive, struct tide_error *err)
{
    bool is_any = false;
    int64_t allowed = 0;
    TIDE_TRY(has_edits(archive, &is_any, err));
    if (is_any) {
        TIDE_TRY(tide_archive_ask(archive, err, &is_any, &allowed,
                                  "SELECT allowed FROM tidemark_edits", ""));
    }
    return is_any && allowed == 1
               ? TIDE_OK
               : tide_fail_retriable(err, TIDE_TIMEOUT,
                                     "%s: %s: it is in use by a program that lets nobody edit it "
                                     "meanwhile; stop what reads or writes it, and try again",
                                     archive->path, archive->doing);
}

static tide_status was_edited(struct tide_archive *archive, bool *ret_was, struct tide_error *err)
{
    int64_t edits = 0;
    *ret_was = false;
    if (!archive->allows_edits) {
        return TIDE_OK;
    }
    TIDE_TRY(
        tide_archive_ask(archive, err, ret_was, &edits, "SELECT edits FROM tidemark_edits", ""));
    *ret_was = *ret_was && edits != archive->edits;
    archive->edits = edits;
    return TIDE_OK;
}

/* What a writer remembers of the file holds as long as nobody else writes into it, but for edits:
 * they take away and join what is old. */
static tide_status require_same_version(struct tide_archive *archive, struct tide_error *err)
{
    bool is_any = false;
    bool is_edited = false;
    int64_t version = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &version, "PRAGMA data_version", ""));
    if (archive->has_data_version && archive->data_version != version) {
        TIDE_TRY(was_edited(archive, &is_edited, err));
    }
    if (archive->has_data_version && archive->data_version != version && !is_edited) {
        return tide_fail(err, TIDE_STALE,
                         "%s: %s: another program has written into the archive; one writes at a "
                         "time: end the other and open it again",
                         archive->path, archive->doing);
    }
    archive->has_data_version = true;
    archive->data_version = version;
    return TIDE_OK;
}

/* In the file itself, without what is only in the log. */
static tide_status file_bytes(struct tide_archive *archive, int64_t *ret_bytes,
                              struct tide_error *err)
{
    sqlite3_file *file = NULL;
    sqlite3_int64 bytes = 0;
    int rc = sqlite3_file_control(archive->db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file);
    if (rc == SQLITE_OK && file != NULL && file->pMethods != NULL) {
        rc = file->pMethods->xFileSize(file, &bytes);
    }
    *ret_bytes = bytes;
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(archive, rc, err);
}

/* Pages do not change their size while the file is open. */
static tide_status read_page_bytes(struct tide_archive *archive, struct tide_error *err)
{
    bool is_any = false;
    int64_t vacuum = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &vacuum, "PRAGMA auto_vacuum", ""));
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &archive->page_bytes, "PRAGMA page_size", ""));
    archive->page_bytes = vacuum == 1 ? 0 : archive->page_bytes;
    return TIDE_OK;
}

/* As large as its pages say, those in the log too. */
static tide_status bytes_of_pages(struct tide_archive *archive, int64_t *ret_bytes,
                                  struct tide_error *err)
{
    bool is_any = false;
    int64_t pages = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &pages, "PRAGMA page_count", ""));
    *ret_bytes = pages * archive->page_bytes;
    return TIDE_OK;
}

tide_status tide_archive_require_uncut(struct tide_archive *archive, struct tide_error *err)
{
    int64_t bytes = 0;
    int64_t wanted = 0;
    if (!archive->has_bytes_min) {
        TIDE_TRY(read_page_bytes(archive, err));
    }
    TIDE_TRY(file_bytes(archive, &bytes, err));
    TIDE_TRY(bytes_of_pages(archive, &wanted, err));
    int64_t least = wanted < archive->bytes_min ? wanted : archive->bytes_min;
    if (archive->has_bytes_min && bytes < least) {
        return tide_fail(err, TIDE_CORRUPT,
                         "%s: %s: the file was cut to %" PRId64 " bytes while it was open (it had "
                         "%" PRId64 " at least); take it from a copy",
                         archive->path, archive->doing, bytes, least);
    }
    archive->has_bytes_min = true;
    archive->bytes_min = bytes < wanted ? bytes : wanted;
    return TIDE_OK;
}

tide_status tide_archive_note_given_back(struct tide_archive *archive, struct tide_error *err)
{
    int64_t wanted = 0;
    TIDE_TRY(bytes_of_pages(archive, &wanted, err));
    archive->bytes_min = wanted < archive->bytes_min ? wanted : archive->bytes_min;
    return TIDE_OK;
}

tide_status tide_archive_begin(struct tide_archive *archive, struct tide_error *err)
{
    TIDE_TRY(tide_archive_run(archive, err, "BEGIN IMMEDIATE", ""));
    tide_status status = archive->access == TIDE_ARCHIVE_EDIT_BESIDE
                             ? require_permission(archive, err)
                             : require_same_version(archive, err);
    status = status == TIDE_OK && archive->access == TIDE_ARCHIVE_WRITE
                 ? tide_archive_require_uncut(archive, err)
                 : status;
    if (status != TIDE_OK) {
        tide_archive_rollback(&archive);
    }
    return status;
}

tide_status tide_archive_commit(struct tide_archive *archive, struct tide_error *err)
{
    if (archive->access == TIDE_ARCHIVE_EDIT_BESIDE) {
        TIDE_TRY(tide_archive_run(archive, err, "UPDATE tidemark_edits SET edits = edits + 1", ""));
    }
    return tide_archive_run(archive, err, "COMMIT", "");
}

void tide_archive_rollback(struct tide_archive **archive)
{
    if (*archive != NULL && (*archive)->db != NULL && sqlite3_get_autocommit((*archive)->db) == 0) {
        (void)sqlite3_exec((*archive)->db, "ROLLBACK", NULL, NULL, NULL);
    }
}

tide_status tide_archive_live_start(struct tide_archive *archive, int64_t source, tide_str series,
                                    bool *ret_is_any, int64_t *ret_start, struct tide_error *err)
{
    bool is_sealed = false;
    int64_t sealed_to = 0;
    TIDE_TRY(
        tide_archive_ask(archive, err, &is_sealed, &sealed_to,
                         "SELECT MAX(last_ts) FROM segments WHERE source_id = ?1 AND stream = ?2",
                         "it", source, series));
    /* No time stands for "none": the whole range of times is legal. */
    *ret_is_any = !is_sealed || sealed_to < INT64_MAX;
    *ret_start = !is_sealed ? INT64_MIN : *ret_is_any ? sealed_to + 1 : INT64_MAX;
    return TIDE_OK;
}

tide_status tide_archive_give_back(struct tide_archive *archive, int pages, int64_t deadline_us,
                                   struct tide_error *err)
{
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", pages);
    for (;;) {
        bool is_any = false;
        int64_t free_pages = 0;
        TIDE_TRY(tide_archive_ask(archive, err, &is_any, &free_pages, "PRAGMA freelist_count", ""));
        int64_t before = free_pages;
        if (!is_any || free_pages == 0 || tide_clock_monotonic_us() > deadline_us) {
            return TIDE_OK;
        }
        TIDE_TRY(tide_archive_run(archive, err, sql, "")); /* steps to the end: a page a step */
        TIDE_TRY(tide_archive_note_given_back(archive, err));
        TIDE_TRY(tide_archive_ask(archive, err, &is_any, &free_pages, "PRAGMA freelist_count", ""));
        if (free_pages >= before) {
            return TIDE_OK; /* a file without incremental vacuum keeps them */
        }
    }
}
