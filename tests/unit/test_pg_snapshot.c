#include "cmocka_prelude.h"

#include "source/postgres/pg_snapshot.h"

#include <string.h>

static void parse_snapshot_gives_its_bounds_and_list(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint64_t xmin;
        uint64_t xmax;
        uint64_t in_progress[3];
        size_t count;
    } cases[] = {
        {"1:1:", 1, 1, {0}, 0},
        {"739:739:", 739, 739, {0}, 0},
        {"10:20:10", 10, 20, {10}, 1},
        {"10:20:10,14,19", 10, 20, {10, 14, 19}, 3},
        {"10:20:", 10, 20, {0}, 0},
        {"18446744073709551614:18446744073709551615:18446744073709551614",
         UINT64_MAX - 1,
         UINT64_MAX,
         {UINT64_MAX - 1},
         1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_arena arena = {0};
        struct tide_visibility got;
        struct tide_error err;
        assert_int_equal(tide_pg_snapshot_parse(tide_str_from(cases[i].text), &arena, &got, &err),
                         TIDE_OK);
        assert_true(got.xmin == cases[i].xmin && got.xmax == cases[i].xmax);
        assert_int_equal(got.in_progress_count, cases[i].count);
        for (size_t j = 0; j < got.in_progress_count; j++) {
            assert_true(got.in_progress[j] == cases[i].in_progress[j]);
        }
        tide_arena_done(&arena);
    }
}

static void parse_other_text_is_corrupt(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        ":",
        "::",
        "1",
        "1:",
        "1:2",
        "1:2:3",
        "2:1:",
        "10:20:9",
        "10:20:20",
        "10:20:11,",
        "10:20:,11",
        "10:20:11,,12",
        "10:20:12,11",
        "10:20:11,11",
        "10:20: 11",
        "-1:20:",
        "10:20:1x",
        "10:20:11:",
        "a:b:c",
        "010:20:",
        "18446744073709551616:18446744073709551617:",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_arena arena = {0};
        struct tide_visibility got = {.xmin = 77};
        struct tide_error err;
        assert_int_equal(tide_pg_snapshot_parse(tide_str_from(cases[i]), &arena, &got, &err),
                         TIDE_CORRUPT);
        assert_int_equal(got.xmin, 77);
        tide_arena_done(&arena);
    }
}

static void parsed_snapshot_sees_what_had_ended(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    struct tide_visibility got;
    struct tide_error err;
    assert_int_equal(tide_pg_snapshot_parse(TIDE_STR("10:20:10,14"), &arena, &got, &err), TIDE_OK);

    static const struct {
        uint64_t tx;
        bool sees;
    } cases[] = {{9, true}, {10, false}, {11, true}, {14, false}, {19, true}, {20, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tide_visibility_sees(&got, cases[i].tx), cases[i].sees);
    }
    tide_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_snapshot_gives_its_bounds_and_list),
        cmocka_unit_test(parse_other_text_is_corrupt),
        cmocka_unit_test(parsed_snapshot_sees_what_had_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
