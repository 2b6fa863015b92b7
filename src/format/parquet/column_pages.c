/*
 * From a column's values to its pages, version 1, which every reader of the format takes:
 *
 *     dictionary page = its values, PLAIN
 *     data page       = [u32 size, repetition levels] [u32 size, definition levels] values
 *     values          = PLAIN, or u8 width, hybrid runs of dictionary numbers
 */
#include "base/limits.h"
#include "format/parquet/column_writer.h"
#include "format/parquet/crc32.h"
#include "format/parquet/hybrid.h"
#include "format/parquet/statistics.h"

/* Row groups that do not try a dictionary after one where it did not pay. */
#define DICTIONARY_REST 7

/* The entries of one page and what of the column's values is theirs. */
struct page {
    size_t entry;
    size_t entry_end;
    size_t value;
    size_t value_end;
    size_t byte; /* in `plain` */
    size_t byte_end;
};

static bool is_value(const struct tide_parquet_column_writer *writer, size_t entry)
{
    return writer->definitions.len == 0 ||
           (uint8_t)writer->definitions.ptr[entry] == writer->leaf->max_definition;
}

static bool is_row_start(const struct tide_parquet_column_writer *writer, size_t entry)
{
    return writer->repetitions.len == 0 || writer->repetitions.ptr[entry] == 0;
}

static size_t value_size(const struct tide_parquet_column_writer *writer, size_t byte)
{
    if (writer->leaf->width != 0) {
        return writer->leaf->width;
    }
    uint32_t len = 0;
    memcpy(&len, writer->plain.ptr + byte, sizeof(len));
    return sizeof(len) + len;
}

/* Takes rows until the page is full. Levels count as a byte per eight entries. */
static void take_page(const struct tide_parquet_column_writer *writer, size_t page_bytes,
                      unsigned index_width, struct page *page)
{
    size_t bits_max = page_bytes * 8;
    size_t bits = 0;
    page->entry = page->entry_end;
    page->value = page->value_end;
    page->byte = page->byte_end;
    while (page->entry_end < writer->entry_count) {
        if (bits >= bits_max && is_row_start(writer, page->entry_end)) {
            break;
        }
        bits++;
        if (is_value(writer, page->entry_end)) {
            if (writer->has_dictionary) {
                bits += index_width;
            } else {
                size_t size = value_size(writer, page->byte_end);
                page->byte_end += size;
                bits += size * 8;
            }
            page->value_end++;
        }
        page->entry_end++;
    }
}

static void append_sized_levels(struct tide_buf *body, const struct tide_buf *levels,
                                const struct page *page, unsigned highest)
{
    size_t count = page->entry_end - page->entry;
    unsigned width = tide_hybrid_width(highest);
    size_t size_at = body->len;
    uint32_t size = 0;
    tide_buf_append(body, &size, sizeof(size));
    if (levels->len == 0) {
        tide_hybrid_append_run(body, highest, count, width);
    } else {
        const uint8_t *first = (const uint8_t *)levels->ptr + page->entry;
        tide_hybrid_append_u8(body, first, count, width);
    }
    size = (uint32_t)(body->len - size_at - sizeof(size));
    memcpy(body->ptr + size_at, &size, sizeof(size));
}

static void append_bits(struct tide_buf *body, const char *bools, size_t count)
{
    size_t size = (count + 7) / 8;
    char *to = tide_buf_reserve(body, size);
    memset(to, 0, size);
    for (size_t i = 0; i < count; i++) {
        to[i / 8] = (char)(to[i / 8] | bools[i] << (i % 8));
    }
    body->len += size;
}

static void append_values(const struct tide_parquet_column_writer *writer, struct tide_buf *body,
                          const struct page *page, unsigned index_width)
{
    size_t count = page->value_end - page->value;
    if (writer->has_dictionary) {
        tide_buf_append_char(body, (char)index_width);
    }
    if (count == 0) {
        return;
    }
    if (writer->has_dictionary) {
        const char *first = writer->indexes.ptr + page->value * sizeof(uint32_t);
        tide_hybrid_append_u32(body, (const uint32_t *)(const void *)first, count, index_width);
    } else if (writer->storage == TIDE_PARQUET_AS_BOOL) {
        append_bits(body, writer->plain.ptr + page->byte, count);
    } else {
        tide_buf_append(body, writer->plain.ptr + page->byte, page->byte_end - page->byte);
    }
}

/* Header and packed body; counts both sizes. */
static tide_status append_page(struct tide_parquet_pages *pages, struct tide_buf *out,
                               struct tide_parquet_page page, tide_str body,
                               const struct tide_parquet_column *column,
                               struct tide_parquet_chunk *chunk, struct tide_error *err)
{
    if (body.len > TIDE_PARQUET_PAGE_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "one row of column %.*s takes %zu bytes, at most %zu",
                         TIDE_STR_ARG(column->name), body.len, TIDE_PARQUET_PAGE_BYTES_MAX);
    }
    tide_buf_reset(&pages->packed);
    tide_parquet_pack(&pages->packer, &pages->packed, body);
    page.plain_size = (int32_t)body.len;
    page.packed_size = (int32_t)pages->packed.len;
    page.checksum = tide_parquet_crc32(tide_buf_str(&pages->packed));
    size_t start = out->len;
    tide_parquet_page_append(out, &page);
    chunk->plain_size += (int64_t)(out->len - start + body.len);
    tide_buf_append_str(out, tide_buf_str(&pages->packed));
    chunk->packed_size += (int64_t)(out->len - start);
    return TIDE_OK;
}

