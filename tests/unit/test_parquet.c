/* Parquet files: round trips of random tables, edges, damage. Parts have tests of their own. */
#include "cmocka_prelude.h"

#include "base/limits.h"
#include "format/parquet/crc32.h"
#include "format/parquet/metadata.h"
#include "parquet_table.h"
#include "soak.h"

#include <stdio.h>

#define ALL_TYPES (TIDE_PARQUET_JSON + 1)

static const char *const names[ALL_TYPES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",       "j",
                                             "k", "l", "m", "n", "o", "p", "q", "r", "\xc3\xa9"};

static tide_str write_table(const struct parquet_table *table,
                            const struct tide_parquet_options *options, size_t step,
                            struct tide_parquet_writer **writer)
{
    struct tide_error err = {0};
    tide_str bytes = {0};
    assert_int_equal(
        tide_parquet_writer_new(table->columns, table->column_count, options, writer, &err),
        TIDE_OK);
    if (parquet_table_write(table, *writer, step, &err) != TIDE_OK ||
        tide_parquet_writer_finish(*writer, NULL, 0, &bytes, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return bytes;
}

static void round_trip(const struct parquet_table *table,
                       const struct tide_parquet_options *options, size_t step)
{
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    parquet_table_check(table, write_table(table, options, step, &writer), true);
}

static void make_columns(struct parquet_random *random, struct tide_parquet_column *columns)
{
    for (size_t i = 0; i < ALL_TYPES; i++) {
        columns[i] =
            parquet_random_column(random, (enum tide_parquet_type)i, tide_str_from(names[i]));
    }
}

static void write_then_read_random_tables_same_values(void **state)
{
    (void)state;
    static const size_t row_counts[] = {0, 1, 2, 8, 9, 63, 500};
    static const size_t steps[] = {0, 1, 13};
    long rounds = soak_rounds(300, 30000);
    for (long round = 0; round < rounds; round++) {
        struct parquet_random random = {.state = (uint64_t)round};
        struct tide_parquet_column columns[ALL_TYPES];
        struct parquet_table table;
        make_columns(&random, columns);
        parquet_table_make(&table, &random, columns, ALL_TYPES, row_counts[round % 7]);
        struct tide_parquet_options options = parquet_random_options(&random);
        round_trip(&table, &options, steps[round % 3]);
        parquet_table_done(&table);
    }
}

static void write_large_columns_spans_pages_and_groups(void **state)
{
    (void)state;
    struct parquet_random random = {.state = 4};
    struct tide_parquet_column columns[ALL_TYPES];
    struct parquet_table table;
    struct tide_parquet_options options = tide_parquet_options_default();
    make_columns(&random, columns);
    parquet_table_make(&table, &random, columns, ALL_TYPES, 20000);
    options.page_bytes = 10000;
    options.dictionary_bytes_max = 20000; /* overflows in most columns */
    round_trip(&table, &options, 0);
    options.row_group_bytes = 200000;
    round_trip(&table, &options, 100);
    parquet_table_done(&table);
}

static void write_after_reset_same_bytes(void **state)
{
    (void)state;
    struct parquet_random random = {.state = 5};
    struct tide_parquet_column columns[ALL_TYPES];
    struct parquet_table table;
    struct tide_error err = {0};
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    struct tide_buf first TIDE_CLEANUP(tide_buf_done) = {0};
    make_columns(&random, columns);
    parquet_table_make(&table, &random, columns, ALL_TYPES, 300);
    tide_buf_append_str(&first, write_table(&table, &options, 0, &writer));
    tide_parquet_writer_reset(writer);
    tide_str second = {0};
    assert_int_equal(parquet_table_write(&table, writer, 7, &err), TIDE_OK);
    assert_int_equal(tide_parquet_writer_rows(writer), 300);
    assert_int_equal(tide_parquet_writer_finish(writer, NULL, 0, &second, &err), TIDE_OK);
    assert_true(tide_str_equal(tide_buf_str(&first), second));
    parquet_table_done(&table);
}

/* A small table of every type and its file, for damage. */
struct small {
    struct tide_parquet_column columns[ALL_TYPES];
    struct parquet_table table;
    struct tide_buf file;
};

static void make_small(struct small *small, enum tide_parquet_codec codec)
{
    struct parquet_random random = {.state = 6 + (uint64_t)codec};
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    *small = (struct small){0};
    make_columns(&random, small->columns);
    parquet_table_make(&small->table, &random, small->columns, ALL_TYPES, 9);
    options.codec = codec;
    options.row_group_rows = 5;
    tide_buf_append_str(&small->file, write_table(&small->table, &options, 1, &writer));
}

static void small_done(struct small *small)
{
    parquet_table_done(&small->table);
    tide_buf_done(&small->file);
}

/* Reads all there is; the worst of the results. */
static tide_status read_all(tide_str bytes, bool takes_any_checksum)
{
    struct tide_parquet_limits limits = {1 << 20, 1 << 20, 1 << 20, 1 << 16, takes_any_checksum};
    struct tide_parquet_reader *reader TIDE_CLEANUP(tide_parquet_reader_free_ptr) = NULL;
    struct tide_parquet_values values TIDE_CLEANUP(tide_parquet_values_done) = {0};
    struct tide_error err = {0};
    tide_status worst = tide_parquet_reader_new(bytes, &limits, &reader, &err);
    if (worst != TIDE_OK) {
        return worst;
    }
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    for (size_t group = 0; group < metadata->group_count; group++) {
        for (size_t column = 0; column < metadata->column_count; column++) {
            tide_status status = tide_parquet_reader_read(reader, group, column, &values, &err);
            if (status != TIDE_OK) {
                assert_int_equal(values.row_count, 0);
                worst = status;
            }
        }
    }
    return worst;
}

static void read_every_truncation_is_corrupt(void **state)
{
    (void)state;
    struct small small TIDE_CLEANUP(small_done);
    make_small(&small, TIDE_PARQUET_ZSTD);
    assert_int_equal(read_all(tide_buf_str(&small.file), false), TIDE_OK);
    for (size_t len = 0; len < small.file.len; len++) {
        char *copy = test_malloc(len + 1); /* of its own, so that sanitizers see what is behind */
        memcpy(copy, small.file.ptr, len);
        assert_int_equal(read_all(tide_str_of(copy, len), false), TIDE_CORRUPT);
        test_free(copy);
    }
}

/* Cut in the middle, between a whole head and a whole tail. */
static void read_cut_in_the_middle_is_an_error(void **state)
{
    (void)state;
    struct small small TIDE_CLEANUP(small_done);
    make_small(&small, TIDE_PARQUET_LZ4_RAW);
    size_t len = small.file.len;
    for (size_t cut = 1; cut < len - 12; cut++) {
        char *copy = test_malloc(len - cut);
        memcpy(copy, small.file.ptr, 4);
        memcpy(copy + 4, small.file.ptr + 4 + cut, len - 4 - cut);
        assert_true(read_all(tide_str_of(copy, len - cut), false) != TIDE_OK);
        test_free(copy);
    }
}

/* The footer's names, counts and bounds have no checksum: there a byte may be another one. */
static void read_every_changed_byte_in_pages_is_told_or_changes_nothing(void **state)
{
    (void)state;
    struct small small TIDE_CLEANUP(small_done);
    uint32_t footer_size = 0;
    size_t told = 0;
    make_small(&small, TIDE_PARQUET_UNCOMPRESSED);
    struct tide_buf *file = &small.file;
    memcpy(&footer_size, file->ptr + (file->len - 8), sizeof(footer_size));
    size_t end = file->len - 8 - footer_size;
    for (size_t at = 0; at < end; at++) {
        file->ptr[at] = (char)(file->ptr[at] ^ 0x10);
        if (read_all(tide_buf_str(file), false) == TIDE_OK) {
            parquet_table_check(&small.table, tide_buf_str(file), true);
        } else {
            told++;
        }
        file->ptr[at] = (char)(file->ptr[at] ^ 0x10);
    }
    assert_true(told > end * 9 / 10);
}

static void read_every_changed_byte_never_crashes(void **state)
{
    (void)state;

    static const enum tide_parquet_codec codecs[] = {TIDE_PARQUET_UNCOMPRESSED, TIDE_PARQUET_ZSTD,
                                                     TIDE_PARQUET_LZ4_RAW};

    static const unsigned char flips[] = {0x01, 0x80, 0xff, 0x55};
    for (size_t codec = 0; codec < 3; codec++) {
        struct small small TIDE_CLEANUP(small_done);
        make_small(&small, codecs[codec]);
        for (size_t at = 0; at < small.file.len; at++) {
            for (size_t i = 0; i < sizeof(flips); i++) {
                char *byte = small.file.ptr + at;
                *byte = (char)(*byte ^ flips[i]);
                tide_status status = read_all(tide_buf_str(&small.file), true);
                assert_true(status == TIDE_OK || status == TIDE_CORRUPT ||
                            status == TIDE_UNSUPPORTED);
                *byte = (char)(*byte ^ flips[i]);
            }
        }
    }
}

static void expect_mistake(const struct tide_parquet_column *column, const char *want,
                           void (*add)(struct tide_parquet_writer *writer))
{
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    struct tide_error err = {0};
    assert_int_equal(tide_parquet_writer_new(column, 1, &options, &writer, &err), TIDE_OK);
    add(writer);
    assert_int_equal(tide_parquet_writer_end_rows(writer, 1, &err), TIDE_INVALID);
    assert_string_equal(err.message, want);
}

static void add_300(struct tide_parquet_writer *writer)
{
    tide_parquet_add_i32(writer, 0, 300);
}

static void add_1000(struct tide_parquet_writer *writer)
{
    tide_parquet_add_i128(writer, 0, 1000);
}

static void add_short_uuid(struct tide_parquet_writer *writer)
{
    tide_parquet_add_bytes(writer, 0, TIDE_STR("0123"));
}

static void end_rows_value_out_of_type_is_invalid(void **state)
{
    (void)state;
    struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = TIDE_PARQUET_UINT8};
    expect_mistake(&column, "column x is given an integer out of the range of its type", add_300);
    column.type = TIDE_PARQUET_INT8;
    expect_mistake(&column, "column x is given an integer out of the range of its type", add_300);
    column.type = TIDE_PARQUET_DECIMAL;
    column.precision = 3;
    expect_mistake(&column, "column x is given a decimal of more digits than its type has",
                   add_1000);
    column.type = TIDE_PARQUET_UUID;
    expect_mistake(&column, "column x is given a UUID that has not 16 bytes", add_short_uuid);
}

static void writer_new_bad_columns_and_options_is_invalid(void **state)
{
    (void)state;
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer = NULL;
    struct tide_error err = {0};
    struct tide_parquet_column column = {
        .name = TIDE_STR("x"), .type = TIDE_PARQUET_DECIMAL, .precision = 39};
    assert_int_equal(tide_parquet_writer_new(&column, 0, &options, &writer, &err), TIDE_INVALID);
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    column.precision = 0;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    column.precision = 2;
    column.scale = 3;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    column.scale = 2;
    column.name = TIDE_STR("\xff");
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    column.name = TIDE_STR("x");
    options.level = 20;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    options = tide_parquet_options_default();
    options.page_bytes = 0;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    options = tide_parquet_options_default();
    options.row_group_rows = 0;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_INVALID);
    assert_null(writer);
}

