#include "model/relation.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/status.h"
#include "model/value.h"

#include <stdlib.h>

static tide_str dup_str(tide_str s)
{
    return (tide_str){tide_strndup(s.ptr, s.len), s.len};
}

static void free_str(tide_str s)
{
    free((void *)(uintptr_t)s.ptr);
}

static tide_str store_name(const struct tide_relation_spec *spec)
{
    struct tide_buf name = {0};
    tide_buf_append_str(&name, spec->connection);
    tide_buf_append_char(&name, '.');
    if (spec->schema.len > 0) {
        tide_buf_append_str(&name, spec->schema);
        tide_buf_append_char(&name, '.');
    }
    tide_buf_append_str(&name, spec->name);
    return tide_buf_str(&name);
}

struct tide_relation *tide_relation_new(const struct tide_relation_spec *spec)
{
    struct tide_relation *relation = tide_alloc(1, sizeof(*relation));
    relation->refs = 1;
    relation->id = spec->id;
    relation->schema = dup_str(spec->schema);
    relation->name = dup_str(spec->name);
    relation->store = store_name(spec);
    relation->column_count = spec->column_count;
    relation->columns = tide_alloc(spec->column_count, sizeof(*relation->columns));
    for (size_t i = 0; i < spec->column_count; i++) {
        relation->columns[i] = spec->columns[i];
        relation->columns[i].name = dup_str(spec->columns[i].name);
        relation->columns[i].type = dup_str(spec->columns[i].type);
    }
    relation->key_count = spec->key_count;
    relation->key_columns = tide_alloc(spec->key_count, sizeof(*relation->key_columns));
    for (size_t i = 0; i < spec->key_count; i++) {
        TIDE_ASSERT(spec->key_columns[i] < spec->column_count);
        relation->key_columns[i] = spec->key_columns[i];
    }
    return relation;
}

/* Counting is not a change that readers see. */
static struct tide_relation *counted(const struct tide_relation *relation)
{
    return (struct tide_relation *)(uintptr_t)relation;
}

const struct tide_relation *tide_relation_ref(const struct tide_relation *relation)
{
    (void)atomic_fetch_add_explicit(&counted(relation)->refs, 1, memory_order_relaxed);
    return relation;
}

void tide_relation_unref(const struct tide_relation *relation)
{
    if (relation == NULL ||
        atomic_fetch_sub_explicit(&counted(relation)->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < relation->column_count; i++) {
        free_str(relation->columns[i].name);
        free_str(relation->columns[i].type);
    }
    free(relation->columns);
    free(relation->key_columns);
    free_str(relation->schema);
    free_str(relation->name);
    free_str(relation->store);
    free(counted(relation));
}

bool tide_relation_same_columns(const struct tide_relation *a, const struct tide_relation *b)
{
    if (a == b) {
        return true;
    }
    if (a->column_count != b->column_count || a->key_count != b->key_count) {
        return false;
    }
    for (size_t i = 0; i < a->column_count; i++) {
        if (!tide_str_equal(a->columns[i].name, b->columns[i].name) ||
            a->columns[i].is_hidden != b->columns[i].is_hidden) {
            return false;
        }
    }
    return a->key_count == 0 ||
           memcmp(a->key_columns, b->key_columns, a->key_count * sizeof(*a->key_columns)) == 0;
}

bool tide_relation_same_shape(const struct tide_relation *a, const struct tide_relation *b)
{
    if (!tide_relation_same_columns(a, b) || !tide_str_equal(a->name, b->name) ||
        !tide_str_equal(a->schema, b->schema)) {
        return false;
    }
    for (size_t i = 0; i < a->column_count; i++) {
        if (!tide_str_equal(a->columns[i].type, b->columns[i].type)) {
            return false;
        }
    }
    return true;
}

void tide_relation_key_of(const struct tide_relation *relation, const struct tide_value *values,
                          struct tide_value *ret_key)
{
    for (size_t i = 0; i < relation->key_count; i++) {
        ret_key[i] = values[relation->key_columns[i]];
    }
}
