#include "source/postgres/pg_catalogue.h"

#include "base/alloc.h"
#include "source/postgres/pg_fit.h"

#include <stdio.h>
#include <stdlib.h>

/* Columns of the queries below. */
enum {
    T_OID,
    T_SCHEMA,
    T_NAME,
    T_KIND,
    T_PERSISTENCE,
    T_IDENTITY,
    T_IS_PARTITION,
    T_ROWS,
    T_PRIMARY,         /* name of its index */
    T_IS_IMMEDIATE,    /* not deferrable */
    T_PRIMARY_NUMBERS, /* attnums in key order, spaces between */
    T_PRIMARY_COLUMNS,
    T_IS_IDENTITY, /* the primary key is what REPLICA IDENTITY USING INDEX names */
    T_CANDIDATE,
    T_MAY_USE,
    T_MAY_READ,
    T_MAY_PUBLISH,
    T_HAS_POLICY,
    T_OWNER,
    T_USER,
    T_IS_OWNER_SUPERUSER,
};

/* clang-format off */
static const char tables_sql[] =
    "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,"
    " c.relispartition, c.reltuples::pg_catalog.int8, p.relname, i.indimmediate,"
    " (SELECT pg_catalog.string_agg(k.n::pg_catalog.text, ' ' ORDER BY k.place)"
    "  FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY k(n, place) WHERE k.place <= i.indnkeyatts),"
    " (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY k.place)"
    "  FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY k(n, place)"
    "  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n"
    "  WHERE k.place <= i.indnkeyatts),"
    " i.indisreplident,"
    " CASE WHEN i.indexrelid IS NULL THEN"
    "  (SELECT u.relname FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class u ON u.oid = x.indexrelid"
    "   WHERE x.indrelid = c.oid AND x.indisunique AND x.indisvalid AND x.indimmediate"
    "   AND x.indpred IS NULL AND x.indexprs IS NULL"
    "   AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint o WHERE o.conindid = x.indexrelid)"
    "   AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid"
    "    AND a.attnum = ANY (x.indkey::pg_catalog.int2[]) AND NOT a.attnotnull)"
    "   ORDER BY x.indnkeyatts, u.relname LIMIT 1) END,"
    " pg_catalog.has_schema_privilege(n.oid, 'USAGE'),"
    " pg_catalog.has_table_privilege(c.oid, 'SELECT'),"
    " pg_catalog.pg_has_role(c.relowner, 'USAGE'),"
    " pg_catalog.row_security_active(c.oid),"
    " pg_catalog.pg_get_userbyid(c.relowner), current_user,"
    " (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.oid = c.relowner)"
    " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indisvalid"
    " LEFT JOIN pg_catalog.pg_class p ON p.oid = i.indexrelid"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'"
    " AND pg_catalog.left(n.nspname::pg_catalog.text, 3) <> 'pg_'"
    " AND n.nspname <> 'information_schema'"
    " AND ($1::pg_catalog.oid = 0 OR c.oid = $1::pg_catalog.oid)"
    " ORDER BY n.nspname::pg_catalog.text COLLATE pg_catalog.\"C\","
    " c.relname::pg_catalog.text COLLATE pg_catalog.\"C\"";

enum { C_TABLE, C_NAME, C_NUMBER, C_TYPE, C_MODIFIER, C_TYPE_NAME, C_IS_NOT_NULL, C_IS_GENERATED,
       C_VALUE, C_KIND, C_ELEMENT };

/* What a type is under its domains (v), and under those of an array's elements (e). int2vector and
 * oidvector have elements too but are no arrays: nothing names them as its array. */
#define TYPE_SQL(type)                                                                             \
    " LEFT JOIN LATERAL (WITH RECURSIVE d(oid) AS (SELECT " type " UNION ALL"                      \
    "  SELECT t.typbasetype FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid"                     \
    "  WHERE t.typtype = 'd')"                                                                     \
    "  SELECT t.oid, t.typtype, t.typelem FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid"       \
    "  WHERE t.typtype <> 'd') v ON true"                                                          \
    " LEFT JOIN pg_catalog.pg_type m ON m.oid = v.typelem AND m.typarray = v.oid"                  \
    " LEFT JOIN LATERAL (WITH RECURSIVE d(oid) AS (SELECT m.oid UNION ALL"                         \
    "  SELECT t.typbasetype FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid"                     \
    "  WHERE t.typtype = 'd')"                                                                     \
    "  SELECT t.oid FROM d JOIN pg_catalog.pg_type t ON t.oid = d.oid"                             \
    "  WHERE t.typtype <> 'd') e ON true"

