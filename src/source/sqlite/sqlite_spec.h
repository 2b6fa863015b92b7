/*
 * What a table's triggers were made from, kept as text in _tidemark_tables:
 *
 *     VERSION:KEY:SHAPE:COLUMNS:INDEX,INDEX…:TRIGGERS
 *
 * KEY, SHAPE, INDEX and TRIGGERS are digests in hexadecimal: of the key, of columns and key, of
 * each UNIQUE index, and (sqlite_installed.h) of the triggers as they were made. So that what has
 * changed about a table can be told when it is looked at again, also after a pause. A table's own
 * `spec` is without the triggers.
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

/** What has changed between a spec that was kept and a table's own; the first that applies, from
 * the end of the list up. `ret_triggers`: TRIGGERS of the first, empty where it has none. */
enum tide_sqlite_difference tide_sqlite_spec_compare(tide_str kept, tide_str now,
                                                     tide_str *ret_triggers);
