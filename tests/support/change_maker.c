#include "change_maker.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void change_maker_done(struct change_maker *maker)
{
    tide_arena_done(&maker->arena);
}

/* splitmix64 */
static uint64_t next(struct change_maker *maker)
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t change_maker_below(struct change_maker *maker, uint64_t limit)
{
    return next(maker) % limit;
}

static bool chance(struct change_maker *maker, unsigned percent)
{
    return change_maker_below(maker, 100) < percent;
}

static const char *const names[] = {"id",    "name", "Name",       "_time",      "_TIME",
                                    "_op",   "_op_", "name#other", "id#kind",    "",
                                    "größe", "a b",  "quote\"",    "_unchanged", "_key"};

static const char *const pg_types[] = {"boolean",
                                       "smallint",
                                       "integer",
                                       "bigint",
                                       "real",
                                       "double precision",
                                       "numeric(10,2)",
                                       "numeric(38,0)",
                                       "numeric(3,5)",
                                       "numeric",
                                       "date",
                                       "time without time zone",
                                       "timestamp(3) without time zone",
                                       "timestamp with time zone",
                                       "time with time zone",
                                       "uuid",
                                       "json",
                                       "jsonb",
                                       "bytea",
                                       "text",
                                       "character varying(20)",
                                       "integer[]",
                                       "mood",
                                       ""};

static const char *const sqlite_types[] = {
    "INTEGER", "TEXT",     "BLOB", "REAL", "",      "DECIMAL(10,2)", "ANY",      "NUMERIC",
    "BOOLEAN", "DATETIME", "UUID", "JSON", "money", "DOUBLE",        "NUMERIC(("};

struct tide_change_schema change_maker_schema(struct change_maker *maker)
{
    static const char *const kinds[] = {"integer", "lsn", "file"};
    size_t kind = change_maker_below(maker, COUNT_OF(kinds));
    size_t count = 1 + change_maker_below(maker, 12);
    size_t first = change_maker_below(maker, COUNT_OF(names));
    struct tide_column *columns = tide_arena_alloc(&maker->arena, count, sizeof(*columns));
    uint32_t *key = tide_arena_alloc(&maker->arena, count, sizeof(*key));
    struct tide_change_schema schema = {.store = TIDE_STR("shop.t"),
                                        .table = TIDE_STR("t"),
                                        .position_kind = tide_str_from(kinds[kind]),
                                        .columns = columns,
                                        .column_count = count,
                                        .key_columns = key};
    for (size_t i = 0; i < count; i++) {
        const char *type = kind == 1
                               ? pg_types[change_maker_below(maker, COUNT_OF(pg_types))]
                               : sqlite_types[change_maker_below(maker, COUNT_OF(sqlite_types))];
        columns[i] = (struct tide_column){
            .name = tide_str_from(names[(first + i) % COUNT_OF(names)]),
            .type = tide_str_from(type),
            .is_hidden = i + 1 == count && chance(maker, 30),
        };
        if (chance(maker, 30)) {
            key[schema.key_count++] = (uint32_t)(count - 1 - i);
        }
    }
    return schema;
}

void change_maker_json(const struct tide_change_schema *schema, struct tide_buf *buf)
{
    struct tide_relation relation = {
        .schema = schema->schema,
        .name = schema->table,
        .store = schema->store,
        .column_count = schema->column_count,
        .columns = (struct tide_column *)(uintptr_t)schema->columns,
        .key_count = schema->key_count,
        .key_columns = (uint32_t *)(uintptr_t)schema->key_columns,
    };
    tide_change_schema_encode(&relation, schema->position_kind, buf);
}

struct sample {
    enum tide_value_kind kind;
    const char *text;
};

