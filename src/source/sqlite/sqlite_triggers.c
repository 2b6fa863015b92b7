#include "source/sqlite/sqlite_triggers.h"

#include "base/buf.h"
#include "base/status.h"
#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>

/* What is being written: the triggers so far, and the text of the one at hand. */
struct maker {
    const struct tide_sqlite_table *table;
    struct tide_arena *arena;
    struct tide_sqlite_trigger *triggers;
    size_t count;
    struct tide_buf sql;
};

static void add(struct maker *maker, const char *text)
{
    tide_buf_append_str(&maker->sql, tide_str_from(text));
}

static void add_name(struct maker *maker, tide_str name)
{
    tide_sqlite_append_name(&maker->sql, name);
}

/* `row."name"`; row is OLD, NEW or o. */
static void add_of(struct maker *maker, const char *row, tide_str name)
{
    add(maker, row);
    add(maker, ".");
    add_name(maker, name);
}

static tide_str key_name(const struct tide_sqlite_table *table, size_t i)
{
    return table->identity == TIDE_SQLITE_ROWID ? table->rowid_name
                                                : table->columns[table->key_columns[i]].name;
}

static bool is_rowid_beside_key(const struct tide_sqlite_table *table)
{
    return table->rowid_name.ptr != NULL && (table->identity == TIDE_SQLITE_PRIMARY_KEY ||
                                             table->identity == TIDE_SQLITE_UNIQUE_KEY);
}

static void start(struct maker *maker, const char *suffix, const char *when)
{
    tide_buf_reset(&maker->sql);
    tide_buf_printf(&maker->sql, TIDE_SQLITE_PREFIX "%" PRId64 "_%s", maker->table->number, suffix);
    tide_str name = tide_arena_str(maker->arena, tide_buf_str(&maker->sql));
    TIDE_ASSERT(maker->count < TIDE_SQLITE_TRIGGERS_MAX);
    maker->triggers[maker->count] = (struct tide_sqlite_trigger){.name = name};
    tide_buf_reset(&maker->sql);
    add(maker, "CREATE TRIGGER ");
    add_name(maker, name);
    add(maker, when);
}

static void add_on(struct maker *maker)
{
    add(maker, " ON ");
    add_name(maker, maker->table->name);
}

static void finish(struct maker *maker)
{
    add(maker, " END");
    maker->triggers[maker->count++].sql = tide_arena_str(maker->arena, tide_buf_str(&maker->sql));
}

/* INSERT INTO log (t, op, k1, …[, r]) */
static void add_log(struct maker *maker)
{
    add(maker, " INSERT INTO \"" TIDE_SQLITE_LOG "\" (t, op");
    size_t width = tide_sqlite_table_log_width(maker->table);
    for (size_t i = 0; i < width; i++) {
        tide_buf_printf(&maker->sql, ", k%zu", i + 1);
    }
    add(maker, maker->table->is_nullable ? ", r)" : ")");
}

/* number, op, key[, rowid] of a row */
static void add_entry(struct maker *maker, enum tide_sqlite_op op, const char *row)
{
    tide_buf_printf(&maker->sql, "%" PRId64 ", %d", maker->table->number, (int)op);
    size_t width = tide_sqlite_table_log_width(maker->table);
    for (size_t i = 0; i < width; i++) {
        add(maker, ", ");
        add_of(maker, row, key_name(maker->table, i));
    }
    if (maker->table->is_nullable) {
        add(maker, ", ");
        add_of(maker, row, maker->table->rowid_name);
    }
}

static void add_log_values(struct maker *maker, enum tide_sqlite_op op, const char *row)
{
    add_log(maker);
    add(maker, " VALUES (");
    add_entry(maker, op, row);
    add(maker, ");");
}

static bool has_filled_default(const struct tide_sqlite_column *column)
{
    return column->is_not_null && column->default_text.ptr != NULL &&
           column->generated == TIDE_SQLITE_ORDINARY;
}

