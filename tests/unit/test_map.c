#include "cmocka_prelude.h"

#include "base/map.h"

#include <stdio.h>

static tide_str key_of(char *to, unsigned n)
{
    return tide_str_of(to, (size_t)snprintf(to, 32, "key %u", n));
}

/* Against a plain array: random puts and removes agree with it at every step. */
static void put_remove_random_agrees_with_model(void **state)
{
    (void)state;
    struct tide_map map = {0};
    uint64_t model[200] = {0};
    uint64_t seed = 42;
    char text[32];
    for (int step = 0; step < 50000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned n = (unsigned)(seed >> 33) % 200;
        bool is_new = false;
        if ((seed >> 20 & 1) != 0) {
            union tide_map_value *value = tide_map_put(&map, key_of(text, n), &is_new);
            assert_int_equal(is_new, model[n] == 0);
            value->number = model[n] = seed | 1;
        } else {
            assert_int_equal(tide_map_remove(&map, key_of(text, n)), model[n] != 0);
            model[n] = 0;
        }
    }
    size_t count = 0;
    for (unsigned n = 0; n < 200; n++) {
        union tide_map_value *value = tide_map_get(&map, key_of(text, n));
        assert_int_equal(value == NULL ? 0 : value->number, model[n]);
        count += model[n] != 0;
    }
    assert_int_equal(map.count, count);
    tide_map_done(&map);
}

static void get_empty_key_is_a_key_like_any_other(void **state)
{
    (void)state;
    struct tide_map map = {0};
    assert_null(tide_map_get(&map, TIDE_STR("")));
    tide_map_put(&map, TIDE_STR(""), NULL)->number = 7;
    assert_int_equal(tide_map_get(&map, (tide_str){NULL, 0})->number, 7);
    tide_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_remove_random_agrees_with_model),
        cmocka_unit_test(get_empty_key_is_a_key_like_any_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
