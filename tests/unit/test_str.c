#include "cmocka_prelude.h"

#include "base/str.h"

static void to_u64_cases(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool ok;
        uint64_t want;
    } cases[] = {
        {"0", true, 0},
        {"7", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999", false, 0},
        {"100000000000000000000", false, 0},
        {"", false, 0},
        {"00", false, 0},
        {"01", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1a", false, 0},
        {"/", false, 0},
        {":", false, 0},
        {"\xb1", false, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t got = 99;
        assert_int_equal(tide_str_to_u64(tide_str_from(cases[i].text), &got), cases[i].ok);
        assert_int_equal(got, cases[i].ok ? cases[i].want : 99);
    }
}

static void to_i64_cases(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"--1", false, 0},
        {"-01", false, 0},
        {"1.0", false, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t got = 99;
        assert_int_equal(tide_str_to_i64(tide_str_from(cases[i].text), &got), cases[i].ok);
        assert_int_equal(got, cases[i].ok ? cases[i].want : 99);
    }
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void compare_is_unsigned_and_prefix_first(void **state)
{
    (void)state;
    static const tide_str ordered[] = {
        {NULL, 0}, {"\0", 1},   {"a", 1},    {"a\0", 2},  {"ab", 2},
        {"b", 1},  {"\x7f", 1}, {"\x80", 1}, {"\xff", 1}, {"\xff\xff", 2},
    };
    size_t count = sizeof(ordered) / sizeof(ordered[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            int want = (i > k) - (i < k);
            assert_int_equal(sign(tide_str_compare(ordered[i], ordered[k])), want);
            assert_int_equal(tide_str_equal(ordered[i], ordered[k]), want == 0);
        }
    }
}

static void starts_and_ends_with_cases(void **state)
{
    (void)state;
    assert_true(tide_str_starts_with(TIDE_STR("abc"), TIDE_STR("ab")));
    assert_true(tide_str_starts_with(TIDE_STR("abc"), (tide_str){NULL, 0}));
    assert_false(tide_str_starts_with(TIDE_STR("ab"), TIDE_STR("abc")));
    assert_false(tide_str_starts_with(TIDE_STR("abc"), TIDE_STR("bc")));
    assert_true(tide_str_ends_with(TIDE_STR("abc"), TIDE_STR("bc")));
    assert_true(tide_str_ends_with((tide_str){NULL, 0}, (tide_str){NULL, 0}));
    assert_false(tide_str_ends_with(TIDE_STR("bc"), TIDE_STR("abc")));
    assert_false(tide_str_ends_with(TIDE_STR("abc"), TIDE_STR("ab")));
}

static void utf8_cases(void **state)
{
    (void)state;

    static const struct {
        tide_str text;
        size_t want; /* valid bytes */
    } cases[] = {
        {TIDE_STR(""), 0},
        {TIDE_STR("plain ascii, longer than a word\0with NUL"), 40},
        {TIDE_STR("\xc3\xa9"), 2},
        {TIDE_STR("\xe2\x82\xac"), 3},
        {TIDE_STR("\xf0\x9f\x98\x80"), 4},
        {TIDE_STR("\xf4\x8f\xbf\xbf"), 4},
        {TIDE_STR("12345678\xc3"), 8},
        {TIDE_STR("1234567\xc3\xa9z"), 10},
        {TIDE_STR("\x80"), 0},
        {TIDE_STR("a\xc0\x80"), 1},         /* overlong NUL */
        {TIDE_STR("a\xc1\xbf"), 1},         /* overlong */
        {TIDE_STR("a\xe0\x9f\xbf"), 1},     /* overlong */
        {TIDE_STR("a\xf0\x8f\xbf\xbf"), 1}, /* overlong */
        {TIDE_STR("a\xed\xa0\x80"), 1},     /* surrogate */
        {TIDE_STR("a\xed\x9f\xbf"), 4},
        {TIDE_STR("a\xee\x80\x80"), 4},
        {TIDE_STR("a\xf4\x90\x80\x80"), 1}, /* past U+10FFFF */
        {TIDE_STR("a\xf5\x80\x80\x80"), 1},
        {TIDE_STR("a\xff"), 1},
        {TIDE_STR("a\xe2\x82"), 1},
        {TIDE_STR("a\xe2\x28\xa1"), 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tide_str_utf8_valid_prefix(cases[i].text), cases[i].want);
        assert_int_equal(tide_str_is_utf8(cases[i].text), cases[i].want == cases[i].text.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_u64_cases),
        cmocka_unit_test(to_i64_cases),
        cmocka_unit_test(compare_is_unsigned_and_prefix_first),
        cmocka_unit_test(starts_and_ends_with_cases),
        cmocka_unit_test(utf8_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