/* The value that the new row will have: OR REPLACE puts the default for a NULL. */
static void add_new_value(struct maker *maker, uint32_t index)
{
    const struct tide_sqlite_column *column = &maker->table->columns[index];
    if (!has_filled_default(column)) {
        add_of(maker, "NEW", column->name);
        return;
    }
    add(maker, "coalesce(");
    add_of(maker, "NEW", column->name);
    add(maker, ", (");
    tide_buf_append_str(&maker->sql, column->default_text);
    add(maker, "))");
}

static bool part_is_generated(const struct tide_sqlite_table *table,
                              const struct tide_sqlite_part *part)
{
    for (size_t i = 0; i < part->column_name_count; i++) {
        if (table->columns[part->column_names[i]].generated != TIDE_SQLITE_ORDINARY) {
            return true;
        }
    }
    return part->column >= 0 && table->columns[part->column].generated != TIDE_SQLITE_ORDINARY;
}

static bool is_of_generated(const struct tide_sqlite_table *table,
                            const struct tide_sqlite_index *index)
{
    for (size_t i = 0; i < index->part_count; i++) {
        if (part_is_generated(table, &index->parts[i])) {
            return true;
        }
    }
    return false;
}

/* Plain stored columns only, none of them another name of the rowid: then UPDATE OF can name them.
 */
static bool is_simple(const struct tide_sqlite_table *table, const struct tide_sqlite_index *index)
{
    for (size_t i = 0; i < index->part_count; i++) {
        int32_t column = index->parts[i].column;
        bool is_rowid =
            table->identity == TIDE_SQLITE_INTEGER_KEY && column == (int32_t)table->key_columns[0];
        if (column < 0 || is_rowid) {
            return false;
        }
    }
    return index->where.ptr == NULL && !is_of_generated(table, index);
}

/* By the key's own index, when it is exact, REPLACE only removes a row of the same identity. */
static bool needs_candidates(const struct tide_sqlite_table *table, size_t index)
{
    return (int32_t)index != table->key_index || !table->is_exact;
}

static void add_expression_condition(struct maker *maker, const struct tide_sqlite_part *part)
{
    add(maker, "(");
    tide_buf_append_str(&maker->sql, part->expression);
    add(maker, ") COLLATE ");
    add_name(maker, part->collation);
    add(maker, " = (SELECT (");
    tide_buf_append_str(&maker->sql, part->expression);
    add(maker, ") FROM (SELECT ");
    for (size_t i = 0; i < part->column_name_count; i++) {
        uint32_t column = part->column_names[i];
        add(maker, i > 0 ? ", " : "");
        add_new_value(maker, column);
        add(maker, " AS ");
        add_name(maker, maker->table->columns[column].name);
    }
    add(maker, part->column_name_count == 0 ? "1))" : "))");
}

static void add_rowid_condition(struct maker *maker)
{
    add_of(maker, "o", maker->table->rowid_name);
    add(maker, " = ");
    add_of(maker, "NEW", maker->table->rowid_name);
}

static void add_part_condition(struct maker *maker, const struct tide_sqlite_part *part)
{
    if (part->column == TIDE_SQLITE_PART_EXPRESSION) {
        add_expression_condition(maker, part);
    } else if (part->column == TIDE_SQLITE_PART_ROWID) {
        add_rowid_condition(maker);
    } else {
        add_of(maker, "o", maker->table->columns[part->column].name);
        add(maker, " COLLATE ");
        add_name(maker, part->collation);
        add(maker, " = ");
        add_new_value(maker, (uint32_t)part->column);
    }
}

/* SQLite loads into NEW only the columns that a trigger names: without this it would compute a
 * generated column of NEW from NULLs. */
static void add_touches(struct maker *maker)
{
    for (size_t i = 0; i < maker->table->column_count; i++) {
        if (maker->table->columns[i].generated == TIDE_SQLITE_ORDINARY) {
            add(maker, " AND (");
            add_of(maker, "NEW", maker->table->columns[i].name);
            add(maker, " IS NULL OR 1)");
        }
    }
}

