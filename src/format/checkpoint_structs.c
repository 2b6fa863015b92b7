/*
 * The typed key values whose value is a structure: checked by their shape. Those of one text keep
 * it; the others become JSON as it was written.
 */
#include "format/checkpoint_private.h"

#define SCALE_MAX     UINT8_MAX
#define PRECISION_MAX UINT8_MAX

static tide_status read_pair(const struct tide_shape *shape, tide_str raw, const char *first,
                             const char *second, bool refuse_unknown, tide_str ret_values[2],
                             struct tide_error *err)
{
    const struct tide_shape_field fields[] = {{.name = first}, {.name = second}};
    const struct tide_shape_form form = {
        .fields = fields, .count = 2, .sequence_count = 2, .refuse_unknown = refuse_unknown};
    return tide_shape_fields(shape, raw, &form, ret_values, err);
}

static void set_value(struct tide_value *ret_value, enum tide_value_kind kind, tide_str text)
{
    *ret_value = (struct tide_value){text.ptr, (uint32_t)text.len, (uint8_t)kind};
}

static void set_json(const struct tide_shape *shape, struct tide_value *ret_value, tide_str raw)
{
    set_value(ret_value, TIDE_VALUE_JSON, tide_shape_compact(shape->arena, raw));
}

static tide_status read_int8(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    tide_str values[2];
    uint64_t width = 0;
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "value", "width", false, values, err));
    TIDE_TRY(tide_shape_i64(shape, values[0], INT8_MIN, INT8_MAX, err));
    TIDE_TRY(tide_shape_u64(shape, values[1], UINT8_MAX, &width, err));
    set_value(ret_value, TIDE_VALUE_INTEGER, values[0]);
    return TIDE_OK;
}

/* What a DECIMAL may hold: a JSON number, or a name that is none. */
static bool is_decimal(tide_str text)
{
    struct tide_error ignored;
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    if (tide_str_equal(text, TIDE_STR("NaN")) || tide_str_equal(text, TIDE_STR("Infinity")) ||
        tide_str_equal(text, TIDE_STR("-Infinity"))) {
        return true;
    }
    tide_json_reader_init(&reader, text, 1);
    return tide_json_next(&reader, &token, &ignored) == TIDE_OK && token.type == TIDE_JSON_NUMBER &&
           token.text.len == text.len;
}

static tide_status read_decimal(const struct tide_shape *shape, tide_str raw,
                                struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                                struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "value"}, {.name = "precision"}, {.name = "scale"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3, .sequence_count = 3};
    tide_str values[3];
    tide_str text = {0};
    uint64_t ignored = 0;
    (void)nested;
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &text, err));
    TIDE_TRY(tide_shape_u64(shape, values[1], PRECISION_MAX, &ignored, err));
    TIDE_TRY(tide_shape_u64(shape, values[2], SCALE_MAX, &ignored, err));
    set_value(ret_value, is_decimal(text) ? TIDE_VALUE_DECIMAL : TIDE_VALUE_TEXT, text);
    return TIDE_OK;
}

static tide_status read_char(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    tide_str values[2];
    tide_str text = {0};
    uint64_t length = 0;
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "value", "length", false, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &text, err));
    TIDE_TRY(tide_shape_u64(shape, values[1], UINT16_MAX, &length, err));
    set_value(ret_value, TIDE_VALUE_TEXT, text);
    return TIDE_OK;
}

static tide_status read_enum(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    tide_str values[2];
    tide_str text = {0};
    const tide_str *allowed = NULL;
    size_t count = 0;
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "value", "allowed_values", false, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &text, err));
    TIDE_TRY(tide_shape_strings(shape, values[1], &allowed, &count, err));
    set_value(ret_value, TIDE_VALUE_TEXT, text);
    return TIDE_OK;
}

static tide_status read_set(const struct tide_shape *shape, tide_str raw,
                            struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                            struct tide_error *err)
{
    tide_str values[2];
    const tide_str *texts = NULL;
    size_t count = 0;
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "elements", "allowed_values", false, values, err));
    TIDE_TRY(tide_shape_strings(shape, values[0], &texts, &count, err));
    TIDE_TRY(tide_shape_strings(shape, values[1], &texts, &count, err));
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

