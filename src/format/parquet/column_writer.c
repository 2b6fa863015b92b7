#include "format/parquet/column_writer.h"

#include "base/limits.h"

/* A dictionary is given up when at each so many new values more than 4 of 5 values were new. */
#define DICTIONARY_LOOK 4096

void tide_parquet_column_writer_init(struct tide_parquet_column_writer *writer,
                                     const struct tide_parquet_column *column,
                                     const struct tide_parquet_leaf *leaf,
                                     size_t dictionary_bytes_max)
{
    *writer = (struct tide_parquet_column_writer){
        .column = column,
        .leaf = leaf,
        .storage = tide_parquet_storage_of(column),
        .dictionary_bytes_max = column->type == TIDE_PARQUET_BOOL ? 0 : dictionary_bytes_max,
    };
    tide_parquet_column_writer_reset(writer);
}

void tide_parquet_column_writer_done(struct tide_parquet_column_writer *writer)
{
    tide_buf_done(&writer->plain);
    tide_buf_done(&writer->indexes);
    tide_buf_done(&writer->definitions);
    tide_buf_done(&writer->repetitions);
    tide_parquet_dictionary_done(&writer->dictionary);
}

void tide_parquet_column_writer_reset(struct tide_parquet_column_writer *writer)
{
    tide_buf_reset(&writer->plain);
    tide_buf_reset(&writer->indexes);
    tide_buf_reset(&writer->definitions);
    tide_buf_reset(&writer->repetitions);
    tide_parquet_dictionary_reset(&writer->dictionary);
    writer->has_dictionary = writer->dictionary_bytes_max > 0 && writer->rest == 0;
    writer->row_count = writer->entry_count = writer->value_count = 0;
    writer->null_count = writer->plain_size = writer->list_left = 0;
    writer->is_list_start = false;
    writer->mistake = NULL;
}

/* tide_buf_append for a size that the compiler knows. */
static inline void put_byte(struct tide_buf *buf, uint8_t byte)
{
    if (TIDE_UNLIKELY(buf->len == buf->cap)) {
        (void)tide_buf_reserve(buf, 1);
    }
    buf->ptr[buf->len++] = (char)byte;
}

static inline void put_u32(struct tide_buf *buf, uint32_t value)
{
    if (TIDE_UNLIKELY(buf->cap - buf->len < sizeof(value))) {
        (void)tide_buf_reserve(buf, sizeof(value));
    }
    memcpy(buf->ptr + buf->len, &value, sizeof(value));
    buf->len += sizeof(value);
}

static void put_entry(struct tide_parquet_column_writer *writer, unsigned definition,
                      unsigned repetition)
{
    unsigned highest = writer->leaf->max_definition;
    if (writer->definitions.len > 0) {
        put_byte(&writer->definitions, (uint8_t)definition);
    } else if (definition != highest) {
        char *to = tide_buf_reserve(&writer->definitions, writer->entry_count + 1);
        memset(to, (int)highest, writer->entry_count);
        to[writer->entry_count] = (char)definition;
        writer->definitions.len = writer->entry_count + 1;
    }
    if (writer->column->is_list) {
        put_byte(&writer->repetitions, (uint8_t)repetition);
    }
    writer->entry_count++;
}

/* A row, or an element: the current list's next. */
static void begin_entry(struct tide_parquet_column_writer *writer, unsigned definition)
{
    unsigned repetition = 0;
    if (!writer->column->is_list) {
        writer->row_count++;
    } else {
        TIDE_ASSERT(writer->list_left > 0);
        repetition = writer->is_list_start ? 0 : 1;
        writer->is_list_start = false;
        writer->list_left--;
    }
    put_entry(writer, definition, repetition);
}

void tide_parquet_column_writer_null(struct tide_parquet_column_writer *writer)
{
    const struct tide_parquet_column *column = writer->column;
    writer->null_count++;
    if (writer->list_left > 0) {
        TIDE_ASSERT(column->is_element_nullable);
        begin_entry(writer, writer->leaf->max_definition - 1U);
        return;
    }
    TIDE_ASSERT(column->is_nullable);
    if (column->is_list) {
        writer->row_count++;
        put_entry(writer, 0, 0);
    } else {
        begin_entry(writer, 0);
    }
}

void tide_parquet_column_writer_list(struct tide_parquet_column_writer *writer, size_t count)
{
    TIDE_ASSERT(writer->column->is_list && writer->list_left == 0);
    writer->row_count++;
    writer->list_left = count;
    writer->is_list_start = true;
    if (count == 0) {
        writer->null_count++; /* readers count what is no value */
        put_entry(writer, writer->column->is_nullable, 0);
    }
}

static void put_plain(struct tide_parquet_column_writer *writer, const void *bytes, size_t len)
{
    if (writer->leaf->width == 0) {
        put_u32(&writer->plain, (uint32_t)len);
    }
    tide_buf_append(&writer->plain, bytes, len);
}

void tide_parquet_column_writer_leave_dictionary(struct tide_parquet_column_writer *writer)
{
    size_t count = writer->indexes.len / sizeof(uint32_t);
    (void)tide_buf_reserve(&writer->plain, writer->plain_size);
    for (size_t i = 0; i < count; i++) {
        uint32_t index = 0;
        memcpy(&index, writer->indexes.ptr + i * sizeof(index), sizeof(index));
        tide_buf_append_str(&writer->plain,
                            tide_parquet_dictionary_value(&writer->dictionary, index));
    }
    tide_buf_reset(&writer->indexes);
    tide_parquet_dictionary_reset(&writer->dictionary);
    writer->has_dictionary = false;
}

/* False when the dictionary has no room for the value, or pays so little that it is given up. */
static bool put_index(struct tide_parquet_column_writer *writer, const void *bytes, size_t len)
{
    struct tide_parquet_dictionary *dictionary = &writer->dictionary;
    uint32_t index = tide_parquet_dictionary_index(dictionary, bytes, len, writer->leaf->width == 0,
                                                   writer->dictionary_bytes_max);
    bool is_looked_at = dictionary->count % DICTIONARY_LOOK == 0 && dictionary->count > 0;
    if (index == TIDE_PARQUET_NO_INDEX ||
        (is_looked_at && dictionary->count * 5 > (writer->value_count + 1) * 4)) {
        tide_parquet_column_writer_leave_dictionary(writer);
        return false;
    }
    put_u32(&writer->indexes, index);
    return true;
}

void tide_parquet_column_writer_value(struct tide_parquet_column_writer *writer, const void *bytes,
                                      size_t len)
{
    TIDE_ASSERT(writer->leaf->width == 0 || writer->leaf->width == len);
    if (TIDE_UNLIKELY(len > TIDE_PARQUET_PAGE_BYTES_MAX)) {
        writer->mistake = "a value of more than 1 GiB";
        bytes = "";
        len = 0;
    }
    begin_entry(writer, writer->leaf->max_definition);
    if (!writer->has_dictionary || !put_index(writer, bytes, len)) {
        put_plain(writer, bytes, len);
    }
    writer->value_count++;
    writer->plain_size += len + (writer->leaf->width == 0 ? sizeof(uint32_t) : 0);
}

size_t tide_parquet_column_writer_size(const struct tide_parquet_column_writer *writer)
{
    return writer->plain.len + writer->indexes.len + writer->dictionary.values.len +
           writer->definitions.len + writer->repetitions.len;
}
