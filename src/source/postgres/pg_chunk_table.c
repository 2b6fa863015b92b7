#include "source/postgres/pg_chunk_table.h"

#include "base/alloc.h"
#include "source/postgres/pg_catalogue.h"

#include <stdlib.h>
#include <string.h>

void tide_pg_chunk_table_free(struct tide_pg_chunk_table *table)
{
    if (table == NULL) {
        return;
    }
    tide_pg_table_free(table->table);
    tide_relation_unref(table->relation);
    tide_pg_scratch_done(&table->scratch);
    tide_arena_done(&table->arena);
    free(table);
}

static void free_table(struct tide_pg_chunk_table **table)
{
    tide_pg_chunk_table_free(*table);
}

/* Types may have changed: the values read alike. */
static bool has_same_names(const struct tide_relation *a, const struct tide_relation *b)
{
    if (a->column_count != b->column_count || a->key_count != b->key_count) {
        return false;
    }
    for (size_t i = 0; i < a->column_count; i++) {
        if (!tide_str_equal(a->columns[i].name, b->columns[i].name)) {
            return false;
        }
    }
    return memcmp(a->key_columns, b->key_columns, a->key_count * sizeof(*a->key_columns)) == 0;
}

static tide_status check_shape(const struct tide_pg_chunk_table *table, struct tide_error *err)
{
    const struct tide_pg_table *now = table->table;
    if (now->relation == NULL) {
        return tide_fail(err, TIDE_UNSUPPORTED, "table %.*s.%.*s can no longer be copied: %.*s",
                         TIDE_STR_ARG(now->schema), TIDE_STR_ARG(now->name),
                         TIDE_STR_ARG(now->problem));
    }
    if (!has_same_names(now->relation, table->relation)) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s.%.*s has other columns or another key than when its copy was "
                         "begun; start its copy anew",
                         TIDE_STR_ARG(now->schema), TIDE_STR_ARG(now->name));
    }
    return TIDE_OK;
}

static tide_status read_operators(struct tide_pg_chunk_table *table, struct tide_pg_conn *conn,
                                  struct tide_pg_wait wait, struct tide_error *err)
{
    struct tide_buf sql TIDE_CLEANUP(tide_buf_done) = {0};
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    tide_pg_chunk_operators_sql(table->table->oid, &sql);
    TIDE_TRY(tide_pg_query(conn, tide_buf_cstr(&sql), "read how the key is ordered", wait, &result,
                           err));
    size_t count = table->relation->key_count;
    if ((size_t)PQntuples(result) != count) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the index on the key of table %.*s.%.*s has "
                         "another number of columns than the key",
                         TIDE_STR_ARG(table->table->schema), TIDE_STR_ARG(table->table->name));
    }
    table->operators = tide_arena_alloc(&table->arena, count, sizeof(*table->operators));
    table->collations = tide_arena_alloc(&table->arena, count, sizeof(*table->collations));
    for (size_t i = 0; i < count; i++) {
        table->collations[i] = tide_pg_result_u64(result, (int)i, 0);
        table->operators[i] = (struct tide_pg_key_operators){
            .greater = tide_arena_str(&table->arena, tide_pg_result_str(result, (int)i, 1)),
            .at_least = tide_arena_str(&table->arena, tide_pg_result_str(result, (int)i, 2)),
            .equal = tide_arena_str(&table->arena, tide_pg_result_str(result, (int)i, 3)),
        };
    }
    return TIDE_OK;
}

static bool is_in_key(const struct tide_relation *relation, size_t column)
{
    for (size_t i = 0; i < relation->key_count; i++) {
        if (relation->key_columns[i] == column) {
            return true;
        }
    }
    return false;
}

static void choose_rules(struct tide_pg_chunk_table *table)
{
    const struct tide_pg_table *now = table->table;
    table->rules = tide_arena_alloc(&table->arena, now->column_count, sizeof(*table->rules));
    table->fields = tide_arena_alloc(&table->arena, now->column_count, sizeof(*table->fields));
    for (size_t i = 0; i < now->column_count; i++) {
        table->rules[i] =
            tide_pg_rule_of(now->columns[i].type.value_oid, is_in_key(now->relation, i));
    }
}

tide_status tide_pg_chunk_table_read(struct tide_pg_conn *conn, tide_str connection,
                                     const struct tide_relation *relation, tide_str shape,
                                     struct tide_pg_wait wait,
                                     struct tide_pg_chunk_table **ret_table, struct tide_error *err)
{
    struct tide_pg_chunk_table *table TIDE_CLEANUP(free_table) = tide_alloc(1, sizeof(*table));
    table->relation = tide_relation_ref(relation);
    table->shape = tide_arena_str(&table->arena, shape);
    TIDE_TRY(
        tide_pg_table_read(conn, connection, (uint32_t)relation->id, wait, &table->table, err));
    TIDE_TRY(check_shape(table, err));
    TIDE_TRY(read_operators(table, conn, wait, err));
    choose_rules(table);
    *ret_table = table;
    table = NULL;
    return TIDE_OK;
}

static bool is_one_of(tide_str type, const tide_str *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(type, types[i])) {
            return true;
        }
    }
    return false;
}

static bool is_text(tide_str type)
{
    return tide_str_equal(type, TIDE_STR("text")) ||
           tide_str_starts_with(type, TIDE_STR("character varying"));
}

/* Whether values keep their order, and their text, when a column changes from one type to the
 * other. */
static bool is_same_order(tide_str before, tide_str now)
{
    static const tide_str integers[] = {
        {"smallint", 8},
        {"integer", 7},
        {"bigint", 6},
    };
    size_t count = sizeof(integers) / sizeof(integers[0]);
    return tide_str_equal(before, now) || (is_text(before) && is_text(now)) ||
           (is_one_of(before, integers, count) && is_one_of(now, integers, count));
}

tide_status tide_pg_chunk_table_keeps_order(const struct tide_pg_chunk_table *table,
                                            const struct tide_pg_chunk_table *before,
                                            struct tide_error *err)
{
    const struct tide_relation *relation = table->relation;
    for (size_t i = 0; i < relation->key_count; i++) {
        uint32_t column = relation->key_columns[i];
        tide_str type = table->table->columns[column].type.name;
        if (!is_same_order(relation->columns[column].type, type) ||
            (before != NULL && before->collations[i] != table->collations[i])) {
            return tide_fail(err, TIDE_UNSUPPORTED,
                             "column %.*s of the key of table %.*s.%.*s has another type or "
                             "collation than when its copy was begun, so its rows have another "
                             "order; start its copy anew",
                             TIDE_STR_ARG(relation->columns[column].name),
                             TIDE_STR_ARG(table->table->schema), TIDE_STR_ARG(table->table->name));
        }
    }
    return TIDE_OK;
}