static const char columns_sql[] =
    "SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod,"
    " pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated <> '',"
    " v.oid, v.typtype, COALESCE(e.oid, 0)"
    " FROM pg_catalog.unnest($1::pg_catalog.oid[]) WITH ORDINALITY w(oid, place)"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = w.oid" TYPE_SQL("a.atttypid")
    " WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY w.place, a.attnum";

static const char type_sql[] =
    "SELECT pg_catalog.format_type($1::pg_catalog.oid, $2::pg_catalog.int4),"
    " v.oid, v.typtype, COALESCE(e.oid, 0) FROM pg_catalog.pg_type a" TYPE_SQL("a.oid")
    " WHERE a.oid = $1::pg_catalog.oid";

/* clang-format on */

void tide_pg_table_free(struct tide_pg_table *table)
{
    if (table == NULL) {
        return;
    }
    tide_relation_unref(table->relation);
    tide_arena_done(&table->arena);
    free(table);
}

void tide_pg_tables_done(struct tide_pg_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++) {
        tide_pg_table_free(tables->items[i]);
    }
    free(tables->items);
    *tables = (struct tide_pg_tables){0};
}

bool tide_pg_tables_have(const struct tide_pg_tables *tables, uint32_t oid)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->oid == oid) {
            return tables->items[i]->relation != NULL;
        }
    }
    return false;
}

static char first_char(const PGresult *result, int row, int column)
{
    tide_str text = tide_pg_result_str(result, row, column);
    return text.len == 0 ? '\0' : text.ptr[0];
}

static struct tide_pg_table *table_of_row(const PGresult *result, int row)
{
    struct tide_pg_table *table = tide_alloc(1, sizeof(*table));
    table->oid = (uint32_t)tide_pg_result_u64(result, row, T_OID);
    table->schema = tide_arena_str(&table->arena, tide_pg_result_str(result, row, T_SCHEMA));
    table->name = tide_arena_str(&table->arena, tide_pg_result_str(result, row, T_NAME));
    table->kind = first_char(result, row, T_KIND);
    table->is_partition = tide_pg_result_bool(result, row, T_IS_PARTITION);
    table->rows = tide_pg_result_i64(result, row, T_ROWS);
    table->has_key = tide_pg_result_bool(result, row, T_IS_IMMEDIATE);
    char identity = first_char(result, row, T_IDENTITY);
    table->identity = (enum tide_pg_identity)identity;
    if (identity == TIDE_PG_IDENTITY_INDEX && tide_pg_result_bool(result, row, T_IS_IDENTITY)) {
        table->identity = TIDE_PG_IDENTITY_KEY;
    }
    return table;
}

static struct tide_pg_facts facts_of_row(const PGresult *result, int row)
{
    return (struct tide_pg_facts){
        .has_primary = !PQgetisnull(result, row, T_PRIMARY),
        .primary_name = tide_pg_result_str(result, row, T_PRIMARY),
        .primary_columns = tide_pg_result_str(result, row, T_PRIMARY_COLUMNS),
        .candidate = tide_pg_result_str(result, row, T_CANDIDATE),
        .is_unlogged = first_char(result, row, T_PERSISTENCE) == 'u',
        .may_use_schema = tide_pg_result_bool(result, row, T_MAY_USE),
        .may_read = tide_pg_result_bool(result, row, T_MAY_READ),
        .may_publish = tide_pg_result_bool(result, row, T_MAY_PUBLISH),
        .has_policy = tide_pg_result_bool(result, row, T_HAS_POLICY),
        .owner = tide_pg_result_str(result, row, T_OWNER),
        .is_owner_superuser = tide_pg_result_bool(result, row, T_IS_OWNER_SUPERUSER),
        .user = tide_pg_result_str(result, row, T_USER),
    };
}