static void finish_with_pairs_reader_has_them(void **state)
{
    (void)state;
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    struct tide_parquet_reader *reader TIDE_CLEANUP(tide_parquet_reader_free_ptr) = NULL;
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = TIDE_PARQUET_BOOL};
    struct tide_parquet_pair pairs[20];
    struct tide_error err = {0};
    tide_str bytes = {0};
    options.created_by = TIDE_STR("us version 1");
    for (size_t i = 0; i < 20; i++) {
        pairs[i] = (struct tide_parquet_pair){tide_str_of(&"abcdefghijklmnopqrst"[i], 1),
                                              tide_str_of("\0\xff value", i % 8)};
    }
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_OK);
    assert_int_equal(tide_parquet_writer_finish(writer, pairs, 20, &bytes, &err), TIDE_OK);
    assert_int_equal(tide_parquet_reader_new(bytes, &limits, &reader, &err), TIDE_OK);
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    assert_int_equal(metadata->pair_count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_true(tide_str_equal(metadata->pairs[i].key, pairs[i].key));
        assert_true(tide_str_equal(metadata->pairs[i].value, pairs[i].value));
    }
    assert_true(tide_str_equal(metadata->created_by, options.created_by));
    assert_int_equal(metadata->group_count, 0);
    assert_int_equal(tide_parquet_reader_find(reader, TIDE_STR("x")), 0);
    assert_int_equal(tide_parquet_reader_find(reader, TIDE_STR("y")), 1);
}

