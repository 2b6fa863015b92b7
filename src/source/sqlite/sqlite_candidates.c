/*
 * Candidates: the rows that REPLACE may remove when a row is inserted or updated. A BEFORE trigger
 * looks for rows that are equal to NEW by a UNIQUE index; the reader sees later which are gone.
 */
#include "source/sqlite/sqlite_maker.h"

#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_tokens.h"

#include <inttypes.h>

void tide_sqlite_put(struct tide_sqlite_maker *maker, const char *text)
{
    tide_buf_append_str(&maker->sql, tide_str_from(text));
}

void tide_sqlite_put_name(struct tide_sqlite_maker *maker, tide_str name)
{
    tide_sqlite_append_name(&maker->sql, name);
}

/* `row."name"`; row is OLD, NEW or o. */
void tide_sqlite_put_of(struct tide_sqlite_maker *maker, const char *row, tide_str name)
{
    tide_sqlite_put(maker, row);
    tide_sqlite_put(maker, ".");
    tide_sqlite_put_name(maker, name);
}

tide_str tide_sqlite_key_name(const struct tide_sqlite_table *table, size_t i)
{
    return table->identity == TIDE_SQLITE_ROWID ? table->rowid_name
                                                : table->columns[table->key_columns[i]].name;
}

/* INSERT INTO log (t, op, k1, …[, r]) */
void tide_sqlite_put_log(struct tide_sqlite_maker *maker)
{
    tide_sqlite_put(maker, " INSERT INTO \"" TIDE_SQLITE_LOG "\" (t, op");
    size_t width = tide_sqlite_table_log_width(maker->table);
    for (size_t i = 0; i < width; i++) {
        tide_buf_printf(&maker->sql, ", k%zu", i + 1);
    }
    tide_sqlite_put(maker, maker->table->is_nullable ? ", r)" : ")");
}

/* number, op, key[, rowid] of a row */
void tide_sqlite_put_entry(struct tide_sqlite_maker *maker, enum tide_sqlite_op op, const char *row)
{
    tide_buf_printf(&maker->sql, "%" PRId64 ", %d", maker->table->number, (int)op);
    size_t width = tide_sqlite_table_log_width(maker->table);
    for (size_t i = 0; i < width; i++) {
        tide_sqlite_put(maker, ", ");
        tide_sqlite_put_of(maker, row, tide_sqlite_key_name(maker->table, i));
    }
    if (maker->table->is_nullable) {
        tide_sqlite_put(maker, ", ");
        tide_sqlite_put_of(maker, row, maker->table->rowid_name);
    }
}

bool tide_sqlite_has_filled_default(const struct tide_sqlite_column *column)
{
    return column->is_not_null && column->default_text.ptr != NULL &&
           column->generated == TIDE_SQLITE_ORDINARY;
}

/* The value that the new row will have: OR REPLACE puts the default for a NULL. */
static void add_new_value(struct tide_sqlite_maker *maker, uint32_t index)
{
    const struct tide_sqlite_column *column = &maker->table->columns[index];
    if (!tide_sqlite_has_filled_default(column)) {
        tide_sqlite_put_of(maker, "NEW", column->name);
        return;
    }
    tide_sqlite_put(maker, "coalesce(");
    tide_sqlite_put_of(maker, "NEW", column->name);
    tide_sqlite_put(maker, ", (");
    tide_buf_append_str(&maker->sql, column->default_text);
    tide_sqlite_put(maker, "))");
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

static bool is_comparison(tide_str expression)
{
    static const char *const signs[] = {"=", "<", ">", "!", "IS", "IN", "BETWEEN", "CASE"};
    struct tide_sqlite_token token;
    for (size_t at = 0; tide_sqlite_token_next(expression, &at, &token);) {
        for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
            if (tide_sqlite_token_is(&token, signs[i])) {
                return true;
            }
        }
    }
    return false;
}

/* Whether what an expression gives may depend on the affinity of its columns: where it compares,
 * and where a default takes the affinity of its column when it is stored. */
