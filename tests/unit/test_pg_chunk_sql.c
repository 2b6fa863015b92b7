#include "cmocka_prelude.h"

#include "source/postgres/pg_chunk_sql.h"

#include <stdio.h>
#include <string.h>

#define KEY_MAX 3

/* A table made by hand: columns in table order, the first `key_count` of `key` are its key. */
struct shape {
    const char *schema;
    const char *name;
    const char *columns[KEY_MAX + 1];
    const char *types[KEY_MAX + 1];
    uint32_t key[KEY_MAX];
    size_t key_count;
};

static const struct tide_pg_key_operators plain = {
    .greater = {">", 1}, .at_least = {">=", 2}, .equal = {"=", 1}};
static const struct tide_pg_key_operators foreign = {.greater = {"OPERATOR(public.>)", 18},
                                                     .at_least = {"OPERATOR(public.>=)", 19},
                                                     .equal = {"OPERATOR(public.=)", 18}};

struct fixture {
    struct tide_pg_column columns[KEY_MAX + 1];
    struct tide_pg_table table;
    struct tide_relation *relation;
    struct tide_pg_key_operators operators[KEY_MAX];
    struct tide_pg_chunk_from from;
    struct tide_buf sql;
    struct tide_error err;
};

static void make(struct fixture *fixture, const struct shape *shape)
{
    struct tide_column columns[KEY_MAX + 1];
    size_t count = 0;
    for (; count <= KEY_MAX && shape->columns[count] != NULL; count++) {
        columns[count] = (struct tide_column){.name = tide_str_from(shape->columns[count]),
                                              .type = tide_str_from(shape->types[count])};
        fixture->columns[count] = (struct tide_pg_column){.name = columns[count].name,
                                                          .type = {.name = columns[count].type}};
    }
    fixture->relation = tide_relation_new(&(struct tide_relation_spec){
        .id = 16384,
        .connection = TIDE_STR("c"),
        .schema = tide_str_from(shape->schema),
        .name = tide_str_from(shape->name),
        .columns = columns,
        .column_count = count,
        .key_columns = shape->key,
        .key_count = shape->key_count,
    });
    fixture->table = (struct tide_pg_table){.oid = 16384,
                                            .schema = tide_str_from(shape->schema),
                                            .name = tide_str_from(shape->name),
                                            .columns = fixture->columns,
                                            .column_count = count,
                                            .relation = fixture->relation};
    for (size_t i = 0; i < shape->key_count; i++) {
        fixture->operators[i] = plain;
    }
    fixture->from = (struct tide_pg_chunk_from){&fixture->table, fixture->operators};
}

static void done(struct fixture *fixture)
{
    tide_relation_unref(fixture->relation);
    tide_buf_done(&fixture->sql);
}

static struct tide_value text(const char *bytes)
{
    return (struct tide_value){
        .ptr = bytes, .len = (uint32_t)strlen(bytes), .kind = TIDE_VALUE_TEXT};
}

static struct tide_value integer(const char *digits)
{
    return (struct tide_value){
        .ptr = digits, .len = (uint32_t)strlen(digits), .kind = TIDE_VALUE_INTEGER};
}

static const struct shape orders = {.schema = "public",
                                    .name = "orders",
                                    .columns = {"id", "note"},
                                    .types = {"bigint", "text"},
                                    .key = {0},
                                    .key_count = 1};

static const struct shape lines = {
    .schema = "s",
    .name = "lines",
    .columns = {"v", "b", "a", "c"},
    .types = {"text", "character varying(10)", "integer", "timestamp(3) without time zone"},
    .key = {2, 1, 3},
    .key_count = 3};

static const struct shape hostile = {.schema = "we ird",
                                     .name = "quo\"te.Ж",
                                     .columns = {"select", "a\"b", "ID"},
                                     .types = {"text", "\"we ird\".\"ty\"\"pe\"", "integer"},
                                     .key = {1, 0},
                                     .key_count = 2};

static void range_from_start_has_no_condition(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &orders);
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, NULL, 10, &f.sql, &f.err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&f.sql),
                        "COPY (SELECT x.\"id\", x.\"note\" FROM ONLY \"public\".\"orders\" x "
                        "ORDER BY x.\"id\" LIMIT 10) TO STDOUT");
    done(&f);
}

static void range_after_one_column_compares_it(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &orders);
    struct tide_value key = integer("-9223372036854775808");
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, &key, 1, &f.sql, &f.err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&f.sql),
                        "COPY (SELECT x.\"id\", x.\"note\" FROM ONLY \"public\".\"orders\" x "
                        "WHERE x.\"id\" > '-9223372036854775808'::bigint "
                        "ORDER BY x.\"id\" LIMIT 1) TO STDOUT");
    done(&f);
}

