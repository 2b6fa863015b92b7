/*
 * Telling the database how far we are: the pipeline's row, and the log freed up to where every
 * pipeline is. Short transactions, seldom, with a pause after each, that give way to other writers
 * at once.
 */
#pragma once

#include "source/sqlite/sqlite_nonces.h"
#include "source/sqlite/sqlite_watch.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define TIDE_SQLITE_PRUNE_ENTRIES 2000 /* at most, in one transaction */
#define TIDE_SQLITE_PRUNE_PIECES  8    /* transactions at most, in one call */

struct tide_sqlite_confirm {
    int64_t confirmed;    /* what our row has */
    bool has_more;        /* the log holds entries that could go */
    int64_t next_work_us; /* monotonic; not before */
};

/**
 * Writes `position` and, where a checkpoint knows it, the next nonce into the row of `pipeline`,
 * and prunes. Nothing to do is TIDE_OK.
 * Errors: TIDE_TIMEOUT too early, locked by a writer, or more is left to prune: call again later;
 * TIDE_STALE the row is gone, or the watch found something.
 */
tide_status tide_sqlite_confirm(struct tide_sqlite_confirm *confirm, sqlite3 *db,
                                struct tide_sqlite_watch *watch, tide_str pipeline,
                                struct tide_sqlite_nonces *nonces, int64_t position,
                                struct tide_error *err);
