/*
 * Tables drawn from any bytes, written and read back: the values must be the same, and the same
 * rows give the same bytes again.
 */
#include "parquet_table.h"

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tide_str write_all(const struct parquet_table *table, struct tide_parquet_writer *writer,
                          size_t step)
{
    struct tide_error err = {0};
    tide_str bytes = {0};
    TIDE_ASSERT(parquet_table_write(table, writer, step, &err) == TIDE_OK);
    TIDE_ASSERT(tide_parquet_writer_finish(writer, NULL, 0, &bytes, &err) == TIDE_OK);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parquet_random random = {.state = 1, .data = data, .size = size};
    struct tide_parquet_column columns[3];
    struct parquet_table table;
    struct tide_parquet_writer *writer = NULL;
    struct tide_error err = {0};
    struct tide_buf first = {0};
    struct tide_parquet_options options = parquet_random_options(&random);
    size_t count = 1 + parquet_random_below(&random, 3);
    for (size_t i = 0; i < count; i++) {
        size_t type = parquet_random_below(&random, TIDE_PARQUET_JSON + 1);
        columns[i] = parquet_random_column(&random, (enum tide_parquet_type)type, TIDE_STR("c"));
    }
    size_t step = parquet_random_below(&random, 10);
    parquet_table_make(&table, &random, columns, count, parquet_random_below(&random, 200));
    TIDE_ASSERT(tide_parquet_writer_new(columns, count, &options, &writer, &err) == TIDE_OK);
    tide_buf_append_str(&first, write_all(&table, writer, step));
    parquet_table_check(&table, tide_buf_str(&first), true);
    tide_parquet_writer_reset(writer);
    TIDE_ASSERT(tide_str_equal(write_all(&table, writer, step), tide_buf_str(&first)));
    tide_buf_done(&first);
    tide_parquet_writer_free(writer);
    parquet_table_done(&table);
    return 0;
}
