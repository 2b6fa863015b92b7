#include "cmocka_prelude.h"

#include "base/base64.h"

/* RFC 4648, section 10, and bytes with the letters that are no letters. */
static const struct {
    const char *bytes;
    const char *text;
} cases[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xfe", "+//+"},
};

static void append_then_decode_gives_the_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
        tide_str again = {0};
        tide_base64_append(&text, tide_str_from(cases[i].bytes));
        assert_string_equal(tide_buf_cstr(&text), cases[i].text);
        assert_true(tide_base64_decode(tide_buf_str(&text), &arena, &again));
        assert_true(tide_str_equal(again, tide_str_from(cases[i].bytes)));
    }
}

static void decode_of_other_text_is_refused(void **state)
{
    static const char *const texts[] = {"Z",    "Zg",     "Zg=",  "Zg===", "=",        "====",
                                        "Z===", "Zm9v\n", "Zm9-", "Zm9_",  "Zg==Zg==", "Zm8=Zm8="};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        tide_str bytes = {0};
        if (tide_base64_decode(tide_str_from(texts[i]), &arena, &bytes)) {
            fail_msg("%s", texts[i]);
        }
        assert_null(bytes.ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_then_decode_gives_the_bytes),
        cmocka_unit_test(decode_of_other_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
