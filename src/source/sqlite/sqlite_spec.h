/*
 * What a table's triggers were made from, kept as text in _tidemark_tables:
 *
 *     VERSION:KEY:SHAPE:COLUMNS:INDEX,INDEX…
 *
 * KEY, SHAPE and INDEX are digests in hexadecimal: of the key, of columns and key, of each UNIQUE
 * index. So that what has changed about a table can be told when it is looked at again, also after
 * a pause.
 */
#pragma once

#include "source/sqlite/sqlite_table.h"

enum tide_sqlite_difference {
    TIDE_SQLITE_SAME,
    TIDE_SQLITE_FEWER_INDEXES,
    TIDE_SQLITE_MORE_INDEXES, /* one that was not there before */
    TIDE_SQLITE_MORE_COLUMNS,
    TIDE_SQLITE_FEWER_COLUMNS,
    TIDE_SQLITE_OTHER_SHAPE, /* names, types, defaults, … */
    TIDE_SQLITE_OTHER_KEY,
    TIDE_SQLITE_OTHER_VERSION, /* the triggers are another version's */
};

/** Fills `spec`. */
void tide_sqlite_table_specify(struct tide_sqlite_table *table);

/** What has changed between two specs; the first that applies, from the end of the list up. */
enum tide_sqlite_difference tide_sqlite_spec_compare(tide_str before, tide_str now);
