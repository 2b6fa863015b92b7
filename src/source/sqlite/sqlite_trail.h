/*
 * By what a log is known again: digests of the entries at which commits ended that were read. A
 * restored backup whose log has grown past where we were has other entries there. Kept in the
 * checkpoint, dense for what was read last and thin for what is older.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_SQLITE_TRAIL 64

struct tide_sqlite_step_mark {
    int64_t id;
    uint64_t digest;
};

struct tide_sqlite_trail {
    struct tide_sqlite_step_mark marks[TIDE_SQLITE_TRAIL]; /* by id, ascending */
    size_t count;
    int64_t confirmed; /* entries up to it may have been pruned */
};

/** The entry's digest; `*ret_is_there` false: the log does not have it. Inside a transaction. */
tide_status tide_sqlite_entry_digest(sqlite3 *db, int64_t id, bool *ret_is_there,
                                     uint64_t *ret_digest, struct tide_error *err);

/** Adds the entry; ids at or past it that were there are taken out. */
void tide_sqlite_trail_add(struct tide_sqlite_trail *trail, int64_t id, uint64_t digest);

/** Looks whether the log still has the last entry at or before `position` as it was, or has pruned
 * it. TIDE_STALE: it is another log. */
tide_status tide_sqlite_trail_check(const struct tide_sqlite_trail *trail, sqlite3 *db,
                                    int64_t position, struct tide_error *err);

/** Appends it as "id:digest id:digest …". */
void tide_sqlite_trail_save(const struct tide_sqlite_trail *trail, struct tide_buf *buf);

/** Reads what save has written; false: it is something else. `confirmed` is then 0. */
bool tide_sqlite_trail_load(struct tide_sqlite_trail *trail, tide_str text);
