/*
 * Analyses one table: columns, unique indexes, identity, relation, spec. Used by sqlite_schema
 * only.
 */
#pragma once

#include "base/status.h"
#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>

/* What PRAGMA table_list says of a table. */
struct tide_sqlite_listed {
    tide_str name;
    tide_str type; /* "table", "virtual", "shadow" */
    bool is_without_rowid;
    bool is_strict;
};

/** Reads the table's columns and indexes, and decides how its rows are told apart. */
tide_status tide_sqlite_analyse(sqlite3 *db, tide_str connection,
                                const struct tide_sqlite_listed *listed,
                                struct tide_sqlite_table **ret_table, struct tide_error *err);

/** Decides identity, key, and rowid_name from columns and indexes: pure. */
void tide_sqlite_identify(struct tide_sqlite_table *table);