static void fill_type(const PGresult *result, int row, struct tide_pg_column *column,
                      struct tide_arena *arena)
{
    column->type = (struct tide_pg_type){
        .oid = (uint32_t)tide_pg_result_u64(result, row, C_TYPE),
        .modifier = (int32_t)tide_pg_result_i64(result, row, C_MODIFIER),
        .name = tide_arena_str(arena, tide_pg_result_str(result, row, C_TYPE_NAME)),
        .value_oid = (uint32_t)tide_pg_result_u64(result, row, C_VALUE),
        .element_oid = (uint32_t)tide_pg_result_u64(result, row, C_ELEMENT),
        .kind = first_char(result, row, C_KIND),
    };
}

/* Rows [at, end) of the columns' result are the table's. */
static void fill_columns(struct tide_pg_table *table, const PGresult *result, int at, int end)
{
    size_t count = (size_t)(end - at);
    table->columns = tide_arena_alloc(&table->arena, count, sizeof(*table->columns));
    table->generated = tide_arena_alloc(&table->arena, count, sizeof(*table->generated));
    for (int row = at; row < end; row++) {
        tide_str name = tide_arena_str(&table->arena, tide_pg_result_str(result, row, C_NAME));
        if (tide_pg_result_bool(result, row, C_IS_GENERATED)) {
            table->generated[table->generated_count++] = name;
            continue;
        }
        struct tide_pg_column *column = &table->columns[table->column_count++];
        *column = (struct tide_pg_column){
            .name = name,
            .attnum = (int16_t)tide_pg_result_i64(result, row, C_NUMBER),
            .is_not_null = tide_pg_result_bool(result, row, C_IS_NOT_NULL),
        };
        fill_type(result, row, column, &table->arena);
    }
}

/* The key's columns as indexes, from "1 3"; false: one of them is generated. */
static bool find_key(const struct tide_pg_table *table, tide_str numbers, uint32_t *ret_columns,
                     size_t *ret_count)
{
    size_t count = 0;
    for (size_t at = 0; at < numbers.len;) {
        const char *start = numbers.ptr + at;
        const char *space = memchr(start, ' ', numbers.len - at);
        size_t len = space == NULL ? numbers.len - at : (size_t)(space - start);
        int64_t number = 0;
        TIDE_ASSERT(tide_str_to_i64(tide_str_of(start, len), &number));
        uint32_t column = 0;
        while (column < table->column_count && table->columns[column].attnum != number) {
            column++;
        }
        if (column == table->column_count || count == table->column_count) {
            return false;
        }
        ret_columns[count++] = column;
        at += len + 1;
    }
    *ret_count = count;
    return true;
}

static void make_relation(struct tide_pg_table *table, tide_str connection,
                          const uint32_t *key_columns, size_t key_count)
{
    struct tide_column *columns =
        tide_arena_alloc(&table->arena, table->column_count, sizeof(*columns));
    for (size_t i = 0; i < table->column_count; i++) {
        columns[i] = (struct tide_column){.name = table->columns[i].name,
                                          .type = table->columns[i].type.name};
    }
    struct tide_relation_spec spec = {
        .id = table->oid,
        .connection = connection,
        .schema = table->schema,
        .name = table->name,
        .columns = columns,
        .column_count = table->column_count,
        .key_columns = key_columns,
        .key_count = key_count,
    };
    table->relation = tide_relation_new(&spec);
}

static void finish_table(struct tide_pg_table *table, tide_str connection, const PGresult *tables,
                         int row)
{
    struct tide_pg_facts facts = facts_of_row(tables, row);
    uint32_t *key = tide_arena_alloc(&table->arena, table->column_count, sizeof(*key));
    size_t key_count = 0;
    tide_str numbers = tide_pg_result_str(tables, row, T_PRIMARY_NUMBERS);
    facts.is_key_generated = !find_key(table, numbers, key, &key_count);
    tide_pg_fit(table, &facts);
    if (table->problem.len == 0) {
        make_relation(table, connection, key, key_count);
    }
}

