#include "format/parquet/reader.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "format/parquet/column_reader.h"

#include <stdlib.h>

#define MAGIC           TIDE_STR("PAR1")
#define ENCRYPTED_MAGIC TIDE_STR("PARE")
#define TAIL_BYTES      8 /* size of the footer, magic */

struct tide_parquet_reader {
    tide_str bytes;
    size_t footer_at;
    struct tide_parquet_limits limits;
    struct tide_arena arena;
    struct tide_parquet_metadata metadata;
    struct tide_parquet_unpacker unpacker;
};

struct tide_parquet_limits tide_parquet_limits_default(void)
{
    return (struct tide_parquet_limits){
        .footer_bytes = TIDE_PARQUET_FOOTER_BYTES_MAX,
        .page_bytes = TIDE_PARQUET_PAGE_BYTES_MAX,
        .chunk_bytes = TIDE_PARQUET_CHUNK_BYTES_MAX,
        .values = TIDE_PARQUET_GROUP_VALUES_MAX,
    };
}

/* The footer, between the row groups and the tail. */
static tide_status find_footer(tide_str bytes, const struct tide_parquet_limits *limits,
                               tide_str *ret_footer, struct tide_error *err)
{
    uint32_t size = 0;
    if (tide_str_ends_with(bytes, ENCRYPTED_MAGIC)) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the file's footer is encrypted, which is not read");
    }
    if (bytes.len < MAGIC.len + TAIL_BYTES || !tide_str_starts_with(bytes, MAGIC) ||
        !tide_str_ends_with(bytes, MAGIC)) {
        return tide_fail(err, TIDE_CORRUPT,
                         "not a whole Parquet file: it does not begin and end "
                         "with PAR1");
    }
    memcpy(&size, bytes.ptr + (bytes.len - TAIL_BYTES), sizeof(size));
    if (size > bytes.len - MAGIC.len - TAIL_BYTES) {
        return tide_fail(err, TIDE_CORRUPT,
                         "the footer is said to have %u bytes, more than the "
                         "file",
                         size);
    }
    if (size > limits->footer_bytes) {
        return tide_fail(err, TIDE_UNSUPPORTED, "the footer has %u bytes, at most %zu are read",
                         size, limits->footer_bytes);
    }
    *ret_footer = tide_str_of(bytes.ptr + (bytes.len - TAIL_BYTES - size), size);
    return TIDE_OK;
}

tide_status tide_parquet_reader_new(tide_str bytes, const struct tide_parquet_limits *limits,
                                    struct tide_parquet_reader **ret_reader, struct tide_error *err)
{
    tide_str footer;
    TIDE_ASSERT(limits->values <= UINT32_MAX);
    TIDE_TRY(find_footer(bytes, limits, &footer, err));
    struct tide_parquet_reader *reader TIDE_CLEANUP(tide_parquet_reader_free_ptr) =
        tide_alloc(1, sizeof(*reader));
    TIDE_TRY(tide_parquet_metadata_read(footer, &reader->arena, &reader->metadata, err));
    reader->bytes = bytes;
    reader->footer_at = (size_t)(footer.ptr - bytes.ptr);
    reader->limits = *limits;
    *ret_reader = reader;
    reader = NULL;
    return TIDE_OK;
}

void tide_parquet_reader_free(struct tide_parquet_reader *reader)
{
    if (reader != NULL) {
        tide_parquet_unpacker_done(&reader->unpacker);
        tide_arena_done(&reader->arena);
        free(reader);
    }
}

void tide_parquet_reader_free_ptr(struct tide_parquet_reader **reader)
{
    tide_parquet_reader_free(*reader);
    *reader = NULL;
}

const struct tide_parquet_metadata *
tide_parquet_reader_metadata(const struct tide_parquet_reader *reader)
{
    return &reader->metadata;
}

size_t tide_parquet_reader_find(const struct tide_parquet_reader *reader, tide_str name)
{
    size_t at = 0;
    while (at < reader->metadata.column_count &&
           !tide_str_equal(reader->metadata.columns[at].name, name)) {
        at++;
    }
    return at;
}

void tide_parquet_values_done(struct tide_parquet_values *values)
{
    tide_arena_done(&values->arena);
    tide_buf_done(&values->slots);
    tide_buf_done(&values->nulls);
    tide_buf_done(&values->starts);
    tide_buf_done(&values->list_nulls);
    tide_buf_done(&values->dictionary);
    tide_buf_done(&values->page);
    tide_buf_done(&values->levels);
    tide_buf_done(&values->numbers);
    *values = (struct tide_parquet_values){0};
}

static void reset(struct tide_parquet_values *values)
{
    tide_arena_reset(&values->arena);
    tide_buf_reset(&values->slots);
    tide_buf_reset(&values->nulls);
    tide_buf_reset(&values->starts);
    tide_buf_reset(&values->list_nulls);
    values->row_count = values->slot_count = values->null_count = 0;
    values->bytes = NULL;
    values->is_null = values->is_list_null = NULL;
    values->list_starts = NULL;
}