static bool needs_affinity(const struct tide_sqlite_table *table,
                           const struct tide_sqlite_index *index)
{
    for (size_t i = 0; i < index->part_count; i++) {
        const struct tide_sqlite_part *part = &index->parts[i];
        for (size_t n = 0; n < part->column_name_count; n++) {
            if (tide_sqlite_has_filled_default(&table->columns[part->column_names[n]])) {
                return true;
            }
        }
        if (is_comparison(part->expression)) {
            return true;
        }
    }
    return false;
}

static const char *cast_type(enum tide_sqlite_affinity affinity)
{
    switch (affinity) {
    case TIDE_SQLITE_TEXT:
        return "TEXT";
    case TIDE_SQLITE_REAL:
        return "REAL";
    case TIDE_SQLITE_NUMERIC:
    case TIDE_SQLITE_INTEGER:
        return "NUMERIC";
    case TIDE_SQLITE_BLOB:
    default:
        return NULL;
    }
}

/*
 * A column of NEW as the expression is to see it. NEW's columns have no affinity, so that a
 * comparison in the expression would come out otherwise than in the index: `is_typed` gives it by a
 * CAST, which changes nothing in a value of the column's own class.
 */
static void add_column_value(struct tide_sqlite_maker *maker, uint32_t index, bool is_typed)
{
    const struct tide_sqlite_column *column = &maker->table->columns[index];
    const char *type = is_typed ? cast_type(column->affinity) : NULL;
    tide_sqlite_put(maker, type != NULL ? "CAST(" : "");
    add_new_value(maker, index);
    if (type != NULL) {
        tide_buf_printf(&maker->sql, " AS %s)", type);
    }
    if (!tide_sqlite_names_equal(column->collation, TIDE_STR("BINARY"))) {
        tide_sqlite_put(maker, " COLLATE ");
        tide_sqlite_put_name(maker, column->collation);
    }
    tide_sqlite_put(maker, " AS ");
    tide_sqlite_put_name(maker, column->name);
}

static void add_expression_condition(struct tide_sqlite_maker *maker,
                                     const struct tide_sqlite_part *part, bool is_typed)
{
    tide_sqlite_put(maker, "(");
    tide_buf_append_str(&maker->sql, part->expression);
    tide_sqlite_put(maker, ") COLLATE ");
    tide_sqlite_put_name(maker, part->collation);
    tide_sqlite_put(maker, " = (SELECT (");
    tide_buf_append_str(&maker->sql, part->expression);
    tide_sqlite_put(maker, ") FROM (SELECT ");
    for (size_t i = 0; i < part->column_name_count; i++) {
        tide_sqlite_put(maker, i > 0 ? ", " : "");
        add_column_value(maker, part->column_names[i], is_typed);
    }
    tide_sqlite_put(maker, part->column_name_count == 0 ? "1))" : "))");
}

static void add_rowid_condition(struct tide_sqlite_maker *maker)
{
    tide_sqlite_put_of(maker, "o", maker->table->rowid_name);
    tide_sqlite_put(maker, " = ");
    tide_sqlite_put_of(maker, "NEW", maker->table->rowid_name);
}

static void add_part_condition(struct tide_sqlite_maker *maker, const struct tide_sqlite_part *part,
                               bool is_typed)
{
    if (part->column == TIDE_SQLITE_PART_EXPRESSION) {
        add_expression_condition(maker, part, is_typed);
    } else if (part->column == TIDE_SQLITE_PART_ROWID) {
        add_rowid_condition(maker);
    } else {
        tide_sqlite_put_of(maker, "o", maker->table->columns[part->column].name);
        tide_sqlite_put(maker, " COLLATE ");
        tide_sqlite_put_name(maker, part->collation);
        tide_sqlite_put(maker, " = ");
        add_new_value(maker, (uint32_t)part->column);
    }
}

