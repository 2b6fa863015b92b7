#include "format/parquet/schema_elements.h"

#include "base/limits.h"
#include "format/parquet/schema_names.h"

#define ELEMENTS_MAX (3 * TIDE_PARQUET_COLUMNS_MAX + 1)

/* An element as it was read. */
struct element {
    tide_str name;
    int32_t physical; /* -1: a group */
    int32_t length;
    int32_t repetition;
    int32_t children;
    int32_t converted;
    int32_t scale;
    int32_t precision;
    int32_t logical; /* enum logical */
    int32_t unit;    /* 1 ms, 2 us, 3 ns */
    int32_t bits;
    bool is_signed;
    bool is_utc;
};

static void read_unit(struct tide_thrift_reader *reader, struct element *element)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        element->unit = field.id;
        tide_thrift_skip(reader, field.type);
    }
    tide_thrift_leave(reader, outer);
}

/* The parameters of the logical types that have some. */
static void read_parameters(struct tide_thrift_reader *reader, struct element *element)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    bool is_time = element->logical == LOGICAL_TIME || element->logical == LOGICAL_TIMESTAMP;
    while (tide_thrift_next(reader, &field)) {
        if (element->logical == LOGICAL_DECIMAL && field.id == 1) {
            element->scale = tide_thrift_i32(reader, field.type);
        } else if (element->logical == LOGICAL_DECIMAL && field.id == 2) {
            element->precision = tide_thrift_i32(reader, field.type);
        } else if (is_time && field.id == 1) {
            element->is_utc = tide_thrift_bool(reader, field.type);
        } else if (is_time && field.id == 2 && tide_thrift_is_struct(reader, field.type)) {
            read_unit(reader, element);
        } else if (element->logical == LOGICAL_INTEGER && field.id == 1) {
            element->bits = tide_thrift_i32(reader, field.type);
        } else if (element->logical == LOGICAL_INTEGER && field.id == 2) {
            element->is_signed = tide_thrift_bool(reader, field.type);
        } else {
            tide_thrift_skip(reader, field.type);
        }
    }
    tide_thrift_leave(reader, outer);
}

static void read_logical(struct tide_thrift_reader *reader, struct element *element)
{
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        element->logical = field.id;
        if (tide_thrift_is_struct(reader, field.type)) {
            read_parameters(reader, element);
        }
    }
    tide_thrift_leave(reader, outer);
}

static struct element read_element(struct tide_thrift_reader *reader)
{
    struct element element = {.physical = -1, .converted = NO_CONVERTED};
    struct tide_thrift_field field;
    int16_t outer = tide_thrift_enter(reader);
    while (tide_thrift_next(reader, &field)) {
        switch (field.id) {
        case ELEMENT_TYPE:
            element.physical = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_TYPE_LENGTH:
            element.length = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_REPETITION:
            element.repetition = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_NAME:
            element.name = tide_thrift_binary(reader, field.type);
            break;
        case ELEMENT_CHILDREN:
            element.children = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_CONVERTED:
            element.converted = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_SCALE:
            element.scale = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_PRECISION:
            element.precision = tide_thrift_i32(reader, field.type);
            break;
        case ELEMENT_LOGICAL:
            if (tide_thrift_is_struct(reader, field.type)) {
                read_logical(reader, &element);
            }
            break;
        default:
            tide_thrift_skip(reader, field.type);
            break;
        }
    }
    tide_thrift_leave(reader, outer);
    return element;
}

/* Says with the newer names what an element says with the older ones alone. */
static void take_converted(struct element *element)
{
    if (element->logical != LOGICAL_NONE || element->converted == NO_CONVERTED) {
        return;
    }
    int32_t converted = element->converted;
    element->logical = -1;
    if (converted == CONVERTED_TIME_MILLIS || converted == CONVERTED_TIME_MICROS) {
        element->logical = LOGICAL_TIME;
        element->unit = converted == CONVERTED_TIME_MILLIS ? 1 : 2;
        element->is_utc = true;
    } else if (converted == CONVERTED_TIMESTAMP_MILLIS || converted == CONVERTED_TIMESTAMP_MICROS) {
        element->logical = LOGICAL_TIMESTAMP;
        element->unit = converted == CONVERTED_TIMESTAMP_MILLIS ? 1 : 2;
        element->is_utc = true;
    } else if (converted >= CONVERTED_UINT_8 && converted < CONVERTED_INT_8 + 4) {
        element->logical = LOGICAL_INTEGER;
        element->is_signed = converted >= CONVERTED_INT_8;
        element->bits = 8 << ((converted - CONVERTED_UINT_8) & 3);
    } else {
        static const uint8_t same[] = {
            [CONVERTED_UTF8] = LOGICAL_STRING,
            [1] = LOGICAL_MAP,
            [2] = LOGICAL_MAP,
            [CONVERTED_LIST] = LOGICAL_LIST,
            [4] = LOGICAL_ENUM,
            [CONVERTED_DECIMAL] = LOGICAL_DECIMAL,
            [CONVERTED_DATE] = LOGICAL_DATE,
            [CONVERTED_JSON] = LOGICAL_JSON,
        };
        if (converted >= 0 && converted < (int32_t)sizeof(same) && same[converted] != 0) {
            element->logical = same[converted];
        }
    }
}