static void range_after_several_columns_compares_the_row(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &lines);
    struct tide_value key[] = {integer("7"), text("it's"), text("2026-11-29 13:40:55.5")};
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, key, 1000, &f.sql, &f.err), TIDE_OK);
    assert_string_equal(
        tide_buf_cstr(&f.sql),
        "COPY (SELECT x.\"v\", x.\"b\", x.\"a\", x.\"c\" FROM ONLY \"s\".\"lines\" x "
        "WHERE (x.\"a\", x.\"b\", x.\"c\") > ('7'::integer, 'it''s'::character varying(10), "
        "'2026-11-29 13:40:55.5'::timestamp(3) without time zone) "
        "ORDER BY x.\"a\", x.\"b\", x.\"c\" LIMIT 1000) TO STDOUT");
    done(&f);
}

static void range_of_hostile_names_quotes_them(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &hostile);
    struct tide_value key[] = {text("'; DROP TABLE x; --"), text("a\\'b")};
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, key, 5, &f.sql, &f.err), TIDE_OK);
    assert_string_equal(
        tide_buf_cstr(&f.sql),
        "COPY (SELECT x.\"select\", x.\"a\"\"b\", x.\"ID\" FROM ONLY \"we ird\".\"quo\"\"te.Ж\" x "
        "WHERE (x.\"a\"\"b\", x.\"select\") > ('''; DROP TABLE x; --'::\"we ird\".\"ty\"\"pe\", "
        " E'a\\\\''b'::text) ORDER BY x.\"a\"\"b\", x.\"select\" LIMIT 5) TO STDOUT");
    done(&f);
}

static void range_by_a_type_of_an_extension_names_its_operator(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &orders);
    f.operators[0] = foreign;
    struct tide_value key = text("b");
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, &key, 5, &f.sql, &f.err), TIDE_OK);
    assert_non_null(
        strstr(tide_buf_cstr(&f.sql), " WHERE x.\"id\" OPERATOR(public.>) 'b'::bigint ORDER BY "));
    done(&f);
}

static void range_by_operators_of_several_schemas_compares_column_by_column(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &lines);
    f.operators[1] = foreign;
    struct tide_value key[] = {integer("7"), text("b"), text("now")};
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, key, 5, &f.sql, &f.err), TIDE_OK);
    assert_non_null(
        strstr(tide_buf_cstr(&f.sql),
               " WHERE x.\"a\" >= '7'::integer AND (x.\"a\" > '7'::integer"
               " OR (x.\"a\" = '7'::integer AND"
               " (x.\"b\" OPERATOR(public.>) 'b'::character varying(10)"
               " OR (x.\"b\" OPERATOR(public.=) 'b'::character varying(10) AND"
               " (x.\"c\" > 'now'::timestamp(3) without time zone))))) ORDER BY x.\"a\""));
    done(&f);
}

static void again_of_one_column_is_a_list(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &orders);
    struct tide_value one = integer("1");
    struct tide_value two = integer("-2");
    const struct tide_value *keys[] = {&one, &two};
    assert_int_equal(tide_pg_chunk_again_sql(&f.from, keys, 2, &f.sql, &f.err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&f.sql),
                        "COPY (SELECT x.\"id\", x.\"note\" FROM ONLY \"public\".\"orders\" x "
                        "WHERE x.\"id\" IN ('1'::bigint, '-2'::bigint)) TO STDOUT");
    done(&f);
}

static void again_of_several_columns_is_a_list_of_rows(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &hostile);
    struct tide_value one[] = {text("a"), text("b")};
    struct tide_value two[] = {text("c"), text("'")};
    const struct tide_value *keys[] = {one, two};
    assert_int_equal(tide_pg_chunk_again_sql(&f.from, keys, 2, &f.sql, &f.err), TIDE_OK);
    assert_non_null(
        strstr(tide_buf_cstr(&f.sql),
               " WHERE (x.\"a\"\"b\", x.\"select\") IN (('a'::\"we ird\".\"ty\"\"pe\", 'b'::text), "
               "('c'::\"we ird\".\"ty\"\"pe\", ''''::text))) TO STDOUT"));
    done(&f);
}

static void again_by_a_type_of_an_extension_names_its_operator(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &hostile);
    f.operators[1] = foreign;
    struct tide_value one[] = {text("a"), text("b")};
    const struct tide_value *keys[] = {one, one};
    assert_int_equal(tide_pg_chunk_again_sql(&f.from, keys, 2, &f.sql, &f.err), TIDE_OK);
    assert_non_null(strstr(tide_buf_cstr(&f.sql),
                           " WHERE (x.\"a\"\"b\" = 'a'::\"we ird\".\"ty\"\"pe\" AND"
                           " x.\"select\" OPERATOR(public.=) 'b'::text) OR (x.\"a\"\"b\" = "
                           "'a'::\"we ird\".\"ty\"\"pe\""
                           " AND x.\"select\" OPERATOR(public.=) 'b'::text)) TO STDOUT"));
    done(&f);
}