/* The row that is updated is no candidate. */
static void add_not_itself(struct maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    if (table->rowid_name.ptr != NULL) {
        add(maker, " AND ");
        add_of(maker, "o", table->rowid_name);
        add(maker, " <> ");
        add_of(maker, "OLD", table->rowid_name);
        return;
    }
    for (size_t i = 0; i < table->key_count; i++) {
        add(maker, i == 0 ? " AND (coalesce(" : " OR coalesce(");
        add_of(maker, "o", key_name(table, i));
        add(maker, " <> ");
        add_of(maker, "OLD", key_name(table, i));
        add(maker, ", 1)");
    }
    add(maker, ")");
}

static void start_candidate(struct maker *maker)
{
    add_log(maker);
    add(maker, " SELECT ");
    add_entry(maker, TIDE_SQLITE_OP_CANDIDATE, "o");
    add(maker, " FROM ");
    add_name(maker, maker->table->name);
    add(maker, " AS o WHERE ");
}

static void add_candidate(struct maker *maker, const struct tide_sqlite_index *index,
                          bool is_update)
{
    start_candidate(maker);
    if (index->where.ptr != NULL) {
        add(maker, "(");
        tide_buf_append_str(&maker->sql, index->where);
        add(maker, ")");
    }
    for (size_t i = 0; i < index->part_count; i++) {
        add(maker, i > 0 || index->where.ptr != NULL ? " AND " : "");
        add_part_condition(maker, &index->parts[i]);
    }
    if (is_of_generated(maker->table, index)) {
        add_touches(maker);
    }
    if (is_update) {
        add_not_itself(maker);
    }
    add(maker, ";");
}

static void add_rowid_candidate(struct maker *maker)
{
    start_candidate(maker);
    add_rowid_condition(maker);
    add(maker, ";");
}

static size_t count_candidates(const struct tide_sqlite_table *table, bool want_simple)
{
    size_t count = 0;
    for (size_t i = 0; i < table->index_count; i++) {
        count += needs_candidates(table, i) && is_simple(table, &table->indexes[i]) == want_simple;
    }
    return count;
}

static void add_candidates(struct maker *maker, bool want_simple, bool is_update)
{
    for (size_t i = 0; i < maker->table->index_count; i++) {
        const struct tide_sqlite_index *index = &maker->table->indexes[i];
        if (needs_candidates(maker->table, i) && is_simple(maker->table, index) == want_simple) {
            add_candidate(maker, index, is_update);
        }
    }
}

static void make_before_insert(struct maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    bool by_rowid = is_rowid_beside_key(table);
    if (count_candidates(table, true) + count_candidates(table, false) == 0 && !by_rowid) {
        return;
    }
    start(maker, "bi", " BEFORE INSERT");
    add_on(maker);
    add(maker, " BEGIN");
    add_candidates(maker, true, false);
    add_candidates(maker, false, false);
    if (by_rowid) {
        add_rowid_candidate(maker);
    }
    finish(maker);
}

static bool is_in_simple_index(const struct tide_sqlite_table *table, uint32_t column)
{
    for (size_t i = 0; i < table->index_count; i++) {
        const struct tide_sqlite_index *index = &table->indexes[i];
        if (!needs_candidates(table, i) || !is_simple(table, index)) {
            continue;
        }
        for (size_t j = 0; j < index->part_count; j++) {
            if (index->parts[j].column == (int32_t)column) {
                return true;
            }
        }
    }
    return false;
}

static void make_before_update_of(struct maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    if (count_candidates(table, true) == 0) {
        return;
    }
    start(maker, "bu", " BEFORE UPDATE OF");
    const char *separator = " ";
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (is_in_simple_index(table, i)) {
            add(maker, separator);
            add_name(maker, table->columns[i].name);
            separator = ", ";
        }
    }
    add_on(maker);
    add(maker, " BEGIN");
    add_candidates(maker, true, true);
    finish(maker);
}

static void make_before_update(struct maker *maker)
{
    if (count_candidates(maker->table, false) == 0) {
        return;
    }
    start(maker, "bc", " BEFORE UPDATE");
    add_on(maker);
    add(maker, " BEGIN");
    add_candidates(maker, false, true);
    finish(maker);
}

