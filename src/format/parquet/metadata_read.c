#include "format/parquet/metadata.h"

#include "format/parquet/metadata_fields.h"
#include "format/parquet/schema_elements.h"

/* What each takes at least in a file, so that a false count reserves little. */
#define CHUNK_BYTES_MIN 16
#define PAIR_BYTES_MIN  4

static size_t bytes_left(const struct tide_thrift_reader *reader)
{
    return reader->failed ? 0 : (size_t)(reader->end - reader->pos);
}

/* A list of structs that take `bytes_min` or more each. */
static size_t take_count(struct tide_thrift_reader *reader, uint8_t type, size_t bytes_min)
{
    size_t count = tide_thrift_list(reader, type, TIDE_THRIFT_STRUCT);
    if (count > bytes_left(reader) / bytes_min) {
        reader->failed = true;
        return 0;
    }
    return count;
}

static struct tide_parquet_statistics read_statistics(struct tide_thrift_reader *reader)
{
    /* Bounds, unless they are said to be exact. */
    struct tide_parquet_statistics statistics = {0};
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case STATISTICS_NULL_COUNT:
            statistics.null_count = tide_thrift_i64(reader, field.type);
            statistics.has_null_count = true;
            break;
        case STATISTICS_MAX_VALUE:
            statistics.max = tide_thrift_binary(reader, field.type);
            statistics.has_max = true;
            break;
        case STATISTICS_MIN_VALUE:
            statistics.min = tide_thrift_binary(reader, field.type);
            statistics.has_min = true;
            break;
        case STATISTICS_IS_MAX_EXACT:
            statistics.is_max_exact = tide_thrift_bool(reader, field.type);
            break;
        case STATISTICS_IS_MIN_EXACT:
            statistics.is_min_exact = tide_thrift_bool(reader, field.type);
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
    tide_thrift_leave(reader, outer);
    return statistics;
}

static void read_chunk_metadata(struct tide_thrift_reader *reader, struct tide_parquet_chunk *chunk)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case CHUNK_TYPE:
            chunk->physical = tide_thrift_i32(reader, field.type);
            break;
        case CHUNK_CODEC:
            chunk->codec = tide_thrift_i32(reader, field.type);
            break;
        case CHUNK_VALUES:
            chunk->value_count = tide_thrift_i64(reader, field.type);
            break;
        case CHUNK_PLAIN_SIZE:
            chunk->plain_size = tide_thrift_i64(reader, field.type);
            break;
        case CHUNK_PACKED_SIZE:
            chunk->packed_size = tide_thrift_i64(reader, field.type);
            break;
        case CHUNK_DATA_AT:
            chunk->data_at = tide_thrift_i64(reader, field.type);
            break;
        case CHUNK_DICTIONARY_AT:
            chunk->dictionary_at = tide_thrift_i64(reader, field.type);
            break;
        case CHUNK_STATISTICS:
            if (tide_thrift_is_struct(reader, field.type)) {
                chunk->statistics = read_statistics(reader);
            }
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
    tide_thrift_leave(reader, outer);
}

static struct tide_parquet_chunk read_chunk(struct tide_thrift_reader *reader)
{
    struct tide_parquet_chunk chunk = {.physical = -1, .codec = -1, .value_count = -1};
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case COLUMN_CHUNK_FILE:
            chunk.is_elsewhere = tide_thrift_binary(reader, field.type).len > 0;
            break;
        case COLUMN_CHUNK_METADATA:
            if (tide_thrift_is_struct(reader, field.type)) {
                read_chunk_metadata(reader, &chunk);
            }
            break;
        case COLUMN_CHUNK_CRYPTO:
        case COLUMN_CHUNK_ENCRYPTED:
            chunk.is_encrypted = true;
            tide_thrift_skip(reader, field.type);
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
    tide_thrift_leave(reader, outer);
    if (chunk.physical < 0 || chunk.codec < 0 || chunk.value_count < 0) {
        reader->failed = true;
    }
    return chunk;
}

static void read_chunks(struct tide_thrift_reader *reader, uint8_t type, struct tide_arena *arena,
                        struct tide_parquet_group *group, size_t *ret_count)
{
    size_t count = take_count(reader, type, CHUNK_BYTES_MIN);
    group->chunks = tide_arena_alloc(arena, count, sizeof(*group->chunks));
    for (size_t i = 0; i < count && !reader->failed; i++) {
        group->chunks[i] = read_chunk(reader);
    }
    *ret_count = count;
}

static struct tide_parquet_group read_group(struct tide_thrift_reader *reader,
                                            struct tide_arena *arena, size_t *ret_chunk_count)
{
    struct tide_parquet_group group = {.row_count = -1};
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        if (field.id == GROUP_CHUNKS) {
            read_chunks(reader, field.type, arena, &group, ret_chunk_count);
        } else if (field.id == GROUP_ROWS) {
            group.row_count = tide_thrift_i64(reader, field.type);
        } else {
            tide_thrift_skip(reader, field.type);
        }
    }
    tide_thrift_leave(reader, outer);
    return group;
}