struct choice {
    bool is_one; /* asked for by its oid: globs do not matter */
    const tide_str *globs;
    size_t glob_count;
};

static bool choose_row(const PGresult *result, int row, const struct choice *choice,
                       bool *ret_is_named)
{
    bool is_named = false;
    if (choice->is_one) {
        return true;
    }
    if (!tide_pg_globs_choose(choice->globs, choice->glob_count,
                              tide_pg_result_str(result, row, T_SCHEMA),
                              tide_pg_result_str(result, row, T_NAME), &is_named)) {
        return false;
    }
    *ret_is_named = is_named;
    char kind = first_char(result, row, T_KIND);
    bool is_plain =
        (kind == 'r' || kind == 'p') && !tide_pg_result_bool(result, row, T_IS_PARTITION);
    return is_plain || is_named;
}

static tide_status read_columns(struct tide_pg_conn *conn, const struct tide_pg_tables *tables,
                                struct tide_pg_wait wait, PGresult **ret_result,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf oids = {0};
    tide_buf_append_char(&oids, '{');
    for (size_t i = 0; i < tables->count; i++) {
        tide_buf_printf(&oids, "%s%u", i == 0 ? "" : ",", tables->items[i]->oid);
    }
    tide_buf_append_char(&oids, '}');
    const char *params[] = {tide_buf_cstr(&oids)};
    return tide_pg_query_params(conn, columns_sql, params, 1, "read the columns", wait, ret_result,
                                err);
}

/* Gives each table its rows of the columns' result, which come in the order of the tables. */
static void spread_columns(struct tide_pg_tables *tables, const PGresult *result)
{
    int count = PQntuples(result);
    int at = 0;
    for (size_t i = 0; i < tables->count; i++) {
        int end = at;
        while (end < count && tide_pg_result_u64(result, end, C_TABLE) == tables->items[i]->oid) {
            end++;
        }
        fill_columns(tables->items[i], result, at, end);
        at = end;
    }
}

static tide_status read_chosen(struct tide_pg_conn *conn, tide_str connection, uint32_t oid,
                               const struct choice *choice, struct tide_pg_wait wait,
                               struct tide_pg_tables *ret_tables, struct tide_error *err)
{
    char oid_text[16];
    (void)snprintf(oid_text, sizeof(oid_text), "%u", oid);
    const char *params[] = {oid_text};
    TIDE_CLEANUP(tide_pg_result_done) PGresult *rows = NULL;
    TIDE_TRY(
        tide_pg_query_params(conn, tables_sql, params, 1, "read the tables", wait, &rows, err));

    TIDE_CLEANUP(tide_pg_tables_done) struct tide_pg_tables tables = {0};
    int count = PQntuples(rows);
    TIDE_CLEANUP(tide_free_ptr) int *row_of = tide_alloc((size_t)count + 1, sizeof(*row_of));
    tables.items = tide_alloc((size_t)count + 1, sizeof(struct tide_pg_table *));
    for (int row = 0; row < count; row++) {
        bool is_named = false;
        if (choose_row(rows, row, choice, &is_named)) {
            struct tide_pg_table *table = table_of_row(rows, row);
            table->is_named = is_named;
            row_of[tables.count] = row;
            tables.items[tables.count++] = table;
        }
    }
    TIDE_CLEANUP(tide_pg_result_done) PGresult *columns = NULL;
    TIDE_TRY(read_columns(conn, &tables, wait, &columns, err));
    spread_columns(&tables, columns);
    for (size_t i = 0; i < tables.count; i++) {
        finish_table(tables.items[i], connection, rows, row_of[i]);
    }
    *ret_tables = tables;
    tables = (struct tide_pg_tables){0};
    return TIDE_OK;
}

