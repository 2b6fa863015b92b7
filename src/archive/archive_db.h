/*
 * Private to this folder: the connection behind every handle, and calls of SQLite with our errors.
 * One thread at a time.
 */
#pragma once

#include "archive/container.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct tide_archive {
    struct sqlite3 *db;
    char *path;
    enum tide_archive_access access;
    bool is_open;      /* it has been found to be an archive */
    bool is_immutable; /* read without locks: nobody can write there */
    const char *doing; /* what the call in progress does, for messages */
    unsigned snapshot_depth;
    bool snapshot_is_ours; /* its transaction is to be ended with it */
    /* Of a handle that writes: changes when another one has written. */
    bool has_data_version;
    int64_t data_version;
    /* Of a writer: the file has not less bytes, unless somebody has cut it. */
    bool has_bytes_min;
    int64_t bytes_min;
    int64_t page_bytes; /* 0: any commit may make the file smaller, so it is not known */
    /* Of a writer that lets others edit: their transactions so far. */
    bool allows_edits;
    int64_t edits;
    /* Columns that a file of this version may lack. */
    bool has_uuid;
    bool has_heartbeat;
    bool has_heartbeat_interval;
    bool has_caller_index;
};

/**
 * The error of a call of SQLite as ours: "<path>: <doing>: <what and the way out>".
 * TIDE_TIMEOUT (retriable) locked by another; TIDE_CORRUPT damaged, or tables that are not what
 * they should be; TIDE_INVALID read-only, or against a rule of the tables; TIDE_IO else, retriable
 * where it may pass: full, unreadable, out of memory, interrupted.
 */
tide_status tide_archive_fail(const struct tide_archive *archive, int rc, struct tide_error *err);

#if defined(__clang_analyzer__) || defined(TIDE_ANALYZER)
#define tide_archive_fail(...) tide_failed((tide_archive_fail)(__VA_ARGS__)) /* as in status.h */
#endif

/** TIDE_CORRUPT: "<path>: <doing>: <what>". */
tide_status tide_archive_corrupt(const struct tide_archive *archive, const char *what,
                                 struct tide_error *err);

/** Finalizes *stmt, for TIDE_CLEANUP on a `struct sqlite3_stmt *`. */
void tide_archive_stmt_done(struct sqlite3_stmt **stmt);

/**
 * Binds from place 1 on, by letters: i an int64_t, t a tide_str as text, b one as a blob, o one as
 * a blob or NULL where its ptr is NULL. Nothing is copied: it must outlive the steps.
 */
void tide_archive_bind(struct sqlite3_stmt *stmt, const char *letters, ...);

/** The same from that place on. */
void tide_archive_bind_from(struct sqlite3_stmt *stmt, int place, const char *letters, ...);

/** TIDE_INVALID when bytes are more than one row of a table may have; `what` they are. */
tide_status tide_archive_check_size(const struct tide_archive *archive, const char *what,
                                    size_t bytes, struct tide_error *err);

/** Prepares one statement and binds. */
tide_status tide_archive_query(struct tide_archive *archive, struct sqlite3_stmt **ret_stmt,
                               struct tide_error *err, const char *sql, const char *letters, ...);

/** Whether the file has a table of that name: those of ours may be missing. */
tide_status tide_archive_has_table(struct tide_archive *archive, tide_str name, bool *ret_has,
                                   struct tide_error *err);

/** Prepares, binds and runs one statement; what it returns is passed over. */
tide_status tide_archive_run(struct tide_archive *archive, struct tide_error *err, const char *sql,
                             const char *letters, ...);

/** Steps; `ret_is_row` says whether there is a row. Resets the statement when it fails. */
tide_status tide_archive_step(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                              bool *ret_is_row, struct tide_error *err);

/** A column that has to be an integer: TIDE_CORRUPT for anything else. */
tide_status tide_archive_column_i64(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                    int column, int64_t *ret_value, struct tide_error *err);

/** A column that has to be a non-negative integer: TIDE_CORRUPT for anything else. */
tide_status tide_archive_column_count(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                      int column, int64_t *ret_value, struct tide_error *err);

/** The column's bytes, valid until the next step; ptr NULL for NULL. */
tide_str tide_archive_column_bytes(struct sqlite3_stmt *stmt, int column);

/** The first column of the first row; without a row, or with NULL, `ret_is_any` is false. */
tide_status tide_archive_ask(struct tide_archive *archive, struct tide_error *err, bool *ret_is_any,
                             int64_t *ret_value, const char *sql, const char *letters, ...);

/**
 * For a writer, within a transaction: says in the file whether others may edit beside it from now
 * on, and notes how often they have.
 */
tide_status tide_archive_allow_edits(struct tide_archive *archive, bool is_allowed,
                                     struct tide_error *err);

/**
 * Takes the write lock. TIDE_STALE when another has written since this handle first wrote, but for
 * edits that it allows; TIDE_TIMEOUT for one that edits beside a writer who does not.
 */
tide_status tide_archive_begin(struct tide_archive *archive, struct tide_error *err);

/** Of a writer: TIDE_CORRUPT the file was cut, which SQLite does not notice: it would fill what is
 * missing with zeros when it folds the log in. */
tide_status tide_archive_require_uncut(struct tide_archive *archive, struct tide_error *err);

/** To be called when free pages have been given back, which makes the file smaller. */
tide_status tide_archive_note_given_back(struct tide_archive *archive, struct tide_error *err);

/** Commits; on failure the transaction is open still, for tide_archive_rollback. */
tide_status tide_archive_commit(struct tide_archive *archive, struct tide_error *err);

/** Rolls back what is open, for TIDE_CLEANUP on a second `struct tide_archive *`. */
void tide_archive_rollback(struct tide_archive **archive);

/**
 * Where the live tail of a series begins: behind its newest segment's end. `ret_is_any` is false
 * when no row can be live any more (a segment reaches to the end of time).
 */
tide_status tide_archive_live_start(struct tide_archive *archive, int64_t source, tide_str series,
                                    bool *ret_is_any, int64_t *ret_start, struct tide_error *err);

/** Gives free pages back to the file system, `pages` at a time, until none or the deadline. */
tide_status tide_archive_give_back(struct tide_archive *archive, int pages, int64_t deadline_us,
                                   struct tide_error *err);