/* What is as it should be, and what nearly is. */
static const struct sample samples[] = {
    {TIDE_VALUE_BOOL, "true"},
    {TIDE_VALUE_BOOL, "false"},
    {TIDE_VALUE_BOOL, "True"},
    {TIDE_VALUE_INTEGER, "0"},
    {TIDE_VALUE_INTEGER, "-0"},
    {TIDE_VALUE_INTEGER, "42"},
    {TIDE_VALUE_INTEGER, "042"},
    {TIDE_VALUE_INTEGER, "-9223372036854775808"},
    {TIDE_VALUE_INTEGER, "9223372036854775808"},
    {TIDE_VALUE_INTEGER, ""},
    {TIDE_VALUE_DECIMAL, "19.90"},
    {TIDE_VALUE_DECIMAL, "19.9"},
    {TIDE_VALUE_DECIMAL, "-0.00"},
    {TIDE_VALUE_DECIMAL, "0.00"},
    {TIDE_VALUE_DECIMAL, "99999999.99"},
    {TIDE_VALUE_DECIMAL, "100000000.00"},
    {TIDE_VALUE_DECIMAL, "99999999999999999999999999999999999999"},
    {TIDE_VALUE_DECIMAL, "NaN"},
    {TIDE_VALUE_DECIMAL, "1e2"},
    {TIDE_VALUE_REAL, "1.0"},
    {TIDE_VALUE_REAL, "1"},
    {TIDE_VALUE_REAL, "-0.0"},
    {TIDE_VALUE_REAL, "-0"},
    {TIDE_VALUE_REAL, "0.1"},
    {TIDE_VALUE_REAL, "19.9"},
    {TIDE_VALUE_REAL, "0.30000000000000004"},
    {TIDE_VALUE_REAL, "1e+300"},
    {TIDE_VALUE_REAL, "1e300"},
    {TIDE_VALUE_REAL, "5e-324"},
    {TIDE_VALUE_REAL, "1e+06"},
    {TIDE_VALUE_REAL, "1000000.0"},
    {TIDE_VALUE_REAL, "123456789012345680"},
    {TIDE_VALUE_REAL, "1.2345678901234568e+17"},
    {TIDE_VALUE_REAL, "0x10"},
    {TIDE_VALUE_REAL, "."},
    {TIDE_VALUE_REAL, ""},
    {TIDE_VALUE_REAL, "NaN"},
    {TIDE_VALUE_REAL, "-Infinity"},
    {TIDE_VALUE_TEXT, ""},
    {TIDE_VALUE_TEXT, "abc"},
    {TIDE_VALUE_TEXT, "text:abc"},
    {TIDE_VALUE_TEXT, "null"},
    {TIDE_VALUE_TEXT, "größer"},
    {TIDE_VALUE_TEXT, "\xff"}, /* the model forbids it; what is kept is kept all the same */
    {TIDE_VALUE_TEXT, "2026-11-29"},
    {TIDE_VALUE_TEXT, "0000-01-01"},
    {TIDE_VALUE_TEXT, "2023-02-29"},
    {TIDE_VALUE_TEXT, "2024-02-29"},
    {TIDE_VALUE_TEXT, "0044-03-15 BC"},
    {TIDE_VALUE_TEXT, "9999-12-31"},
    {TIDE_VALUE_TEXT, "13:40:55"},
    {TIDE_VALUE_TEXT, "24:00:00"},
    {TIDE_VALUE_TEXT, "13:40:55.5"},
    {TIDE_VALUE_TEXT, "13:40:55.50"},
    {TIDE_VALUE_TEXT, "13:40:55.000001"},
    {TIDE_VALUE_TEXT, "2026-11-29T13:40:55.5"},
    {TIDE_VALUE_TEXT, "2026-11-29T13:40:55.5+00"},
    {TIDE_VALUE_TEXT, "2026-11-29T13:40:55.5+01"},
    {TIDE_VALUE_TEXT, "1969-12-31T23:59:59.999999+00"},
    {TIDE_VALUE_TEXT, "0001-01-01T00:00:00+00"},
    {TIDE_VALUE_TEXT, "infinity"},
    {TIDE_VALUE_TEXT, "b3d0a1f2-0000-4000-8000-00000000000a"},
    {TIDE_VALUE_TEXT, "B3D0A1F2-0000-4000-8000-00000000000A"},
    {TIDE_VALUE_RAW_TEXT, "caf\xe9"},
    {TIDE_VALUE_RAW_TEXT, "plain"},
    {TIDE_VALUE_BYTES, ""},
    {TIDE_VALUE_BYTES, "\x01\x02\xfe\xff"},
    {TIDE_VALUE_BYTES, "text"},
    {TIDE_VALUE_JSON, "{\"a\": 1}"},
    {TIDE_VALUE_JSON, "[1,null]"},
    {TIDE_VALUE_JSON, "null"},
    {TIDE_VALUE_NULL, NULL},
    {TIDE_VALUE_ABSENT, NULL},
    {TIDE_VALUE_UNCHANGED, NULL},
};