static tide_status refuse_idle_globs(const struct tide_pg_conn *conn,
                                     const struct tide_pg_tables *tables,
                                     const struct choice *choice, struct tide_error *err)
{
    for (size_t i = 0; i < choice->glob_count; i++) {
        bool matches = false;
        for (size_t j = 0; j < tables->count && !matches; j++) {
            matches = tide_pg_globs_choose(&choice->globs[i], 1, tables->items[j]->schema,
                                           tables->items[j]->name, NULL);
        }
        if (!matches) {
            return tide_fail(err, TIDE_INVALID, "PostgreSQL %s has no table that matches %.*s",
                             conn->place, TIDE_STR_ARG(choice->globs[i]));
        }
    }
    return TIDE_OK;
}

tide_status tide_pg_tables_read(struct tide_pg_conn *conn, tide_str connection,
                                const tide_str *globs, size_t glob_count, struct tide_pg_wait wait,
                                struct tide_pg_tables *ret_tables, struct tide_error *err)
{
    struct choice choice = {.globs = globs, .glob_count = glob_count};
    TIDE_CLEANUP(tide_pg_tables_done) struct tide_pg_tables tables = {0};
    TIDE_TRY(read_chosen(conn, connection, 0, &choice, wait, &tables, err));
    TIDE_TRY(refuse_idle_globs(conn, &tables, &choice, err));
    *ret_tables = tables;
    tables = (struct tide_pg_tables){0};
    return TIDE_OK;
}

tide_status tide_pg_table_read(struct tide_pg_conn *conn, tide_str connection, uint32_t oid,
                               struct tide_pg_wait wait, struct tide_pg_table **ret_table,
                               struct tide_error *err)
{
    struct choice choice = {.is_one = true};
    TIDE_CLEANUP(tide_pg_tables_done) struct tide_pg_tables tables = {0};
    TIDE_TRY(read_chosen(conn, connection, oid, &choice, wait, &tables, err));
    if (oid == 0 || tables.count != 1) {
        return tide_fail(err, TIDE_UNSUPPORTED, "PostgreSQL %s: the table with oid %u is gone",
                         conn->place, oid);
    }
    *ret_table = tables.items[0];
    tables.count = 0;
    return TIDE_OK;
}

tide_status tide_pg_tables_refuse(const struct tide_pg_tables *tables, struct tide_error *err)
{
    const struct tide_pg_table *worst = NULL;
    size_t good = 0;
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        good += table->problem.len == 0;
        worst = worst == NULL && table->problem.len > 0 ? table : worst;
        if (table->problem.len > 0 && (table->is_named || table->is_right_missing)) {
            good = 0;
            worst = table;
            break;
        }
    }
    if (good > 0) {
        return TIDE_OK;
    }
    if (worst == NULL) {
        return tide_fail(err, TIDE_INVALID, "there is no table to follow in this database");
    }
    return tide_fail(
        err, TIDE_INVALID, "table %.*s.%.*s %.*s%s%.*s", TIDE_STR_ARG(worst->schema),
        TIDE_STR_ARG(worst->name), TIDE_STR_ARG(worst->problem),
        worst->remedy.len == 0 ? "" : "; what mends it: ", TIDE_STR_ARG(worst->remedy));
}

tide_status tide_pg_type_read(struct tide_pg_conn *conn, uint32_t oid, int32_t modifier,
                              struct tide_pg_wait wait, struct tide_arena *arena,
                              struct tide_pg_type *ret_type, struct tide_error *err)
{
    char oid_text[16];
    char modifier_text[16];
    (void)snprintf(oid_text, sizeof(oid_text), "%u", oid);
    (void)snprintf(modifier_text, sizeof(modifier_text), "%d", modifier);
    const char *params[] = {oid_text, modifier_text};
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query_params(conn, type_sql, params, 2, "read a type", wait, &result, err));
    if (PQntuples(result) != 1) {
        return tide_fail(err, TIDE_UNSUPPORTED, "PostgreSQL %s: the type with oid %u is gone",
                         conn->place, oid);
    }
    *ret_type = (struct tide_pg_type){
        .oid = oid,
        .modifier = modifier,
        .name = tide_arena_str(arena, tide_pg_result_str(result, 0, 0)),
        .value_oid = (uint32_t)tide_pg_result_u64(result, 0, 1),
        .kind = first_char(result, 0, 2),
        .element_oid = (uint32_t)tide_pg_result_u64(result, 0, 3),
    };
    return TIDE_OK;
}
