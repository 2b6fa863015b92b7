#include "format/parquet/writer.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "format/parquet/column_writer.h"
#include "format/parquet/decimal.h"

#include <stdlib.h>

#define MAGIC "PAR1"

struct tide_parquet_writer {
    struct tide_parquet_options options;
    struct tide_arena columns_arena;
    struct tide_arena arena; /* of the file: row groups, statistics */
    struct tide_parquet_column *columns;
    struct tide_parquet_leaf *leaves;
    struct tide_parquet_column_writer *writers;
    size_t column_count;
    struct tide_parquet_pages pages;
    struct tide_buf out;
    struct tide_buf groups; /* struct tide_parquet_group */
    size_t row_count;
    size_t group_rows;
    bool is_finished;
};

struct tide_parquet_options tide_parquet_options_default(void)
{
    return (struct tide_parquet_options){
        .codec = TIDE_PARQUET_ZSTD,
        .level = 3,
        .page_bytes = 1 * TIDE_MIB,
        .dictionary_bytes_max = 1 * TIDE_MIB,
        .row_group_rows = (size_t)128 * 1024,
        .row_group_bytes = 64 * TIDE_MIB,
    };
}

static tide_status check_options(const struct tide_parquet_options *options, struct tide_error *err)
{
    if (options->codec != TIDE_PARQUET_UNCOMPRESSED && options->codec != TIDE_PARQUET_ZSTD &&
        options->codec != TIDE_PARQUET_LZ4_RAW) {
        return tide_fail(err, TIDE_INVALID, "pages are not compressed by method %d; by zstd or LZ4",
                         (int)options->codec);
    }
    if (options->level < 1 || options->level > 19) {
        return tide_fail(err, TIDE_INVALID, "zstd has levels 1 to 19, not %d", options->level);
    }
    if (options->page_bytes == 0 || options->page_bytes > TIDE_PARQUET_PAGE_BYTES_MAX ||
        options->dictionary_bytes_max > TIDE_PARQUET_PAGE_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "a page has 1 to %zu bytes",
                         TIDE_PARQUET_PAGE_BYTES_MAX);
    }
    if (options->row_group_rows == 0 || options->row_group_rows > TIDE_PARQUET_GROUP_VALUES_MAX ||
        options->row_group_bytes == 0) {
        return tide_fail(err, TIDE_INVALID, "a row group has 1 to %zu rows, and some bytes",
                         TIDE_PARQUET_GROUP_VALUES_MAX);
    }
    return TIDE_OK;
}

static void take_columns(struct tide_parquet_writer *writer,
                         const struct tide_parquet_column *columns, size_t count)
{
    struct tide_arena *arena = &writer->columns_arena;
    writer->column_count = count;
    writer->columns = tide_arena_alloc(arena, count, sizeof(*writer->columns));
    writer->leaves = tide_arena_alloc(arena, count, sizeof(*writer->leaves));
    writer->writers = tide_arena_alloc(arena, count, sizeof(*writer->writers));
    for (size_t i = 0; i < count; i++) {
        writer->columns[i] = columns[i];
        writer->columns[i].name = tide_arena_str(arena, columns[i].name);
        writer->leaves[i] = tide_parquet_leaf_of(&writer->columns[i], i);
        tide_parquet_column_writer_init(&writer->writers[i], &writer->columns[i],
                                        &writer->leaves[i], writer->options.dictionary_bytes_max);
    }
}

tide_status tide_parquet_writer_new(const struct tide_parquet_column *columns, size_t count,
                                    const struct tide_parquet_options *options,
                                    struct tide_parquet_writer **ret_writer, struct tide_error *err)
{
    TIDE_TRY(tide_parquet_columns_check(columns, count, err));
    TIDE_TRY(check_options(options, err));
    struct tide_parquet_writer *writer = tide_alloc(1, sizeof(*writer));
    writer->options = *options;
    if (writer->options.created_by.len == 0) {
        writer->options.created_by = TIDE_STR("tidemark version " TIDE_VERSION);
    }
    writer->pages.packer = (struct tide_parquet_packer){options->codec, options->level, NULL};
    writer->pages.page_bytes = options->page_bytes;
    take_columns(writer, columns, count);
    tide_parquet_writer_reset(writer);
    *ret_writer = writer;
    return TIDE_OK;
}

void tide_parquet_writer_free(struct tide_parquet_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    for (size_t i = 0; i < writer->column_count; i++) {
        tide_parquet_column_writer_done(&writer->writers[i]);
    }
    tide_parquet_packer_done(&writer->pages.packer);
    tide_buf_done(&writer->pages.body);
    tide_buf_done(&writer->pages.packed);
    tide_buf_done(&writer->out);
    tide_buf_done(&writer->groups);
    tide_arena_done(&writer->arena);
    tide_arena_done(&writer->columns_arena);
    free(writer);
}