static tide_status read_groups(struct tide_thrift_reader *reader, uint8_t type,
                               struct tide_arena *arena, struct tide_parquet_metadata *metadata,
                               struct tide_error *err)
{
    size_t count = take_count(reader, type, CHUNK_BYTES_MIN);
    metadata->groups = tide_arena_alloc(arena, count, sizeof(*metadata->groups));
    for (size_t i = 0; i < count; i++) {
        size_t chunk_count = 0;
        metadata->groups[i] = read_group(reader, arena, &chunk_count);
        if (reader->failed) {
            break;
        }
        if (chunk_count != metadata->leaf_count) {
            return tide_fail(err, TIDE_CORRUPT, "row group %zu has %zu column chunks, not %zu", i,
                             chunk_count, metadata->leaf_count);
        }
    }
    metadata->group_count = count;
    return TIDE_OK;
}

static void read_pairs(struct tide_thrift_reader *reader, uint8_t type, struct tide_arena *arena,
                       struct tide_parquet_metadata *metadata)
{
    size_t count = take_count(reader, type, PAIR_BYTES_MIN);
    metadata->pairs = tide_arena_alloc(arena, count, sizeof(*metadata->pairs));
    metadata->pair_count = count;
    for (size_t i = 0; i < count && !reader->failed; i++) {
        struct tide_parquet_pair pair = {{NULL, 0}, TIDE_STR("")};
        struct tide_thrift_field field;
        int16_t outer = tide_thrift_enter(reader);
        while (tide_thrift_next(reader, &field)) {
            if (field.id == PAIR_KEY) {
                pair.key = tide_thrift_binary(reader, field.type);
            } else if (field.id == PAIR_VALUE) {
                pair.value = tide_thrift_binary(reader, field.type);
            } else {
                tide_thrift_skip(reader, field.type);
            }
        }
        tide_thrift_leave(reader, outer);
        if (pair.key.ptr == NULL) {
            reader->failed = true;
        }
        metadata->pairs[i] = pair;
    }
}

static tide_status read_field(struct tide_thrift_reader *reader,
                              const struct tide_thrift_field *field, struct tide_arena *arena,
                              struct tide_parquet_metadata *metadata, struct tide_error *err)
{
    switch (field->id) {
    case FILE_SCHEMA:
        if (metadata->columns != NULL || metadata->groups != NULL) {
            return tide_fail(err, TIDE_CORRUPT, "the schema comes twice, or behind row groups");
        }
        return tide_parquet_elements_read(reader, field->type, arena, metadata, err);
    case FILE_ROWS:
        metadata->row_count = tide_thrift_i64(reader, field->type);
        break;
    case FILE_GROUPS:
        return read_groups(reader, field->type, arena, metadata, err);
    case FILE_PAIRS:
        read_pairs(reader, field->type, arena, metadata);
        break;
    case FILE_CREATED_BY:
        metadata->created_by = tide_thrift_binary(reader, field->type);
        break;
    case FILE_ENCRYPTION:
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the file has encrypted columns, which are not read");
    default:
        tide_thrift_skip(reader, field->type);
        break;
    }
    return TIDE_OK;
}

/* The row groups' rows are the file's. */
static tide_status check_rows(const struct tide_parquet_metadata *metadata, struct tide_error *err)
{
    int64_t rows = 0;
    for (size_t i = 0; i < metadata->group_count; i++) {
        int64_t more = metadata->groups[i].row_count;
        if (more < 0 || rows > INT64_MAX - more) {
            return tide_fail(err, TIDE_CORRUPT, "row group %zu has %lld rows", i, (long long)more);
        }
        rows += more;
    }
    if (rows != metadata->row_count) {
        return tide_fail(err, TIDE_CORRUPT, "the file has %lld rows, its row groups have %lld",
                         (long long)metadata->row_count, (long long)rows);
    }
    return TIDE_OK;
}

tide_status tide_parquet_metadata_read(tide_str bytes, struct tide_arena *arena,
                                       struct tide_parquet_metadata *ret_metadata,
                                       struct tide_error *err)
{
    struct tide_parquet_metadata metadata = {.row_count = -1, .created_by = TIDE_STR("")};
    struct tide_thrift_reader reader = tide_thrift_reader_of(bytes);
    struct tide_thrift_field field;
    while (tide_thrift_next(&reader, &field)) {
        TIDE_TRY(read_field(&reader, &field, arena, &metadata, err));
    }
    if (reader.failed) {
        return tide_fail(err, TIDE_CORRUPT,
                         "the footer is cut off or not in Thrift's compact form");
    }
    if (metadata.columns == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "the footer has no schema");
    }
    TIDE_TRY(check_rows(&metadata, err));
    *ret_metadata = metadata;
    return TIDE_OK;
}
