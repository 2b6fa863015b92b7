#include "cmocka_prelude.h"

#include "format/interval_set.h"

#include <stdlib.h>
#include <string.h>

#define SPAN 200000u

static uint64_t seed = 7;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static void insert_in_order_costs_nothing_and_counts(void **state)
{
    (void)state;
    struct tide_interval_set set = {0};
    for (uint64_t i = 0; i < 3000000; i++) {
        assert_true(tide_interval_set_insert(&set, i));
    }
    assert_int_equal(set.count, 3000000);
    assert_int_equal(set.max, 2999999);
    assert_true(tide_interval_set_size(&set) < 8192);
    assert_false(tide_interval_set_insert(&set, 65535));
    assert_false(tide_interval_set_insert(&set, 65536));
    tide_interval_set_done(&set);
}

/* Every odd number first: at worst one bit a number, then nothing once they are full. */
static void insert_out_of_order_takes_a_bit_a_number(void **state)
{
    (void)state;
    struct tide_interval_set set = {0};
    uint64_t count = 64 * 65536;
    for (uint64_t i = 1; i < count; i += 2) {
        assert_true(tide_interval_set_insert(&set, i));
    }
    assert_true(tide_interval_set_size(&set) < count / 8 + 8192);
    for (uint64_t i = 0; i < count; i += 2) {
        assert_true(tide_interval_set_insert(&set, i));
    }
    assert_true(tide_interval_set_size(&set) < 8192);
    tide_interval_set_done(&set);
}

static void insert_sparse_numbers_takes_memory_for_what_was_seen(void **state)
{
    (void)state;
    struct tide_interval_set set = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(tide_interval_set_insert(&set, i << 50));
    }
    assert_true(tide_interval_set_insert(&set, UINT64_MAX));
    assert_true(tide_interval_set_size(&set) < 1000 * 128);
    struct tide_interval range[3];
    assert_int_equal(tide_interval_set_missing(&set, 0, UINT64_MAX, range, 3), 3);
    assert_int_equal(range[0].first, 1);
    assert_int_equal(range[0].last, (UINT64_C(1) << 50) - 1);
    assert_true(tide_interval_set_contains(&set, UINT64_MAX));
    assert_int_equal(tide_interval_set_missing(&set, UINT64_MAX, UINT64_MAX, range, 3), 0);
    tide_interval_set_done(&set);
}

static void missing_of_an_empty_set_is_everything(void **state)
{
    (void)state;
    struct tide_interval_set set = {0};
    struct tide_interval range[2];
    assert_int_equal(tide_interval_set_missing(&set, 5, UINT64_MAX, range, 2), 1);
    assert_int_equal(range[0].first, 5);
    assert_int_equal(range[0].last, UINT64_MAX - 1);
    assert_int_equal(tide_interval_set_missing(&set, 5, 5, range, 2), 0);
    assert_int_equal(tide_interval_set_present(&set, 0, UINT64_MAX, range, 2), 0);
    assert_int_equal(tide_interval_set_count_below(&set, 99), 0);
    assert_false(tide_interval_set_contains(&set, 0));
}

/* The first ranges that a plain array has (or has not). */
static size_t plain_ranges(const bool *model, uint64_t from, uint64_t bound, bool wanted,
                           struct tide_interval *to, size_t max)
{
    size_t count = 0;
    for (uint64_t i = from; i < bound && count <= max; i++) {
        if (model[i] != wanted) {
            continue;
        }
        if (i > from && model[i - 1] == wanted) {
            to[count - 1].last = i;
        } else if (count++ < max) {
            to[count - 1] = (struct tide_interval){i, i};
        }
    }
    return count < max ? count : max;
}

static void compare_ranges(const struct tide_interval_set *set, const bool *model)
{
    struct tide_interval want[4] = {0};
    struct tide_interval got[4] = {0};
    uint64_t from = next_random() % SPAN;
    uint64_t bound = from + next_random() % (SPAN - from + 1);
    size_t count = plain_ranges(model, from, bound, false, want, 3);
    assert_int_equal(tide_interval_set_missing(set, from, bound, got, 3), count);
    assert_memory_equal(got, want, count * sizeof(*want));
    count = plain_ranges(model, from, bound, true, want, 3);
    assert_int_equal(tide_interval_set_present(set, from, bound, got, 3), count);
    assert_memory_equal(got, want, count * sizeof(*want));
}

static void compare_count(const struct tide_interval_set *set, const bool *model)
{
    uint64_t bound = next_random() % (SPAN + 1);
    uint64_t count = 0;
    for (uint64_t i = 0; i < bound; i++) {
        count += model[i];
    }
    assert_int_equal(tide_interval_set_count_below(set, bound), count);
}

static void insert_some(struct tide_interval_set *set, bool *model)
{
    uint64_t first = next_random() % SPAN;
    uint64_t length = next_random() % 3 == 0 ? 1 : next_random() % 3000;
    uint64_t step = 1 + next_random() % 3;
    for (uint64_t i = first; i < first + length && i < SPAN; i += step) {
        assert_int_equal(tide_interval_set_insert(set, i), !model[i]);
        model[i] = true;
    }
}

static void random_histories_agree_with_a_plain_array(void **state)
{
    (void)state;
    bool *model = malloc(SPAN);
    for (int round = 0; round < 40; round++) {
        struct tide_interval_set set = {0};
        memset(model, 0, SPAN);
        for (int step = 0; step < 25 + round * 10; step++) {
            insert_some(&set, model);
        }
        for (int i = 0; i < 20; i++) {
            compare_ranges(&set, model);
            compare_count(&set, model);
            uint64_t number = next_random() % SPAN;
            assert_int_equal(tide_interval_set_contains(&set, number), model[number]);
        }
        tide_interval_set_done(&set);
    }
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_in_order_costs_nothing_and_counts),
        cmocka_unit_test(insert_out_of_order_takes_a_bit_a_number),
        cmocka_unit_test(insert_sparse_numbers_takes_memory_for_what_was_seen),
        cmocka_unit_test(missing_of_an_empty_set_is_everything),
        cmocka_unit_test(random_histories_agree_with_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
