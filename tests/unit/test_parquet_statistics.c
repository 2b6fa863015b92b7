#include "cmocka_prelude.h"

#include "format/parquet/reader.h"
#include "format/parquet/writer.h"

#include <math.h>

static struct tide_arena arena;

/* Writes one column with `add` and gives back what the file says of it. */
static struct tide_parquet_statistics statistics_of(const struct tide_parquet_column *column,
                                                    size_t rows,
                                                    void (*add)(struct tide_parquet_writer *))
{
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_writer *writer = NULL;
    struct tide_parquet_reader *reader = NULL;
    struct tide_error err = {0};
    tide_str bytes = {0};
    assert_int_equal(tide_parquet_writer_new(column, 1, &options, &writer, &err), TIDE_OK);
    add(writer);
    assert_int_equal(tide_parquet_writer_end_rows(writer, rows, &err), TIDE_OK);
    assert_int_equal(tide_parquet_writer_finish(writer, NULL, 0, &bytes, &err), TIDE_OK);
    assert_int_equal(tide_parquet_reader_new(tide_arena_str(&arena, bytes), &limits, &reader, &err),
                     TIDE_OK);
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    struct tide_parquet_statistics found = metadata->groups[0].chunks[0].statistics;
    found.min = tide_arena_str(&arena, found.min);
    found.max = tide_arena_str(&arena, found.max);
    tide_parquet_reader_free(reader);
    tide_parquet_writer_free(writer);
    assert_true(found.has_null_count);
    return found;
}

static void expect_bytes(tide_str got, const void *want, size_t len)
{
    assert_int_equal(got.len, len);
    assert_memory_equal(got.ptr, want, len);
}

static void expect_i64(tide_str got, int64_t want)
{
    expect_bytes(got, &want, sizeof(want));
}

static void add_integers(struct tide_parquet_writer *writer)
{
    tide_parquet_add_i64(writer, 0, 3);
    tide_parquet_add_i64(writer, 0, -1);
    tide_parquet_add_null(writer, 0);
    tide_parquet_add_i64(writer, 0, 0);
}

static void integers_signed_and_unsigned(void **state)
{
    (void)state;
    struct tide_parquet_column column = {
        .name = TIDE_STR("x"), .type = TIDE_PARQUET_INT64, .is_nullable = true};
    struct tide_parquet_statistics found = statistics_of(&column, 4, add_integers);
    assert_int_equal(found.null_count, 1);
    assert_true(found.has_min && found.has_max && found.is_min_exact && found.is_max_exact);
    expect_i64(found.min, -1);
    expect_i64(found.max, 3);
    column.type = TIDE_PARQUET_UINT64;
    found = statistics_of(&column, 4, add_integers);
    expect_i64(found.min, 0);
    expect_i64(found.max, -1);
}

static void add_decimals(struct tide_parquet_writer *writer)
{
    tide_parquet_add_i128(writer, 0, 200);
    tide_parquet_add_i128(writer, 0, -300);
    tide_parquet_add_i128(writer, 0, -1);
    tide_parquet_add_i128(writer, 0, 500);
}

static void decimals_signed(void **state)
{
    (void)state;
    struct tide_parquet_column column = {
        .name = TIDE_STR("x"), .type = TIDE_PARQUET_DECIMAL, .precision = 4};
    struct tide_parquet_statistics found = statistics_of(&column, 4, add_decimals);
    expect_bytes(found.min, "\xfe\xd4", 2);
    expect_bytes(found.max, "\x01\xf4", 2);
}

static void add_zeros(struct tide_parquet_writer *writer)
{
    tide_parquet_add_double(writer, 0, 0.0);
}

static void add_nan(struct tide_parquet_writer *writer)
{
    tide_parquet_add_double(writer, 0, 1.0);
    tide_parquet_add_double(writer, 0, -(double)NAN);
}

static void add_reals(struct tide_parquet_writer *writer)
{
    tide_parquet_add_double(writer, 0, -1.5);
    tide_parquet_add_double(writer, 0, -2.5);
    tide_parquet_add_double(writer, 0, 1e300);
}

static void add_float_zero(struct tide_parquet_writer *writer)
{
    tide_parquet_add_float(writer, 0, -0.0F);
    tide_parquet_add_float(writer, 0, -3.5F);
}

static void floats_zeros_and_nan(void **state)
{
    (void)state;
    static const double minus_zero = -0.0;
    static const double zero = 0.0;
    struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = TIDE_PARQUET_DOUBLE};
    struct tide_parquet_statistics found = statistics_of(&column, 1, add_zeros);
    expect_bytes(found.min, &minus_zero, 8);
    expect_bytes(found.max, &zero, 8);
    found = statistics_of(&column, 2, add_nan);
    assert_false(found.has_min || found.has_max);
    found = statistics_of(&column, 3, add_reals);
    static const double least = -2.5;
    static const double most = 1e300;
    expect_bytes(found.min, &least, 8);
    expect_bytes(found.max, &most, 8);
    column.type = TIDE_PARQUET_FLOAT;
    found = statistics_of(&column, 2, add_float_zero);
    expect_bytes(found.min, "\x00\x00\x60\xc0", 4);
    expect_bytes(found.max, "\x00\x00\x00\x00", 4);
}

