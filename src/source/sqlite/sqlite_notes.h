/*
 * What the log says of tables (see sqlite_mend.h), made into events: a table is to be copied, is
 * gone, has lost its rows. They wait between the changes that the reader has at hand.
 *
 * A note is judged by what the tables are now. One that a later note of the same table has
 * overtaken is passed over.
 */
#pragma once

#include "port/source.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_schema.h"
#include "source/sqlite/sqlite_window.h"

#include <stdbool.h>
#include <stddef.h>

/* Relations that changes may still point to although no table has them any more. */
struct tide_sqlite_kept {
    const struct tide_relation **items;
    size_t count;
    size_t cap;
};

/** Takes a reference until tide_sqlite_kept_done. */
void tide_sqlite_kept_add(struct tide_sqlite_kept *kept, const struct tide_relation *relation);
void tide_sqlite_kept_done(struct tide_sqlite_kept *kept);

/** An event that says of a table that it is chosen, but cannot be followed; strings in `arena`. */
void tide_sqlite_left_event(const struct tide_sqlite_table *table,
                            const struct tide_sqlite_choice *choice, int64_t position,
                            struct tide_arena *arena, struct tide_event *ret_event);

/** Fills `event` with what the note means; strings in `arena`. False: nothing. */
bool tide_sqlite_note_event(const struct tide_sqlite_mark *note,
                            const struct tide_sqlite_choice *choice,
                            const struct tide_sqlite_tables *tables, struct tide_sqlite_kept *kept,
                            struct tide_arena *arena, struct tide_event *ret_event);
