#include "source/postgres/pg_row.h"

/* What all steps need. */
struct row_maker {
    const struct tide_relation *relation;
    const struct tide_pg_rule *rules;
    struct tide_arena *arena;
    struct tide_pg_scratch *scratch;
};

static tide_status fail_column(const struct row_maker *maker, size_t column, struct tide_error *err)
{
    return tide_fail_context(err, "column %.*s",
                             TIDE_STR_ARG(maker->relation->columns[column].name));
}

static tide_status check_count(const struct row_maker *maker,
                               const struct tide_pgoutput_tuple *tuple, struct tide_error *err)
{
    if (tuple->count != maker->relation->column_count) {
        return tide_fail(err, TIDE_CORRUPT, "a row of %zu columns where %zu were described",
                         tuple->count, maker->relation->column_count);
    }
    return TIDE_OK;
}

static tide_status whole_row(const struct row_maker *maker, const struct tide_pgoutput_tuple *tuple,
                             struct tide_value **ret_values, struct tide_error *err)
{
    size_t at = 0;
    TIDE_TRY(check_count(maker, tuple, err));
    struct tide_value *values = tide_arena_alloc(maker->arena, tuple->count, sizeof(*values));
    if (tide_pg_row_values(maker->rules, tuple->fields, tuple->count, maker->arena, maker->scratch,
                           values, &at, err) != TIDE_OK) {
        return fail_column(maker, at, err);
    }
    *ret_values = values;
    return TIDE_OK;
}

/* Of an old tuple of kind K only the key means anything. */
static tide_status key_of_tuple(const struct row_maker *maker,
                                const struct tide_pgoutput_tuple *tuple,
                                struct tide_value **ret_key, struct tide_error *err)
{
    const struct tide_relation *relation = maker->relation;
    TIDE_TRY(check_count(maker, tuple, err));
    struct tide_value *key = tide_arena_alloc(maker->arena, relation->key_count, sizeof(*key));
    for (size_t k = 0; k < relation->key_count; k++) {
        uint32_t column = relation->key_columns[k];
        size_t at = 0;
        if (tide_pg_row_values(&maker->rules[column], &tuple->fields[column], 1, maker->arena,
                               maker->scratch, &key[k], &at, err) != TIDE_OK) {
            return fail_column(maker, column, err);
        }
    }
    *ret_key = key;
    return TIDE_OK;
}

static struct tide_value *key_of_row(const struct row_maker *maker, const struct tide_value *values)
{
    struct tide_value *key =
        tide_arena_alloc(maker->arena, maker->relation->key_count, sizeof(*key));
    tide_relation_key_of(maker->relation, values, key);
    return key;
}

static tide_status check_key(const struct row_maker *maker, const struct tide_value *key,
                             struct tide_error *err)
{
    for (size_t k = 0; k < maker->relation->key_count; k++) {
        if (key[k].kind == TIDE_VALUE_NULL || key[k].kind == TIDE_VALUE_UNCHANGED) {
            (void)tide_fail(err, TIDE_CORRUPT, "the row has no value in its key");
            return fail_column(maker, maker->relation->key_columns[k], err);
        }
    }
    return TIDE_OK;
}

/* The key as the row had it before; NULL: the message does not say. */
static tide_status old_key(const struct row_maker *maker,
                           const struct tide_pgoutput_change *message, struct tide_change *change,
                           struct tide_value **ret_key, struct tide_error *err)
{
    struct tide_value *key = NULL;
    struct tide_value *before = NULL;
    switch (message->old_kind) {
    case TIDE_PGOUTPUT_OLD_ROW:
        TIDE_TRY(whole_row(maker, &message->old_tuple, &before, err));
        key = key_of_row(maker, before);
        break;
    case TIDE_PGOUTPUT_OLD_KEY:
        TIDE_TRY(key_of_tuple(maker, &message->old_tuple, &key, err));
        break;
    case TIDE_PGOUTPUT_OLD_NONE:
        break;
    }
    if (key != NULL) {
        TIDE_TRY(check_key(maker, key, err));
    }
    change->before = before;
    *ret_key = key;
    return TIDE_OK;
}

static void fill_unsent(const struct row_maker *maker, const struct tide_value *before,
                        const struct tide_value *key, struct tide_value *values)
{
    const struct tide_relation *relation = maker->relation;
    for (size_t i = 0; before != NULL && i < relation->column_count; i++) {
        if (values[i].kind == TIDE_VALUE_UNCHANGED) {
            values[i] = before[i];
        }
    }
    for (size_t k = 0; key != NULL && k < relation->key_count; k++) {
        if (values[relation->key_columns[k]].kind == TIDE_VALUE_UNCHANGED) {
            values[relation->key_columns[k]] = key[k];
        }
    }
}

static bool is_same_key(const struct tide_relation *relation, const struct tide_value *a,
                        const struct tide_value *b)
{
    for (size_t k = 0; k < relation->key_count; k++) {
        if (!tide_value_equal(a[k], b[k])) {
            return false;
        }
    }
    return true;
}

static bool has_unsent(const struct tide_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == TIDE_VALUE_UNCHANGED) {
            return true;
        }
    }
    return false;
}

tide_status tide_pg_row_fill(const struct tide_pg_followed *table,
                             const struct tide_pgoutput_change *message, struct tide_arena *arena,
                             struct tide_pg_scratch *scratch, struct tide_change *change,
                             struct tide_error *err)
{
    struct row_maker maker = {table->relation, table->rules, arena, scratch};
    struct tide_value *was = NULL;
    TIDE_TRY(old_key(&maker, message, change, &was, err));
    if (change->op == TIDE_OP_DELETE) {
        change->key = was;
        return was != NULL ? TIDE_OK : tide_fail(err, TIDE_CORRUPT, "a delete without a key");
    }
    struct tide_value *values = NULL;
    TIDE_TRY(whole_row(&maker, &message->new_tuple, &values, err));
    fill_unsent(&maker, change->before, was, values);
    struct tide_value *key = key_of_row(&maker, values);
    TIDE_TRY(check_key(&maker, key, err));
    change->key = key;
    change->values = values;
    change->is_partial = has_unsent(values, table->relation->column_count);
    if (was != NULL && !is_same_key(table->relation, was, key)) {
        change->moved_from = was;
    }
    return TIDE_OK;
}