static tide_status read_array(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    tide_str values[2];
    tide_str *items = NULL;
    TIDE_TRY(read_pair(shape, raw, "elements", "element_type", false, values, err));
    TIDE_TRY(tide_shape_items(shape, values[0], &items, &nested->count, err));
    TIDE_TRY(tide_checkpoint_type_check(shape, values[1], err));
    nested->items = items;
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

static tide_status read_object(const struct tide_shape *shape, tide_str raw,
                               struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                               struct tide_error *err)
{
    tide_str *items = NULL;
    TIDE_TRY(tide_shape_values(shape, raw, &items, &nested->count, err));
    nested->items = items;
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

static tide_status read_thing(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    tide_str values[2];
    tide_str table = {0};
    TIDE_TRY(read_pair(shape, raw, "table", "id", false, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &table, err));
    tide_str *id = tide_arena_alloc(shape->arena, 1, sizeof(*id));
    *id = values[1];
    *nested = (struct tide_checkpoint_nested){.items = id, .count = 1};
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

static tide_status geometry_type(const struct tide_shape *shape, tide_str raw,
                                 struct tide_error *err)
{
    static const char *const names[] = {
        "point",         "line_string",         "polygon", "multi_point", "multi_line_string",
        "multi_polygon", "geometry_collection",
    };
    tide_str text = {0};
    TIDE_TRY(tide_shape_string(shape, raw, &text, err));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (tide_str_equal(text, tide_str_from(names[i]))) {
            return TIDE_OK;
        }
    }
    return tide_shape_fail(shape, raw, "unknown type of geometry", err);
}

static tide_status read_geometry(const struct tide_shape *shape, tide_str raw,
                                 struct tide_value *ret_value,
                                 struct tide_checkpoint_nested *nested, struct tide_error *err)
{
    tide_str values[2];
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "data", "geometry_type", false, values, err));
    TIDE_TRY(geometry_type(shape, values[1], err));
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

/* The one structure in which unknown keys are refused; nanoseconds may carry into the seconds. */
static tide_status read_duration(const struct tide_shape *shape, tide_str raw,
                                 struct tide_value *ret_value,
                                 struct tide_checkpoint_nested *nested, struct tide_error *err)
{
    tide_str values[2];
    uint64_t secs = 0;
    uint64_t nanos = 0;
    (void)nested;
    TIDE_TRY(read_pair(shape, raw, "secs", "nanos", true, values, err));
    TIDE_TRY(tide_shape_u64(shape, values[0], UINT64_MAX, &secs, err));
    TIDE_TRY(tide_shape_u64(shape, values[1], UINT32_MAX, &nanos, err));
    if (secs > UINT64_MAX - nanos / 1000000000) {
        return tide_shape_fail(shape, raw, "duration too long", err);
    }
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

static tide_status read_zero_temporal(const struct tide_shape *shape, tide_str raw,
                                      struct tide_value *ret_value,
                                      struct tide_checkpoint_nested *nested, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {{.name = "intended_type"},
                                                     {.name = "source", .is_optional = true}};
    static const struct tide_shape_form form = {.fields = fields, .count = 2, .sequence_count = 2};
    tide_str values[2];
    tide_str source = {0};
    (void)nested;
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_checkpoint_type_check(shape, values[0], err));
    if (values[1].ptr != NULL && !tide_shape_is_null(values[1])) {
        TIDE_TRY(tide_shape_string(shape, values[1], &source, err));
    }
    set_json(shape, ret_value, raw);
    return TIDE_OK;
}

const struct tide_checkpoint_variant tide_checkpoint_structs[] = {
    {"Int8", read_int8},    {"Decimal", read_decimal},   {"Char", read_char},
    {"VarChar", read_char}, {"Array", read_array},       {"Set", read_set},
    {"Enum", read_enum},    {"Geometry", read_geometry}, {"Duration", read_duration},
    {"Thing", read_thing},  {"Object", read_object},     {"ZeroTemporal", read_zero_temporal},
    {NULL, NULL},
};

/* Parameters that a type may need, as they are named there. */
enum parameter {
    NONE,
    WIDTH, /* may be missing */
    LENGTH,
    PRECISION_AND_SCALE,
    VALUES,
    GEOMETRY,
    ELEMENT,
};

/* With parameter NONE the name alone is a type too. */
static const struct {
    const char *name;
    enum parameter parameter;
} type_names[] = {
    {"bool", NONE},
    {"tiny_int", WIDTH},
    {"tinyint", WIDTH},
    {"small_int", NONE},
    {"smallint", NONE},
    {"int", NONE},
    {"big_int", NONE},
    {"bigint", NONE},
    {"float", NONE},
    {"double", NONE},
    {"decimal", PRECISION_AND_SCALE},
    {"char", LENGTH},
    {"var_char", LENGTH},
    {"varchar", LENGTH},
    {"text", NONE},
    {"blob", NONE},
    {"bytes", NONE},
    {"date", NONE},
    {"time", NONE},
    {"date_time", NONE},
    {"datetime", NONE},
    {"date_time_nano", NONE},
    {"datetime_nano", NONE},
    {"timestamp_tz", NONE},
    {"timestamptz", NONE},
    {"time_tz", NONE},
    {"timetz", NONE},
    {"uuid", NONE},
    {"ulid", NONE},
    {"json", NONE},
    {"jsonb", NONE},
    {"array", ELEMENT},
    {"set", VALUES},
    {"enum", VALUES},
    {"geometry", GEOMETRY},
    {"duration", NONE},
    {"thing", NONE},
    {"object", NONE},
};

/* Fields of a type's object: its name, then the parameters. */
enum {
    TYPE,
    TYPE_WIDTH,
    TYPE_LENGTH,
    TYPE_PRECISION,
    TYPE_SCALE,
    TYPE_VALUES,
    TYPE_GEOMETRY,
    TYPE_ELEMENT,
    TYPE_FIELDS
};

static tide_status find_type(const struct tide_shape *shape, tide_str raw,
                             enum parameter *ret_parameter, struct tide_error *err)
{
    tide_str name = {0};
    TIDE_TRY(tide_shape_string(shape, raw, &name, err));
    for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++) {
        if (tide_str_equal(name, tide_str_from(type_names[i].name))) {
            *ret_parameter = type_names[i].parameter;
            return TIDE_OK;
        }
    }
    return tide_shape_fail(shape, raw, "unknown type", err);
}

