/*
 * Fetches the row that a mark of the log names, as it is now. Statements are prepared when they are
 * first needed. One thread, one connection.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>
#include <stdbool.h>

struct tide_sqlite_fetcher; /* of one table; private */

struct tide_sqlite_fetch {
    sqlite3 *db;
    struct tide_sqlite_fetcher *fetchers; /* as the tables */
    size_t count;
    struct tide_sqlite_fetcher *last; /* used */
    struct tide_buf key;              /* of the row that was fetched */
};

/** For these tables; they must outlive what is fetched, not the call of done. */
void tide_sqlite_fetch_init(struct tide_sqlite_fetch *fetch, sqlite3 *db,
                            const struct tide_sqlite_tables *tables);
void tide_sqlite_fetch_done(struct tide_sqlite_fetch *fetch);

/** Looks for the row that has this very key (sqlite_key.h). `*ret_stmt` stands on it when it is
 * there; reset it either way. */
tide_status tide_sqlite_fetch_row(struct tide_sqlite_fetch *fetch,
                                  const struct tide_sqlite_table *table, tide_str key,
                                  sqlite3_stmt **ret_stmt, bool *ret_is_there,
                                  struct tide_error *err);
