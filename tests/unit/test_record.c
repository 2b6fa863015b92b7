#include "cmocka_prelude.h"

#include "format/json_reader.h"
#include "format/record.h"

#define VALUE(kind_name, literal)                                                                  \
    {                                                                                              \
        (literal), sizeof(literal) - 1, TIDE_VALUE_##kind_name                                     \
    }

static const struct tide_value absent = {.kind = TIDE_VALUE_ABSENT};
static const struct tide_value unchanged = {.kind = TIDE_VALUE_UNCHANGED};

static void check(struct tide_buf *buf, const char *want)
{
    assert_string_equal(tide_buf_cstr(buf), want);
    struct tide_error err = {0};
    assert_int_equal(tide_json_check(tide_buf_str(buf), 8, &err), TIDE_OK);
    tide_buf_done(buf);
}

static void append_value_of_every_kind(void **state)
{
    (void)state;

    static const struct {
        struct tide_value value;
        const char *want;
    } cases[] = {
        {{NULL, 0, TIDE_VALUE_NULL}, "null"},
        {VALUE(BOOL, "true"), "true"},
        {VALUE(BOOL, "false"), "false"},
        {VALUE(INTEGER, "-9223372036854775808"), "-9223372036854775808"},
        {VALUE(INTEGER, "18446744073709551615"), "18446744073709551615"},
        {VALUE(DECIMAL, "12345678901234567890.10"), "12345678901234567890.10"},
        {VALUE(DECIMAL, "NaN"), "\"NaN\""},
        {VALUE(DECIMAL, "Infinity"), "\"Infinity\""},
        {VALUE(DECIMAL, "-Infinity"), "\"-Infinity\""},
        {VALUE(REAL, "-0.0"), "-0.0"},
        {VALUE(REAL, "1e+300"), "1e+300"},
        {VALUE(REAL, "NaN"), "\"NaN\""},
        {VALUE(REAL, "Infinity"), "\"Infinity\""},
        {VALUE(REAL, "-Infinity"), "\"-Infinity\""},
        {{NULL, 0, TIDE_VALUE_TEXT}, "\"\""},
        {VALUE(TEXT, "say \"hi\"\n\0"), "\"say \\\"hi\\\"\\n\\u0000\""},
        {VALUE(TEXT, "NaN"), "\"NaN\""},
        {VALUE(RAW_TEXT, "caf\xe9"), "{\"$text\":\"Y2Fm6Q==\"}"},
        {{NULL, 0, TIDE_VALUE_BYTES}, "\"\""},
        {VALUE(BYTES, "\0\xff"), "\"AP8=\""},
        {VALUE(JSON, "{\"a\" : 1.0}"), "{\"a\" : 1.0}"},
        {VALUE(JSON, "{\r\n \"a\":\n[1]}\n"), "{   \"a\": [1]} "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_record_append_value(&buf, cases[i].value);
        check(&buf, cases[i].want);
    }
}

/* `ret_columns` must live as long as the relation. */
static struct tide_relation relation_of(struct tide_column *columns, size_t count,
                                        uint32_t *key_columns, size_t key_count)
{
    return (struct tide_relation){.column_count = count,
                                  .columns = columns,
                                  .key_count = key_count,
                                  .key_columns = key_columns};
}

static struct tide_column columns[] = {
    {.name = {"id", 2}},
    {.name = {"a \"b\"", 5}},
    {.name = {"note", 4}},
    {.name = {"_rowid_", 7}, .is_hidden = true},
};
static uint32_t key_columns[] = {3, 0};

static void append_record_leaves_out_what_was_not_sent(void **state)
{
    (void)state;
    const struct tide_value one = VALUE(INTEGER, "1");
    const struct tide_value text = VALUE(TEXT, "x");
    const struct tide_value null = {0};

    const struct {
        struct tide_value values[4];
        const char *want;
    } cases[] = {
        {{one, text, null, one}, "{\"id\":1,\"a \\\"b\\\"\":\"x\",\"note\":null,\"_rowid_\":1}"},
        {{one, text, null, absent}, "{\"id\":1,\"a \\\"b\\\"\":\"x\",\"note\":null}"},
        {{unchanged, text, unchanged, absent}, "{\"a \\\"b\\\"\":\"x\"}"},
        {{unchanged, unchanged, unchanged, absent}, "{}"},
    };
    struct tide_relation relation = relation_of(columns, 4, key_columns, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_record_append(&buf, &relation, cases[i].values);
        check(&buf, cases[i].want);
    }
}

static void append_record_behind_other_bytes_keeps_them(void **state)
{
    (void)state;
    struct tide_relation empty = relation_of(columns, 0, NULL, 0);
    struct tide_relation relation = relation_of(columns, 1, NULL, 0);
    const struct tide_value one = VALUE(INTEGER, "1");
    struct tide_buf buf = {0};
    tide_buf_append_char(&buf, '[');
    tide_record_append(&buf, &empty, NULL);
    tide_buf_append_char(&buf, ',');
    tide_record_append(&buf, &relation, &one);
    tide_buf_append_char(&buf, ']');
    check(&buf, "[{},{\"id\":1}]");
}

static void append_key_in_key_order(void **state)
{
    (void)state;
    const struct tide_value one = VALUE(INTEGER, "1");
    const struct tide_value text = VALUE(TEXT, "a\"b");
    const struct tide_value null = {0};

    const struct {
        struct tide_value key[2];
        const char *want_key, *want_row_key;
    } cases[] = {
        {{one, text}, "{\"_rowid_\":1,\"id\":\"a\\\"b\"}", "[1,\"a\\\"b\"]"},
        {{absent, text}, "{\"id\":\"a\\\"b\"}", "[\"a\\\"b\"]"},
        {{one, null}, "{\"_rowid_\":1,\"id\":null}", "[1,null]"},
        {{absent, absent}, "{}", "[]"},
    };
    struct tide_relation relation = relation_of(columns, 4, key_columns, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_record_append_key(&buf, &relation, cases[i].key);
        check(&buf, cases[i].want_key);
        tide_record_append_row_key(&buf, &relation, cases[i].key);
        check(&buf, cases[i].want_row_key);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void append_record_random_texts_read_back_equal(void **state)
{
    (void)state;
    static char names[8][4];
    static char texts[8][64];
    struct tide_column random_columns[8] = {0};
    struct tide_value values[8];
    struct tide_arena arena = {0};
    struct tide_buf buf = {0};
    uint64_t seed = 3;
    for (int round = 0; round < 5000; round++) {
        size_t count = next_random(&seed) % 8;
        for (size_t i = 0; i < count; i++) {
            for (size_t at = 0; at < sizeof(names[i]); at++) {
                names[i][at] = (char)(next_random(&seed) % 128);
            }
            size_t len = next_random(&seed) % sizeof(texts[i]);
            for (size_t at = 0; at < len; at++) {
                texts[i][at] = (char)(next_random(&seed) % 128);
            }
            random_columns[i].name = tide_str_of(names[i], 1 + next_random(&seed) % 4);
            values[i] = (struct tide_value){texts[i], (uint32_t)len, TIDE_VALUE_TEXT};
        }
        struct tide_relation relation = relation_of(random_columns, count, NULL, 0);
        tide_buf_reset(&buf);
        tide_arena_reset(&arena);
        tide_record_append(&buf, &relation, values);

        struct tide_json_reader reader;
        struct tide_json_token token = {0};
        struct tide_error err = {0};
        tide_json_reader_init(&reader, tide_buf_str(&buf), 1);
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, &err), TIDE_OK);
        for (size_t i = 0; i < count; i++) {
            tide_str text = {0};
            assert_int_equal(tide_json_expect(&reader, TIDE_JSON_KEY, &token, &err), TIDE_OK);
            assert_true(tide_str_equal(tide_json_unescape(&token, &arena), random_columns[i].name));
            assert_int_equal(tide_json_expect_string(&reader, &arena, &text, &err), TIDE_OK);
            assert_true(tide_str_equal(text, tide_value_str(values[i])));
        }
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_OBJECT_END, &token, &err), TIDE_OK);
    }
    tide_buf_done(&buf);
    tide_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_value_of_every_kind),
        cmocka_unit_test(append_record_leaves_out_what_was_not_sent),
        cmocka_unit_test(append_record_behind_other_bytes_keeps_them),
        cmocka_unit_test(append_key_in_key_order),
        cmocka_unit_test(append_record_random_texts_read_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
