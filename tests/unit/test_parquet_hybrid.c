#include "cmocka_prelude.h"

#include "base/alloc.h"
#include "format/parquet/hybrid.h"

#include <stdlib.h>
#include <string.h>

/* The example of Parquet's own description: 0 to 7 in three bits. */
static void append_0_to_7_is_the_formats_example(void **state)
{
    (void)state;
    static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tide_buf out = {0};
    tide_hybrid_append_u32(&out, values, 8, 3);
    assert_int_equal(out.len, 4);
    assert_memory_equal(out.ptr, "\x03\x88\xc6\xfa", 4);
    tide_buf_done(&out);
}

static void append_runs_and_groups_as_drawn(void **state)
{
    (void)state;

    static const struct {
        const char *values; /* a digit each */
        unsigned width;
        tide_str want;
    } cases[] = {
        {"1", 1, TIDE_STR("\x02\x01")},
        {"11111111", 1, TIDE_STR("\x10\x01")},
        {"1111111", 2, TIDE_STR("\x0e\x01")},                  /* a short run at the end */
        {"0111111111111111", 1, TIDE_STR("\x03\xfe\x10\x01")}, /* a run from the next group */
        {"01", 1, TIDE_STR("\x03\x02")},                       /* a group filled up */
        {"33333333301", 2, TIDE_STR("\x12\x03\x03\x04\x00")},  /* packed behind a run */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t values[32];
        size_t count = strlen(cases[i].values);
        struct tide_buf out = {0};
        for (size_t at = 0; at < count; at++) {
            values[at] = (uint8_t)(cases[i].values[at] - '0');
        }
        tide_hybrid_append_u8(&out, values, count, cases[i].width);
        if (!tide_str_equal(tide_buf_str(&out), cases[i].want)) {
            fail_msg("case %zu", i);
        }
        tide_buf_done(&out);
    }
}

static uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33);
}

/* Runs and mixtures, read in pieces of many sizes; and every truncation gives no more values. */
static void round_trip(uint64_t seed, unsigned width, size_t count)
{
    uint32_t *values = tide_alloc(count + 1, sizeof(*values));
    uint32_t *got = tide_alloc(count + 1, sizeof(*got));
    uint32_t mask = width == 32 ? UINT32_MAX : (1U << width) - 1;
    struct tide_buf out = {0};
    for (size_t i = 0; i < count; i++) {
        values[i] =
            i > 0 && random_next(&seed) % 8 != 0 ? values[i - 1] : (random_next(&seed) << 1 & mask);
    }
    tide_hybrid_append_u32(&out, values, count, width);
    struct tide_hybrid_reader reader = tide_hybrid_reader_of(tide_buf_str(&out), width);
    for (size_t at = 0; at < count;) {
        size_t step = 1 + random_next(&seed) % 20;
        step = step > count - at ? count - at : step;
        assert_true(tide_hybrid_read(&reader, got + at, step));
        at += step;
    }
    assert_memory_equal(values, got, count * sizeof(*values));
    for (size_t len = 0; len < out.len; len++) {
        char *cut = tide_alloc(len + 1, 1);
        memcpy(cut, out.ptr, len);
        reader = tide_hybrid_reader_of(tide_str_of(cut, len), width);
        if (tide_hybrid_read(&reader, got, count)) {
            /* only bits that fill up the last group can be missed */
            assert_memory_equal(values, got, count * sizeof(*values));
        }
        free(cut);
    }
    tide_buf_done(&out);
    free(values);
    free(got);
}

static void write_then_read_every_width_same_values(void **state)
{
    (void)state;
    for (unsigned width = 1; width <= 32; width++) {
        for (size_t count = 1; count < 70; count++) {
            round_trip(width * 1000 + count, width, count);
        }
        round_trip(width, width, 1000);
    }
}

static void read_damaged_is_false(void **state)
{
    (void)state;

    static const struct {
        unsigned width;
        tide_str bytes;
    } cases[] = {
        {1, TIDE_STR("")},
        {1, TIDE_STR("\x00\x01")},                         /* a run of nothing */
        {1, TIDE_STR("\x01")},                             /* no groups */
        {1, TIDE_STR("\x02\x02")},                         /* a value wider than the width */
        {12, TIDE_STR("\x02\x01")},                        /* half a value */
        {1, TIDE_STR("\x80\x80\x80\x80\x80\x80\x01\x01")}, /* a count without end */
        {8, TIDE_STR("\x03")},                             /* groups without bytes */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t value = 0;
        struct tide_hybrid_reader reader = tide_hybrid_reader_of(cases[i].bytes, cases[i].width);
        if (tide_hybrid_read(&reader, &value, 1)) {
            fail_msg("case %zu", i);
        }
    }
}

static void read_width_0_is_zeros(void **state)
{
    (void)state;
    uint32_t values[3] = {1, 1, 1};
    struct tide_hybrid_reader reader = tide_hybrid_reader_of(TIDE_STR(""), 0);
    assert_true(tide_hybrid_read(&reader, values, 3));
    assert_true(values[0] == 0 && values[1] == 0 && values[2] == 0);
}

static void take_run_only_of_that_value_and_length(void **state)
{
    (void)state;
    struct tide_buf out = {0};
    tide_hybrid_append_run(&out, 1, 20, 1);
    struct tide_hybrid_reader reader = tide_hybrid_reader_of(tide_buf_str(&out), 1);
    assert_false(tide_hybrid_take_run(&reader, 0, 20));
    assert_false(tide_hybrid_take_run(&reader, 1, 21));
    assert_true(tide_hybrid_take_run(&reader, 1, 15));
    assert_true(tide_hybrid_take_run(&reader, 1, 5));
    assert_false(tide_hybrid_take_run(&reader, 1, 1));
    tide_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_0_to_7_is_the_formats_example),
        cmocka_unit_test(append_runs_and_groups_as_drawn),
        cmocka_unit_test(write_then_read_every_width_same_values),
        cmocka_unit_test(read_damaged_is_false),
        cmocka_unit_test(read_width_0_is_zeros),
        cmocka_unit_test(take_run_only_of_that_value_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
