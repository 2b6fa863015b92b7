#include "format/parquet/metadata.h"

/* Thrift's field numbers of a page's header. */
enum page_field {
    PAGE_TYPE = 1,
    PAGE_PLAIN_SIZE = 2,
    PAGE_PACKED_SIZE = 3,
    PAGE_CHECKSUM = 4,
    PAGE_DATA = 5,
    PAGE_DICTIONARY = 7,
    PAGE_DATA_V2 = 8,
};

enum data_field {
    DATA_VALUES = 1,
    DATA_ENCODING = 2, /* of a dictionary too */
    DATA_DEFINITIONS = 3,
    DATA_REPETITIONS = 4,
};

enum data_v2_field {
    DATA_V2_VALUES = 1,
    DATA_V2_NULLS = 2,
    DATA_V2_ROWS = 3,
    DATA_V2_ENCODING = 4,
    DATA_V2_DEFINITIONS_SIZE = 5,
    DATA_V2_REPETITIONS_SIZE = 6,
    DATA_V2_IS_PACKED = 7,
};

void tide_parquet_page_append(struct tide_buf *out, const struct tide_parquet_page *page)
{
    struct tide_thrift_writer writer = {out, 0};
    bool is_data = page->type == TIDE_PARQUET_DATA_PAGE;
    TIDE_ASSERT(is_data || page->type == TIDE_PARQUET_DICTIONARY_PAGE);
    int16_t outer = tide_thrift_begin_struct(&writer, 0);
    tide_thrift_put_i32(&writer, PAGE_TYPE, page->type);
    tide_thrift_put_i32(&writer, PAGE_PLAIN_SIZE, page->plain_size);
    tide_thrift_put_i32(&writer, PAGE_PACKED_SIZE, page->packed_size);
    tide_thrift_put_i32(&writer, PAGE_CHECKSUM, (int32_t)page->checksum);
    int16_t inner = tide_thrift_begin_struct(&writer, is_data ? PAGE_DATA : PAGE_DICTIONARY);
    tide_thrift_put_i32(&writer, DATA_VALUES, page->value_count);
    tide_thrift_put_i32(&writer, DATA_ENCODING, page->encoding);
    if (is_data) {
        tide_thrift_put_i32(&writer, DATA_DEFINITIONS, TIDE_PARQUET_RLE);
        tide_thrift_put_i32(&writer, DATA_REPETITIONS, TIDE_PARQUET_RLE);
    }
    tide_thrift_end_struct(&writer, inner);
    tide_thrift_end_struct(&writer, outer);
}

/* A data page of version 1, or a dictionary: the fields that both have bear the same numbers. */
static void read_data(struct tide_thrift_reader *reader, struct tide_parquet_page *page)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        if (field.id == DATA_VALUES) {
            page->value_count = tide_thrift_i32(reader, field.type);
        } else if (field.id == DATA_ENCODING) {
            page->encoding = tide_thrift_i32(reader, field.type);
        } else if (field.id == DATA_DEFINITIONS && page->type == TIDE_PARQUET_DATA_PAGE) {
            page->definition_encoding = tide_thrift_i32(reader, field.type);
        } else if (field.id == DATA_REPETITIONS) {
            page->repetition_encoding = tide_thrift_i32(reader, field.type);
        } else {
            tide_thrift_skip(reader, field.type);
        }
    }
    tide_thrift_leave(reader, outer);
}

static void read_data_v2(struct tide_thrift_reader *reader, struct tide_parquet_page *page)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case DATA_V2_VALUES:
            page->value_count = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_NULLS:
            page->null_count = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_ROWS:
            page->row_count = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_ENCODING:
            page->encoding = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_DEFINITIONS_SIZE:
            page->definition_size = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_REPETITIONS_SIZE:
            page->repetition_size = tide_thrift_i32(reader, field.type);
            break;
        case DATA_V2_IS_PACKED:
            page->is_packed = tide_thrift_bool(reader, field.type);
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
    tide_thrift_leave(reader, outer);
}

static void read_page(struct tide_thrift_reader *reader, struct tide_parquet_page *page)
{
    struct tide_thrift_field field;
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case PAGE_TYPE:
            page->type = tide_thrift_i32(reader, field.type);
            break;
        case PAGE_PLAIN_SIZE:
            page->plain_size = tide_thrift_i32(reader, field.type);
            break;
        case PAGE_PACKED_SIZE:
            page->packed_size = tide_thrift_i32(reader, field.type);
            break;
        case PAGE_CHECKSUM:
            page->checksum = (uint32_t)tide_thrift_i32(reader, field.type);
            page->has_checksum = true;
            break;
        case PAGE_DATA:
        case PAGE_DICTIONARY:
            if (tide_thrift_is_struct(reader, field.type)) {
                read_data(reader, page);
            }
            break;
        case PAGE_DATA_V2:
            if (tide_thrift_is_struct(reader, field.type)) {
                read_data_v2(reader, page);
            }
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
}

tide_status tide_parquet_page_read(tide_str bytes, struct tide_parquet_page *ret_page,
                                   size_t *ret_size, struct tide_error *err)
{
    struct tide_parquet_page page = {
        .type = -1,
        .plain_size = -1,
        .packed_size = -1,
        .encoding = -1,
        .definition_encoding = TIDE_PARQUET_RLE,
        .repetition_encoding = TIDE_PARQUET_RLE,
        .is_packed = true,
    };
    struct tide_thrift_reader reader = tide_thrift_reader_of(bytes);
    read_page(&reader, &page);
    if (reader.failed) {
        return tide_fail(err, TIDE_CORRUPT, "a page's header is cut off or not in Thrift's form");
    }
    if (page.plain_size < 0 || page.packed_size < 0 || page.value_count < 0) {
        return tide_fail(err, TIDE_CORRUPT, "a page's header lacks a size or has one below 0");
    }
    *ret_page = page;
    *ret_size = (size_t)(reader.pos - bytes.ptr);
    return TIDE_OK;
}
