#include "cmocka_prelude.h"

#include "base/buf.h"
#include "format/json_reader.h"
#include "format/json_writer.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH 8

struct bad_case {
    const char *name;
    tide_str json;
    const char *want; /* part of the message */
};

/* clang-format off */
static const struct bad_case bad_cases[] = {
    {"nothing", {"", 0}, "at byte 0: it ends too early"},
    {"only white space", TIDE_STR(" \n"), "at byte 2: it ends too early"},
    {"two values", TIDE_STR("1 2"), "at byte 2: more follows"},
    {"word cut", TIDE_STR("tru"), "at byte 0: no such word"},
    {"word with more", TIDE_STR("nulls"), "at byte 4: more follows"},
    {"word in capitals", TIDE_STR("True"), "at byte 0: wanted a value"},
    {"NaN", TIDE_STR("NaN"), "at byte 0: wanted a value"},
    {"plus", TIDE_STR("+1"), "at byte 0: wanted a value"},
    {"point first", TIDE_STR(".5"), "at byte 0: wanted a value"},
    {"leading zero", TIDE_STR("[01]"), "at byte 2: wanted `,` or `]`"},
    {"minus alone", TIDE_STR("[-]"), "at byte 2: a number wants a digit"},
    {"minus at the end", TIDE_STR("-"), "at byte 1: it ends too early"},
    {"point last", TIDE_STR("[1.]"), "at byte 3: a number wants a digit"},
    {"exponent empty", TIDE_STR("[1e]"), "at byte 3: a number wants a digit"},
    {"exponent sign only", TIDE_STR("[1e+]"), "at byte 4: a number wants a digit"},
    {"hex number", TIDE_STR("[0x10]"), "at byte 2: wanted `,` or `]`"},
    {"comma before end of array", TIDE_STR("[1,]"), "at byte 3: wanted a value"},
    {"comma before end of object", TIDE_STR("{\"a\":1,}"), "at byte 7: wanted a key"},
    {"comma first", TIDE_STR("[,1]"), "at byte 1: wanted a value"},
    {"missing comma", TIDE_STR("[1 2]"), "at byte 3: wanted `,` or `]`"},
    {"missing colon", TIDE_STR("{\"a\" 1}"), "at byte 5: wanted `:`"},
    {"missing value", TIDE_STR("{\"a\":}"), "at byte 5: wanted a value"},
    {"number as key", TIDE_STR("{1:2}"), "at byte 1: wanted a key"},
    {"wrong bracket", TIDE_STR("[1}"), "at byte 2: wanted `,` or `]`"},
    {"wrong brace", TIDE_STR("{\"a\":1]"), "at byte 6: wanted `,` or `}`"},
    {"bracket closed twice", TIDE_STR("[]]"), "at byte 2: more follows"},
    {"close only", TIDE_STR("]"), "at byte 0: wanted a value"},
    {"single quotes", TIDE_STR("'a'"), "at byte 0: wanted a value"},
    {"comment", TIDE_STR("[/**/]"), "at byte 1: wanted a value"},
    {"form feed is no white space", TIDE_STR("[\f1]"), "at byte 1: wanted a value"},
    {"byte order mark", TIDE_STR("\xef\xbb\xbf" "1"), "at byte 0: wanted a value"},
    {"string open", TIDE_STR("\"abc"), "at byte 4: a string does not end"},
    {"string open after escape", TIDE_STR("\"abc\\\""), "at byte 6: a string does not end"},
    {"line feed in string", TIDE_STR("\"a\nb\""), "at byte 2: a control byte"},
    {"NUL in string", TIDE_STR("\"a\0b\""), "at byte 2: a control byte"},
    {"control far in string", TIDE_STR("\"0123456789abcdef0123456789\x1f\""), "at byte 27: a control byte"},
    {"escape unknown", TIDE_STR("\"a\\x\""), "at byte 2: no such escape"},
    {"escape of NUL", TIDE_STR("\"a\\\0\""), "at byte 2: no such escape"},
    {"escape cut", TIDE_STR("\"a\\"), "at byte 2: an escape is cut off"},
    {"escape u short", TIDE_STR("\"\\u12\""), "at byte 1: \\u wants four hex digits"},
    {"escape u not hex", TIDE_STR("\"\\u12g4\""), "at byte 1: \\u wants four hex digits"},
    {"low surrogate alone", TIDE_STR("\"\\udc00\""), "at byte 1: a surrogate stands alone"},
    {"high surrogate alone", TIDE_STR("\"\\ud800\""), "at byte 1: a surrogate stands alone"},
    {"high surrogate then text", TIDE_STR("\"\\ud800abcdefgh\""), "at byte 1: a surrogate stands alone"},
    {"two high surrogates", TIDE_STR("\"\\ud800\\ud800\""), "at byte 1: a surrogate stands alone"},
    {"high surrogate then BMP", TIDE_STR("\"\\ud800\\u0041\""), "at byte 1: a surrogate stands alone"},
    {"continuation alone", TIDE_STR("\"a\x80\""), "at byte 2: not UTF-8"},
    {"overlong", TIDE_STR("\"\xc0\xaf\""), "at byte 1: not UTF-8"},
    {"overlong of three", TIDE_STR("\"\xe0\x80\x80\""), "at byte 1: not UTF-8"},
    {"surrogate as UTF-8", TIDE_STR("\"\xed\xa0\x80\""), "at byte 1: not UTF-8"},
    {"past U+10FFFF", TIDE_STR("\"\xf4\x90\x80\x80\""), "at byte 1: not UTF-8"},
    {"sequence cut by quote", TIDE_STR("\"\xc3\""), "at byte 1: not UTF-8"},
    {"not UTF-8 far on", TIDE_STR("\"0123456789abcdef0123456789abcdef\xff\\n\""), "at byte 33: not UTF-8"},
    {"not UTF-8 after an escape", TIDE_STR("\"0123456789abcdef\\n0123456789abcdef\xff\""), "at byte 35: not UTF-8"},
    {"not UTF-8 in a key", TIDE_STR("{\"\xff\":1}"), "at byte 2: not UTF-8"},
    {"too deep", TIDE_STR("[[[[[[[[[1]]]]]]]]]"), "at byte 8: nested too deep"},
    {"too deep mixed", TIDE_STR("[[[[{\"a\":[[[[]]]]}]]]]"), "at byte 12: nested too deep"},
};

