/*
 * Notices what happens to a followed database beside its rows: another schema, triggers that are
 * gone, VACUUM, a restored or replaced file, a detached pipeline.
 *
 * The source makes a watch after prepare and looks inside each read transaction, before it reads
 * the log: what the look finds then holds for what is read. A look costs one lookup while the
 * schema has not moved. One thread, one connection.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>

struct tide_sqlite_watch;

/**
 * Starts from what install or load returned. Copies what it needs of the tables. `path` is where
 * the file was opened. Call inside a read transaction of `db`, the connection that will look; the
 * first look always compares all.
 */
tide_status tide_sqlite_watch_new(sqlite3 *db, const char *path, tide_str pipeline,
                                  tide_str connection, const struct tide_sqlite_tables *tables,
                                  const struct tide_sqlite_installed *installed,
                                  struct tide_sqlite_watch **ret_watch, struct tide_error *err);

/** Before `db` is closed. NULL is fine. */
void tide_sqlite_watch_free(struct tide_sqlite_watch *watch);

/**
 * Looks whether the log still tells all about the followed tables. TIDE_OK: it does (an unrelated
 * change of the schema is nothing).
 *
 * Input:  `nonces` are those that our pipeline's row may have (any of them; none: not compared).
 * Errors: TIDE_STALE with one sentence: what changed, at which table, and the way out. The copy
 *         must not go on. Others from SQLite.
 */
tide_status tide_sqlite_watch_look(struct tide_sqlite_watch *watch, const tide_str *nonces,
                                   size_t nonce_count, struct tide_error *err);

/** Looks whether the path still names the file that is open; needs no transaction. TIDE_STALE when
 * it was replaced or removed. */
tide_status tide_sqlite_watch_file(struct tide_sqlite_watch *watch, struct tide_error *err);
