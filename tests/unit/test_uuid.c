#include "cmocka_prelude.h"

#include "base/clock.h"
#include "base/uuid.h"

#include <stdlib.h>
#include <string.h>

static void from_fixed_bytes_is_the_golden_text(void **state)
{
    (void)state;

    /* the first is the example of RFC 9562, appendix A.6 */
    static const struct {
        int64_t utc_us;
        uint8_t random[10];
        const char *want;
    } cases[] = {
        {INT64_C(1645557742000000),
         {0x0c, 0xc3, 0x18, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f},
         "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
        {0, {0}, "00000000-0000-7000-8000-000000000000"},
        {999, {0}, "00000000-0000-7000-8000-000000000000"},
        {1000, {0}, "00000000-0001-7000-8000-000000000000"},
        {-1, {0}, "00000000-0000-7000-8000-000000000000"},
        {INT64_MAX,
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         "ffffffff-ffff-7fff-bfff-ffffffffffff"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TIDE_UUID_LEN + 1];
        tide_uuid_v7_from(cases[i].utc_us, cases[i].random, text);
        assert_int_equal(strlen(text), TIDE_UUID_LEN);
        assert_string_equal(text, cases[i].want);
    }
}

static void v7_fresh_has_version_variant_and_time(void **state)
{
    (void)state;
    char last[TIDE_UUID_LEN + 1] = "";
    for (unsigned i = 0; i < 1000; i++) {
        int64_t now_us = tide_clock_utc_us();
        char text[TIDE_UUID_LEN + 1];
        char ms[13];
        tide_uuid_v7(now_us, text);
        assert_int_equal(text[14], '7');
        assert_non_null(strchr("89ab", text[19]));
        memcpy(ms, text, 8);
        memcpy(ms + 8, text + 9, 4);
        ms[12] = '\0';
        assert_int_equal(strtoll(ms, NULL, 16), now_us / 1000);
        assert_string_not_equal(text, last);
        memcpy(last, text, sizeof(last));
    }
}

static void v4_fresh_has_version_variant_and_is_another_each_time(void **state)
{
    (void)state;
    char last[TIDE_UUID_LEN + 1] = "";
    for (unsigned i = 0; i < 1000; i++) {
        char text[TIDE_UUID_LEN + 1];
        tide_uuid_v4(text);
        assert_int_equal(strlen(text), TIDE_UUID_LEN);
        assert_int_equal(strspn(text, "0123456789abcdef-"), TIDE_UUID_LEN);
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
        assert_string_not_equal(text, last);
        memcpy(last, text, sizeof(last));
    }
}

static void read_takes_what_is_written_and_nothing_else(void **state)
{
    (void)state;
    static const char *const others[] = {"",
                                         "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f405",
                                         "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f40512",
                                         "0190a2b3xc4d5-7e6f-8a9b-0c1d2e3f4051",
                                         "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f405g",
                                         "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f405G"};
    char text[TIDE_UUID_LEN + 1];
    tide_uuid_v4(text);
    char found[TIDE_UUID_LEN + 1] = "as it was";
    assert_true(tide_uuid_read(tide_str_from(text), found));
    assert_string_equal(found, text);
    assert_true(tide_uuid_read(TIDE_STR("0190A2B3-C4D5-7E6F-8A9B-0C1D2E3F405F"), found));
    assert_string_equal(found, "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f405f");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(tide_uuid_read(tide_str_from(others[i]), found));
        assert_string_equal(found, "0190a2b3-c4d5-7e6f-8a9b-0c1d2e3f405f");
    }
}

static void random_bytes_fills_all_of_it(void **state)
{
    (void)state;
    unsigned char seen[600] = {0};
    unsigned char bytes[600];
    for (unsigned round = 0; round < 20; round++) {
        tide_random_bytes(bytes, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seen[i] |= bytes[i];
        }
    }
    for (size_t i = 0; i < sizeof(seen); i++) {
        assert_int_not_equal(seen[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_fixed_bytes_is_the_golden_text),
        cmocka_unit_test(v7_fresh_has_version_variant_and_time),
        cmocka_unit_test(v4_fresh_has_version_variant_and_is_another_each_time),
        cmocka_unit_test(read_takes_what_is_written_and_nothing_else),
        cmocka_unit_test(random_bytes_fills_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
