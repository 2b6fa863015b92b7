#include "format/parquet/metadata.h"

#include "format/parquet/metadata_fields.h"
#include "format/parquet/schema_elements.h"

static const char *const encoding_names[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
};
static const char *const codec_names[] = {
    "UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW",
};

const char *tide_parquet_encoding_name(int32_t encoding)
{
    bool is_known =
        encoding >= 0 && encoding < (int32_t)(sizeof(encoding_names) / sizeof(encoding_names[0]));
    return is_known ? encoding_names[encoding] : "in a way that is not known";
}

const char *tide_parquet_codec_name(int32_t codec)
{
    bool is_known = codec >= 0 && codec < (int32_t)(sizeof(codec_names) / sizeof(codec_names[0]));
    return is_known ? codec_names[codec] : "a method that is not known";
}

static void put_statistics(struct tide_thrift_writer *writer,
                           const struct tide_parquet_statistics *statistics)
{
    int16_t outer = tide_thrift_begin_struct(writer, CHUNK_STATISTICS);
    if (statistics->has_null_count) {
        tide_thrift_put_i64(writer, STATISTICS_NULL_COUNT, statistics->null_count);
    }
    if (statistics->has_max) {
        tide_thrift_put_binary(writer, STATISTICS_MAX_VALUE, statistics->max);
    }
    if (statistics->has_min) {
        tide_thrift_put_binary(writer, STATISTICS_MIN_VALUE, statistics->min);
    }
    if (statistics->has_max) {
        tide_thrift_put_bool(writer, STATISTICS_IS_MAX_EXACT, statistics->is_max_exact);
    }
    if (statistics->has_min) {
        tide_thrift_put_bool(writer, STATISTICS_IS_MIN_EXACT, statistics->is_min_exact);
    }
    tide_thrift_end_struct(writer, outer);
}

static void put_chunk_metadata(struct tide_thrift_writer *writer,
                               const struct tide_parquet_chunk *chunk,
                               const struct tide_parquet_leaf *leaf)
{
    int16_t outer = tide_thrift_begin_struct(writer, COLUMN_CHUNK_METADATA);
    tide_thrift_put_i32(writer, CHUNK_TYPE, chunk->physical);
    tide_thrift_begin_list(writer, CHUNK_ENCODINGS, TIDE_THRIFT_I32,
                           chunk->has_dictionary_pages ? 3 : 2);
    tide_thrift_add_i32(writer, TIDE_PARQUET_PLAIN);
    tide_thrift_add_i32(writer, TIDE_PARQUET_RLE);
    if (chunk->has_dictionary_pages) {
        tide_thrift_add_i32(writer, TIDE_PARQUET_RLE_DICTIONARY);
    }
    tide_thrift_begin_list(writer, CHUNK_PATH, TIDE_THRIFT_BINARY, leaf->path_count);
    for (size_t i = 0; i < leaf->path_count; i++) {
        tide_thrift_add_binary(writer, leaf->path[i]);
    }
    tide_thrift_put_i32(writer, CHUNK_CODEC, chunk->codec);
    tide_thrift_put_i64(writer, CHUNK_VALUES, chunk->value_count);
    tide_thrift_put_i64(writer, CHUNK_PLAIN_SIZE, chunk->plain_size);
    tide_thrift_put_i64(writer, CHUNK_PACKED_SIZE, chunk->packed_size);
    tide_thrift_put_i64(writer, CHUNK_DATA_AT, chunk->data_at);
    if (chunk->has_dictionary_pages) {
        tide_thrift_put_i64(writer, CHUNK_DICTIONARY_AT, chunk->dictionary_at);
    }
    put_statistics(writer, &chunk->statistics);
    tide_thrift_end_struct(writer, outer);
}

static void add_group(struct tide_thrift_writer *writer,
                      const struct tide_parquet_metadata *metadata,
                      const struct tide_parquet_group *group)
{
    int64_t plain_size = 0;
    int64_t packed_size = 0;
    int16_t outer = tide_thrift_begin_struct(writer, 0);
    tide_thrift_begin_list(writer, GROUP_CHUNKS, TIDE_THRIFT_STRUCT, metadata->column_count);
    for (size_t i = 0; i < metadata->column_count; i++) {
        int16_t chunk = tide_thrift_begin_struct(writer, 0);
        tide_thrift_put_i64(writer, COLUMN_CHUNK_AT, 0); /* no copy of the metadata out there */
        put_chunk_metadata(writer, &group->chunks[i], &metadata->leaves[i]);
        tide_thrift_end_struct(writer, chunk);
        plain_size += group->chunks[i].plain_size;
        packed_size += group->chunks[i].packed_size;
    }
    const struct tide_parquet_chunk *first = &group->chunks[0];
    tide_thrift_put_i64(writer, GROUP_PLAIN_SIZE, plain_size);
    tide_thrift_put_i64(writer, GROUP_ROWS, group->row_count);
    tide_thrift_put_i64(writer, GROUP_AT,
                        first->has_dictionary_pages ? first->dictionary_at : first->data_at);
    tide_thrift_put_i64(writer, GROUP_PACKED_SIZE, packed_size);
    tide_thrift_end_struct(writer, outer);
}

static void put_pairs(struct tide_thrift_writer *writer, const struct tide_parquet_pair *pairs,
                      size_t pair_count)
{
    if (pair_count == 0) {
        return;
    }
    tide_thrift_begin_list(writer, FILE_PAIRS, TIDE_THRIFT_STRUCT, pair_count);
    for (size_t i = 0; i < pair_count; i++) {
        int16_t outer = tide_thrift_begin_struct(writer, 0);
        tide_thrift_put_binary(writer, PAIR_KEY, pairs[i].key);
        tide_thrift_put_binary(writer, PAIR_VALUE, pairs[i].value);
        tide_thrift_end_struct(writer, outer);
    }
}

void tide_parquet_metadata_append(struct tide_buf *out,
                                  const struct tide_parquet_metadata *metadata,
                                  const struct tide_parquet_pair *pairs, size_t pair_count)
{
    struct tide_thrift_writer writer = {out, 0};
    int16_t outer = tide_thrift_begin_struct(&writer, 0);
    tide_thrift_put_i32(&writer, FILE_VERSION, 2); /* logical types are used */
    tide_parquet_elements_append(&writer, FILE_SCHEMA, metadata);
    tide_thrift_put_i64(&writer, FILE_ROWS, metadata->row_count);
    tide_thrift_begin_list(&writer, FILE_GROUPS, TIDE_THRIFT_STRUCT, metadata->group_count);
    for (size_t i = 0; i < metadata->group_count; i++) {
        add_group(&writer, metadata, &metadata->groups[i]);
    }
    put_pairs(&writer, pairs, pair_count);
    tide_thrift_put_binary(&writer, FILE_CREATED_BY, metadata->created_by);
    /* That each column's minimum and maximum follow the order that its type defines. */
    tide_thrift_begin_list(&writer, FILE_ORDERS, TIDE_THRIFT_STRUCT, metadata->column_count);
    for (size_t i = 0; i < metadata->column_count; i++) {
        int16_t order = tide_thrift_begin_struct(&writer, 0);
        tide_thrift_put_empty(&writer, 1);
        tide_thrift_end_struct(&writer, order);
    }
    tide_thrift_end_struct(&writer, outer);
}
