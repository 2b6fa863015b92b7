#include "cmocka_prelude.h"

#include "app/archive/archive_moment.h"
#include "app/time_argument.h"

#define NOW INT64_C(1795982843792000) /* 2026-11-29T20:07:23.792Z */

static void age_is_a_whole_number_and_a_unit(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t seconds; /* -1: none */
    } cases[] = {{"90s", 90},
                 {"15m", 900},
                 {"12h", 43200},
                 {"30d", 2592000},
                 {"2w", 1209600},
                 {"0s", 0},
                 {"", -1},
                 {"s", -1},
                 {"1", -1},
                 {"1.5h", -1},
                 {"-1d", -1},
                 {"1 d", -1},
                 {"1D", -1},
                 {"1y", -1},
                 {"99999999999999999999d", -1},
                 {"9223372036855s", -1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t age = -1;
        bool want = cases[i].seconds >= 0;
        assert_int_equal(tide_age_parse(tide_str_from(cases[i].text), &age), want);
        assert_int_equal(age, want ? cases[i].seconds * 1000000 : -1);
    }
}

static void moment_is_a_time_an_age_or_a_position(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        struct tide_archive_moment want;
    } cases[] = {
        {"2026-11-29T20:07:23.792Z", {.utc_us = NOW}},
        {"2026-11-29 20:07:23.792", {.utc_us = NOW}},
        {"2026-11-29T21:07:23.792+01:00", {.utc_us = NOW}},
        {"2026-11-29 20:07", {.utc_us = NOW - 23792000}},
        {"2026-11-29", {.utc_us = NOW - 23792000 - INT64_C(1207) * 60000000}},
        {"90s", {.utc_us = NOW - 90000000}},
        {"4711", {.is_position = true, .position = {0, 4711}}},
        {"16/B374D848", {.is_position = true, .is_lsn = true, .position = {0, 0x16B374D848}}},
        {"3:4711",
         {.is_position = true, .has_incarnation = true, .incarnation = 3, .position = {0, 4711}}},
        {"0:1/F",
         {.is_position = true,
          .is_lsn = true,
          .has_incarnation = true,
          .position = {0, 0x10000000F}}},
    };

    static const char *const wrong[] = {"",           "yesterday",    "-1",    "16/",
                                        "1:",         ":1",           "1:2:3", "4294967296:1",
                                        "2026-13-01", "2026-11-29 20"};
    struct tide_archive_moment moment;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_archive_moment want = cases[i].want;
        assert_true(tide_archive_moment_parse(cases[i].text, NOW, &moment));
        assert_true(moment.is_given);
        assert_int_equal(moment.utc_us, want.utc_us);
        assert_int_equal(moment.is_position, want.is_position);
        assert_int_equal(moment.is_lsn, want.is_lsn);
        assert_int_equal(moment.has_incarnation, want.has_incarnation);
        assert_int_equal(moment.incarnation, want.incarnation);
        assert_int_equal(moment.position.lo, want.position.lo);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(tide_archive_moment_parse(wrong[i], NOW, &moment));
    }
}

static void time_to_the_millisecond_is_all_of_it(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int64_t more_us;
    } cases[] = {{"2026-11-29T20:07:23.792Z", 999},
                 {"2026-11-29T21:07:23.792+01:00", 999},
                 {"2026-11-29 20:07:23.7", 999},
                 {"2026-11-29 20:07:23.7920", 0},
                 {"2026-11-29T20:07:23.792000Z", 0},
                 {"2026-11-29T20:07:23Z", 0},
                 {"2026-11-29", 0},
                 {"90s", 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_archive_moment moment;
        assert_true(tide_archive_moment_parse(cases[i].text, NOW, &moment));
        assert_int_equal(moment.end_us - moment.utc_us, cases[i].more_us);
    }
}

static void moments_are_reversed_where_nothing_can_be_between(void **state)
{
    (void)state;

    static const struct {
        const char *from;
        const char *to;
        bool want;
    } cases[] = {{"4", "2", true},
                 {"4", "4", false},
                 {"1:4", "2:2", false},
                 {"2:2", "1:4", true},
                 {"2:4", "2:2", true},
                 {"2:4", "2", false}, /* of which log is not known here */
                 {"0/4", "0/2", true},
                 {"4", "2026-11-29", false},
                 {"2026-11-29 20:07:23.792", "2026-11-29 20:07:23.792", false},
                 {"2026-11-29 20:07:23.792900", "2026-11-29 20:07:23.792", false},
                 {"2026-11-29 20:07:23.793", "2026-11-29 20:07:23.792", true},
                 {"1h", "2h", true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_archive_moment from;
        struct tide_archive_moment to;
        const struct tide_archive_moment none = {0};
        assert_true(tide_archive_moment_parse(cases[i].from, NOW, &from));
        assert_true(tide_archive_moment_parse(cases[i].to, NOW, &to));
        assert_int_equal(tide_archive_moments_are_reversed(&from, &to), cases[i].want);
        assert_false(tide_archive_moments_are_reversed(&from, &none));
        assert_false(tide_archive_moments_are_reversed(&none, &to));
    }
}

static void position_must_be_of_the_kind_of_the_source(void **state)
{
    (void)state;
    struct tide_archive_moment moment;
    struct tide_error err = {0};
    assert_true(tide_archive_moment_parse("47", NOW, &moment));
    assert_int_equal(tide_archive_moment_check(&moment, TIDE_STR("integer"), &err), TIDE_OK);
    assert_int_equal(tide_archive_moment_check(&moment, TIDE_STR("lsn"), &err), TIDE_INVALID);
    assert_true(tide_archive_moment_parse("0/47", NOW, &moment));
    assert_int_equal(tide_archive_moment_check(&moment, TIDE_STR("integer"), &err), TIDE_INVALID);
    assert_true(tide_archive_moment_parse("1h", NOW, &moment));
    assert_int_equal(tide_archive_moment_check(&moment, TIDE_STR("lsn"), &err), TIDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(age_is_a_whole_number_and_a_unit),
        cmocka_unit_test(moment_is_a_time_an_age_or_a_position),
        cmocka_unit_test(time_to_the_millisecond_is_all_of_it),
        cmocka_unit_test(moments_are_reversed_where_nothing_can_be_between),
        cmocka_unit_test(position_must_be_of_the_kind_of_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