static void make_before_rowid_update(struct maker *maker)
{
    if (!is_rowid_beside_key(maker->table)) {
        return;
    }
    start(maker, "br", " BEFORE UPDATE");
    add_on(maker);
    add(maker, " WHEN ");
    add_of(maker, "NEW", maker->table->rowid_name);
    add(maker, " <> ");
    add_of(maker, "OLD", maker->table->rowid_name);
    add(maker, " BEGIN");
    add_rowid_candidate(maker);
    finish(maker);
}

/* `OLD.x IS NEW.x`, by bytes: the key's own collation would hold 'a' and 'A' for one. */
static void add_is_same(struct maker *maker, tide_str name, bool is_rowid, bool is_exact)
{
    add(maker, is_rowid ? "" : "(");
    add_of(maker, "OLD", name);
    add(maker, is_rowid ? " IS " : " COLLATE BINARY) IS ");
    add_of(maker, "NEW", name);
    if (!is_exact) {
        add(maker, " AND typeof(");
        add_of(maker, "OLD", name);
        add(maker, ") = typeof(");
        add_of(maker, "NEW", name);
        add(maker, ")");
    }
}

static void add_same_key(struct maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    bool is_rowid =
        table->identity == TIDE_SQLITE_ROWID || table->identity == TIDE_SQLITE_INTEGER_KEY;
    size_t width = tide_sqlite_table_log_width(table);
    for (size_t i = 0; i < width; i++) {
        add(maker, i > 0 ? " AND " : "");
        add_is_same(maker, key_name(table, i), is_rowid, table->is_exact);
    }
    if (table->is_nullable) {
        add(maker, " AND ");
        add_is_same(maker, table->rowid_name, true, true);
    }
}

static void make_update(struct maker *maker)
{
    start(maker, "au", " BEFORE UPDATE");
    add_on(maker);
    add(maker, " BEGIN");
    add_log(maker);
    add(maker, " SELECT ");
    add_entry(maker, TIDE_SQLITE_OP_DELETE, "OLD");
    add(maker, " WHERE NOT (");
    add_same_key(maker);
    add(maker, ");");
    add_log_values(maker, TIDE_SQLITE_OP_UPDATE, "NEW");
    finish(maker);
}

/* OR REPLACE turns NULL into the default after BEFORE triggers have run. */
static void make_after_update(struct maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    const char *separator = " ";
    for (size_t i = 0; table->identity != TIDE_SQLITE_INTEGER_KEY && i < table->key_count; i++) {
        const struct tide_sqlite_column *column = &table->columns[table->key_columns[i]];
        if (!has_filled_default(column)) {
            continue;
        }
        if (separator[0] == ' ') {
            start(maker, "ak", " AFTER UPDATE OF");
        }
        add(maker, separator);
        add_name(maker, column->name);
        separator = ", ";
    }
    if (separator[0] == ' ') {
        return;
    }
    add_on(maker);
    add(maker, " BEGIN");
    add_log_values(maker, TIDE_SQLITE_OP_UPDATE, "NEW");
    finish(maker);
}

static void make_one(struct maker *maker, const char *suffix, const char *when,
                     enum tide_sqlite_op op, const char *row)
{
    start(maker, suffix, when);
    add_on(maker);
    add(maker, " BEGIN");
    add_log_values(maker, op, row);
    finish(maker);
}

size_t tide_sqlite_triggers_make(const struct tide_sqlite_table *table, struct tide_arena *arena,
                                 struct tide_sqlite_trigger ret_triggers[TIDE_SQLITE_TRIGGERS_MAX])
{
    TIDE_ASSERT(table->identity != TIDE_SQLITE_NOT_FOLLOWED);
    TIDE_ASSERT(table->number > 0);
    struct maker maker = {.table = table, .arena = arena, .triggers = ret_triggers};
    make_before_insert(&maker);
    make_before_update_of(&maker);
    make_before_update(&maker);
    make_before_rowid_update(&maker);
    make_update(&maker);
    make_after_update(&maker);
    make_one(&maker, "ad", " BEFORE DELETE", TIDE_SQLITE_OP_DELETE, "OLD");
    make_one(&maker, "ai", " AFTER INSERT", TIDE_SQLITE_OP_INSERT, "NEW");
    tide_buf_done(&maker.sql);
    return maker.count;
}
