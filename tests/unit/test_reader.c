#include "cmocka_prelude.h"

#include "base/reader.h"

#include <stdlib.h>

static const char wire[] = "\x80"
                           "\x81\x02"
                           "\x83\x04\x05\x06"
                           "\x87\x08\x09\x0a\x0b\x0c\x0d\x0e"
                           "\xff\xff\xff\xfe"
                           "\xff\xff\xff\xff\xff\xff\xff\xfd"
                           "name\0"
                           "\0"
                           "rest";
#define WIRE_LEN (sizeof(wire) - 1)

static void reader_every_read_takes_its_bytes_in_order(void **state)
{
    (void)state;
    struct tide_reader reader = tide_reader_of(tide_str_of(wire, WIRE_LEN));
    assert_int_equal(tide_reader_u8(&reader), 0x80);
    assert_int_equal(tide_reader_u16be(&reader), 0x8102);
    assert_int_equal(tide_reader_u32be(&reader), 0x83040506u);
    assert_true(tide_reader_u64be(&reader) == UINT64_C(0x8708090a0b0c0d0e));
    assert_int_equal(tide_reader_i32be(&reader), -2);
    assert_true(tide_reader_i64be(&reader) == -3);
    assert_true(tide_str_equal(tide_reader_cstr(&reader), TIDE_STR("name")));
    assert_int_equal(tide_reader_cstr(&reader).len, 0);
    assert_false(tide_reader_is_done(&reader));
    assert_int_equal(tide_reader_left(&reader), 4);
    assert_true(tide_str_equal(tide_reader_take(&reader, 4), TIDE_STR("rest")));
    assert_true(tide_reader_is_done(&reader));
    assert_int_equal(tide_reader_take(&reader, 0).len, 0);
    assert_true(tide_reader_is_done(&reader));
}

static bool read_all(struct tide_reader *reader)
{
    (void)tide_reader_u8(reader);
    (void)tide_reader_u16be(reader);
    (void)tide_reader_u32be(reader);
    (void)tide_reader_u64be(reader);
    (void)tide_reader_i32be(reader);
    (void)tide_reader_i64be(reader);
    (void)tide_reader_cstr(reader);
    (void)tide_reader_cstr(reader);
    return tide_reader_take(reader, 4).len == 4;
}

/* Each length in memory of its own size, so that a sanitizer sees a byte read too far. */
static void reader_every_shortage_fails_and_stays_failed(void **state)
{
    (void)state;
    for (size_t len = 0; len < WIRE_LEN; len++) {
        char *bytes = malloc(len + 1);
        assert_non_null(bytes);
        memcpy(bytes + 1, wire, len);
        struct tide_reader reader = tide_reader_of(tide_str_of(bytes + 1, len));
        assert_false(read_all(&reader));
        assert_true(reader.failed);
        assert_false(tide_reader_is_done(&reader));
        assert_int_equal(tide_reader_left(&reader), 0);
        assert_int_equal(tide_reader_u8(&reader), 0);
        assert_true(tide_reader_u64be(&reader) == 0);
        assert_int_equal(tide_reader_cstr(&reader).len, 0);
        assert_true(reader.failed);
        free(bytes);
    }
}

static void reader_of_nothing_is_done(void **state)
{
    (void)state;
    struct tide_reader reader = tide_reader_of((tide_str){0});
    assert_true(tide_reader_is_done(&reader));
    assert_int_equal(tide_reader_take(&reader, SIZE_MAX).len, 0);
    assert_true(reader.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_every_read_takes_its_bytes_in_order),
        cmocka_unit_test(reader_every_shortage_fails_and_stays_failed),
        cmocka_unit_test(reader_of_nothing_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
