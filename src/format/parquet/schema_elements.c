#include "format/parquet/schema_elements.h"

#include "format/parquet/schema_names.h"

/* What a type is called in the file. Times' older name depends on unit and zone. */
static const struct {
    int16_t converted;
    uint8_t logical;
    uint8_t bits; /* of an annotated integer */
    bool is_signed;
} names[] = {
    [TIDE_PARQUET_BOOL] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_INT8] = {CONVERTED_INT_8, LOGICAL_INTEGER, 8, true},
    [TIDE_PARQUET_INT16] = {CONVERTED_INT_8 + 1, LOGICAL_INTEGER, 16, true},
    [TIDE_PARQUET_INT32] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_INT64] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_UINT8] = {CONVERTED_UINT_8, LOGICAL_INTEGER, 8, false},
    [TIDE_PARQUET_UINT16] = {CONVERTED_UINT_8 + 1, LOGICAL_INTEGER, 16, false},
    [TIDE_PARQUET_UINT32] = {CONVERTED_UINT_8 + 2, LOGICAL_INTEGER, 32, false},
    [TIDE_PARQUET_UINT64] = {CONVERTED_UINT_8 + 3, LOGICAL_INTEGER, 64, false},
    [TIDE_PARQUET_FLOAT] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_DOUBLE] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_DECIMAL] = {CONVERTED_DECIMAL, LOGICAL_DECIMAL},
    [TIDE_PARQUET_DATE] = {CONVERTED_DATE, LOGICAL_DATE},
    [TIDE_PARQUET_TIME] = {CONVERTED_TIME_MILLIS, LOGICAL_TIME},
    [TIDE_PARQUET_TIMESTAMP] = {CONVERTED_TIMESTAMP_MILLIS, LOGICAL_TIMESTAMP},
    [TIDE_PARQUET_STRING] = {CONVERTED_UTF8, LOGICAL_STRING},
    [TIDE_PARQUET_BINARY] = {NO_CONVERTED, LOGICAL_NONE},
    [TIDE_PARQUET_UUID] = {NO_CONVERTED, LOGICAL_UUID},
    [TIDE_PARQUET_JSON] = {CONVERTED_JSON, LOGICAL_JSON},
};

static bool is_time(enum tide_parquet_type type)
{
    return type == TIDE_PARQUET_TIME || type == TIDE_PARQUET_TIMESTAMP;
}

/* The older names say UTC, and know no nanoseconds. */
static int converted_of(const struct tide_parquet_column *column)
{
    int converted = names[column->type].converted;
    if (!is_time(column->type)) {
        return converted;
    }
    if (!column->is_utc || column->unit == TIDE_PARQUET_NS) {
        return NO_CONVERTED;
    }
    return converted + (column->unit == TIDE_PARQUET_US);
}

static void put_logical(struct tide_thrift_writer *writer, const struct tide_parquet_column *column)
{
    static const uint8_t units[] = {
        [TIDE_PARQUET_MS] = 1, [TIDE_PARQUET_US] = 2, [TIDE_PARQUET_NS] = 3};
    enum tide_parquet_type type = column->type;
    if (names[type].logical == LOGICAL_NONE) {
        return;
    }
    int16_t outer = tide_thrift_begin_struct(writer, ELEMENT_LOGICAL);
    int16_t inner = tide_thrift_begin_struct(writer, names[type].logical);
    if (type == TIDE_PARQUET_DECIMAL) {
        tide_thrift_put_i32(writer, 1, column->scale);
        tide_thrift_put_i32(writer, 2, column->precision);
    } else if (is_time(type)) {
        tide_thrift_put_bool(writer, 1, column->is_utc);
        int16_t unit = tide_thrift_begin_struct(writer, 2);
        tide_thrift_put_empty(writer, units[column->unit]);
        tide_thrift_end_struct(writer, unit);
    } else if (names[type].logical == LOGICAL_INTEGER) {
        tide_thrift_put_i8(writer, 1, (int8_t)names[type].bits);
        tide_thrift_put_bool(writer, 2, names[type].is_signed);
    }
    tide_thrift_end_struct(writer, inner);
    tide_thrift_end_struct(writer, outer);
}

