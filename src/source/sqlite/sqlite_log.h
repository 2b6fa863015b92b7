/*
 * Following: brings the change log's entries as changes, each with its row as it is when read.
 *
 * The log is read in slices, each in one short read transaction that is over before the first of
 * its changes is handed out: nobody's writes wait for our sinks, and no WAL grows for us. A row may
 * thus be newer than its mark; then a later mark of it follows. So the stream's position moves only
 * once the range from it to a commit's last entry has been handed out whole. While a range is being
 * read its end moves on with the log, so that the copy is then exactly what the source was at that
 * commit. A writer that is faster than we are cannot put that off for ever: past
 * range_entries the end stays, and rows may be newer than the position for a while.
 *
 * Belongs to the thread of its connection, which may be used for other things between calls.
 */
#pragma once

#include "port/source.h"
#include "source/sqlite/sqlite_notes.h"
#include "source/sqlite/sqlite_schema.h"
#include "source/sqlite/sqlite_trail.h"
#include "source/sqlite/sqlite_watch.h"

#include <sqlite3.h>
#include <stdint.h>

/* How long a slice waits for a writer's lock, in milliseconds: long enough to get in between two
 * commits of a writer that never rests, short enough not to keep a waker waiting. */
#define TIDE_SQLITE_LOG_PATIENCE_MS 20

struct tide_sqlite_log;

struct tide_sqlite_log_limits {
    size_t window_entries; /* merged at a time: 1 to TIDE_SQLITE_WINDOW_ENTRIES */
    size_t slice_bytes;    /* a slice ends early when its rows take more, … */
    int64_t slice_us; /* … or when its transaction was open for longer: with a rollback journal
                         a writer waits for it */
    int64_t range_entries; /* how far the end of a range may move on */
};

extern const struct tide_sqlite_log_limits tide_sqlite_log_limits;

/* What a log reads for. All of it stays with the caller and must outlive the log. */
struct tide_sqlite_log_scope {
    const struct tide_sqlite_choice *choice;
    const struct tide_sqlite_tables *tables;
    struct tide_sqlite_kept *kept;
    struct tide_sqlite_watch *watch;
    struct tide_sqlite_trail *trail; /* grows with what is handed out, and is compared */
};

/** Reads from after `position`. */
tide_status tide_sqlite_log_new(sqlite3 *db, const struct tide_sqlite_log_scope *scope,
                                const struct tide_sqlite_log_limits *limits, int64_t position,
                                struct tide_sqlite_log **ret_log, struct tide_error *err);

/** The scope's tables are others now, and nothing is at hand: goes on with those. After an error
 * the log is to be freed. */
tide_status tide_sqlite_log_retable(struct tide_sqlite_log *log, struct tide_error *err);

/** While nothing is at hand, as after retable: hands out that the table cannot be followed. */
void tide_sqlite_log_tell_left(struct tide_sqlite_log *log, const struct tide_sqlite_table *table);

/** Before the connection is closed. NULL is fine. */
void tide_sqlite_log_free(struct tide_sqlite_log *log);

/** Hands out the next event of what has been read. False: nothing is at hand. */
bool tide_sqlite_log_take(struct tide_sqlite_log *log, struct tide_arena *arena,
                          struct tide_event *ret_event);

/**
 * Reads the next slice, when nothing is at hand: of the range that was begun, or of a new one when
 * another connection has committed since. `nonces` are those that our pipeline's row may have.
 * `*ret_has_moved`: nothing was read, the schema must be mended first.
 * Errors: TIDE_TIMEOUT nothing new, or (retriable) a writer holds the lock; TIDE_STALE from the
 * watch; others from SQLite, after which the log is freed.
 */
tide_status tide_sqlite_log_read(struct tide_sqlite_log *log, const tide_str *nonces,
                                 size_t nonce_count, bool *ret_has_moved, struct tide_error *err);

/** About how many bytes an entry takes. */
size_t tide_sqlite_log_entry_size(const struct tide_sqlite_log *log);