void tide_parquet_writer_free_ptr(struct tide_parquet_writer **writer)
{
    tide_parquet_writer_free(*writer);
    *writer = NULL;
}

void tide_parquet_writer_reset(struct tide_parquet_writer *writer)
{
    for (size_t i = 0; i < writer->column_count; i++) {
        writer->writers[i].rest = 0; /* the same rows give the same bytes */
        tide_parquet_column_writer_reset(&writer->writers[i]);
    }
    tide_arena_reset(&writer->arena);
    tide_buf_reset(&writer->groups);
    tide_buf_reset(&writer->out);
    tide_buf_append(&writer->out, MAGIC, sizeof(MAGIC) - 1);
    writer->row_count = writer->group_rows = 0;
    writer->is_finished = false;
}

/* The column, which must be given values of that form. */
static struct tide_parquet_column_writer *
column_of(struct tide_parquet_writer *writer, size_t column, enum tide_parquet_storage storage)
{
    TIDE_ASSERT(column < writer->column_count && !writer->is_finished);
    TIDE_ASSERT(writer->writers[column].storage == storage);
    return &writer->writers[column];
}

void tide_parquet_add_null(struct tide_parquet_writer *writer, size_t column)
{
    TIDE_ASSERT(column < writer->column_count && !writer->is_finished);
    tide_parquet_column_writer_null(&writer->writers[column]);
}

void tide_parquet_add_list(struct tide_parquet_writer *writer, size_t column, size_t count)
{
    TIDE_ASSERT(column < writer->column_count && !writer->is_finished);
    tide_parquet_column_writer_list(&writer->writers[column], count);
}

void tide_parquet_add_bool(struct tide_parquet_writer *writer, size_t column, bool value)
{
    uint8_t byte = value;
    tide_parquet_column_writer_value(column_of(writer, column, TIDE_PARQUET_AS_BOOL), &byte, 1);
}

/* Integers of 8 and 16 bits stand in 32. */
static bool fits(enum tide_parquet_type type, int32_t value)
{
    static const struct {
        int32_t min, max;
    } ranges[TIDE_PARQUET_JSON + 1] = {
        [TIDE_PARQUET_INT8] = {INT8_MIN, INT8_MAX},
        [TIDE_PARQUET_INT16] = {INT16_MIN, INT16_MAX},
        [TIDE_PARQUET_UINT8] = {0, UINT8_MAX},
        [TIDE_PARQUET_UINT16] = {0, UINT16_MAX},
    };

    return ranges[type].max == 0 || (value >= ranges[type].min && value <= ranges[type].max);
}

void tide_parquet_add_i32(struct tide_parquet_writer *writer, size_t column, int32_t value)
{
    struct tide_parquet_column_writer *to = column_of(writer, column, TIDE_PARQUET_AS_I32);
    if (TIDE_UNLIKELY(!fits(to->column->type, value))) {
        to->mistake = "an integer out of the range of its type";
    }
    tide_parquet_column_writer_value(to, &value, sizeof(value));
}

void tide_parquet_add_i64(struct tide_parquet_writer *writer, size_t column, int64_t value)
{
    tide_parquet_column_writer_value(column_of(writer, column, TIDE_PARQUET_AS_I64), &value,
                                     sizeof(value));
}

void tide_parquet_add_float(struct tide_parquet_writer *writer, size_t column, float value)
{
    tide_parquet_column_writer_value(column_of(writer, column, TIDE_PARQUET_AS_FLOAT), &value,
                                     sizeof(value));
}

void tide_parquet_add_double(struct tide_parquet_writer *writer, size_t column, double value)
{
    tide_parquet_column_writer_value(column_of(writer, column, TIDE_PARQUET_AS_DOUBLE), &value,
                                     sizeof(value));
}

void tide_parquet_add_i128(struct tide_parquet_writer *writer, size_t column, tide_int128 value)
{
    struct tide_parquet_column_writer *to = column_of(writer, column, TIDE_PARQUET_AS_I128);
    if (TIDE_UNLIKELY(!tide_parquet_decimal_fits(value, to->column->precision))) {
        to->mistake = "a decimal of more digits than its type has";
        value = 0;
    }
    uint64_t halves[2] = {__builtin_bswap64((uint64_t)(value >> 64)),
                          __builtin_bswap64((uint64_t)value)};
    size_t width = to->leaf->width;
    tide_parquet_column_writer_value(to, (const char *)halves + (sizeof(halves) - width), width);
}

