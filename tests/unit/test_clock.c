#include "cmocka_prelude.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static void rfc3339_known_instants_are_written(void **state)
{
    (void)state;

    static const struct {
        int64_t utc_us;
        const char *ms;
        const char *us;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999999Z"},
        {INT64_C(1704164645123456), "2024-01-02T03:04:05.123Z", "2024-01-02T03:04:05.123456Z"},
        {INT64_C(1704164645100000), "2024-01-02T03:04:05.100Z", "2024-01-02T03:04:05.100000Z"},
        {INT64_C(951782400000000), "2000-02-29T00:00:00.000Z", "2000-02-29T00:00:00Z"},
        {INT64_C(253402300799999999), "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z", "0000-01-01T00:00:00Z"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char ms[TIDE_RFC3339_MS_LEN + 1];
        char us[40];
        tide_rfc3339_ms(cases[i].utc_us, ms);
        tide_rfc3339_us(cases[i].utc_us, "Z", us);
        assert_string_equal(ms, cases[i].ms);
        assert_string_equal(us, cases[i].us);
    }
    char us[40];
    tide_rfc3339_us(5, "+00:00", us);
    assert_string_equal(us, "1970-01-01T00:00:00.000005+00:00");
}

static void rfc3339_parse_accepts_every_valid_form(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01T01:30:00+01:30", 0},
        {"1969-12-31T22:30:00-01:30", 0},
        {"2024-01-02T03:04:05.1Z", INT64_C(1704164645100000)},
        {"2024-01-02T03:04:05.123456789Z", INT64_C(1704164645123456)},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000000)},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000000)},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_error err;
        int64_t got = 1;
        assert_int_equal(tide_rfc3339_parse(tide_str_from(cases[i].text), &got, &err), TIDE_OK);
        assert_int_equal(got, cases[i].want);
    }
}

static void rfc3339_parse_refuses_everything_else(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "2024-01-02",
        "2024-01-02 03:04:05Z",
        "2024-01-02T03:04:05",
        "2024-01-02T03:04:05.Z",
        "2024-01-02T03:04:05,1Z",
        "2024-01-02T03:04:05Z ",
        " 2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05+0100",
        "2024-01-02T03:04:05+01",
        "2024-01-02T03:04:05+24:00",
        "2024-01-02T03:04:05+01:60",
        "2024-13-02T03:04:05Z",
        "2024-00-02T03:04:05Z",
        "2024-01-00T03:04:05Z",
        "2024-01-32T03:04:05Z",
        "2023-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2024-04-31T03:04:05Z",
        "2024-01-02T24:04:05Z",
        "2024-01-02T03:60:05Z",
        "2024-01-02T03:04:61Z",
        "24-01-02T03:04:05Z",
        "+2024-01-02T03:04:05Z",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_error err;
        int64_t got = 77;
        assert_int_equal(tide_rfc3339_parse(tide_str_from(cases[i]), &got, &err), TIDE_CORRUPT);
        assert_int_equal(got, 77);
    }
    struct tide_error err;
    int64_t got = 77;
    tide_str with_nul = TIDE_STR("2024-01-02\0003:04:05Z");
    assert_int_equal(tide_rfc3339_parse(with_nul, &got, &err), TIDE_CORRUPT);
}

static void rfc3339_parse_every_truncation_is_refused(void **state)
{
    (void)state;
    tide_str text = TIDE_STR("2024-01-02T03:04:05.25+01:00");
    for (size_t len = 0; len < text.len; len++) {
        struct tide_error err;
        int64_t got;
        assert_int_equal(tide_rfc3339_parse(tide_str_of(text.ptr, len), &got, &err), TIDE_CORRUPT);
    }
}

/* Against the C library's calendar, and back. */
static void rfc3339_random_agrees_with_gmtime(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t seconds = (int64_t)((seed >> 20) % UINT64_C(315569520000)) - INT64_C(62167219200);
        int64_t micros = (int64_t)((seed >> 3) % 1000000);
        int64_t utc_us = seconds * 1000000 + micros;
        time_t at = seconds;
        struct tm tm;
        char want[80];
        char got[40];
        assert_non_null(gmtime_r(&at, &tm));
        (void)snprintf(want, sizeof(want), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)micros);
        tide_rfc3339_us(utc_us, "Z", got);
        if (micros != 0) {
            assert_string_equal(got, want);
        }
        struct tide_error err;
        int64_t back = 0;
        assert_int_equal(tide_rfc3339_parse(tide_str_from(got), &back, &err), TIDE_OK);
        assert_int_equal(back, utc_us);
    }
}

static void deadline_far_away_saturates(void **state)
{
    (void)state;
    assert_int_equal(tide_clock_deadline_us(INT64_MAX), TIDE_NO_DEADLINE);
    assert_int_equal(tide_clock_deadline_us(INT64_MAX - 1), TIDE_NO_DEADLINE);
    int64_t before = tide_clock_monotonic_us();
    int64_t deadline = tide_clock_deadline_us(1000);
    assert_in_range(deadline - before, 1000, 60000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc3339_known_instants_are_written),
        cmocka_unit_test(rfc3339_parse_accepts_every_valid_form),
        cmocka_unit_test(rfc3339_parse_refuses_everything_else),
        cmocka_unit_test(rfc3339_parse_every_truncation_is_refused),
        cmocka_unit_test(rfc3339_random_agrees_with_gmtime),
        cmocka_unit_test(deadline_far_away_saturates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
