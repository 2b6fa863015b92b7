#include "cmocka_prelude.h"

#include "archive/change_label.h"
#include "archive/change_op.h"
#include "archive/change_position.h"
#include "base/attr.h"

static const struct {
    enum tide_value_kind kind;
    const char *text;
    const char *label;
} labels[] = {
    {TIDE_VALUE_NULL, "", "null"},
    {TIDE_VALUE_UNCHANGED, "", "unchanged"},
    {TIDE_VALUE_ABSENT, "", "absent"},
    {TIDE_VALUE_BOOL, "true", "bool:true"},
    {TIDE_VALUE_INTEGER, "-5", "integer:-5"},
    {TIDE_VALUE_DECIMAL, "NaN", "decimal:NaN"},
    {TIDE_VALUE_REAL, "1e+300", "real:1e+300"},
    {TIDE_VALUE_TEXT, "", "text:"},
    {TIDE_VALUE_TEXT, "a:b", "text:a:b"},
    {TIDE_VALUE_TEXT, "\xff", "text;base64:/w=="},
    {TIDE_VALUE_RAW_TEXT, "caf\xe9", "raw:Y2Fm6Q=="},
    {TIDE_VALUE_RAW_TEXT, "plain", "raw:cGxhaW4="},
    {TIDE_VALUE_BYTES, "\x01\x02", "bytes:AQI="},
    {TIDE_VALUE_JSON, "[1, 2]", "json:[1, 2]"},
    {TIDE_VALUE_JSON, "\"\xff\"", "json;base64:Iv8i"},
};

static void label_of_a_value_parses_to_the_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        struct tide_buf label TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
        struct tide_value again = {0};
        const struct tide_value value = {.ptr = labels[i].text,
                                         .len = (uint32_t)strlen(labels[i].text),
                                         .kind = (uint8_t)labels[i].kind};
        tide_change_label_append(&label, value);
        assert_string_equal(tide_buf_cstr(&label), labels[i].label);
        assert_true(tide_change_label_parse(tide_buf_str(&label), &arena, &again));
        assert_true(tide_value_equal(again, value));
    }
}

static void parse_of_what_is_no_label_fails(void **state)
{
    static const char *const texts[] = {"",
                                        "text",
                                        "null:",
                                        "null:x",
                                        "absent:",
                                        "nope:1",
                                        "Text:a",
                                        "bytes:*",
                                        "bytes:AQI",
                                        "raw:\xff",
                                        "bytes;base64:AQI=",
                                        "null;base64",
                                        "text;base64:a",
                                        ":a"};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tide_value value = {0};
        if (tide_change_label_parse(tide_str_from(texts[i]), &arena, &value)) {
            fail_msg("%s", texts[i]);
        }
    }
}

static void position_reads_back_in_every_kind(void **state)
{
    static const struct {
        const struct tide_position_kind *kind;
        struct tide_position position;
        const char *text;
    } cases[] = {
        {&tide_position_integer, {0, 42}, "42"},
        {&tide_position_integer, {0, INT64_MAX}, "9223372036854775807"},
        {&tide_position_integer, {0, UINT64_MAX}, "[0,18446744073709551615]"},
        {&tide_position_integer, {3, 4}, "[3,4]"},
        {&tide_position_lsn, {0, 0x16b374d848}, "\"16/B374D848\""},
        {&tide_position_lsn, {1, 0}, "[1,0]"},
        {NULL, {7, 8}, "[7,8]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_position again = {0};
        struct tide_error err = {0};
        tide_change_position_append(&text, cases[i].kind, cases[i].position);
        assert_string_equal(tide_buf_cstr(&text), cases[i].text);
        assert_int_equal(
            tide_change_position_parse(tide_buf_str(&text), cases[i].kind, &again, &err), TIDE_OK);
        assert_int_equal(tide_position_compare(again, cases[i].position), 0);
    }
}

static void parse_of_what_is_no_position_is_corrupt(void **state)
{
    static const char *const texts[] = {"",     "[",      "[]",     "[,]",     "[1]", "[1,",
                                        "[1,2", "[1,2]]", "[-1,2]", "[1,2,3]", "x",   "\"16/\""};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tide_position position = {0};
        struct tide_error err = {0};
        assert_int_equal(tide_change_position_parse(tide_str_from(texts[i]), &tide_position_lsn,
                                                    &position, &err),
                         TIDE_CORRUPT);
        assert_int_equal(tide_change_position_parse(tide_str_from(texts[i]), NULL, &position, &err),
                         TIDE_CORRUPT);
    }
}

static void name_of_each_op_parses_to_it(void **state)
{
    enum tide_change_row_kind kind = TIDE_ROW_CHANGE;
    enum tide_op op = TIDE_OP_INSERT;
    (void)state;
    for (int i = TIDE_ROW_CHANGE; i <= TIDE_ROW_END; i++) {
        for (int k = TIDE_OP_INSERT; k <= (i == TIDE_ROW_CHANGE ? TIDE_OP_TRUNCATE : 0); k++) {
            tide_str name = tide_change_op_name((enum tide_change_row_kind)i, (enum tide_op)k);
            assert_true(tide_change_op_parse(name, &kind, &op));
            assert_int_equal(kind, i);
            assert_int_equal(op, k);
        }
    }
    assert_false(tide_change_op_parse(TIDE_STR(""), &kind, &op));
    assert_false(tide_change_op_parse(TIDE_STR("Insert"), &kind, &op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_of_a_value_parses_to_the_value),
        cmocka_unit_test(parse_of_what_is_no_label_fails),
        cmocka_unit_test(position_reads_back_in_every_kind),
        cmocka_unit_test(parse_of_what_is_no_position_is_corrupt),
        cmocka_unit_test(name_of_each_op_parses_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