/* `want` fields of a type; those missing are said to be so. */
static tide_status check_parameter(const struct tide_shape *shape, tide_str raw,
                                   enum parameter parameter, const tide_str values[TYPE_FIELDS],
                                   struct tide_error *err)
{
    static const unsigned char first[] = {
        [WIDTH] = TYPE_WIDTH,   [LENGTH] = TYPE_LENGTH,     [PRECISION_AND_SCALE] = TYPE_PRECISION,
        [VALUES] = TYPE_VALUES, [GEOMETRY] = TYPE_GEOMETRY, [ELEMENT] = TYPE_ELEMENT,
    };
    uint64_t number = 0;
    const tide_str *texts = NULL;
    size_t count = 0;
    tide_str value = values[first[parameter]];
    if (parameter == NONE || (parameter == WIDTH && value.ptr == NULL)) {
        return TIDE_OK;
    }
    if (value.ptr == NULL || (parameter == PRECISION_AND_SCALE && values[TYPE_SCALE].ptr == NULL)) {
        return tide_shape_fail(shape, raw, "type without its parameters", err);
    }
    switch (parameter) {
    case WIDTH:
        return tide_shape_u64(shape, value, UINT8_MAX, &number, err);
    case LENGTH:
        return tide_shape_u64(shape, value, UINT16_MAX, &number, err);
    case PRECISION_AND_SCALE:
        TIDE_TRY(tide_shape_u64(shape, value, PRECISION_MAX, &number, err));
        return tide_shape_u64(shape, values[TYPE_SCALE], SCALE_MAX, &number, err);
    case VALUES:
        return tide_shape_strings(shape, value, &texts, &count, err);
    case GEOMETRY:
        return geometry_type(shape, value, err);
    case ELEMENT:
    case NONE:
        break;
    }
    return TIDE_OK;
}

tide_status tide_checkpoint_type_check(const struct tide_shape *shape, tide_str raw,
                                       struct tide_error *err)
{
    static const struct tide_shape_field fields[TYPE_FIELDS] = {
        [TYPE] = {.name = "type"},
        [TYPE_WIDTH] = {.name = "width", .is_optional = true},
        [TYPE_LENGTH] = {.name = "length", .is_optional = true},
        [TYPE_PRECISION] = {.name = "precision", .is_optional = true},
        [TYPE_SCALE] = {.name = "scale", .is_optional = true},
        [TYPE_VALUES] = {.name = "values", .is_optional = true},
        [TYPE_GEOMETRY] = {.name = "geometry_type", .is_optional = true},
        [TYPE_ELEMENT] = {.name = "element_type", .is_optional = true},
    };
    static const struct tide_shape_form form = {.fields = fields, .count = TYPE_FIELDS};
    for (;;) {
        tide_str values[TYPE_FIELDS] = {{0}};
        enum parameter parameter = NONE;
        if (raw.ptr[0] == '"') {
            TIDE_TRY(find_type(shape, raw, &parameter, err));
            return parameter == NONE
                       ? TIDE_OK
                       : tide_shape_fail(shape, raw, "type without its parameters", err);
        }
        TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
        TIDE_TRY(find_type(shape, values[TYPE], &parameter, err));
        TIDE_TRY(check_parameter(shape, raw, parameter, values, err));
        if (parameter != ELEMENT) {
            return TIDE_OK;
        }
        raw = values[TYPE_ELEMENT]; /* an array's element has a type in its turn */
    }
}