static struct tide_value text_value(struct change_maker *maker, enum tide_value_kind kind,
                                    const char *text)
{
    tide_str copy = tide_arena_str(&maker->arena, tide_str_from(text));
    return (struct tide_value){.ptr = copy.ptr, .len = (uint32_t)copy.len, .kind = (uint8_t)kind};
}

static struct tide_value number_value(struct change_maker *maker, enum tide_value_kind kind)
{
    char text[64];
    int digits = (int)change_maker_below(maker, 3);
    int64_t whole = (int64_t)next(maker) >> change_maker_below(maker, 64);
    unsigned fraction = (unsigned)change_maker_below(maker, 100);
    if (digits == 0 || kind == TIDE_VALUE_INTEGER) {
        (void)snprintf(text, sizeof(text), "%lld", (long long)whole);
    } else if (digits == 1) {
        (void)snprintf(text, sizeof(text), "%lld.%02u", (long long)whole, fraction);
    } else {
        (void)snprintf(text, sizeof(text), "%.17g", (double)whole * 1e-3);
    }
    return text_value(maker, kind, text);
}

static struct tide_value time_value(struct change_maker *maker)
{
    char text[64];
    int len = snprintf(
        text, sizeof(text), "%04u-%02u-%02uT%02u:%02u:%02u",
        (unsigned)change_maker_below(maker, 10001), (unsigned)change_maker_below(maker, 14),
        (unsigned)change_maker_below(maker, 33), (unsigned)change_maker_below(maker, 25),
        (unsigned)change_maker_below(maker, 61), (unsigned)change_maker_below(maker, 61));
    if (chance(maker, 50)) {
        len += snprintf(text + len, sizeof(text) - (size_t)len, ".%06u",
                        (unsigned)change_maker_below(maker, 1000000));
    }
    (void)snprintf(text + len, sizeof(text) - (size_t)len, "%s", chance(maker, 50) ? "+00" : "");
    size_t start = change_maker_below(maker, 3) == 0 ? 11 : 0;
    text[change_maker_below(maker, 3) == 0 && start == 0 ? 10 : 63] = '\0';
    return text_value(maker, TIDE_VALUE_TEXT, text + start);
}

struct tide_value change_maker_value(struct change_maker *maker, tide_str type)
{
    (void)type;
    switch (change_maker_below(maker, 4)) {
    case 0:
        return number_value(maker, TIDE_VALUE_INTEGER +
                                       (enum tide_value_kind)change_maker_below(maker, 3));
    case 1:
        return time_value(maker);
    default: {
        const struct sample *sample = &samples[change_maker_below(maker, COUNT_OF(samples))];
        return sample->text == NULL ? (struct tide_value){.kind = (uint8_t)sample->kind}
                                    : text_value(maker, sample->kind, sample->text);
    }
    }
}

