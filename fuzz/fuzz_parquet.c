/*
 * Any bytes as a Parquet file. What must hold:
 *   - what is read is within the limits, and the arrays are as large as they say;
 *   - a column that was read is read the same again, after others;
 *   - what is refused leaves nothing behind.
 */
#include "base/status.h"
#include "format/parquet/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct tide_parquet_limits limits = {1 << 20, 1 << 18, 1 << 20, 1 << 14, true};

/* Touches every value, so that sanitizers see each. */
static uint64_t digest_slots(const struct tide_parquet_values *values)
{
    size_t size = tide_parquet_storage_size(values->storage);
    const unsigned char *bytes = (const unsigned char *)values->bytes;
    uint64_t digest = values->slot_count;
    for (size_t i = 0; i < values->slot_count; i++) {
        digest = digest * 31 + (values->is_null != NULL && values->is_null[i]);
        if (values->storage == TIDE_PARQUET_AS_BYTES) {
            for (size_t at = 0; at < values->bytes[i].len; at++) {
                digest = digest * 31 + (unsigned char)values->bytes[i].ptr[at];
            }
        } else {
            for (size_t at = 0; at < size; at++) {
                digest = digest * 31 + bytes[i * size + at];
            }
        }
    }
    return digest;
}

static uint64_t digest_lists(const struct tide_parquet_values *values)
{
    uint64_t digest = 0;
    for (size_t row = 0; values->list_starts != NULL && row < values->row_count; row++) {
        TIDE_ASSERT(values->list_starts[row] <= values->list_starts[row + 1]);
        TIDE_ASSERT(values->list_starts[row + 1] <= values->slot_count);
        digest = digest * 31 + values->list_starts[row];
        if (values->is_list_null != NULL && values->is_list_null[row]) {
            TIDE_ASSERT(values->list_starts[row] == values->list_starts[row + 1]);
            digest++;
        }
    }
    return digest;
}

static void read_column(struct tide_parquet_reader *reader, size_t group, size_t column,
                        struct tide_parquet_values *values)
{
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    struct tide_error err = {0};
    struct tide_parquet_values again = {0};
    tide_status status = tide_parquet_reader_read(reader, group, column, values, &err);
    TIDE_ASSERT(tide_parquet_reader_read(reader, group, column, &again, &err) == status);
    if (status == TIDE_OK) {
        TIDE_ASSERT((int64_t)values->row_count == metadata->groups[group].row_count);
        TIDE_ASSERT(values->slot_count <= limits.values);
        TIDE_ASSERT(digest_slots(values) == digest_slots(&again));
        TIDE_ASSERT(digest_lists(values) == digest_lists(&again));
    } else {
        TIDE_ASSERT(status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
        TIDE_ASSERT(values->row_count == 0 && values->slot_count == 0 && err.message[0] != '\0');
    }
    tide_parquet_values_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_parquet_reader *reader = NULL;
    struct tide_parquet_values values = {0};
    struct tide_error err = {0};
    tide_status status = tide_parquet_reader_new(tide_str_of(data, size), &limits, &reader, &err);
    if (status != TIDE_OK) {
        TIDE_ASSERT(status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
        return 0;
    }
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    size_t columns = metadata->column_count < 50 ? metadata->column_count : 50;
    size_t groups = metadata->group_count < 10 ? metadata->group_count : 10;
    for (size_t group = 0; group < groups; group++) {
        for (size_t column = 0; column < columns; column++) {
            read_column(reader, group, column, &values);
        }
    }
    tide_parquet_values_done(&values);
    tide_parquet_reader_free(reader);
    return 0;
}
