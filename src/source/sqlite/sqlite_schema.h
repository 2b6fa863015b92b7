/*
 * Reads the shape of tables from a database: which there are, and what struct tide_sqlite_table
 * says of each. All of it only reads. Call inside one read transaction where the answers must fit
 * together (several PRAGMAs are asked). One thread per connection.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct tide_sqlite_tables {
    struct tide_sqlite_table **items; /* sorted by name, bytewise */
    size_t count;
};

/**
 * Reads the tables of `main` whose name matches any glob (`*`, `?`; case-sensitive; none: all),
 * without views, sqlite_* and our own. Tables that cannot be followed are in the list too, with
 * `problem`: virtual tables, their shadow tables, tables without a usable rowid, tables that we
 * cannot read. `connection` is the first part of the relations' store names.
 *
 * Owns:    free with tide_sqlite_tables_done; `ret_tables` must be empty.
 * Errors:  TIDE_INVALID a glob matches nothing; TIDE_IO, TIDE_CORRUPT, TIDE_TIMEOUT from SQLite.
 */
tide_status tide_sqlite_tables_read(sqlite3 *db, tide_str connection, const tide_str *globs,
                                    size_t glob_count, struct tide_sqlite_tables *ret_tables,
                                    struct tide_error *err);

/** Frees the tables; `{0}` is an empty list. For TIDE_CLEANUP too. */
void tide_sqlite_tables_done(struct tide_sqlite_tables *tables);

/** The table of that number or exact name that can be followed, or NULL. */
struct tide_sqlite_table *tide_sqlite_tables_by_number(const struct tide_sqlite_tables *tables,
                                                       int64_t number);
struct tide_sqlite_table *tide_sqlite_tables_by_name(const struct tide_sqlite_tables *tables,
                                                     tide_str name);

/**
 * Reads one table by its exact name, whatever it is. `*ret_table` NULL: there is none of that name.
 */
tide_status tide_sqlite_table_read(sqlite3 *db, tide_str connection, tide_str name,
                                   struct tide_sqlite_table **ret_table, struct tide_error *err);

/** True when a glob matches the name, or there are none. */
bool tide_sqlite_is_chosen(const tide_str *globs, size_t glob_count, tide_str name);

/** Keeps of the tables those that are chosen. */
void tide_sqlite_tables_choose(struct tide_sqlite_tables *tables, const tide_str *globs,
                               size_t glob_count);
