/*
 * Follows the schema: makes, remakes and gives up triggers when tables are made, changed, dropped,
 * and writes into the log what that means for copies, in one and the same write transaction. So
 * the log alone tells every pipeline, also after a crash and whoever did the mending:
 *
 *     TRUNCATE k1              table k1 has lost all its rows (it was dropped, renamed, made anew)
 *     COPY     k1, r           table k1 has triggers of this number from here on: copy it; why
 *     JOIN     k1, r           the same, for pipeline r alone: the table had triggers already
 *     GONE     k1, r           table k1 is not followed any more; why
 *
 * A table that is to be copied anew gets a new number, so that earlier marks of it, which may be
 * incomplete or of keys of another shape, count for nobody any more.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_plan.h"
#include "source/sqlite/sqlite_watch.h"

#include <sqlite3.h>

/** Carries out the plan in the caller's write transaction, where it was made. `is_first`: the
 * pipeline starts after this, so that it need not be told which tables it has. */
tide_status tide_sqlite_mend_apply(sqlite3 *db, struct tide_sqlite_plan *plan, bool is_first,
                                   struct tide_error *err);

/**
 * Looks what has become of the schema, mends what is to be mended, and returns the tables that the
 * pipeline follows from now on. Outside a transaction; takes the write lock only where something
 * is to be done. The watch then holds the schema for known.
 *
 * Input:   `nonces` as in tide_sqlite_watch_look: a restored database is not mended.
 * Output:  `ret_left` what the globs choose and cannot be followed; inner tables of virtual ones
 *          only where there are globs. NULL: not asked for.
 * Owns:    free `ret_tables` and `ret_left` with tide_sqlite_tables_done; both must be empty.
 * Errors:  TIDE_TIMEOUT (retriable) a writer has the lock; TIDE_STALE as the watch, and when what
 *          is ours is damaged; others from SQLite. Nothing is changed on failure.
 */
tide_status tide_sqlite_mend(sqlite3 *db, const struct tide_sqlite_choice *choice,
                             struct tide_sqlite_watch *watch, const tide_str *nonces,
                             size_t nonce_count, struct tide_sqlite_tables *ret_tables,
                             struct tide_sqlite_tables *ret_left, struct tide_error *err);