/* More values, and larger pages, than a reader wants are refused before memory is reserved. */
static void read_beyond_limits_is_unsupported(void **state)
{
    (void)state;
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    struct tide_parquet_column column = {.name = TIDE_STR("x"), .type = TIDE_PARQUET_INT64};
    struct tide_error err = {0};
    tide_str bytes = {0};
    options.dictionary_bytes_max = 0;
    assert_int_equal(tide_parquet_writer_new(&column, 1, &options, &writer, &err), TIDE_OK);
    for (int64_t i = 0; i < 1000; i++) {
        tide_parquet_add_i64(writer, 0, i);
    }
    assert_int_equal(tide_parquet_writer_end_rows(writer, 1000, &err), TIDE_OK);
    assert_int_equal(tide_parquet_writer_finish(writer, NULL, 0, &bytes, &err), TIDE_OK);

    static const struct {
        struct tide_parquet_limits limits;
        tide_status want;
    } cases[] = {
        {{1000, 8000, 8000, 1000}, TIDE_OK},          {{10, 8000, 8000, 1000}, TIDE_UNSUPPORTED},
        {{1000, 7999, 8000, 1000}, TIDE_UNSUPPORTED}, {{1000, 8000, 7999, 1000}, TIDE_UNSUPPORTED},
        {{1000, 8000, 8000, 999}, TIDE_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_parquet_reader *reader TIDE_CLEANUP(tide_parquet_reader_free_ptr) = NULL;
        struct tide_parquet_values values TIDE_CLEANUP(tide_parquet_values_done) = {0};
        tide_status status = tide_parquet_reader_new(bytes, &cases[i].limits, &reader, &err);
        if (status == TIDE_OK) {
            status = tide_parquet_reader_read(reader, 0, 0, &values, &err);
        }
        assert_int_equal(status, cases[i].want);
    }
}

/* Adds rows of few values, of ever new ones, and of truths. */
static void add_rows(struct tide_parquet_writer *writer, int64_t count)
{
    struct tide_error err = {0};
    for (int64_t i = 0; i < count; i++) {
        tide_parquet_add_i64(writer, 0, i % 100);
        tide_parquet_add_i64(writer, 1, i);
        tide_parquet_add_bool(writer, 2, i % 2 == 0);
    }
    assert_int_equal(tide_parquet_writer_end_rows(writer, (size_t)count, &err), TIDE_OK);
}

static void expect_dictionaries(size_t bytes_max, int64_t rows, bool few, bool ever_new)
{
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    struct tide_parquet_reader *reader TIDE_CLEANUP(tide_parquet_reader_free_ptr) = NULL;
    struct tide_parquet_column columns[] = {
        {.name = TIDE_STR("few"), .type = TIDE_PARQUET_INT64},
        {.name = TIDE_STR("new"), .type = TIDE_PARQUET_INT64},
        {.name = TIDE_STR("bool"), .type = TIDE_PARQUET_BOOL},
    };
    struct tide_error err = {0};
    tide_str bytes = {0};
    options.dictionary_bytes_max = bytes_max;
    assert_int_equal(tide_parquet_writer_new(columns, 3, &options, &writer, &err), TIDE_OK);
    add_rows(writer, rows);
    assert_int_equal(tide_parquet_writer_finish(writer, NULL, 0, &bytes, &err), TIDE_OK);
    assert_int_equal(tide_parquet_reader_new(bytes, &limits, &reader, &err), TIDE_OK);
    const struct tide_parquet_chunk *chunks =
        tide_parquet_reader_metadata(reader)->groups[0].chunks;
    assert_int_equal(chunks[0].dictionary_at > 0, few);
    assert_int_equal(chunks[1].dictionary_at > 0, ever_new);
    assert_int_equal(chunks[2].dictionary_at, 0);
}

static void dictionary_only_where_it_pays_and_has_room(void **state)
{
    (void)state;
    expect_dictionaries(1 << 20, 1000, true, false);
    expect_dictionaries(1 << 20, 50000, true, false); /* given up on the way */
    expect_dictionaries(800, 1000, true, false);      /* 100 values of 8 bytes */
    expect_dictionaries(799, 1000, false, false);
    expect_dictionaries(0, 1000, false, false);
    expect_dictionaries(1 << 20, 1, false, false); /* one value is as small without */
}

static void reader_new_no_parquet_is_told(void **state)
{
    (void)state;

    static const struct {
        tide_str bytes;
        tide_status want;
    } cases[] = {
        {TIDE_STR(""), TIDE_CORRUPT},
        {TIDE_STR("PAR1"), TIDE_CORRUPT},
        {TIDE_STR("PAR1PAR1"), TIDE_CORRUPT},
        {TIDE_STR("PAR1\0\0\0\0PAR1"), TIDE_CORRUPT},         /* a footer of nothing */
        {TIDE_STR("PAR1\1\0\0\0PAR1"), TIDE_CORRUPT},         /* one that is not there */
        {TIDE_STR("PAR1\0\1\0\0\0PAR1"), TIDE_CORRUPT},       /* one without a schema */
        {TIDE_STR("PAR1\xff\xff\xff\xffPAR1"), TIDE_CORRUPT}, /* one larger than the file */
        {TIDE_STR("PARE\0\1\0\0\0PARE"), TIDE_UNSUPPORTED},   /* encrypted */
    };
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_parquet_reader *reader = NULL;
        struct tide_error err = {0};
        assert_int_equal(tide_parquet_reader_new(cases[i].bytes, &limits, &reader, &err),
                         cases[i].want);
        assert_null(reader);
    }
}

