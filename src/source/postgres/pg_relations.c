#include "source/postgres/pg_relations.h"

#include "base/alloc.h"

#include <stdlib.h>

/* One state of a table. The newest is in force. */
struct version {
    struct version *older;
    struct tide_arena arena; /* of all below */
    const struct tide_relation *relation;
    const struct tide_pg_type *types; /* one for each column */
    const struct tide_pg_rule *rules;
    const struct tide_pgoutput_relation *message; /* NULL: as the catalogue had it */
};

struct entry {
    struct tide_pg_followed followed;
    struct version *newest;
};

struct tide_pg_relations {
    char *connection;
    struct tide_pg_type_lookup lookup;
    struct entry *entries; /* by oid */
    size_t count;
    struct entry *last; /* found: changes come in runs */
};

/* Making and freeing */

static bool is_key_column(const struct tide_relation *relation, size_t column)
{
    for (size_t k = 0; k < relation->key_count; k++) {
        if (relation->key_columns[k] == column) {
            return true;
        }
    }
    return false;
}

static const struct tide_pg_rule *make_rules(struct tide_arena *arena,
                                             const struct tide_relation *relation,
                                             const struct tide_pg_type *types)
{
    struct tide_pg_rule *rules = tide_arena_alloc(arena, relation->column_count, sizeof(*rules));
    for (size_t i = 0; i < relation->column_count; i++) {
        rules[i] = tide_pg_rule_of(types[i].value_oid, is_key_column(relation, i));
    }
    return rules;
}

static void put_in_force(struct entry *entry, struct version *version)
{
    version->older = entry->newest;
    entry->newest = version;
    entry->followed.relation = version->relation;
    entry->followed.rules = version->rules;
}

static void add_table(struct entry *entry, const struct tide_pg_table *table)
{
    struct version *version = tide_alloc(1, sizeof(*version));
    struct tide_pg_type *types =
        tide_arena_alloc(&version->arena, table->column_count, sizeof(*types));
    for (size_t i = 0; i < table->column_count; i++) {
        types[i] = table->columns[i].type;
        types[i].name = tide_arena_str(&version->arena, types[i].name);
    }
    version->types = types;
    version->relation = tide_relation_ref(table->relation);
    version->rules = make_rules(&version->arena, version->relation, types);
    entry->followed.oid = table->oid;
    put_in_force(entry, version);
}

static int compare_entries(const void *a, const void *b)
{
    uint32_t left = ((const struct entry *)a)->followed.oid;
    uint32_t right = ((const struct entry *)b)->followed.oid;
    return (left > right) - (left < right);
}

struct tide_pg_relations *tide_pg_relations_new(tide_str connection,
                                                const struct tide_pg_tables *tables,
                                                struct tide_pg_type_lookup lookup)
{
    struct tide_pg_relations *relations = tide_alloc(1, sizeof(*relations));
    relations->connection = tide_strndup(connection.ptr, connection.len);
    relations->lookup = lookup;
    relations->entries = tide_alloc(tables->count, sizeof(*relations->entries));
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->relation != NULL) {
            add_table(&relations->entries[relations->count++], tables->items[i]);
        }
    }
    if (relations->count > 0) {
        qsort(relations->entries, relations->count, sizeof(*relations->entries), compare_entries);
    }
    return relations;
}

static void version_free(struct version *version)
{
    tide_relation_unref(version->relation);
    tide_arena_done(&version->arena);
    free(version);
}

void tide_pg_relations_free(struct tide_pg_relations *relations)
{
    if (relations == NULL) {
        return;
    }
    for (size_t i = 0; i < relations->count; i++) {
        while (relations->entries[i].newest != NULL) {
            struct version *older = relations->entries[i].newest->older;
            version_free(relations->entries[i].newest);
            relations->entries[i].newest = older;
        }
    }
    free(relations->entries);
    free(relations->connection);
    free(relations);
}

void tide_pg_relations_restart(struct tide_pg_relations *relations)
{
    for (size_t i = 0; i < relations->count; i++) {
        relations->entries[i].followed.is_described = false;
    }
}

/* Finding */

static struct entry *find(struct tide_pg_relations *relations, uint32_t oid)
{
    if (relations->last != NULL && relations->last->followed.oid == oid) {
        return relations->last;
    }
    size_t low = 0;
    size_t high = relations->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (relations->entries[middle].followed.oid < oid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == relations->count || relations->entries[low].followed.oid != oid) {
        return NULL;
    }
    relations->last = &relations->entries[low];
    return relations->last;
}

const struct tide_pg_followed *tide_pg_relations_find(struct tide_pg_relations *relations,
                                                      uint32_t oid)
{
    struct entry *entry = find(relations, oid);
    return entry == NULL ? NULL : &entry->followed;
}

/* Describing */

static tide_status fail_key(const struct tide_relation *relation, struct tide_error *err)
{
    return tide_fail(err, TIDE_UNSUPPORTED,
                     "the primary key of table %.*s.%.*s is not the one the copy was begun with; "
                     "put it back, or start anew in another state directory",
                     TIDE_STR_ARG(relation->schema), TIDE_STR_ARG(relation->name));
}

