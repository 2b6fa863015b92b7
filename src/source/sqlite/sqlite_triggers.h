/*
 * The triggers that write one table's changes into the log: key and operation only, so that they
 * name no column outside keys and unique indexes (the application can add and drop the others).
 * Pure: a table in, SQL out.
 *
 *   ad  BEFORE DELETE           delete of OLD's key
 *   au  BEFORE UPDATE           delete of OLD's key where it changes, update of NEW's
 *   ak  AFTER UPDATE OF …       update of NEW's key: OR REPLACE has put defaults for its NULLs
 *   bi  BEFORE INSERT           candidates: rows that REPLACE may remove by another unique index
 *   bu  BEFORE UPDATE OF …      the same, indexes of plain columns
 *   bc  BEFORE UPDATE           the same, partial, expression, generated-column and rowid indexes
 *   br  BEFORE UPDATE WHEN …    the same by the rowid, where that is not the key
 *   ai  AFTER INSERT            insert of NEW's key; made last, so that it fires before others
 *
 * A user's AFTER trigger that does RAISE(IGNORE) or fails under OR FAIL leaves the change and skips
 * the triggers after it; hence BEFORE wherever the key is known by then. All statements are such
 * as SQLite 3.7.17 understands: no partial index, row value, UPSERT, IS DISTINCT FROM, iif.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "source/sqlite/sqlite_table.h"

#include <stddef.h>

#define TIDE_SQLITE_TRIGGERS_MAX 8

struct tide_sqlite_trigger {
    tide_str name;
    tide_str sql; /* as sqlite_schema holds it afterwards */
};

/**
 * Fills `ret_triggers` in the order in which they must be made (ai last) and returns how many.
 * The table can be followed and has its number. Strings live in `arena`.
 */
size_t tide_sqlite_triggers_make(const struct tide_sqlite_table *table, struct tide_arena *arena,
                                 struct tide_sqlite_trigger ret_triggers[TIDE_SQLITE_TRIGGERS_MAX]);
