/*
 * Decides how the rows of a table are told apart:
 *
 *   INTEGER PRIMARY KEY that is the rowid  → that column
 *   another PRIMARY KEY                    → its columns, and the rowid where one may be NULL
 *   a full UNIQUE index of NOT NULL columns → its columns
 *   else                                   → the rowid, if any of its names is free
 */
#include "source/sqlite/sqlite_analyse.h"

#include "source/sqlite/sqlite_tokens.h"

static bool has_column(const struct tide_sqlite_table *table, tide_str name)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (tide_sqlite_names_equal(table->columns[i].name, name)) {
            return true;
        }
    }
    return false;
}

static tide_str free_rowid_name(const struct tide_sqlite_table *table)
{
    static const tide_str names[] = {{"_rowid_", 7}, {"rowid", 5}, {"oid", 3}};
    for (size_t i = 0; !table->is_without_rowid && i < 3; i++) {
        if (!has_column(table, names[i])) {
            return names[i];
        }
    }
    return (tide_str){NULL, 0};
}

/* The columns of the PRIMARY KEY in its order. Places may have gaps where a column was named twice.
 */
static void take_primary_key(struct tide_sqlite_table *table)
{
    table->key_columns =
        tide_arena_alloc(&table->arena, table->column_count + 1, sizeof(*table->key_columns));
    table->key_count = 0;
    for (uint32_t place = 1; place <= table->column_count; place++) {
        for (size_t i = 0; i < table->column_count; i++) {
            if (table->columns[i].primary_place == place) {
                table->key_columns[table->key_count++] = (uint32_t)i;
            }
        }
    }
}

static int32_t primary_index(const struct tide_sqlite_table *table)
{
    for (size_t i = 0; i < table->index_count; i++) {
        if (table->indexes[i].is_primary) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool is_key_index(const struct tide_sqlite_table *table,
                         const struct tide_sqlite_index *index)
{
    for (size_t i = 0; i < index->part_count; i++) {
        int32_t column = index->parts[i].column;
        if (column < 0 || !table->columns[column].is_not_null ||
            table->columns[column].generated != TIDE_SQLITE_ORDINARY) {
            return false;
        }
    }
    return index->where.ptr == NULL;
}

/* The narrowest, and of those the oldest (SQLite lists the newest first): it changes least often.
 */
static int32_t best_key_index(const struct tide_sqlite_table *table)
{
    int32_t best = -1;
    for (size_t i = table->index_count; i-- > 0;) {
        const struct tide_sqlite_index *index = &table->indexes[i];
        if (is_key_index(table, index) &&
            (best < 0 || index->part_count < table->indexes[best].part_count)) {
            best = (int32_t)i;
        }
    }
    return best;
}

static void take_unique_key(struct tide_sqlite_table *table, int32_t key_index)
{
    const struct tide_sqlite_index *index = &table->indexes[key_index];
    table->identity = TIDE_SQLITE_UNIQUE_KEY;
    table->key_index = key_index;
    table->key_count = index->part_count;
    table->key_columns =
        tide_arena_alloc(&table->arena, index->part_count, sizeof(*table->key_columns));
    for (size_t i = 0; i < index->part_count; i++) {
        table->key_columns[i] = (uint32_t)index->parts[i].column;
    }
}

static bool primary_key_may_be_null(const struct tide_sqlite_table *table)
{
    for (size_t i = 0; i < table->key_count; i++) {
        if (!table->columns[table->key_columns[i]].is_not_null) {
            return !table->is_without_rowid && !table->is_strict;
        }
    }
    return false;
}

static tide_str key_collation(const struct tide_sqlite_table *table, uint32_t column)
{
    if (table->key_index >= 0) {
        const struct tide_sqlite_index *index = &table->indexes[table->key_index];
        for (size_t i = 0; i < index->part_count; i++) {
            if (index->parts[i].column == (int32_t)column) {
                return index->parts[i].collation;
            }
        }
    }
    return TIDE_STR("BINARY");
}

/* Takes the key's collations from its index, and sees whether equal keys have equal bytes. */
static void take_collations(struct tide_sqlite_table *table)
{
    table->is_exact = true;
    table->key_collations =
        tide_arena_alloc(&table->arena, table->key_count, sizeof(*table->key_collations));
    for (size_t i = 0; i < table->key_count; i++) {
        uint32_t column = table->key_columns[i];
        table->key_collations[i] = key_collation(table, column);
        bool is_binary = tide_sqlite_names_equal(table->key_collations[i], TIDE_STR("BINARY"));
        bool keeps_class = table->columns[column].affinity == TIDE_SQLITE_BLOB;
        table->is_exact = table->is_exact && (table->key_index < 0 || (is_binary && !keeps_class));
    }
}

static void take_primary(struct tide_sqlite_table *table)
{
    table->key_index = primary_index(table);
    if (table->key_count == 1 && !table->is_without_rowid && table->key_index < 0) {
        table->identity = TIDE_SQLITE_INTEGER_KEY;
        table->rowid_name = table->columns[table->key_columns[0]].name;
        return;
    }
    table->identity = TIDE_SQLITE_PRIMARY_KEY;
    table->is_nullable = primary_key_may_be_null(table);
}

void tide_sqlite_identify(struct tide_sqlite_table *table)
{
    table->rowid_name = free_rowid_name(table);
    table->key_index = -1;
    take_primary_key(table);
    int32_t unique = table->key_count > 0 ? -1 : best_key_index(table);
    if (table->key_count > 0) {
        take_primary(table);
    } else if (unique >= 0) {
        take_unique_key(table, unique);
    } else {
        table->identity = TIDE_SQLITE_ROWID;
    }
    take_collations(table);
    if (tide_sqlite_table_has_hidden_rowid(table) && table->rowid_name.ptr == NULL) {
        table->problem = table->is_nullable
                             ? TIDE_STR("its key may be NULL and its columns take all three names "
                                        "of the rowid, so that its rows cannot be told apart")
                             : TIDE_STR("it has no key and its columns take all three names of "
                                        "the rowid, so that its rows cannot be told apart");
        table->identity = TIDE_SQLITE_NOT_FOLLOWED;
        table->is_nullable = false;
    }
}
