/*
 * Notices what happens to a followed database beside its rows: another schema, a restored or
 * replaced file, a detached pipeline.
 *
 * The source makes a watch after prepare and looks inside each read transaction, before it reads
 * the log: what the look finds then holds for what is read. A look costs one lookup while the
 * schema has not moved; what it means that it has moved, sqlite_mend.h finds out. One thread, one
 * connection.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_install.h"

#include <sqlite3.h>
#include <stdbool.h>

struct tide_sqlite_watch;

/** Starts from what install or load returned. `path` is where the file was opened. The first look
 * always finds that the schema has moved. */
tide_status tide_sqlite_watch_new(sqlite3 *db, const char *path, tide_str pipeline,
                                  const struct tide_sqlite_installed *installed,
                                  struct tide_sqlite_watch **ret_watch, struct tide_error *err);

/** Before `db` is closed. NULL is fine. */
void tide_sqlite_watch_free(struct tide_sqlite_watch *watch);

/**
 * Looks whether this is still the database that the copy goes on from, and whether its schema has
 * moved since tide_sqlite_watch_settle: then nothing may be read before it was mended.
 *
 * Input:  `nonces` are those that our pipeline's row may have (any of them; none: not compared).
 * Errors: TIDE_STALE with one sentence: what has happened, and the way out. The copy must not go
 *         on. Others from SQLite.
 */
tide_status tide_sqlite_watch_look(struct tide_sqlite_watch *watch, const tide_str *nonces,
                                   size_t nonce_count, bool *ret_has_moved, struct tide_error *err);

/** The part of the look that is about our pipeline's row. */
tide_status tide_sqlite_watch_row(struct tide_sqlite_watch *watch, const tide_str *nonces,
                                  size_t nonce_count, struct tide_error *err);

/** The schema as it is in this transaction is known. */
tide_status tide_sqlite_watch_settle(struct tide_sqlite_watch *watch, struct tide_error *err);

/** Looks whether the path still names the file that is open; needs no transaction. TIDE_STALE when
 * it was replaced or removed. */
tide_status tide_sqlite_watch_file(struct tide_sqlite_watch *watch, struct tide_error *err);