static const struct tide_value *make_values(struct change_maker *maker, size_t count)
{
    struct tide_value *values = tide_arena_alloc(&maker->arena, count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        values[i] = change_maker_value(maker, TIDE_STR(""));
    }
    return values;
}

static uint64_t any_number(struct change_maker *maker)
{
    return next(maker) >> change_maker_below(maker, 64);
}

static struct tide_place make_place(struct change_maker *maker)
{
    struct tide_place place = {.known = chance(maker, 80)};
    if (place.known) {
        place.position.hi = chance(maker, 80) ? 0 : any_number(maker);
        place.position.lo = any_number(maker);
        place.index = chance(maker, 20) ? TIDE_INDEX_AFTER_ALL : any_number(maker);
    }
    return place;
}

static void make_change(struct change_maker *maker, const struct tide_change_schema *schema,
                        struct tide_change_row *row)
{
    row->op = (enum tide_op)change_maker_below(maker, 4);
    row->prev = make_place(maker);
    row->tx = chance(maker, 50) ? TIDE_STR("tx:7") : (tide_str){0};
    bool has_record = row->op == TIDE_OP_INSERT || row->op == TIDE_OP_UPDATE;
    if (has_record && chance(maker, 80)) {
        row->values = make_values(maker, schema->column_count);
    } else if (has_record) {
        row->bytes = 1 + any_number(maker) % UINT32_MAX;
    }
    if (row->op == TIDE_OP_TRUNCATE || schema->key_count == 0) {
        return;
    }
    struct tide_value *key = tide_arena_alloc(&maker->arena, schema->key_count, sizeof(*key));
    for (size_t i = 0; i < schema->key_count; i++) {
        bool is_other = row->values == NULL || chance(maker, 5);
        key[i] = is_other ? change_maker_value(maker, TIDE_STR(""))
                          : row->values[schema->key_columns[i]];
    }
    row->key = key;
    if (has_record && chance(maker, 30)) {
        row->moved_from = make_values(maker, schema->key_count);
    }
}

static void make_snapshot(struct change_maker *maker, const struct tide_change_schema *schema,
                          struct tide_change_row *row)
{
    (void)snprintf(row->snapshot_id, sizeof(row->snapshot_id),
                   "019%05u-0000-7000-8000-0000000000ff", (unsigned)change_maker_below(maker, 3));
    row->attempt = (uint32_t)change_maker_below(maker, 4);
    row->seq = any_number(maker);
    if (row->kind == TIDE_ROW_RESUME || row->kind == TIDE_ROW_END) {
        uint64_t *starts = tide_arena_alloc(&maker->arena, row->attempt, sizeof(*starts));
        for (size_t i = 0; i < row->attempt; i++) {
            starts[i] = any_number(maker);
        }
        row->starts = starts;
    }
    if (row->kind == TIDE_ROW_SNAPSHOT) {
        row->values = make_values(maker, schema->column_count);
    }
    if (row->kind == TIDE_ROW_STUB) {
        row->bytes = 1 + any_number(maker) % UINT32_MAX;
        if (schema->key_count > 0 && chance(maker, 50)) {
            row->key = make_values(maker, schema->key_count);
        }
    }
}

struct tide_change_row change_maker_row(struct change_maker *maker,
                                        const struct tide_change_schema *schema)
{
    struct tide_change_row row = {
        .kind = chance(maker, 50) ? TIDE_ROW_CHANGE
                                  : (enum tide_change_row_kind)change_maker_below(maker, 6),
        .place = make_place(maker),
        .commit_us = chance(maker, 20) ? 0 : (int64_t)any_number(maker),
        .incarnation = chance(maker, 90) ? 0 : (uint32_t)any_number(maker),
    };
    row.place.known = row.place.known || row.kind <= TIDE_ROW_STUB;
    if (row.kind == TIDE_ROW_CHANGE) {
        make_change(maker, schema, &row);
    } else {
        make_snapshot(maker, schema, &row);
    }
    return row;
}
