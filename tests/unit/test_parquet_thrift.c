#include "cmocka_prelude.h"

#include "format/parquet/thrift.h"

#include <string.h>

/* A struct with a field of each kind; the ids jump so that both forms of a head are there. */
static void write_sample(struct tide_buf *out)
{
    struct tide_thrift_writer writer = {out, 0};
    int16_t outer = tide_thrift_begin_struct(&writer, 0);
    tide_thrift_put_bool(&writer, 1, true);
    tide_thrift_put_bool(&writer, 2, false);
    tide_thrift_put_i8(&writer, 3, -5);
    tide_thrift_put_i32(&writer, 4, INT32_MIN);
    tide_thrift_put_i64(&writer, 100, INT64_MIN);
    tide_thrift_put_binary(&writer, 101, TIDE_STR("a\0b"));
    int16_t inner = tide_thrift_begin_struct(&writer, 102);
    tide_thrift_put_i64(&writer, 1, INT64_MAX);
    tide_thrift_put_empty(&writer, 2);
    tide_thrift_end_struct(&writer, inner);
    tide_thrift_begin_list(&writer, 103, TIDE_THRIFT_I32, 20);
    for (int32_t i = 0; i < 20; i++) {
        tide_thrift_add_i32(&writer, i - 10);
    }
    tide_thrift_end_struct(&writer, outer);
}

static bool next_is(struct tide_thrift_reader *reader, int16_t id, struct tide_thrift_field *field)
{
    return tide_thrift_next(reader, field) && field->id == id;
}

static void write_then_read_same_values(void **state)
{
    (void)state;
    struct tide_buf out = {0};
    struct tide_thrift_field field;
    write_sample(&out);
    struct tide_thrift_reader reader = tide_thrift_reader_of(tide_buf_str(&out));
    assert_true(next_is(&reader, 1, &field) && tide_thrift_bool(&reader, field.type));
    assert_true(next_is(&reader, 2, &field) && !tide_thrift_bool(&reader, field.type));
    assert_true(next_is(&reader, 3, &field) && tide_thrift_i64(&reader, field.type) == -5);
    assert_true(next_is(&reader, 4, &field) && tide_thrift_i32(&reader, field.type) == INT32_MIN);
    assert_true(next_is(&reader, 100, &field) && tide_thrift_i64(&reader, field.type) == INT64_MIN);
    assert_true(next_is(&reader, 101, &field));
    assert_true(tide_str_equal(tide_thrift_binary(&reader, field.type), TIDE_STR("a\0b")));
    assert_true(next_is(&reader, 102, &field) && tide_thrift_is_struct(&reader, field.type));
    int16_t outer = tide_thrift_enter(&reader);
    assert_true(next_is(&reader, 1, &field) && tide_thrift_i64(&reader, field.type) == INT64_MAX);
    assert_true(next_is(&reader, 2, &field));
    tide_thrift_skip(&reader, field.type);
    assert_false(tide_thrift_next(&reader, &field));
    tide_thrift_leave(&reader, outer);
    assert_true(next_is(&reader, 103, &field));
    assert_int_equal(tide_thrift_list(&reader, field.type, TIDE_THRIFT_I32), 20);
    for (int32_t i = 0; i < 20; i++) {
        assert_int_equal(tide_thrift_i32(&reader, TIDE_THRIFT_I32), i - 10);
    }
    assert_false(tide_thrift_next(&reader, &field));
    assert_false(reader.failed);
    assert_ptr_equal(reader.pos, reader.end);
    tide_buf_done(&out);
}

static void skip_every_truncation_fails(void **state)
{
    (void)state;
    struct tide_buf out = {0};
    write_sample(&out);
    for (size_t len = 0; len <= out.len; len++) {
        struct tide_thrift_reader reader = tide_thrift_reader_of(tide_str_of(out.ptr, len));
        tide_thrift_skip(&reader, TIDE_THRIFT_STRUCT);
        assert_int_equal(reader.failed, len < out.len);
    }
    tide_buf_done(&out);
}

