#include "format/parquet/schema.h"

#include "base/limits.h"

enum tide_parquet_storage tide_parquet_storage_of(const struct tide_parquet_column *column)
{
    switch (column->type) {
    case TIDE_PARQUET_BOOL:
        return TIDE_PARQUET_AS_BOOL;
    case TIDE_PARQUET_INT64:
    case TIDE_PARQUET_UINT64:
    case TIDE_PARQUET_TIMESTAMP:
        return TIDE_PARQUET_AS_I64;
    case TIDE_PARQUET_TIME:
        return column->unit == TIDE_PARQUET_MS ? TIDE_PARQUET_AS_I32 : TIDE_PARQUET_AS_I64;
    case TIDE_PARQUET_FLOAT:
        return TIDE_PARQUET_AS_FLOAT;
    case TIDE_PARQUET_DOUBLE:
        return TIDE_PARQUET_AS_DOUBLE;
    case TIDE_PARQUET_DECIMAL:
        return TIDE_PARQUET_AS_I128;
    case TIDE_PARQUET_STRING:
    case TIDE_PARQUET_BINARY:
    case TIDE_PARQUET_UUID:
    case TIDE_PARQUET_JSON:
        return TIDE_PARQUET_AS_BYTES;
    case TIDE_PARQUET_INT8:
    case TIDE_PARQUET_INT16:
    case TIDE_PARQUET_INT32:
    case TIDE_PARQUET_UINT8:
    case TIDE_PARQUET_UINT16:
    case TIDE_PARQUET_UINT32:
    case TIDE_PARQUET_DATE:
        break;
    }
    return TIDE_PARQUET_AS_I32;
}

size_t tide_parquet_storage_size(enum tide_parquet_storage storage)
{
    static const uint8_t sizes[] = {
        [TIDE_PARQUET_AS_BOOL] = 1,
        [TIDE_PARQUET_AS_I32] = 4,
        [TIDE_PARQUET_AS_I64] = 8,
        [TIDE_PARQUET_AS_FLOAT] = 4,
        [TIDE_PARQUET_AS_DOUBLE] = 8,
        [TIDE_PARQUET_AS_I128] = sizeof(tide_int128),
        [TIDE_PARQUET_AS_BYTES] = sizeof(tide_str),
    };
    return sizes[storage];
}

/* The fewest bytes whose two's complement holds every decimal of so many digits. */
static uint32_t decimal_width(uint8_t precision)
{
    tide_int128 most = 1;
    for (unsigned i = 0; i < precision; i++) {
        most *= 10;
    }
    uint32_t width = 1;
    while (width < sizeof(most) && most - 1 > (((tide_int128)1 << (8 * width - 1)) - 1)) {
        width++;
    }
    return width;
}

static void set_physical(const struct tide_parquet_column *column, struct tide_parquet_leaf *leaf)
{
    static const struct {
        uint8_t physical, width;
    } kinds[] = {
        [TIDE_PARQUET_AS_BOOL] = {TIDE_PARQUET_BOOLEAN, 1},
        [TIDE_PARQUET_AS_I32] = {TIDE_PARQUET_PHYSICAL_INT32, 4},
        [TIDE_PARQUET_AS_I64] = {TIDE_PARQUET_PHYSICAL_INT64, 8},
        [TIDE_PARQUET_AS_FLOAT] = {TIDE_PARQUET_PHYSICAL_FLOAT, 4},
        [TIDE_PARQUET_AS_DOUBLE] = {TIDE_PARQUET_PHYSICAL_DOUBLE, 8},
        [TIDE_PARQUET_AS_I128] = {TIDE_PARQUET_FIXED_BYTES, 0},
        [TIDE_PARQUET_AS_BYTES] = {TIDE_PARQUET_BYTE_ARRAY, 0},
    };
    enum tide_parquet_storage storage = tide_parquet_storage_of(column);
    leaf->physical = kinds[storage].physical;
    leaf->width = kinds[storage].width;
    if (column->type == TIDE_PARQUET_DECIMAL) {
        leaf->width = decimal_width(column->precision);
    } else if (column->type == TIDE_PARQUET_UUID) {
        leaf->physical = TIDE_PARQUET_FIXED_BYTES;
        leaf->width = 16;
    }
}

struct tide_parquet_leaf tide_parquet_leaf_of(const struct tide_parquet_column *column,
                                              size_t index)
{
    struct tide_parquet_leaf leaf = {.index = index, .path = {column->name}, .path_count = 1};
    set_physical(column, &leaf);
    leaf.max_definition = column->is_nullable;
    if (column->is_list) {
        leaf.path[1] = TIDE_STR("list");
        leaf.path[2] = TIDE_STR("element");
        leaf.path_count = 3;
        leaf.max_repetition = 1;
        leaf.max_definition = (uint8_t)(column->is_nullable + 1 + column->is_element_nullable);
    }
    return leaf;
}

static tide_status check_column(const struct tide_parquet_column *column, struct tide_error *err)
{
    if (!tide_str_is_utf8(column->name)) {
        return tide_fail(err, TIDE_INVALID, "a column's name is not UTF-8");
    }
    if (column->refused != NULL || column->fixed_length != 0) {
        return tide_fail(err, TIDE_INVALID, "column %.*s is of a kind that is not written",
                         TIDE_STR_ARG(column->name));
    }
    if (column->type == TIDE_PARQUET_DECIMAL &&
        (column->precision < 1 || column->precision > TIDE_PARQUET_DECIMAL_DIGITS_MAX ||
         column->scale > column->precision)) {
        return tide_fail(err, TIDE_INVALID,
                         "column %.*s is decimal(%u,%u); 1 to %d digits can be written, of them at "
                         "most all behind the point",
                         TIDE_STR_ARG(column->name), column->precision, column->scale,
                         TIDE_PARQUET_DECIMAL_DIGITS_MAX);
    }
    return TIDE_OK;
}

tide_status tide_parquet_columns_check(const struct tide_parquet_column *columns, size_t count,
                                       struct tide_error *err)
{
    if (count == 0 || count > TIDE_PARQUET_COLUMNS_MAX) {
        return tide_fail(err, TIDE_INVALID, "a Parquet file of %zu columns: 1 to %d can be written",
                         count, TIDE_PARQUET_COLUMNS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(check_column(&columns[i], err));
    }
    return TIDE_OK;
}
