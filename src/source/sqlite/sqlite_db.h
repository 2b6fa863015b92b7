/*
 * Small helpers over the sqlite3 API, with our errors. One thread per connection.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "base/thread.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum tide_sqlite_access {
    TIDE_SQLITE_READ_ONLY,
    TIDE_SQLITE_READ_WRITE,
    TIDE_SQLITE_AT_REST, /* read-only, for a file that nobody writes: no lock, no file beside it */
};

/** Whether this user may write the file, and make files in its folder, as SQLite has to. */
bool tide_sqlite_may_write_file(const char *path);
bool tide_sqlite_may_write_folder(const char *path);

/** How long statements wait for another process's lock, about; it is asked for every millisecond.
 */
void tide_sqlite_set_patience(sqlite3 *db, int wait_ms);

/* The same, and a wake ends it: the wake stays for others, and the statement fails as it does when
 * the time is up. */
struct tide_sqlite_patience {
    int wait_ms;
    const struct tide_waker *waker; /* NULL: nobody wakes */
};

/** `patience` must stay until another one is set. */
void tide_sqlite_set_interruptible(sqlite3 *db, const struct tide_sqlite_patience *patience);

/**
 * Opens an existing database with `busy_timeout_ms` and looks whether it is one. Extended result
 * codes are on; triggers and schema of the file are not trusted (trusted_schema=OFF).
 * Errors: TIDE_INVALID no regular file; TIDE_CORRUPT not a database; TIDE_IO else.
 */
tide_status tide_sqlite_db_open(const char *path, enum tide_sqlite_access access,
                                int busy_timeout_ms, sqlite3 **ret_db, struct tide_error *err);

/**
 * Opens for writing. Where this user may write the file or its folder not, opens for reading, if
 * that can be done at all: whatever would write then fails with TIDE_IO. `patience` must stay until
 * another one is set.
 */
tide_status tide_sqlite_db_open_best(const char *path, const struct tide_sqlite_patience *patience,
                                     sqlite3 **ret_db, struct tide_error *err);

/** TIDE_IO when *db was opened for reading. */
tide_status tide_sqlite_require_writable(sqlite3 *db, struct tide_error *err);

/** Closes *db, for TIDE_CLEANUP on a `sqlite3 *`. */
void tide_sqlite_db_close(sqlite3 **db);

/** Finalizes *stmt, for TIDE_CLEANUP on a `sqlite3_stmt *`. */
void tide_sqlite_stmt_done(sqlite3_stmt **stmt);

/**
 * The error of the connection's last call as ours: "<path>: <doing>: <what and the way out>".
 * TIDE_TIMEOUT (retriable) busy, locked or to be recovered; TIDE_CORRUPT damaged or not a database;
 * TIDE_CANCELLED interrupted; TIDE_STALE the files are others than were opened (sqlite_files.h);
 * TIDE_IO else, also read-only (SQLITE_SCHEMA and SQLITE_FULL are retriable).
 */
tide_status tide_sqlite_db_fail(sqlite3 *db, int rc, const char *doing, struct tide_error *err);

/** Prepares one statement. */
tide_status tide_sqlite_prepare(sqlite3 *db, tide_str sql, sqlite3_stmt **ret_stmt,
                                struct tide_error *err);

/** Runs statements without results. */
tide_status tide_sqlite_exec(sqlite3 *db, const char *sql, struct tide_error *err);

/** Runs one statement made by sqlite3_mprintf's rules: %Q a string, "%w" a name, also with %.*Q. */
tide_status tide_sqlite_execf(sqlite3 *db, struct tide_error *err, const char *fmt, ...);

/** Takes the write lock; the message of a failure says how long was waited. */
tide_status tide_sqlite_begin_write(sqlite3 *db, struct tide_error *err);

/** Rolls back what is open on *db, for TIDE_CLEANUP on a second `sqlite3 *`. */
void tide_sqlite_rollback(sqlite3 **db);

/** Steps: `*ret_is_row` says whether there is a row. Resets the statement when it fails. */
tide_status tide_sqlite_step(sqlite3_stmt *stmt, bool *ret_is_row, struct tide_error *err);

/** The first column of the first row as an integer; `otherwise` when there is no row or NULL. */
tide_status tide_sqlite_int(sqlite3 *db, const char *sql, int64_t otherwise, int64_t *ret_value,
                            struct tide_error *err);

/** Binds text without copying it: it must outlive the step. */
void tide_sqlite_bind_str(sqlite3_stmt *stmt, int place, tide_str text);

/** The column's bytes as text, valid until the next step; ptr NULL for NULL. */
tide_str tide_sqlite_column_str(sqlite3_stmt *stmt, int column);

/** Appends `"name"`, with `"` doubled. */
void tide_sqlite_append_name(struct tide_buf *buf, tide_str name);

/** Appends `'text'`, with `'` doubled. */
void tide_sqlite_append_text(struct tide_buf *buf, tide_str text);