/* clang-format on */

static tide_status walk(tide_str json, size_t *ret_tokens, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    *ret_tokens = 0;
    tide_json_reader_init(&reader, json, DEPTH);
    do {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        (*ret_tokens)++;
    } while (token.type != TIDE_JSON_END);
    return TIDE_OK;
}

/* In memory of exactly its size, so that a sanitizer sees a read past the end. */
static char *exact_copy(tide_str json)
{
    char *copy = malloc(json.len == 0 ? 1 : json.len);
    assert_non_null(copy);
    if (json.len > 0) {
        memcpy(copy, json.ptr, json.len);
    }
    return copy;
}

static void next_bad_input_is_corrupt_at_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        const struct bad_case *c = &bad_cases[i];
        struct tide_error err = {0};
        size_t tokens = 0;
        char *copy = exact_copy(c->json);
        tide_str json = tide_str_of(copy, c->json.len);
        if (walk(json, &tokens, &err) != TIDE_CORRUPT || strstr(err.message, c->want) == NULL) {
            fail_msg("%s: got %s", c->name, err.message);
        }
        struct tide_error skip_err = {0};
        assert_int_equal(tide_json_check(json, DEPTH, &skip_err), TIDE_CORRUPT);
        assert_string_equal(skip_err.message, err.message);
        free(copy);
    }
}

static const char golden[] =
    "{\"kind\":\"row\",\"seq\":12,\"record\":{\"id\":-0.5e-7,\"caf\xc3\xa9\":"
    "\"a\\u00e9\\ud83d\\ude00"
    "\\n\xf0\x9f\x98\x80\",\"t\":true,\"f\":false,\"n\":null,\"list\":[[],{},[1,2.50,\"x\"]],"
    "\"a longer string, over sixteen bytes\":\"and \\\"one\\\" more that is long enough\"}}";

static void next_truncated_golden_is_corrupt(void **state)
{
    (void)state;
    for (size_t len = 0; len + 1 < sizeof(golden); len++) {
        struct tide_error err = {0};
        size_t tokens = 0;
        char *copy = exact_copy(tide_str_of(golden, len));
        tide_str json = tide_str_of(copy, len);
        assert_int_equal(walk(json, &tokens, &err), TIDE_CORRUPT);
        assert_int_equal(tide_json_check(json, DEPTH, &err), TIDE_CORRUPT);
        assert_non_null(strstr(err.message, "at byte "));
        free(copy);
    }
    struct tide_error err = {0};
    size_t tokens = 0;
    assert_int_equal(walk(TIDE_STR(golden), &tokens, &err), TIDE_OK);
    assert_int_equal(tokens, 34);
}