static char long_text[80];

static void add_long(struct tide_parquet_writer *writer)
{
    tide_parquet_add_bytes(writer, 0, tide_str_of(long_text, sizeof(long_text)));
    tide_parquet_add_bytes(writer, 0, tide_str_of(long_text, sizeof(long_text)));
}

/* What a long string's bounds are cut to: never greater, or less, than the string. */
static void long_strings_cut_to_bounds(void **state)
{
    (void)state;

    static const struct {
        enum tide_parquet_type type;
        const char *piece; /* repeated to 80 bytes */
        size_t min_len;
        size_t max_len; /* 0: none */
        const char *max_end;
    } cases[] = {
        {TIDE_PARQUET_STRING, "abcd", 64, 64, "abce"},
        {TIDE_PARQUET_STRING, "\x7f", 64, 0, NULL}, /* nothing is greater */
        {TIDE_PARQUET_STRING, "a\x7f\x7f\x7f", 64, 61, "b"},
        {TIDE_PARQUET_STRING, "ab\xc3\xa9", 64, 64, "ab\xc3\xaa"},
        {TIDE_PARQUET_STRING, "ab\xc3\xbf", 64, 62, "ac"},             /* its next is longer */
        {TIDE_PARQUET_STRING, "\xe2\x82\xac", 63, 63, "\xe2\x82\xad"}, /* 64 is within one */
        {TIDE_PARQUET_STRING, "\xf0\x9f\x98\x80", 64, 64, "\xf0\x9f\x98\x81"},
        {TIDE_PARQUET_BINARY, "\xff", 64, 0, NULL},
        {TIDE_PARQUET_BINARY, "\x01\xff\xff\xff", 64, 61, "\x02"},
        {TIDE_PARQUET_BINARY, "\x01\x7f", 64, 64, "\x01\x80"},
        {TIDE_PARQUET_JSON, "abcd", 64, 64, "abce"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = cases[i].type};
        size_t piece = strlen(cases[i].piece);
        for (size_t at = 0; at < sizeof(long_text); at++) {
            long_text[at] = cases[i].piece[at % piece];
        }
        if (sizeof(long_text) % piece != 0) {
            memset(long_text + sizeof(long_text) / piece * piece, 'x', sizeof(long_text) % piece);
        }
        struct tide_parquet_statistics found = statistics_of(&column, 2, add_long);
        tide_str whole = {long_text, sizeof(long_text)};
        assert_true(found.has_min && !found.is_min_exact);
        assert_int_equal(found.min.len, cases[i].min_len);
        assert_true(tide_str_starts_with(whole, found.min));
        assert_int_equal(found.has_max, cases[i].max_len > 0);
        if (found.has_max) {
            assert_false(found.is_max_exact);
            assert_int_equal(found.max.len, cases[i].max_len);
            assert_true(tide_str_ends_with(found.max, tide_str_from(cases[i].max_end)));
            assert_true(tide_str_compare(whole, found.max) < 0);
        }
    }
}

static void add_strings(struct tide_parquet_writer *writer)
{
    tide_parquet_add_bytes(writer, 0, TIDE_STR("b"));
    tide_parquet_add_bytes(writer, 0, TIDE_STR("\xc3\xa9"));
    tide_parquet_add_bytes(writer, 0, TIDE_STR("bb"));
    tide_parquet_add_bytes(writer, 0, TIDE_STR("a\0"));
}

static void strings_unsigned_bytes(void **state)
{
    (void)state;
    struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = TIDE_PARQUET_STRING};
    struct tide_parquet_statistics found = statistics_of(&column, 4, add_strings);
    expect_bytes(found.min, "a\0", 2);
    expect_bytes(found.max, "\xc3\xa9", 2);
    assert_true(found.is_min_exact && found.is_max_exact);
}

static void add_nulls(struct tide_parquet_writer *writer)
{
    tide_parquet_add_null(writer, 0);
    tide_parquet_add_null(writer, 0);
}

static void nulls_alone_have_no_bounds(void **state)
{
    (void)state;
    struct tide_parquet_column column = {
        .name = TIDE_STR("x"), .type = TIDE_PARQUET_UUID, .is_nullable = true};
    struct tide_parquet_statistics found = statistics_of(&column, 2, add_nulls);
    assert_int_equal(found.null_count, 2);
    assert_false(found.has_min || found.has_max);
}

static int free_arena(void **state)
{
    (void)state;
    tide_arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_signed_and_unsigned),
        cmocka_unit_test(decimals_signed),
        cmocka_unit_test(floats_zeros_and_nan),
        cmocka_unit_test(long_strings_cut_to_bounds),
        cmocka_unit_test(strings_unsigned_bytes),
        cmocka_unit_test(nulls_alone_have_no_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, free_arena);
}