static bool find_column(const struct tide_pgoutput_relation *message, tide_str name,
                        uint32_t *ret_index)
{
    for (size_t i = 0; i < message->column_count; i++) {
        if (tide_str_equal(message->columns[i].name, name)) {
            *ret_index = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static size_t count_identity(const struct tide_pgoutput_relation *message)
{
    size_t count = 0;
    for (size_t i = 0; i < message->column_count; i++) {
        count += message->columns[i].is_key;
    }
    return count;
}

/* Where the key's columns are now. Unless the identity is the whole row, it must be the key. */
static tide_status place_key(const struct tide_relation *relation,
                             const struct tide_pgoutput_relation *message, uint32_t *ret_columns,
                             struct tide_error *err)
{
    bool is_full = message->identity == TIDE_PG_IDENTITY_FULL;
    bool is_index = message->identity == TIDE_PG_IDENTITY_INDEX;
    bool is_same = is_full || count_identity(message) == relation->key_count;
    for (size_t k = 0; k < relation->key_count; k++) {
        tide_str name = relation->columns[relation->key_columns[k]].name;
        if (!find_column(message, name, &ret_columns[k])) {
            return fail_key(relation, err);
        }
        is_same = is_same && (is_full || message->columns[ret_columns[k]].is_key);
    }
    if (is_same) {
        return TIDE_OK;
    }
    if (is_index || message->identity == TIDE_PG_IDENTITY_NOTHING) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s.%.*s tells its changes by something else than its primary "
                         "key; run ALTER TABLE %.*s.%.*s REPLICA IDENTITY DEFAULT, and start anew "
                         "in another state directory",
                         TIDE_STR_ARG(message->schema), TIDE_STR_ARG(message->name),
                         TIDE_STR_ARG(message->schema), TIDE_STR_ARG(message->name));
    }
    return fail_key(relation, err);
}

/* The type of a column that some known state of the table has, else as the server knows it. A type
 * that is gone has no name; its values are text. */
static tide_status find_type(struct tide_pg_relations *relations, const struct version *known,
                             const struct tide_pgoutput_column *column, struct tide_arena *arena,
                             struct tide_pg_type *ret_type, struct tide_error *err)
{
    for (size_t i = 0; i < known->relation->column_count; i++) {
        if (known->types[i].oid == column->type_oid &&
            known->types[i].modifier == column->type_modifier) {
            *ret_type = known->types[i];
            ret_type->name = tide_arena_str(arena, ret_type->name);
            return TIDE_OK;
        }
    }
    tide_status status = relations->lookup.look(relations->lookup.context, column->type_oid,
                                                column->type_modifier, arena, ret_type, err);
    if (status == TIDE_UNSUPPORTED) {
        *ret_type = (struct tide_pg_type){
            .oid = column->type_oid,
            .modifier = column->type_modifier,
            .value_oid = column->type_oid,
        };
        return TIDE_OK;
    }
    return status;
}

/* Keeps the relation when nothing of its shape differs. */
static void settle_relation(struct tide_pg_relations *relations, const struct version *known,
                            struct version *version, const uint32_t *key_columns)
{
    const struct tide_pgoutput_relation *message = version->message;
    struct tide_column *columns =
        tide_arena_alloc(&version->arena, message->column_count, sizeof(*columns));
    for (size_t i = 0; i < message->column_count; i++) {
        columns[i] =
            (struct tide_column){.name = message->columns[i].name, .type = version->types[i].name};
    }
    struct tide_relation *made = tide_relation_new(&(struct tide_relation_spec){
        .id = message->oid,
        .connection = tide_str_from(relations->connection),
        .schema = message->schema,
        .name = message->name,
        .columns = columns,
        .column_count = message->column_count,
        .key_columns = key_columns,
        .key_count = known->relation->key_count,
    });
    if (tide_relation_same_shape(made, known->relation)) {
        version->relation = tide_relation_ref(known->relation);
        tide_relation_unref(made);
    } else {
        version->relation = made;
    }
}

static tide_status fill_version(struct tide_pg_relations *relations, const struct version *known,
                                const struct tide_pgoutput_relation *message,
                                struct version *version, struct tide_error *err)
{
    struct tide_arena *arena = &version->arena;
    size_t count = message->column_count;
    uint32_t *key_columns =
        tide_arena_alloc(arena, known->relation->key_count, sizeof(*key_columns));
    struct tide_pg_type *types = tide_arena_alloc(arena, count, sizeof(*types));
    TIDE_TRY(place_key(known->relation, message, key_columns, err));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(find_type(relations, known, &message->columns[i], arena, &types[i], err));
    }
    version->message = tide_pgoutput_relation_copy(arena, message);
    version->types = types;
    settle_relation(relations, known, version, key_columns);
    version->rules = make_rules(arena, version->relation, types);
    return TIDE_OK;
}

tide_status tide_pg_relations_describe(struct tide_pg_relations *relations,
                                       const struct tide_pgoutput_relation *message,
                                       struct tide_error *err)
{
    struct entry *entry = find(relations, message->oid);
    if (entry == NULL) {
        return TIDE_OK;
    }
    const struct version *known = entry->newest;
    if (known->message == NULL || !tide_pgoutput_relation_equal(known->message, message)) {
        struct version *version = tide_alloc(1, sizeof(*version));
        tide_status status = fill_version(relations, known, message, version, err);
        if (status != TIDE_OK) {
            version_free(version);
            return status;
        }
        put_in_force(entry, version);
    }
    entry->followed.is_described = true;
    entry->followed.is_full = message->identity == TIDE_PG_IDENTITY_FULL;
    return TIDE_OK;
}
