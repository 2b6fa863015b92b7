/*
 * Any bytes as the pages of one column, before a footer that fits them: what fuzz_parquet reaches
 * only by luck. What is read must have the rows that the footer says.
 *
 *     u8 type   u8 nullable | list << 1 | element nullable << 2 | codec << 3   u8 values   u8 rows
 *     pages
 */
#include "base/status.h"
#include "format/parquet/metadata.h"
#include "format/parquet/reader.h"

#define HEAD_BYTES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tide_parquet_column column_of(const uint8_t *head)
{
    struct tide_parquet_column column = {
        .name = TIDE_STR("c"),
        .type = (enum tide_parquet_type)(head[0] % (TIDE_PARQUET_JSON + 1)),
        .is_nullable = head[1] & 1,
        .is_list = head[1] & 2,
        .is_element_nullable = (head[1] & 6) == 6,
    };
    if (column.type == TIDE_PARQUET_DECIMAL) {
        column.precision = 12;
        column.scale = 2;
    }
    return column;
}

/* "PAR1", the pages, the footer. */
static void append_file(struct tide_buf *file, const uint8_t *data, size_t size)
{
    static const int32_t codecs[] = {TIDE_PARQUET_UNCOMPRESSED, TIDE_PARQUET_ZSTD,
                                     TIDE_PARQUET_LZ4_RAW, 1};
    struct tide_parquet_column column = column_of(data);
    struct tide_parquet_leaf leaf = tide_parquet_leaf_of(&column, 0);
    struct tide_parquet_chunk chunk = {
        .physical = leaf.physical,
        .codec = codecs[data[1] >> 3 & 3],
        .value_count = data[2],
        .packed_size = (int64_t)(size - HEAD_BYTES),
        .data_at = 4,
    };
    struct tide_parquet_group group = {.row_count = data[3], .chunks = &chunk};
    struct tide_parquet_metadata metadata = {
        .row_count = data[3],
        .created_by = TIDE_STR("us"),
        .columns = &column,
        .leaves = &leaf,
        .column_count = 1,
        .leaf_count = 1,
        .groups = &group,
        .group_count = 1,
    };
    tide_buf_append(file, "PAR1", 4);
    tide_buf_append(file, data + HEAD_BYTES, size - HEAD_BYTES);
    size_t start = file->len;
    tide_parquet_metadata_append(file, &metadata, NULL, 0);
    uint32_t footer_size = (uint32_t)(file->len - start);
    tide_buf_append(file, &footer_size, sizeof(footer_size));
    tide_buf_append(file, "PAR1", 4);
}

static void check(const struct tide_parquet_values *values, size_t row_count, size_t value_count)
{
    size_t seen = 0;
    TIDE_ASSERT(values->row_count == row_count && values->slot_count <= value_count);
    for (size_t i = 0; i < values->slot_count; i++) {
        if (values->storage == TIDE_PARQUET_AS_BYTES && values->bytes[i].len > 0) {
            seen += (unsigned char)values->bytes[i].ptr[values->bytes[i].len - 1] != 0;
        }
        seen += values->is_null != NULL && values->is_null[i];
    }
    for (size_t row = 0; values->list_starts != NULL && row < row_count; row++) {
        TIDE_ASSERT(values->list_starts[row] <= values->list_starts[row + 1]);
        if (values->is_list_null != NULL && values->is_list_null[row]) {
            TIDE_ASSERT(values->list_starts[row] == values->list_starts[row + 1]);
        }
    }
    TIDE_ASSERT(seen <= 2 * values->slot_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tide_parquet_limits limits = {1 << 20, 1 << 18, 1 << 20, 256, true};
    struct tide_parquet_reader *reader = NULL;
    struct tide_parquet_values values = {0};
    struct tide_buf file = {0};
    struct tide_error err = {0};
    if (size < HEAD_BYTES) {
        return 0;
    }
    append_file(&file, data, size);
    tide_status status = tide_parquet_reader_new(tide_buf_str(&file), &limits, &reader, &err);
    TIDE_ASSERT(status == TIDE_OK);
    status = tide_parquet_reader_read(reader, 0, 0, &values, &err);
    if (status == TIDE_OK) {
        check(&values, data[3], data[2]);
    } else {
        TIDE_ASSERT(status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
        TIDE_ASSERT(values.row_count == 0 && values.slot_count == 0);
    }
    tide_parquet_values_done(&values);
    tide_parquet_reader_free(reader);
    tide_buf_done(&file);
    return 0;
}
