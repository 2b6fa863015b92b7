/*
 * The SELECTs by which rows of a table are read: always the relation's columns in order (a hidden
 * rowid last), from `main`, by the order of the key's index.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>

/* No index leads to the rows with a NULL in a key of several columns: all are looked at. That the
 * reader may stop on the way, TIDE_SQLITE_NULLS then also brings the rows, with or without a NULL,
 * whose rowid has none of these bits. */
#define TIDE_SQLITE_NULLS_MARKER 4095

enum tide_sqlite_select {
    TIDE_SQLITE_BY_KEY,     /* one row: ?1… the key's columns in key order */
    TIDE_SQLITE_BY_ROWID,   /* one row: ?1 the rowid */
    TIDE_SQLITE_FROM_START, /* ?1 limit; rows with a NULL in the key are left out */
    TIDE_SQLITE_AFTER_KEY,  /* ?1… the key's columns, then the limit; NULLs left out */
    TIDE_SQLITE_NULLS,      /* rows with a NULL in the key from rowid ?1 on, ?2 limit; see below */
    TIDE_SQLITE_FROM_ROWID, /* all rows from rowid ?1 on, ?2 limit */
    TIDE_SQLITE_SELECTS
};

/**
 * Prepares it; the caller finalizes. Errors: TIDE_UNSUPPORTED table, column or collation are not
 * there (any more); others as tide_sqlite_prepare.
 */
tide_status tide_sqlite_select_prepare(sqlite3 *db, const struct tide_sqlite_table *table,
                                       enum tide_sqlite_select select, sqlite3_stmt **ret_stmt,
                                       struct tide_error *err);