static void next_white_space_everywhere_gives_same_tokens(void **state)
{
    (void)state;

    static const enum tide_json_type want[] = {
        TIDE_JSON_OBJECT_BEGIN, TIDE_JSON_KEY,         TIDE_JSON_ARRAY_BEGIN, TIDE_JSON_NUMBER,
        TIDE_JSON_OBJECT_BEGIN, TIDE_JSON_OBJECT_END,  TIDE_JSON_NULL,        TIDE_JSON_ARRAY_END,
        TIDE_JSON_KEY,          TIDE_JSON_ARRAY_BEGIN, TIDE_JSON_ARRAY_END,   TIDE_JSON_OBJECT_END,
        TIDE_JSON_END,          TIDE_JSON_END,
    };

    static const char *const texts[] = {
        "{\"a\":[1,{},null],\"b\":[]}",
        " {\t\"a\"\r\n:\n[ 1 , { } , null ] , \"b\" : [ ] } \n",
    };
    for (size_t t = 0; t < 2; t++) {
        struct tide_json_reader reader;
        struct tide_error err = {0};
        tide_json_reader_init(&reader, tide_str_from(texts[t]), DEPTH);
        for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
            struct tide_json_token token = {0};
            assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
            assert_int_equal(token.type, want[i]);
        }
    }
}

static void next_number_keeps_its_digits(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0",      "-0",       "7",   "-12345678901234567890123456789012345", "1.50", "0.000",
        "1E+400", "-0.1e-07", "1e0",
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct tide_json_reader reader;
        struct tide_json_token token = {0};
        struct tide_error err = {0};
        tide_json_reader_init(&reader, tide_str_from(numbers[i]), 0);
        assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
        assert_int_equal(token.type, TIDE_JSON_NUMBER);
        assert_true(tide_str_equal(token.text, tide_str_from(numbers[i])));
    }
}

static void next_deepest_allowed_passes(void **state)
{
    (void)state;
    char text[2 * TIDE_JSON_DEPTH_MAX + 2];
    struct tide_error err = {0};
    memset(text, '[', TIDE_JSON_DEPTH_MAX + 1);
    memset(text + TIDE_JSON_DEPTH_MAX + 1, ']', TIDE_JSON_DEPTH_MAX + 1);
    tide_str fits = tide_str_of(text + 1, sizeof(text) - 2);
    assert_int_equal(tide_json_check(fits, TIDE_JSON_DEPTH_MAX, &err), TIDE_OK);
    tide_str deeper = tide_str_of(text, sizeof(text));
    assert_int_equal(tide_json_check(deeper, TIDE_JSON_DEPTH_MAX, &err), TIDE_CORRUPT);
    assert_int_equal(tide_json_check(fits, TIDE_JSON_DEPTH_MAX - 1, &err), TIDE_CORRUPT);
}

static void skip_value_gives_raw_bytes(void **state)
{
    (void)state;
    static const char *const raws[] = {"{ \"x\" : [1, 2 ] }", "\"a\\\"b\"", "-1.50", "[]", "true"};
    for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
        char text[64];
        int len = snprintf(text, sizeof(text), "{\"a\": %s ,\"b\":2}", raws[i]);
        struct tide_json_reader reader;
        struct tide_json_token token = {0};
        struct tide_error err = {0};
        tide_str raw = {0};
        uint64_t b = 0;
        tide_json_reader_init(&reader, tide_str_of(text, (size_t)len), DEPTH);
        assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_KEY, &token, &err), TIDE_OK);
        assert_int_equal(tide_json_skip(&reader, &raw, &err), TIDE_OK);
        assert_true(tide_str_equal(raw, tide_str_from(raws[i])));
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_KEY, &token, &err), TIDE_OK);
        assert_int_equal(tide_json_expect_u64(&reader, &b, &err), TIDE_OK);
        assert_int_equal(b, 2);
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_OBJECT_END, &token, &err), TIDE_OK);
        assert_int_equal(tide_json_expect(&reader, TIDE_JSON_END, &token, &err), TIDE_OK);
    }
}

static void skip_where_no_value_comes_is_corrupt(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]", "{}", "{\"a\":1}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tide_json_reader reader;
        struct tide_json_token token = {0};
        struct tide_error err = {0};
        tide_str raw = TIDE_STR("untouched");
        tide_json_reader_init(&reader, tide_str_from(texts[i]), DEPTH);
        assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
        assert_int_equal(tide_json_skip(&reader, &raw, &err), TIDE_CORRUPT);
        assert_non_null(strstr(err.message, "at byte 1: wanted a value"));
        assert_true(tide_str_equal(raw, TIDE_STR("untouched")));
    }
}