static const char *take_decimal(const struct element *element, struct tide_parquet_column *column)
{
    if (element->precision < 1 || element->scale < 0 || element->scale > element->precision) {
        return "is a decimal with a scale or precision that makes no sense";
    }
    if (element->precision > TIDE_PARQUET_DECIMAL_DIGITS_MAX) {
        return "is a decimal of more than 38 digits";
    }
    if (element->physical == TIDE_PARQUET_FIXED_BYTES
            ? element->length < 1 || element->length > (int32_t)sizeof(tide_int128)
            : element->physical != TIDE_PARQUET_PHYSICAL_INT32 &&
                  element->physical != TIDE_PARQUET_PHYSICAL_INT64) {
        return "is a decimal in bytes of any length, or of more than 16";
    }
    column->type = TIDE_PARQUET_DECIMAL;
    column->precision = (uint8_t)element->precision;
    column->scale = (uint8_t)element->scale;
    return NULL;
}

static const char *take_plain(const struct element *element, struct tide_parquet_column *column)
{
    switch (element->physical) {
    case TIDE_PARQUET_BOOLEAN:
        column->type = TIDE_PARQUET_BOOL;
        return NULL;
    case TIDE_PARQUET_PHYSICAL_INT32:
        column->type = TIDE_PARQUET_INT32;
        return NULL;
    case TIDE_PARQUET_PHYSICAL_INT64:
        column->type = TIDE_PARQUET_INT64;
        return NULL;
    case TIDE_PARQUET_INT96:
        return "is an INT96";
    case TIDE_PARQUET_PHYSICAL_FLOAT:
        column->type = TIDE_PARQUET_FLOAT;
        return NULL;
    case TIDE_PARQUET_PHYSICAL_DOUBLE:
        column->type = TIDE_PARQUET_DOUBLE;
        return NULL;
    case TIDE_PARQUET_BYTE_ARRAY:
        column->type = TIDE_PARQUET_BINARY;
        return NULL;
    case TIDE_PARQUET_FIXED_BYTES:
        column->type = TIDE_PARQUET_BINARY;
        column->fixed_length = element->length > 0 ? (uint32_t)element->length : 0;
        return element->length > 0 ? NULL : "has values of a fixed length below 1";
    default:
        return "is of a physical type that is not known";
    }
}

static const char *take_integer(const struct element *element, struct tide_parquet_column *column)
{
    static const struct {
        uint8_t bits, is_signed, is_unsigned;
    } widths[] = {
        {8, TIDE_PARQUET_INT8, TIDE_PARQUET_UINT8},
        {16, TIDE_PARQUET_INT16, TIDE_PARQUET_UINT16},
        {32, TIDE_PARQUET_INT32, TIDE_PARQUET_UINT32},
        {64, TIDE_PARQUET_INT64, TIDE_PARQUET_UINT64},
    };

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (element->bits == widths[i].bits) {
            column->type = element->is_signed ? widths[i].is_signed : widths[i].is_unsigned;
            return NULL;
        }
    }
    return "is an integer of a width that is not known";
}

static const char *take_time(const struct element *element, struct tide_parquet_column *column)
{
    static const uint8_t units[] = {0, TIDE_PARQUET_MS, TIDE_PARQUET_US, TIDE_PARQUET_NS};
    if (element->unit < 1 || element->unit > 3) {
        return "is a time in a unit that is not known";
    }
    column->type = element->logical == LOGICAL_TIME ? TIDE_PARQUET_TIME : TIDE_PARQUET_TIMESTAMP;
    column->unit = units[element->unit];
    column->is_utc = element->is_utc;
    return NULL;
}

/* Sets the column's type from a leaf, or says why it cannot be read. */
static const char *take_type(const struct element *element, struct tide_parquet_column *column)
{
    switch (element->logical) {
    case LOGICAL_NONE:
        return take_plain(element, column);
    case LOGICAL_STRING:
    case LOGICAL_ENUM:
        column->type = TIDE_PARQUET_STRING;
        return NULL;
    case LOGICAL_JSON:
        column->type = TIDE_PARQUET_JSON;
        return NULL;
    case LOGICAL_UUID:
        column->type = TIDE_PARQUET_UUID;
        return NULL;
    case LOGICAL_DATE:
        column->type = TIDE_PARQUET_DATE;
        return NULL;
    case LOGICAL_DECIMAL:
        return take_decimal(element, column);
    case LOGICAL_INTEGER:
        return take_integer(element, column);
    case LOGICAL_TIME:
    case LOGICAL_TIMESTAMP:
        return take_time(element, column);
    default:
        return "is of a logical type that is not known";
    }
}