static void skip_content_of_every_type(void **state)
{
    (void)state;

    static const struct {
        uint8_t type;
        tide_str bytes;
    } cases[] = {
        {TIDE_THRIFT_TRUE, TIDE_STR("")},
        {TIDE_THRIFT_I8, TIDE_STR("\x7f")},
        {TIDE_THRIFT_I64, TIDE_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
        {TIDE_THRIFT_DOUBLE, TIDE_STR("12345678")},
        {TIDE_THRIFT_BINARY, TIDE_STR("\x03"
                                      "abc")},
        {TIDE_THRIFT_LIST, TIDE_STR("\x31\x01\x02\x01")}, /* booleans take a byte in a list */
        {TIDE_THRIFT_SET, TIDE_STR("\x25\x02\x04")},
        {TIDE_THRIFT_MAP, TIDE_STR("\x00")},                       /* an empty one has no types */
        {TIDE_THRIFT_MAP, TIDE_STR("\x02\x83\x01k\x05\x01l\x06")}, /* text to bytes */
        {TIDE_THRIFT_STRUCT, TIDE_STR("\x1c\x1c\x00\x00\x00")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_thrift_reader reader = tide_thrift_reader_of(cases[i].bytes);
        tide_thrift_skip(&reader, cases[i].type);
        if (reader.failed || reader.pos != reader.end) {
            fail_msg("case %zu", i);
        }
    }
}

static void read_damaged_fails_and_stays_failed(void **state)
{
    (void)state;

    static const struct {
        uint8_t type;
        tide_str bytes;
    } cases[] = {
        {TIDE_THRIFT_I64, TIDE_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")}, /* 65 bits */
        {TIDE_THRIFT_I64, TIDE_STR("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")},
        {TIDE_THRIFT_BINARY, TIDE_STR("\xff\xff\xff\xff\x0f")},
        {TIDE_THRIFT_LIST, TIDE_STR("\xf5\xff\xff\xff\xff\x0f")},
        {TIDE_THRIFT_LIST, TIDE_STR("\x20")}, /* elements of no type */
        {TIDE_THRIFT_MAP, TIDE_STR("\x05\x33")},
        {TIDE_THRIFT_STRUCT, TIDE_STR("\x1d\x00")}, /* a type that is none */
        {13, TIDE_STR("\x00")},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_thrift_reader reader = tide_thrift_reader_of(cases[i].bytes);
        struct tide_thrift_field field;
        tide_thrift_skip(&reader, cases[i].type);
        if (!reader.failed || tide_thrift_next(&reader, &field)) {
            fail_msg("case %zu", i);
        }
    }
    struct tide_thrift_reader reader = tide_thrift_reader_of(TIDE_STR("\x80\x80\x80\x80\x20"));
    assert_int_equal(tide_thrift_i32(&reader, TIDE_THRIFT_I32), 0); /* more than 32 bits */
    assert_true(reader.failed);
}

/* As deep as is allowed, and one deeper. */
static void skip_too_deep_fails(void **state)
{
    (void)state;
    char bytes[2 * TIDE_THRIFT_DEPTH_MAX + 2];
    for (size_t depth = TIDE_THRIFT_DEPTH_MAX; depth <= TIDE_THRIFT_DEPTH_MAX + 1; depth++) {
        memset(bytes, 0x1c, depth - 1);
        memset(bytes + depth - 1, 0, depth);
        struct tide_thrift_reader reader = tide_thrift_reader_of(tide_str_of(bytes, 2 * depth - 1));
        tide_thrift_skip(&reader, TIDE_THRIFT_STRUCT);
        assert_int_equal(reader.failed, depth > TIDE_THRIFT_DEPTH_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_then_read_same_values),
        cmocka_unit_test(skip_every_truncation_fails),
        cmocka_unit_test(skip_content_of_every_type),
        cmocka_unit_test(read_damaged_fails_and_stays_failed),
        cmocka_unit_test(skip_too_deep_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