static void crc32_known_values(void **state)
{
    (void)state;
    assert_int_equal(tide_parquet_crc32(TIDE_STR("")), 0);
    assert_int_equal(tide_parquet_crc32(TIDE_STR("123456789")), 0xcbf43926);
    assert_int_equal(tide_parquet_crc32(TIDE_STR("The quick brown fox jumps over the lazy dog")),
                     0x414fa339);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32_known_values),
        cmocka_unit_test(dictionary_only_where_it_pays_and_has_room),
        cmocka_unit_test(reader_new_no_parquet_is_told),
        cmocka_unit_test(write_then_read_random_tables_same_values),
        cmocka_unit_test(write_large_columns_spans_pages_and_groups),
        cmocka_unit_test(write_after_reset_same_bytes),
        cmocka_unit_test(read_every_truncation_is_corrupt),
        cmocka_unit_test(read_cut_in_the_middle_is_an_error),
        cmocka_unit_test(read_every_changed_byte_in_pages_is_told_or_changes_nothing),
        cmocka_unit_test(read_every_changed_byte_never_crashes),
        cmocka_unit_test(end_rows_value_out_of_type_is_invalid),
        cmocka_unit_test(writer_new_bad_columns_and_options_is_invalid),
        cmocka_unit_test(finish_with_pairs_reader_has_them),
        cmocka_unit_test(read_beyond_limits_is_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
