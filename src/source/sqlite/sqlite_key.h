/*
 * The identity of a row as bytes: equal exactly when it is the same row. Storage class and bytes
 * of each key column (reals by value: -0.0 is 0.0), and the rowid where a key column is NULL.
 *
 *     number of the table (8) | for each column: class (1) and INTEGER, REAL: 8 bytes;
 *                             | TEXT, BLOB: length (4) and bytes; NULL: nothing
 *     | rowid as an INTEGER, where the table is nullable and a column was NULL
 *
 * Numbers in the machine's order: the bytes never leave the process. Pure but for the statement.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "model/value.h"
#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>

/**
 * Appends the identity in the row that `stmt` stands on. `columns` has the result columns of the
 * key's columns (tide_sqlite_table_log_width of them), `rowid_column` that of the rowid (used only
 * where the table is nullable).
 */
void tide_sqlite_key_append(struct tide_buf *buf, const struct tide_sqlite_table *table,
                            sqlite3_stmt *stmt, const int *columns, int rowid_column);

/** True when the identity is by rowid: the table has no key, or a key column is NULL. */
bool tide_sqlite_key_is_by_rowid(const struct tide_sqlite_table *table, tide_str key);

/**
 * Binds the identity to the parameters from 1 on: the rowid alone where it is by rowid, else the
 * key's columns. The bytes must stay until the statement is reset.
 */
void tide_sqlite_key_bind(const struct tide_sqlite_table *table, tide_str key, sqlite3_stmt *stmt);

/** The relation's key values (relation->key_count), written into `arena`. */
struct tide_value *tide_sqlite_key_values(const struct tide_sqlite_table *table, tide_str key,
                                          struct tide_arena *arena);