void tide_parquet_add_bytes(struct tide_parquet_writer *writer, size_t column, tide_str value)
{
    struct tide_parquet_column_writer *to = column_of(writer, column, TIDE_PARQUET_AS_BYTES);
    if (TIDE_UNLIKELY(to->leaf->width != 0 && to->leaf->width != value.len)) {
        to->mistake = "a UUID that has not 16 bytes";
        value = TIDE_STR("0123456789abcdef");
    }
    tide_parquet_column_writer_value(to, value.ptr, value.len);
}

static tide_status flush(struct tide_parquet_writer *writer, struct tide_error *err)
{
    struct tide_parquet_group group = {.row_count = (int64_t)writer->group_rows};
    if (writer->group_rows == 0) {
        return TIDE_OK;
    }
    group.chunks = tide_arena_alloc(&writer->arena, writer->column_count, sizeof(*group.chunks));
    for (size_t i = 0; i < writer->column_count; i++) {
        TIDE_TRY(tide_parquet_column_writer_flush(&writer->writers[i], &writer->pages, &writer->out,
                                                  &writer->arena, &group.chunks[i], err));
    }
    tide_buf_append(&writer->groups, &group, sizeof(group));
    writer->group_rows = 0;
    return TIDE_OK;
}

/* Bytes that wait in all columns, each of which must be whole. */
static tide_status check_columns(const struct tide_parquet_writer *writer, size_t *ret_size,
                                 size_t *ret_entries, struct tide_error *err)
{
    size_t size = 0;
    size_t entries = 0;
    for (size_t i = 0; i < writer->column_count; i++) {
        const struct tide_parquet_column_writer *column = &writer->writers[i];
        TIDE_ASSERT(column->row_count == writer->group_rows && column->list_left == 0);
        if (column->mistake != NULL) {
            return tide_fail(err, TIDE_INVALID, "column %.*s is given %s",
                             TIDE_STR_ARG(column->column->name), column->mistake);
        }
        size += tide_parquet_column_writer_size(column);
        entries = entries > column->entry_count ? entries : column->entry_count;
    }
    *ret_size = size;
    *ret_entries = entries;
    return TIDE_OK;
}

tide_status tide_parquet_writer_end_rows(struct tide_parquet_writer *writer, size_t count,
                                         struct tide_error *err)
{
    size_t size = 0;
    size_t entries = 0;
    TIDE_ASSERT(!writer->is_finished);
    writer->group_rows += count;
    writer->row_count += count;
    TIDE_TRY(check_columns(writer, &size, &entries, err));
    if (entries > TIDE_PARQUET_GROUP_VALUES_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "%zu values of one column at once, at most %zu can be written", entries,
                         TIDE_PARQUET_GROUP_VALUES_MAX);
    }
    /* Lists of many elements end a row group early, so that what is read back stays bounded. */
    if (writer->group_rows >= writer->options.row_group_rows ||
        size >= writer->options.row_group_bytes || entries >= TIDE_PARQUET_GROUP_VALUES_MAX / 2) {
        return flush(writer, err);
    }
    return TIDE_OK;
}

size_t tide_parquet_writer_rows(const struct tide_parquet_writer *writer)
{
    return writer->row_count;
}

size_t tide_parquet_writer_size(const struct tide_parquet_writer *writer)
{
    size_t size = writer->out.len;
    for (size_t i = 0; i < writer->column_count; i++) {
        size += tide_parquet_column_writer_size(&writer->writers[i]);
    }
    return size;
}

tide_status tide_parquet_writer_finish(struct tide_parquet_writer *writer,
                                       const struct tide_parquet_pair *pairs, size_t pair_count,
                                       tide_str *ret_bytes, struct tide_error *err)
{
    TIDE_TRY(tide_parquet_writer_end_rows(writer, 0, err));
    TIDE_TRY(flush(writer, err));
    struct tide_buf footer TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_parquet_metadata metadata = {
        .row_count = (int64_t)writer->row_count,
        .created_by = writer->options.created_by,
        .columns = writer->columns,
        .leaves = writer->leaves,
        .column_count = writer->column_count,
        .leaf_count = writer->column_count,
        .groups = (struct tide_parquet_group *)(void *)writer->groups.ptr,
        .group_count = writer->groups.len / sizeof(struct tide_parquet_group),
    };
    tide_parquet_metadata_append(&footer, &metadata, pairs, pair_count);
    if (footer.len > TIDE_PARQUET_FOOTER_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "the footer takes %zu bytes, at most %zu can be read",
                         footer.len, TIDE_PARQUET_FOOTER_BYTES_MAX);
    }
    uint32_t size = (uint32_t)footer.len;
    tide_buf_append_str(&writer->out, tide_buf_str(&footer));
    tide_buf_append(&writer->out, &size, sizeof(size));
    tide_buf_append(&writer->out, MAGIC, sizeof(MAGIC) - 1);
    writer->is_finished = true;
    *ret_bytes = tide_buf_str(&writer->out);
    return TIDE_OK;
}
