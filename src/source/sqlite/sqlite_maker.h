/*
 * Writes the text of triggers: what sqlite_triggers and sqlite_candidates share. Not for others.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "source/sqlite/sqlite_table.h"
#include "source/sqlite/sqlite_triggers.h"

#include <stdbool.h>
#include <stddef.h>

/* What is being written: the triggers so far, and the text of the one at hand. */
struct tide_sqlite_maker {
    const struct tide_sqlite_table *table;
    struct tide_arena *arena;
    struct tide_sqlite_trigger *triggers;
    size_t count;
    struct tide_buf sql;
};

/** Appends SQL as it is. */
void tide_sqlite_put(struct tide_sqlite_maker *maker, const char *text);

/** Appends a quoted name. */
void tide_sqlite_put_name(struct tide_sqlite_maker *maker, tide_str name);

/** Appends `row."name"`; row is OLD, NEW or o. */
void tide_sqlite_put_of(struct tide_sqlite_maker *maker, const char *row, tide_str name);

/** The name of what goes into k<i + 1> of the log: a key column, or the rowid. */
tide_str tide_sqlite_key_name(const struct tide_sqlite_table *table, size_t i);

/** Appends INSERT INTO log (t, op, k1, …[, r]). */
void tide_sqlite_put_log(struct tide_sqlite_maker *maker);

/** Appends the values for it: number, op, and the row's key[, rowid]. */
void tide_sqlite_put_entry(struct tide_sqlite_maker *maker, enum tide_sqlite_op op,
                           const char *row);

/** Whether OR REPLACE puts the column's default for a NULL. */
bool tide_sqlite_has_filled_default(const struct tide_sqlite_column *column);

/** How many indexes need candidates: those of plain stored columns, or the others. */
size_t tide_sqlite_count_candidates(const struct tide_sqlite_table *table, bool want_simple);

/** Appends the statements that log the candidates by those indexes. */
void tide_sqlite_put_candidates(struct tide_sqlite_maker *maker, bool want_simple, bool is_update);

/** Appends the statement that logs the row that has NEW's rowid. */
void tide_sqlite_put_rowid_candidate(struct tide_sqlite_maker *maker);

/** Whether the column is in an index of plain stored columns that needs candidates. */
bool tide_sqlite_is_in_simple_index(const struct tide_sqlite_table *table, uint32_t column);
