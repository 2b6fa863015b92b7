#include "cmocka_prelude.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

static void append_pieces_are_joined(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    tide_buf_append(&buf, NULL, 0);
    tide_buf_append_str(&buf, TIDE_STR("a\0b"));
    tide_buf_append_char(&buf, ':');
    tide_buf_printf(&buf, "%s-%03d", "x", 7);
    assert_int_equal(buf.len, 9);
    assert_memory_equal(buf.ptr, "a\0b:x-007", 9);
    assert_string_equal(tide_buf_cstr(&buf) + 2, "b:x-007");
    assert_int_equal(buf.len, 9);
    tide_buf_done(&buf);
    assert_null(buf.ptr);
}

static void append_numbers_agree_with_printf(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0, 1, 9, 10, 99, 100, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    struct tide_buf buf = {0};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char want[64];
        tide_buf_reset(&buf);
        tide_buf_append_u64(&buf, values[i]);
        tide_buf_append_char(&buf, ' ');
        tide_buf_append_i64(&buf, (int64_t)values[i]);
        (void)snprintf(want, sizeof(want), "%llu %lld", (unsigned long long)values[i],
                       (long long)values[i]);
        assert_string_equal(tide_buf_cstr(&buf), want);
    }
    tide_buf_done(&buf);
}

/* Every number of digits, from both sides. */
static void append_numbers_have_all_their_digits(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    uint64_t power = 1;
    for (size_t digits = 1; digits <= 20; digits++, power *= 10) {
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            char want[64];
            tide_buf_reset(&buf);
            tide_buf_append_u64(&buf, value);
            tide_buf_append_char(&buf, ' ');
            tide_buf_append_i64(&buf, -(int64_t)(value / 2));
            (void)snprintf(want, sizeof(want), "%llu %lld", (unsigned long long)value,
                           -(long long)(value / 2));
            assert_string_equal(tide_buf_cstr(&buf), want);
        }
    }
    tide_buf_done(&buf);
}

static void append_grows_and_keeps_what_is_there(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    for (unsigned i = 0; i < 100000; i++) {
        tide_buf_append_char(&buf, (char)(i % 127));
    }
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(buf.ptr[i], i % 127);
    }
    size_t cap = buf.cap;
    tide_buf_reset(&buf);
    assert_int_equal(buf.cap, cap);
    assert_int_equal(tide_buf_str(&buf).len, 0);
    tide_buf_done(&buf);
}

static void reserve_gives_room_without_counting_it(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    tide_buf_append_str(&buf, TIDE_STR("12"));
    memset(tide_buf_reserve(&buf, 5000), 'x', 5000);
    assert_int_equal(buf.len, 2);
    buf.len += 5000;
    assert_memory_equal(buf.ptr, "12x", 3);
    tide_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_pieces_are_joined),
        cmocka_unit_test(append_numbers_agree_with_printf),
        cmocka_unit_test(append_numbers_have_all_their_digits),
        cmocka_unit_test(append_grows_and_keeps_what_is_there),
        cmocka_unit_test(reserve_gives_room_without_counting_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
