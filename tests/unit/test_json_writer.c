#include "cmocka_prelude.h"

#include "base/buf.h"
#include "format/json_writer.h"

static void check(struct tide_buf *buf, tide_str want)
{
    if (!tide_str_equal(tide_buf_str(buf), want)) {
        fail_msg("got %.*s, want %.*s", TIDE_STR_ARG(tide_buf_str(buf)), TIDE_STR_ARG(want));
    }
    tide_buf_done(buf);
}

static void append_string_escapes_only_what_must_be(void **state)
{
    (void)state;

    static const struct {
        tide_str text, want;
    } cases[] = {
        {{NULL, 0}, TIDE_STR("\"\"")},
        {TIDE_STR(""), TIDE_STR("\"\"")},
        {TIDE_STR("a/b"), TIDE_STR("\"a/b\"")},
        {TIDE_STR("say \"hi\" \\"), TIDE_STR("\"say \\\"hi\\\" \\\\\"")},
        {TIDE_STR("\b\f\n\r\t"), TIDE_STR("\"\\b\\f\\n\\r\\t\"")},
        {TIDE_STR("\0\x01\x0b\x1f\x7f"), TIDE_STR("\"\\u0000\\u0001\\u000b\\u001f\x7f\"")},
        {TIDE_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
         TIDE_STR("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_json_append_string(&buf, cases[i].text);
        check(&buf, cases[i].want);
    }
}

/* One special byte at every place of strings of every length around the widths copied at once. */
static void append_string_special_at_every_place_is_escaped(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 50; len++) {
        for (size_t at = 0; at < len; at++) {
            char text[50];
            memset(text, 'x', sizeof(text));
            text[at] = '"';
            struct tide_buf want = {0};
            tide_buf_append_char(&want, '"');
            tide_buf_append(&want, text, at);
            tide_buf_append(&want, "\\\"", 2);
            tide_buf_append(&want, text + at + 1, len - at - 1);
            tide_buf_append_char(&want, '"');
            struct tide_buf buf = {0};
            tide_json_append_string(&buf, tide_str_of(text, len));
            check(&buf, tide_buf_str(&want));
            tide_buf_done(&want);
        }
    }
}

static void append_string_all_escapes_fit(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 1, sizeof(text));
    struct tide_buf buf = {0};
    tide_json_append_string(&buf, tide_str_of(text, sizeof(text)));
    assert_int_equal(buf.len, 6 * sizeof(text) + 2);
    assert_memory_equal(buf.ptr + buf.len - 7, "\\u0001\"", 7);
    tide_buf_done(&buf);
}

static void append_base64_rfc4648_vectors(void **state)
{
    (void)state;

    static const struct {
        tide_str bytes, want;
    } cases[] = {
        {{NULL, 0}, TIDE_STR("\"\"")},
        {TIDE_STR("f"), TIDE_STR("\"Zg==\"")},
        {TIDE_STR("fo"), TIDE_STR("\"Zm8=\"")},
        {TIDE_STR("foo"), TIDE_STR("\"Zm9v\"")},
        {TIDE_STR("foob"), TIDE_STR("\"Zm9vYg==\"")},
        {TIDE_STR("fooba"), TIDE_STR("\"Zm9vYmE=\"")},
        {TIDE_STR("foobar"), TIDE_STR("\"Zm9vYmFy\"")},
        {TIDE_STR("\xfb\xff\xfe\0"), TIDE_STR("\"+//+AA==\"")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_json_append_base64(&buf, cases[i].bytes);
        check(&buf, cases[i].want);
    }
}

static void append_key_has_its_colon(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    tide_json_append_key(&buf, TIDE_STR("a\"b"));
    check(&buf, TIDE_STR("\"a\\\"b\":"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_string_escapes_only_what_must_be),
        cmocka_unit_test(append_string_special_at_every_place_is_escaped),
        cmocka_unit_test(append_string_all_escapes_fit),
        cmocka_unit_test(append_base64_rfc4648_vectors),
        cmocka_unit_test(append_key_has_its_colon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