static void literal_of_each_kind_is_the_text_of_the_server(void **state)
{
    (void)state;

    static const struct {
        struct tide_value value;
        const char *want;
    } cases[] = {
        {{"true", 4, TIDE_VALUE_BOOL}, "'t'::bigint"},
        {{"1.50", 4, TIDE_VALUE_DECIMAL}, "'1.50'::bigint"},
        {{"NaN", 3, TIDE_VALUE_DECIMAL}, "'NaN'::bigint"},
        {{"-Infinity", 9, TIDE_VALUE_REAL}, "'-Infinity'::bigint"},
        {{"\0'\\\xff", 4, TIDE_VALUE_BYTES}, " E'\\\\x00275cff'::bigint"},
        {{"", 0, TIDE_VALUE_BYTES}, " E'\\\\x'::bigint"},
        {{"", 0, TIDE_VALUE_TEXT}, "''::bigint"},
        {{"a\nb\t", 4, TIDE_VALUE_TEXT}, "'a\nb\t'::bigint"},
        {{"\\", 1, TIDE_VALUE_TEXT}, " E'\\\\'::bigint"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f = {0};
        make(&f, &orders);
        assert_int_equal(tide_pg_chunk_range_sql(&f.from, &cases[i].value, 1, &f.sql, &f.err),
                         TIDE_OK);
        char want[128];
        (void)snprintf(want, sizeof(want), " > %s ORDER", cases[i].want);
        if (strstr(tide_buf_cstr(&f.sql), want) == NULL) {
            fail_msg("case %zu: %s", i, tide_buf_cstr(&f.sql));
        }
        done(&f);
    }
}

static void value_that_no_key_can_have_is_corrupt(void **state)
{
    (void)state;
    static const struct tide_value cases[] = {
        {NULL, 0, TIDE_VALUE_NULL},
        {NULL, 0, TIDE_VALUE_UNCHANGED},
        {NULL, 0, TIDE_VALUE_ABSENT},
        {"a\0b", 3, TIDE_VALUE_TEXT},
        {"\xff", 1, TIDE_VALUE_TEXT},
        {"\xc3", 1, TIDE_VALUE_TEXT}, /* would swallow the quote behind it */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f = {0};
        make(&f, &orders);
        const struct tide_value *key = &cases[i];
        assert_int_equal(tide_pg_chunk_range_sql(&f.from, key, 1, &f.sql, &f.err), TIDE_CORRUPT);
        assert_non_null(strstr(f.err.message, "column id"));
        assert_int_equal(tide_pg_chunk_again_sql(&f.from, &key, 1, &f.sql, &f.err), TIDE_CORRUPT);
        done(&f);
    }
}

static void key_that_is_not_utf8_is_unsupported(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &orders);
    struct tide_value key = {"a\xff", 2, TIDE_VALUE_RAW_TEXT};
    assert_int_equal(tide_pg_chunk_range_sql(&f.from, &key, 1, &f.sql, &f.err), TIDE_UNSUPPORTED);
    assert_non_null(strstr(f.err.message, "column id"));
    done(&f);
}

static void begin_locks_before_it_looks(void **state)
{
    (void)state;
    struct fixture f = {0};
    make(&f, &hostile);
    tide_pg_chunk_begin_sql(f.relation, &f.sql);
    const char *sql = tide_buf_cstr(&f.sql);
    const char *begin = strstr(sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;");
    const char *lock =
        strstr(sql, "LOCK TABLE ONLY \"we ird\".\"quo\"\"te.Ж\" IN ACCESS SHARE MODE;");
    const char *look = strstr(sql, "pg_current_snapshot()");
    assert_ptr_equal(begin, sql);
    assert_non_null(lock);
    assert_true(begin < lock && lock < look);
    assert_non_null(strstr(look, "c.oid = '\"we ird\".\"quo\"\"te.Ж\"'::regclass"));
    done(&f);
}

static void end_sends_the_message_only_when_the_log_is_not_flushed(void **state)
{
    (void)state;
    struct tide_buf sql = {0};
    tide_pg_chunk_end_sql(&sql);
    assert_string_equal(tide_buf_cstr(&sql),
                        "COMMIT; SELECT pg_logical_emit_message(true, 'tidemark', '') WHERE "
                        "pg_current_wal_flush_lsn() < "
                        "current_setting('tidemark.position')::pg_lsn");
    tide_buf_done(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(range_from_start_has_no_condition),
        cmocka_unit_test(range_after_one_column_compares_it),
        cmocka_unit_test(range_after_several_columns_compares_the_row),
        cmocka_unit_test(range_of_hostile_names_quotes_them),
        cmocka_unit_test(range_by_a_type_of_an_extension_names_its_operator),
        cmocka_unit_test(range_by_operators_of_several_schemas_compares_column_by_column),
        cmocka_unit_test(again_of_one_column_is_a_list),
        cmocka_unit_test(again_of_several_columns_is_a_list_of_rows),
        cmocka_unit_test(again_by_a_type_of_an_extension_names_its_operator),
        cmocka_unit_test(literal_of_each_kind_is_the_text_of_the_server),
        cmocka_unit_test(value_that_no_key_can_have_is_corrupt),
        cmocka_unit_test(key_that_is_not_utf8_is_unsupported),
        cmocka_unit_test(begin_locks_before_it_looks),
        cmocka_unit_test(end_sends_the_message_only_when_the_log_is_not_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