/* A leaf that nothing of its own keeps from being read, or the reason. */
static const char *take_leaf(const struct element *element, struct tide_parquet_column *column,
                             struct tide_parquet_leaf *leaf)
{
    const char *refused = take_type(element, column);
    if (refused != NULL) {
        return refused;
    }
    struct tide_parquet_leaf wanted = tide_parquet_leaf_of(column, 0);
    leaf->physical = element->physical;
    leaf->width = wanted.width;
    if (column->type == TIDE_PARQUET_DECIMAL) {
        leaf->width = element->physical == TIDE_PARQUET_FIXED_BYTES      ? (uint32_t)element->length
                      : element->physical == TIDE_PARQUET_PHYSICAL_INT32 ? 4
                                                                         : 8;
        return NULL;
    }
    if (column->fixed_length != 0) {
        leaf->width = column->fixed_length;
        return NULL;
    }
    if (wanted.physical != element->physical ||
        (column->type == TIDE_PARQUET_UUID && element->length != 16)) {
        return "has a logical type that does not fit its physical type";
    }
    return NULL;
}

struct elements {
    const struct element *list;
    size_t count;
};

/* How many elements the one at `at` has below it, itself included; 0 when some are missing. */
static size_t tree_size(const struct elements *elements, size_t at, size_t *ret_leaves)
{
    int64_t open = 1;
    size_t next = at;
    while (open > 0 && next < elements->count) {
        int32_t children = elements->list[next].children;
        *ret_leaves += children <= 0;
        open += (children > 0 ? children : 0) - 1;
        next++;
    }
    return open > 0 ? 0 : next - at;
}

/* Lists have three levels; what older writers made of two is not told apart from structs. */
static const char *take_list(const struct elements *elements, size_t at, size_t size,
                             struct tide_parquet_column *column, struct tide_parquet_leaf *leaf)
{
    const struct element *outer = &elements->list[at];
    if (outer->logical != LOGICAL_LIST) {
        return outer->logical == LOGICAL_MAP ? "is a map" : "is a struct";
    }
    const struct element *middle = outer + 1;
    const struct element *inner = outer + 2;
    if (size != 3 || middle->children != 1 || middle->repetition != REPEATED ||
        inner->repetition == REPEATED) {
        return "is a list of lists, structs or maps, or one of only two levels";
    }
    column->is_list = true;
    column->is_element_nullable = inner->repetition == OPTIONAL;
    leaf->max_repetition = 1;
    leaf->max_definition = (uint8_t)(column->is_nullable + 1 + column->is_element_nullable);
    return take_leaf(inner, column, leaf);
}

static tide_status take_columns(const struct elements *elements, struct tide_arena *arena,
                                struct tide_parquet_metadata *metadata, struct tide_error *err)
{
    size_t count = (size_t)elements->list[0].children;
    struct tide_parquet_column *columns = tide_arena_alloc(arena, count, sizeof(*columns));
    struct tide_parquet_leaf *leaves = tide_arena_alloc(arena, count, sizeof(*leaves));
    size_t at = 1;
    size_t leaf_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t first_leaf = leaf_count;
        size_t size = tree_size(elements, at, &leaf_count);
        if (size == 0) {
            return tide_fail(err, TIDE_CORRUPT, "the schema ends before its last column");
        }
        const struct element *element = &elements->list[at];
        if (!tide_str_is_utf8(element->name)) {
            return tide_fail(err, TIDE_CORRUPT, "the name of column %zu is not UTF-8", i + 1);
        }
        bool is_nullable = element->repetition == OPTIONAL;
        columns[i] =
            (struct tide_parquet_column){.name = element->name, .is_nullable = is_nullable};
        leaves[i] = (struct tide_parquet_leaf){.index = first_leaf, .max_definition = is_nullable};
        columns[i].refused = element->repetition == REPEATED ? "repeats without being a list"
                             : size == 1 && element->children <= 0
                                 ? take_leaf(element, &columns[i], &leaves[i])
                                 : take_list(elements, at, size, &columns[i], &leaves[i]);
        at += size;
    }
    if (at != elements->count) {
        return tide_fail(err, TIDE_CORRUPT, "the schema has elements behind its last column");
    }
    metadata->columns = columns;
    metadata->leaves = leaves;
    metadata->column_count = count;
    metadata->leaf_count = leaf_count;
    return TIDE_OK;
}

tide_status tide_parquet_elements_read(struct tide_thrift_reader *reader, uint8_t type,
                                       struct tide_arena *arena,
                                       struct tide_parquet_metadata *metadata,
                                       struct tide_error *err)
{
    size_t count = tide_thrift_list(reader, type, TIDE_THRIFT_STRUCT);
    if (count > ELEMENTS_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED, "a schema of %zu elements; at most %d are read",
                         count, ELEMENTS_MAX);
    }
    struct tide_arena scratch TIDE_CLEANUP(tide_arena_done) = {0};
    struct element *list = tide_arena_alloc(&scratch, count, sizeof(*list));
    for (size_t i = 0; i < count && !reader->failed; i++) {
        list[i] = read_element(reader);
        take_converted(&list[i]);
    }
    if (reader->failed) {
        return tide_fail(err, TIDE_CORRUPT, "the schema cannot be read");
    }
    if (count == 0 || list[0].children < 1 || (size_t)list[0].children >= count) {
        return tide_fail(err, TIDE_CORRUPT, "the schema has no columns, or not those it counts");
    }
    return take_columns(&(struct elements){list, count}, arena, metadata, err);
}
