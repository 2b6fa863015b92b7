/*
 * Values between SQLite and the model, with their storage class: INTEGER as digits, REAL as text
 * that reads back the same, TEXT (RAW_TEXT where it is no UTF-8), BLOB as bytes, NULL.
 */
#pragma once

#include "base/arena.h"
#include "model/value.h"
#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>
#include <stddef.h>

/** A value of each storage class, its bytes copied into `arena`. */
struct tide_value tide_sqlite_integer_value(int64_t number, struct tide_arena *arena);
struct tide_value tide_sqlite_real_value(double number, struct tide_arena *arena);
struct tide_value tide_sqlite_text_value(tide_str text, struct tide_arena *arena);
struct tide_value tide_sqlite_blob_value(tide_str bytes, struct tide_arena *arena);

/** Column number `column` of the row that `stmt` stands on, its bytes copied into `arena`. */
struct tide_value tide_sqlite_column_value(sqlite3_stmt *stmt, int column,
                                           struct tide_arena *arena);

/**
 * Binds the value with its storage class; the bytes must stay until the statement is reset. False:
 * of a kind that SQLite has not, or no number where it should be one (a damaged checkpoint).
 */
bool tide_sqlite_bind_value(sqlite3_stmt *stmt, int place, struct tide_value value);

/**
 * The row that `stmt` stands on, its first columns being those of the table's relation in order:
 * fills `ret_values` (relation->column_count) with bytes in `arena` and returns how many bytes. A
 * rowid that the row does not need is ABSENT; a key column's -0.0 is 0.0, as SQLite holds them
 * equal.
 */
size_t tide_sqlite_row_values(sqlite3_stmt *stmt, const struct tide_sqlite_table *table,
                              struct tide_arena *arena, struct tide_value *ret_values);

/** True when one of the key's columns (without the hidden rowid) is NULL. */
bool tide_sqlite_key_has_null(const struct tide_sqlite_table *table, const struct tide_value *key);