/* Where the chunk's pages are. Its dictionary, if it has one, stands before its data. */
static tide_status find_pages(const struct tide_parquet_reader *reader,
                              const struct tide_parquet_column *column,
                              const struct tide_parquet_chunk *chunk, tide_str *ret_pages,
                              struct tide_error *err)
{
    int64_t at = chunk->dictionary_at > 0 && chunk->dictionary_at < chunk->data_at
                     ? chunk->dictionary_at
                     : chunk->data_at;
    int64_t end = (int64_t)reader->footer_at;
    if (at < (int64_t)MAGIC.len || at > end || chunk->packed_size < 0 ||
        chunk->packed_size > end - at) {
        return tide_fail(err, TIDE_CORRUPT, "column %.*s: its pages are not within the file",
                         TIDE_STR_ARG(column->name));
    }
    *ret_pages = tide_str_of(reader->bytes.ptr + at, (size_t)chunk->packed_size);
    return TIDE_OK;
}

static tide_status check_chunk(const struct tide_parquet_reader *reader,
                               const struct tide_parquet_column *column,
                               const struct tide_parquet_leaf *leaf,
                               const struct tide_parquet_chunk *chunk, struct tide_error *err)
{
    if (chunk->is_elsewhere || chunk->is_encrypted) {
        return tide_fail(err, TIDE_UNSUPPORTED, "column %.*s is %s, which is not read",
                         TIDE_STR_ARG(column->name),
                         chunk->is_encrypted ? "encrypted" : "in another file");
    }
    if (chunk->codec != TIDE_PARQUET_UNCOMPRESSED && chunk->codec != TIDE_PARQUET_ZSTD &&
        chunk->codec != TIDE_PARQUET_LZ4_RAW) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "column %.*s is compressed by %s, which is not read",
                         TIDE_STR_ARG(column->name), tide_parquet_codec_name(chunk->codec));
    }
    if (chunk->physical != leaf->physical) {
        return tide_fail(err, TIDE_CORRUPT, "column %.*s has another type than the schema says",
                         TIDE_STR_ARG(column->name));
    }
    if ((uint64_t)chunk->value_count > reader->limits.values) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "column %.*s has %lld values in one row group, at most %zu are read",
                         TIDE_STR_ARG(column->name), (long long)chunk->value_count,
                         reader->limits.values);
    }
    return TIDE_OK;
}

/* Lays the arrays that were filled open. */
static void publish(const struct tide_parquet_column_reader *read,
                    struct tide_parquet_values *values)
{
    values->storage = tide_parquet_storage_of(read->column);
    values->slot_count = values->slots.len / read->size;
    values->bytes = (const tide_str *)(const void *)values->slots.ptr;
    values->row_count = values->slot_count;
    values->null_count = read->null_count;
    if (read->null_count > 0) {
        values->is_null = (const uint8_t *)values->nulls.ptr;
    }
    if (read->column->is_list) {
        uint32_t end = (uint32_t)values->slot_count;
        values->row_count = values->starts.len / sizeof(uint32_t);
        tide_buf_append(&values->starts, &end, sizeof(end));
        values->list_starts = (const uint32_t *)(const void *)values->starts.ptr;
        if (read->null_list_count > 0) {
            values->is_list_null = (const uint8_t *)values->list_nulls.ptr;
        }
    }
}

tide_status tide_parquet_reader_read(struct tide_parquet_reader *reader, size_t group,
                                     size_t column, struct tide_parquet_values *values,
                                     struct tide_error *err)
{
    const struct tide_parquet_metadata *metadata = &reader->metadata;
    tide_str pages;
    TIDE_ASSERT(group < metadata->group_count && column < metadata->column_count);
    struct tide_parquet_column_reader read = {
        .column = &metadata->columns[column],
        .leaf = &metadata->leaves[column],
        .limits = &reader->limits,
        .unpacker = &reader->unpacker,
        .values = values,
    };
    reset(values);
    if (read.column->refused != NULL) {
        return tide_fail(err, TIDE_UNSUPPORTED, "column %.*s %s, which is not read",
                         TIDE_STR_ARG(read.column->name), read.column->refused);
    }
    read.chunk = &metadata->groups[group].chunks[read.leaf->index];
    read.size = tide_parquet_storage_size(tide_parquet_storage_of(read.column));
    TIDE_TRY(check_chunk(reader, read.column, read.leaf, read.chunk, err));
    TIDE_TRY(find_pages(reader, read.column, read.chunk, &pages, err));
    read.entries_left = (size_t)read.chunk->value_count;
    TIDE_TRY(tide_parquet_column_read(&read, pages, err));
    publish(&read, values);
    if ((int64_t)values->row_count != metadata->groups[group].row_count) {
        size_t rows = values->row_count;
        reset(values);
        return tide_fail(err, TIDE_CORRUPT, "column %.*s has %zu rows, its row group has %lld",
                         TIDE_STR_ARG(read.column->name), rows,
                         (long long)metadata->groups[group].row_count);
    }
    return TIDE_OK;
}