static void skip_rest_walks_the_items_of_an_array(void **state)
{
    (void)state;
    static const char *const items[] = {"[1,[2]]", "\"x\"", "{\"a\":[]}", "null", "7"};
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct tide_error err = {0};
    tide_str raw = {0};
    size_t count = 0;
    tide_json_reader_init(&reader, TIDE_STR("[ [1,[2]] ,\"x\",{\"a\":[]}, null,7 ]"), DEPTH);
    assert_int_equal(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, &err), TIDE_OK);
    for (;; count++) {
        assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
        if (token.type == TIDE_JSON_ARRAY_END) {
            break;
        }
        assert_int_equal(tide_json_skip_rest(&reader, &token, &raw, &err), TIDE_OK);
        assert_true(count < 5 && tide_str_equal(raw, tide_str_from(items[count])));
    }
    assert_int_equal(count, 5);
    assert_int_equal(tide_json_expect(&reader, TIDE_JSON_END, &token, &err), TIDE_OK);
}

static void unescape_every_escape_gives_utf8(void **state)
{
    (void)state;

    static const struct {
        tide_str json, want;
    } cases[] = {
        {TIDE_STR("\"plain\""), TIDE_STR("plain")},
        {TIDE_STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TIDE_STR("\"\\/\b\f\n\r\t")},
        {TIDE_STR("\"a\\u0000b\""), TIDE_STR("a\0b")},
        {TIDE_STR("\"\\u007f\\u0080\\u07FF\""), TIDE_STR("\x7f\xc2\x80\xdf\xbf")},
        {TIDE_STR("\"\\u0800\\uFFFF\\ud7ff\\ue000\""),
         TIDE_STR("\xe0\xa0\x80\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80")},
        {TIDE_STR("\"\\ud800\\udc00\\uDBFF\\uDFFF\""),
         TIDE_STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
        {TIDE_STR("\"x\\n\xc3\xa9y\""), TIDE_STR("x\n\xc3\xa9y")},
        {TIDE_STR("\"\\n\""), TIDE_STR("\n")},
    };
    struct tide_arena arena = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_json_reader reader;
        struct tide_error err = {0};
        tide_str text = {0};
        tide_json_reader_init(&reader, cases[i].json, 0);
        assert_int_equal(tide_json_expect_string(&reader, &arena, &text, &err), TIDE_OK);
        assert_true(tide_str_equal(text, cases[i].want));
    }
    tide_arena_done(&arena);
}

static void expect_wrong_type_says_both(void **state)
{
    (void)state;
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct tide_error err = {0};
    uint64_t number = 77;
    int64_t signed_number = 77;
    bool flag = true;
    tide_json_reader_init(&reader, TIDE_STR(" \"text\""), DEPTH);
    assert_int_equal(tide_json_expect_u64(&reader, &number, &err), TIDE_CORRUPT);
    assert_string_equal(err.message,
                        "at byte 1: wanted an integer within 0 and 2^64-1, found a string");
    tide_json_reader_init(&reader, TIDE_STR("[-1]"), DEPTH);
    assert_int_equal(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, &err), TIDE_CORRUPT);
    assert_string_equal(err.message, "at byte 0: wanted an object, found an array");
    tide_json_reader_init(&reader, TIDE_STR("18446744073709551616"), DEPTH);
    assert_int_equal(tide_json_expect_u64(&reader, &number, &err), TIDE_CORRUPT);
    tide_json_reader_init(&reader, TIDE_STR("-9223372036854775809"), DEPTH);
    assert_int_equal(tide_json_expect_i64(&reader, &signed_number, &err), TIDE_CORRUPT);
    tide_json_reader_init(&reader, TIDE_STR("1.0"), DEPTH);
    assert_int_equal(tide_json_expect_i64(&reader, &signed_number, &err), TIDE_CORRUPT);
    tide_json_reader_init(&reader, TIDE_STR("null"), DEPTH);
    assert_int_equal(tide_json_expect_bool(&reader, &flag, &err), TIDE_CORRUPT);
    assert_true(number == 77 && signed_number == 77 && flag);
}

