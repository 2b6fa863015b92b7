/*
 * Files that are kept: ours, which must come out the same to the byte, and what pyarrow, DuckDB and
 * the Rust crate made of it, which must be read as the same table.
 *
 *     test_parquet_golden record FILE      writes ours anew, for tests/golden/parquet/record.py
 */
#include "cmocka_prelude.h"

#include "parquet_table.h"

#include <dirent.h>
#include <stdio.h>

#define TYPE_COUNT   (TIDE_PARQUET_JSON + 1)
#define COLUMN_COUNT (2 * (size_t)TYPE_COUNT)
#define FOLDER       TIDE_TEST_ROOT "/golden/parquet"

struct golden {
    struct tide_parquet_column columns[COLUMN_COUNT];
    char names[COLUMN_COUNT][8];
    struct parquet_table table;
};

/* Each type as a column and as a list. Others keep times of day without a zone, in microseconds. */
static void make_golden(struct golden *golden)
{
    struct parquet_random random = {.state = 77};
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        enum tide_parquet_type type = (enum tide_parquet_type)(i % TYPE_COUNT);
        (void)snprintf(golden->names[i], sizeof(golden->names[i]), "c%zu", i);
        struct tide_parquet_column *column = &golden->columns[i];
        *column = parquet_random_column(&random, type, tide_str_from(golden->names[i]));
        column->is_list = i >= TYPE_COUNT;
        column->is_element_nullable = column->is_list && i % 2 == 0;
        column->unit = TIDE_PARQUET_US;
        column->is_utc = column->is_utc && type == TIDE_PARQUET_TIMESTAMP;
    }
    parquet_table_make(&golden->table, &random, golden->columns, COLUMN_COUNT, 25);
}

static tide_str write_golden(const struct golden *golden, struct tide_parquet_writer **writer)
{
    struct tide_parquet_options options = tide_parquet_options_default();
    struct tide_error err = {0};
    tide_str bytes = {0};
    options.codec = TIDE_PARQUET_UNCOMPRESSED; /* another version of a library may pack otherwise */
    options.page_bytes = 60;
    options.row_group_rows = 20;
    options.created_by = TIDE_STR("tidemark version 0");
    assert_int_equal(tide_parquet_writer_new(golden->columns, COLUMN_COUNT, &options, writer, &err),
                     TIDE_OK);
    assert_int_equal(parquet_table_write(&golden->table, *writer, 5, &err), TIDE_OK);
    assert_int_equal(tide_parquet_writer_finish(*writer, NULL, 0, &bytes, &err), TIDE_OK);
    return bytes;
}

static void read_file(const char *name, struct tide_buf *buf)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    buf->len = fread(tide_buf_reserve(buf, 1 << 20), 1, 1 << 20, file);
    (void)fclose(file);
}

static void write_golden_table_same_bytes(void **state)
{
    (void)state;
    struct golden golden;
    struct tide_buf want = {0};
    struct tide_parquet_writer *writer TIDE_CLEANUP(tide_parquet_writer_free_ptr) = NULL;
    make_golden(&golden);
    read_file("ours.parquet", &want);
    tide_str got = write_golden(&golden, &writer);
    assert_true(tide_str_equal(got, tide_buf_str(&want)));
    parquet_table_check(&golden.table, got, true);
    tide_buf_done(&want);
    parquet_table_done(&golden.table);
}

static void read_golden_files_same_table(void **state)
{
    (void)state;
    struct golden golden;
    size_t count = 0;
    make_golden(&golden);
    DIR *folder = opendir(FOLDER);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (tide_str_ends_with(tide_str_from(entry->d_name), TIDE_STR(".parquet"))) {
            struct tide_buf bytes = {0};
            read_file(entry->d_name, &bytes);
            (void)printf("%s\n", entry->d_name);
            parquet_table_check(&golden.table, tide_buf_str(&bytes), false);
            tide_buf_done(&bytes);
            count++;
        }
    }
    (void)closedir(folder);
    assert_true(count >= 9);
    parquet_table_done(&golden.table);
}

static int record(const char *path)
{
    struct golden golden;
    struct tide_parquet_writer *writer = NULL;
    make_golden(&golden);
    tide_str bytes = write_golden(&golden, &writer);
    FILE *file = fopen(path, "wb");
    bool is_written =
        file != NULL && fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len && fclose(file) == 0;
    tide_parquet_writer_free(writer);
    parquet_table_done(&golden.table);
    return is_written ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_golden_table_same_bytes),
        cmocka_unit_test(read_golden_files_same_table),
    };
    if (argc == 3) {
        return record(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