static void append_leaf(struct tide_thrift_writer *writer, const struct tide_parquet_column *column,
                        const struct tide_parquet_leaf *leaf)
{
    bool is_optional = column->is_list ? column->is_element_nullable : column->is_nullable;
    int converted = converted_of(column);
    int16_t outer = tide_thrift_begin_struct(writer, 0);
    tide_thrift_put_i32(writer, ELEMENT_TYPE, leaf->physical);
    if (leaf->physical == TIDE_PARQUET_FIXED_BYTES) {
        tide_thrift_put_i32(writer, ELEMENT_TYPE_LENGTH, (int32_t)leaf->width);
    }
    tide_thrift_put_i32(writer, ELEMENT_REPETITION, is_optional ? OPTIONAL : REQUIRED);
    tide_thrift_put_binary(writer, ELEMENT_NAME, leaf->path[leaf->path_count - 1]);
    if (converted != NO_CONVERTED) {
        tide_thrift_put_i32(writer, ELEMENT_CONVERTED, converted);
    }
    if (column->type == TIDE_PARQUET_DECIMAL) {
        tide_thrift_put_i32(writer, ELEMENT_SCALE, column->scale);
        tide_thrift_put_i32(writer, ELEMENT_PRECISION, column->precision);
    }
    put_logical(writer, column);
    tide_thrift_end_struct(writer, outer);
}

static void append_list_groups(struct tide_thrift_writer *writer,
                               const struct tide_parquet_column *column,
                               const struct tide_parquet_leaf *leaf)
{
    int16_t outer = tide_thrift_begin_struct(writer, 0);
    tide_thrift_put_i32(writer, ELEMENT_REPETITION, column->is_nullable ? OPTIONAL : REQUIRED);
    tide_thrift_put_binary(writer, ELEMENT_NAME, leaf->path[0]);
    tide_thrift_put_i32(writer, ELEMENT_CHILDREN, 1);
    tide_thrift_put_i32(writer, ELEMENT_CONVERTED, CONVERTED_LIST);
    int16_t logical = tide_thrift_begin_struct(writer, ELEMENT_LOGICAL);
    tide_thrift_put_empty(writer, LOGICAL_LIST);
    tide_thrift_end_struct(writer, logical);
    tide_thrift_end_struct(writer, outer);
    outer = tide_thrift_begin_struct(writer, 0);
    tide_thrift_put_i32(writer, ELEMENT_REPETITION, REPEATED);
    tide_thrift_put_binary(writer, ELEMENT_NAME, leaf->path[1]);
    tide_thrift_put_i32(writer, ELEMENT_CHILDREN, 1);
    tide_thrift_end_struct(writer, outer);
}

void tide_parquet_elements_append(struct tide_thrift_writer *writer, int16_t field,
                                  const struct tide_parquet_metadata *metadata)
{
    size_t count = 1;
    for (size_t i = 0; i < metadata->column_count; i++) {
        count += metadata->columns[i].is_list ? 3 : 1;
    }
    tide_thrift_begin_list(writer, field, TIDE_THRIFT_STRUCT, count);
    int16_t outer = tide_thrift_begin_struct(writer, 0);
    tide_thrift_put_binary(writer, ELEMENT_NAME, TIDE_STR("schema"));
    tide_thrift_put_i32(writer, ELEMENT_CHILDREN, (int32_t)metadata->column_count);
    tide_thrift_end_struct(writer, outer);
    for (size_t i = 0; i < metadata->column_count; i++) {
        if (metadata->columns[i].is_list) {
            append_list_groups(writer, &metadata->columns[i], &metadata->leaves[i]);
        }
        append_leaf(writer, &metadata->columns[i], &metadata->leaves[i]);
    }
}