static void expect_integers_at_their_bounds(void **state)
{
    (void)state;
    struct tide_json_reader reader;
    struct tide_error err = {0};
    uint64_t number = 0;
    int64_t signed_number = 0;
    bool flag = true;
    tide_json_reader_init(&reader, TIDE_STR("18446744073709551615"), DEPTH);
    assert_int_equal(tide_json_expect_u64(&reader, &number, &err), TIDE_OK);
    assert_true(number == UINT64_MAX);
    tide_json_reader_init(&reader, TIDE_STR("-9223372036854775808"), DEPTH);
    assert_int_equal(tide_json_expect_i64(&reader, &signed_number, &err), TIDE_OK);
    assert_true(signed_number == INT64_MIN);
    tide_json_reader_init(&reader, TIDE_STR("false"), DEPTH);
    assert_int_equal(tide_json_expect_bool(&reader, &flag, &err), TIDE_OK);
    assert_false(flag);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* A random byte string of valid UTF-8, rich in bytes that need care. */
static void append_random_text(struct tide_buf *buf, uint64_t *seed)
{
    static const char *const pieces[] = {
        "a",    "\"",       "\\",           "\n",  "\x01",
        "\x1f", "\xc3\xa9", "\xe2\x82\xac", "xyz", "\xf0\x9f\x98\x80"};
    for (uint64_t left = next_random(seed) % 40; left > 0; left--) {
        if (next_random(seed) % 4 == 0) {
            tide_buf_append_str(buf, tide_str_from(pieces[next_random(seed) % 10]));
        } else {
            tide_buf_append_char(buf, (char)(' ' + next_random(seed) % 95));
        }
    }
}

static void read_random_strings_written_round_trip(void **state)
{
    (void)state;
    struct tide_buf text = {0};
    struct tide_buf json = {0};
    struct tide_arena arena = {0};
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        tide_buf_reset(&text);
        tide_buf_reset(&json);
        append_random_text(&text, &seed);
        tide_json_append_string(&json, tide_buf_str(&text));
        char *copy = exact_copy(tide_buf_str(&json));
        struct tide_json_reader reader;
        struct tide_error err = {0};
        tide_str back = {0};
        tide_json_reader_init(&reader, tide_str_of(copy, json.len), 0);
        assert_int_equal(tide_json_expect_string(&reader, &arena, &back, &err), TIDE_OK);
        assert_true(tide_str_equal(back, tide_buf_str(&text)));
        free(copy);
        tide_arena_reset(&arena);
    }
    tide_arena_done(&arena);
    tide_buf_done(&text);
    tide_buf_done(&json);
}

/* A golden document with bytes changed at random: next and skip agree on each. */
static void skip_damaged_input_agrees_with_next(void **state)
{
    (void)state;
    static const char bytes[] = "{}[]\",:\\0123456789.-eE+tfnu \n\x01\x80\xc3\xff";
    uint64_t seed = 11;
    size_t accepted = 0;
    for (int i = 0; i < 50000; i++) {
        char text[sizeof(golden)];
        memcpy(text, golden, sizeof(golden));
        for (uint64_t left = 1 + next_random(&seed) % 3; left > 0; left--) {
            size_t at = next_random(&seed) % (sizeof(golden) - 1);
            text[at] = bytes[next_random(&seed) % (sizeof(bytes) - 1)];
        }
        struct tide_error next_err = {0};
        struct tide_error skip_err = {0};
        size_t tokens = 0;
        tide_str json = tide_str_of(text, sizeof(golden) - 1);
        tide_status status = walk(json, &tokens, &next_err);
        assert_int_equal(tide_json_check(json, DEPTH, &skip_err), status);
        assert_string_equal(skip_err.message, next_err.message);
        accepted += status == TIDE_OK;
    }
    assert_true(accepted > 1000 && accepted < 49000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_bad_input_is_corrupt_at_byte),
        cmocka_unit_test(next_truncated_golden_is_corrupt),
        cmocka_unit_test(next_white_space_everywhere_gives_same_tokens),
        cmocka_unit_test(next_number_keeps_its_digits),
        cmocka_unit_test(next_deepest_allowed_passes),
        cmocka_unit_test(skip_value_gives_raw_bytes),
        cmocka_unit_test(skip_where_no_value_comes_is_corrupt),
        cmocka_unit_test(skip_rest_walks_the_items_of_an_array),
        cmocka_unit_test(unescape_every_escape_gives_utf8),
        cmocka_unit_test(expect_wrong_type_says_both),
        cmocka_unit_test(expect_integers_at_their_bounds),
        cmocka_unit_test(read_random_strings_written_round_trip),
        cmocka_unit_test(skip_damaged_input_agrees_with_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