/* SQLite loads into NEW only the columns that a trigger names: without this it would compute a
 * generated column of NEW from NULLs. */
static void add_touches(struct tide_sqlite_maker *maker)
{
    for (size_t i = 0; i < maker->table->column_count; i++) {
        if (maker->table->columns[i].generated == TIDE_SQLITE_ORDINARY) {
            tide_sqlite_put(maker, " AND (");
            tide_sqlite_put_of(maker, "NEW", maker->table->columns[i].name);
            tide_sqlite_put(maker, " IS NULL OR 1)");
        }
    }
}

/* The row that is updated is no candidate. */
static void add_not_itself(struct tide_sqlite_maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    if (table->rowid_name.ptr != NULL) {
        tide_sqlite_put(maker, " AND ");
        tide_sqlite_put_of(maker, "o", table->rowid_name);
        tide_sqlite_put(maker, " <> ");
        tide_sqlite_put_of(maker, "OLD", table->rowid_name);
        return;
    }
    for (size_t i = 0; i < table->key_count; i++) {
        tide_sqlite_put(maker, i == 0 ? " AND (coalesce(" : " OR coalesce(");
        tide_sqlite_put_of(maker, "o", tide_sqlite_key_name(table, i));
        tide_sqlite_put(maker, " <> ");
        tide_sqlite_put_of(maker, "OLD", tide_sqlite_key_name(table, i));
        tide_sqlite_put(maker, ", 1)");
    }
    tide_sqlite_put(maker, ")");
}

static void start_candidate(struct tide_sqlite_maker *maker)
{
    tide_sqlite_put_log(maker);
    tide_sqlite_put(maker, " SELECT ");
    tide_sqlite_put_entry(maker, TIDE_SQLITE_OP_CANDIDATE, "o");
    tide_sqlite_put(maker, " FROM ");
    tide_sqlite_put_name(maker, maker->table->name);
    tide_sqlite_put(maker, " AS o WHERE ");
}

static void add_candidate(struct tide_sqlite_maker *maker, const struct tide_sqlite_index *index,
                          bool is_update, bool is_typed)
{
    start_candidate(maker);
    if (index->where.ptr != NULL) {
        tide_sqlite_put(maker, "(");
        tide_buf_append_str(&maker->sql, index->where);
        tide_sqlite_put(maker, ")");
    }
    for (size_t i = 0; i < index->part_count; i++) {
        tide_sqlite_put(maker, i > 0 || index->where.ptr != NULL ? " AND " : "");
        add_part_condition(maker, &index->parts[i], is_typed);
    }
    if (is_of_generated(maker->table, index)) {
        add_touches(maker);
    }
    if (is_update) {
        add_not_itself(maker);
    }
    tide_sqlite_put(maker, ";");
}

void tide_sqlite_put_rowid_candidate(struct tide_sqlite_maker *maker)
{
    start_candidate(maker);
    add_rowid_condition(maker);
    tide_sqlite_put(maker, ";");
}

size_t tide_sqlite_count_candidates(const struct tide_sqlite_table *table, bool want_simple)
{
    size_t count = 0;
    for (size_t i = 0; i < table->index_count; i++) {
        count += needs_candidates(table, i) && is_simple(table, &table->indexes[i]) == want_simple;
    }
    return count;
}

void tide_sqlite_put_candidates(struct tide_sqlite_maker *maker, bool want_simple, bool is_update)
{
    for (size_t i = 0; i < maker->table->index_count; i++) {
        const struct tide_sqlite_index *index = &maker->table->indexes[i];
        if (!needs_candidates(maker->table, i) || is_simple(maker->table, index) != want_simple) {
            continue;
        }
        add_candidate(maker, index, is_update, false);
        if (needs_affinity(maker->table,
                           index)) { /* what either way finds is marked: too much does no harm */
            add_candidate(maker, index, is_update, true);
        }
    }
}

bool tide_sqlite_is_in_simple_index(const struct tide_sqlite_table *table, uint32_t column)
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