static tide_status append_dictionary(const struct tide_parquet_column_writer *writer,
                                     struct tide_parquet_pages *pages, struct tide_buf *out,
                                     struct tide_parquet_chunk *chunk, struct tide_error *err)
{
    struct tide_parquet_page header = {
        .type = TIDE_PARQUET_DICTIONARY_PAGE,
        .value_count = (int32_t)writer->dictionary.count,
        .encoding = TIDE_PARQUET_PLAIN,
    };
    chunk->has_dictionary_pages = true;
    chunk->dictionary_at = (int64_t)out->len;
    return append_page(pages, out, header, tide_buf_str(&writer->dictionary.values), writer->column,
                       chunk, err);
}

static tide_status append_data(const struct tide_parquet_column_writer *writer,
                               struct tide_parquet_pages *pages, struct tide_buf *out,
                               const struct page *page, unsigned index_width,
                               struct tide_parquet_chunk *chunk, struct tide_error *err)
{
    struct tide_parquet_page header = {
        .type = TIDE_PARQUET_DATA_PAGE,
        .value_count = (int32_t)(page->entry_end - page->entry),
        .encoding = writer->has_dictionary ? TIDE_PARQUET_RLE_DICTIONARY : TIDE_PARQUET_PLAIN,
    };
    tide_buf_reset(&pages->body);
    if (writer->leaf->max_repetition > 0) {
        append_sized_levels(&pages->body, &writer->repetitions, page, 1);
    }
    if (writer->leaf->max_definition > 0) {
        append_sized_levels(&pages->body, &writer->definitions, page, writer->leaf->max_definition);
    }
    append_values(writer, &pages->body, page, index_width);
    return append_page(pages, out, header, tide_buf_str(&pages->body), writer->column, chunk, err);
}

/* Keeps the dictionary only when it and its numbers are smaller than plain values. */
static void judge_dictionary(struct tide_parquet_column_writer *writer, unsigned index_width)
{
    bool was_tried = writer->dictionary_bytes_max > 0 && writer->rest == 0;
    if (writer->has_dictionary) {
        size_t size = writer->dictionary.values.len + writer->value_count * index_width / 8;
        if (writer->value_count == 0 || size >= writer->plain_size) {
            tide_parquet_column_writer_leave_dictionary(writer);
        }
    }
    if (writer->rest > 0) {
        writer->rest--;
    } else if (was_tried && !writer->has_dictionary && writer->value_count >= 1000) {
        writer->rest = DICTIONARY_REST;
    }
}

static void describe(const struct tide_parquet_column_writer *writer, struct tide_arena *arena,
                     struct tide_parquet_chunk *chunk)
{
    bool has_dictionary = writer->has_dictionary;
    tide_str values = tide_buf_str(has_dictionary ? &writer->dictionary.values : &writer->plain);
    size_t count = has_dictionary ? writer->dictionary.count : writer->value_count;
    chunk->physical = writer->leaf->physical;
    chunk->value_count = (int64_t)writer->entry_count;
    chunk->statistics.has_null_count = true;
    chunk->statistics.null_count = (int64_t)writer->null_count;
    tide_parquet_statistics_of(writer->column, writer->leaf, values, count, arena,
                               &chunk->statistics);
}

tide_status tide_parquet_column_writer_flush(struct tide_parquet_column_writer *writer,
                                             struct tide_parquet_pages *pages, struct tide_buf *out,
                                             struct tide_arena *arena,
                                             struct tide_parquet_chunk *ret_chunk,
                                             struct tide_error *err)
{
    size_t count = writer->dictionary.count;
    unsigned index_width = count > 2 ? tide_hybrid_width((uint32_t)count - 1) : 1;
    struct tide_parquet_chunk chunk = {.codec = pages->packer.codec};
    struct page page = {0};
    judge_dictionary(writer, index_width);
    if (writer->has_dictionary) {
        TIDE_TRY(append_dictionary(writer, pages, out, &chunk, err));
    }
    chunk.data_at = (int64_t)out->len;
    while (page.entry_end < writer->entry_count) {
        take_page(writer, pages->page_bytes, index_width, &page);
        TIDE_TRY(append_data(writer, pages, out, &page, index_width, &chunk, err));
    }
    if (chunk.plain_size > (int64_t)TIDE_PARQUET_CHUNK_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "column %.*s takes %lld bytes in one row group, at most %zu can be read",
                         TIDE_STR_ARG(writer->column->name), (long long)chunk.plain_size,
                         TIDE_PARQUET_CHUNK_BYTES_MAX);
    }
    describe(writer, arena, &chunk);
    *ret_chunk = chunk;
    tide_parquet_column_writer_reset(writer);
    return TIDE_OK;
}
