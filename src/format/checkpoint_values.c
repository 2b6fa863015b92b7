/*
 * Typed key values: `{"type":"Int64","value":42}`.
 *
 *     kind        compatible part             under our own key, when that is not exact
 *     BOOL        Bool
 *     INTEGER     Int64                       Tidemark integer: beyond 64 bits with a sign
 *     REAL        Float64                     Tidemark real: not finite
 *     DECIMAL     Decimal, precision 38       Tidemark decimal: NaN, infinite, more digits
 *     TEXT        Text
 *     BYTES       Bytes
 *     NULL        Null
 *     RAW_TEXT    Bytes                       Tidemark raw_text, in base 64
 *     JSON        Text                        Tidemark json
 *     ABSENT      Null                        Tidemark absent
 *     UNCHANGED   Null                        Tidemark unchanged
 *
 * What has no exact form in the compatible part goes there as Text.
 */
#include "base/base64.h"
#include "format/checkpoint_private.h"
#include "format/json_writer.h"

#include <string.h>

#define DECIMAL_DIGITS_MAX 38

static const char *const own_kinds[] = {
    [TIDE_VALUE_UNCHANGED] = "unchanged", [TIDE_VALUE_ABSENT] = "absent",
    [TIDE_VALUE_INTEGER] = "integer",     [TIDE_VALUE_DECIMAL] = "decimal",
    [TIDE_VALUE_REAL] = "real",           [TIDE_VALUE_RAW_TEXT] = "raw_text",
    [TIDE_VALUE_JSON] = "json",
};

#define OWN_KINDS (sizeof(own_kinds) / sizeof(own_kinds[0]))

/* -1 when the text is no plain decimal of at most 38 digits, else its digits after the point. */
static int decimal_scale(tide_str text)
{
    size_t digits = 0;
    size_t scale = 0;
    bool has_point = false;
    for (size_t i = text.len > 0 && text.ptr[0] == '-'; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && !has_point && digits > 0) {
            has_point = true;
        } else if (c >= '0' && c <= '9') {
            digits++;
            scale += has_point;
        } else {
            return -1;
        }
    }
    return digits == 0 || digits > DECIMAL_DIGITS_MAX || (has_point && scale == 0) ? -1
                                                                                   : (int)scale;
}

static bool is_int64(tide_str text)
{
    int64_t ignored = 0;
    return tide_str_to_i64(text, &ignored) && !tide_str_equal(text, TIDE_STR("-0"));
}

static void append_scalar(struct tide_buf *buf, const char *type, tide_str raw)
{
    tide_buf_append_str(buf, TIDE_STR("{\"type\":\""));
    tide_buf_append_str(buf, tide_str_from(type));
    tide_buf_append_str(buf, TIDE_STR("\",\"value\":"));
    tide_buf_append_str(buf, raw);
    tide_buf_append_char(buf, '}');
}

static void append_text(struct tide_buf *buf, tide_str text)
{
    append_scalar(buf, "Text", (tide_str){0});
    buf->len--;
    tide_json_append_string(buf, text);
    tide_buf_append_char(buf, '}');
}

static void append_bytes(struct tide_buf *buf, tide_str bytes)
{
    append_scalar(buf, "Bytes", TIDE_STR("["));
    buf->len--;
    for (size_t i = 0; i < bytes.len; i++) {
        if (i > 0) {
            tide_buf_append_char(buf, ',');
        }
        tide_buf_append_u64(buf, (unsigned char)bytes.ptr[i]);
    }
    tide_buf_append_str(buf, TIDE_STR("]}"));
}

static void append_decimal(struct tide_buf *buf, tide_str text, int scale)
{
    append_scalar(buf, "Decimal", TIDE_STR("{\"value\":"));
    buf->len--;
    tide_json_append_string(buf, text);
    tide_buf_printf(buf, ",\"precision\":%d,\"scale\":%d}}", DECIMAL_DIGITS_MAX, scale);
}

static void append_own(struct tide_buf *buf, struct tide_value value)
{
    append_scalar(buf, "Tidemark", TIDE_STR("{\"kind\":\""));
    buf->len--;
    tide_buf_append_str(buf, tide_str_from(own_kinds[value.kind]));
    tide_buf_append_str(buf, TIDE_STR("\",\"text\":"));
    if (value.kind == TIDE_VALUE_RAW_TEXT) {
        tide_json_append_base64(buf, tide_value_str(value));
    } else {
        tide_json_append_string(buf, tide_value_str(value));
    }
    tide_buf_append_str(buf, TIDE_STR("}}"));
}

/* What has no exact form in the compatible part. */
static void append_inexact(struct tide_buf *buf, struct tide_value value, bool is_exact)
{
    if (is_exact) {
        append_own(buf, value);
    } else if (value.kind == TIDE_VALUE_RAW_TEXT) {
        append_bytes(buf, tide_value_str(value));
    } else if (value.kind == TIDE_VALUE_ABSENT || value.kind == TIDE_VALUE_UNCHANGED) {
        tide_buf_append_str(buf, TIDE_STR("{\"type\":\"Null\"}"));
    } else {
        append_text(buf, tide_value_str(value));
    }
}

void tide_checkpoint_value_append(struct tide_buf *buf, struct tide_value value, bool is_exact)
{
    tide_str text = tide_value_str(value);
    int scale = value.kind == TIDE_VALUE_DECIMAL ? decimal_scale(text) : -1;
    if (value.kind == TIDE_VALUE_NULL) {
        tide_buf_append_str(buf, TIDE_STR("{\"type\":\"Null\"}"));
    } else if (value.kind == TIDE_VALUE_BOOL) {
        TIDE_ASSERT(tide_str_equal(text, TIDE_STR("true")) ||
                    tide_str_equal(text, TIDE_STR("false")));
        append_scalar(buf, "Bool", text);
    } else if (value.kind == TIDE_VALUE_TEXT) {
        append_text(buf, text);
    } else if (value.kind == TIDE_VALUE_BYTES) {
        append_bytes(buf, text);
    } else if (value.kind == TIDE_VALUE_INTEGER && is_int64(text)) {
        append_scalar(buf, "Int64", text);
    } else if (value.kind == TIDE_VALUE_REAL && tide_shape_is_double(text)) {
        append_scalar(buf, "Float64", text);
    } else if (scale >= 0) {
        append_decimal(buf, text, scale);
    } else {
        append_inexact(buf, value, is_exact);
    }
}

static const struct tide_shape_field value_fields[] = {{.name = "type"},
                                                       {.name = "value", .is_optional = true}};
static const struct tide_shape_form value_form = {
    .fields = value_fields, .count = 2, .sequence_count = 2};

static tide_status read_own(const struct tide_shape *shape, tide_str raw,
                            struct tide_value *ret_value, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {{.name = "kind"}, {.name = "text"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 2};
    tide_str values[2];
    tide_str kind = {0};
    tide_str text = {0};
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &kind, err));
    TIDE_TRY(tide_shape_string(shape, values[1], &text, err));
    for (size_t i = 0; i < OWN_KINDS; i++) {
        if (own_kinds[i] == NULL || !tide_str_equal(kind, tide_str_from(own_kinds[i]))) {
            continue;
        }
        if (i == TIDE_VALUE_RAW_TEXT && !tide_base64_decode(text, shape->arena, &text)) {
            return tide_shape_fail(shape, values[1], "no base 64", err);
        }
        *ret_value = (struct tide_value){text.ptr, (uint32_t)text.len, (uint8_t)i};
        return TIDE_OK;
    }
    return tide_shape_fail(shape, values[0], "unknown kind of value", err);
}

static const struct tide_checkpoint_variant *find_variant(tide_str name)
{
    const struct tide_checkpoint_variant *const tables[] = {tide_checkpoint_scalars,
                                                            tide_checkpoint_structs};
    for (size_t i = 0; i < 2; i++) {
        for (const struct tide_checkpoint_variant *at = tables[i]; at->name != NULL; at++) {
            if (tide_str_equal(name, tide_str_from(at->name))) {
                return at;
            }
        }
    }
    return NULL;
}

/* One value, without those nested in it. */
static tide_status read_flat(const struct tide_shape *shape, tide_str raw, bool is_exact,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    tide_str fields[2];
    tide_str type = {0};
    TIDE_TRY(tide_shape_fields(shape, raw, &value_form, fields, err));
    TIDE_TRY(tide_shape_string(shape, fields[0], &type, err));
    if (fields[1].ptr == NULL && !tide_str_equal(type, TIDE_STR("Null"))) {
        return tide_shape_fail(shape, raw, "missing key `value` in the object", err);
    }
    if (is_exact && tide_str_equal(type, TIDE_STR("Tidemark"))) {
        return read_own(shape, fields[1], ret_value, err);
    }
    const struct tide_checkpoint_variant *variant = find_variant(type);
    return variant == NULL ? tide_shape_fail(shape, fields[0], "unknown type of value", err)
                           : variant->read(shape, fields[1], ret_value, nested, err);
}

/* Lists of values still to be checked: a list instead of recursion. */
struct pending {
    struct tide_checkpoint_nested nested;
    struct pending *next;
};

static struct pending *push(struct tide_arena *arena, struct pending *top,
                            struct tide_checkpoint_nested nested)
{
    if (nested.count == 0) {
        return top;
    }
    struct pending *more = tide_arena_alloc(arena, 1, sizeof(*more));
    *more = (struct pending){nested, top};
    return more;
}

tide_status tide_checkpoint_value_read(const struct tide_shape *shape, tide_str raw, bool is_exact,
                                       struct tide_value *ret_value, struct tide_error *err)
{
    struct tide_value value = {0};
    struct tide_checkpoint_nested nested = {0};
    TIDE_TRY(read_flat(shape, raw, is_exact, &value, &nested, err));
    struct pending *top = push(shape->arena, NULL, nested);
    while (top != NULL) {
        struct tide_value ignored;
        tide_str item = top->nested.items[--top->nested.count];
        if (top->nested.count == 0) {
            top = top->next;
        }
        nested = (struct tide_checkpoint_nested){0};
        TIDE_TRY(read_flat(shape, item, false, &ignored, &nested, err));
        top = push(shape->arena, top, nested);
    }
    *ret_value = value;
    return TIDE_OK;
}

void tide_checkpoint_key_append(struct tide_buf *buf, const struct tide_checkpoint_key *key,
                                bool is_exact)
{
    if (key->count == 0) {
        tide_buf_append_str(buf, TIDE_STR("null"));
        return;
    }
    for (size_t i = 0; i < key->count; i++) {
        tide_buf_append_char(buf, i == 0 ? '[' : ',');
        tide_checkpoint_value_append(buf, key->values[i], is_exact);
    }
    tide_buf_append_char(buf, ']');
}

tide_status tide_checkpoint_key_read(const struct tide_shape *shape, tide_str raw, bool is_exact,
                                     struct tide_checkpoint_key *ret_key, struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    if (!tide_shape_is_null(raw)) {
        TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    }
    struct tide_value *values =
        count == 0 ? NULL : tide_arena_alloc(shape->arena, count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(tide_checkpoint_value_read(shape, items[i], is_exact, &values[i], err));
    }
    *ret_key = (struct tide_checkpoint_key){values, count};
    return TIDE_OK;
}

tide_status tide_checkpoint_key_decode(tide_str json, struct tide_arena *arena,
                                       struct tide_checkpoint_key *ret_key, struct tide_error *err)
{
    struct tide_json_reader reader;
    tide_str raw = {0};
    if (json.len > TIDE_CHECKPOINT_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "key is larger than %zu bytes",
                         TIDE_CHECKPOINT_BYTES_MAX);
    }
    TIDE_TRY(tide_json_check(json, TIDE_CHECKPOINT_DEPTH_MAX, err));
    tide_json_reader_init(&reader, json, TIDE_CHECKPOINT_DEPTH_MAX);
    TIDE_TRY(tide_json_skip(&reader, &raw, err));
    struct tide_shape shape = {.document = json.ptr, .arena = arena};
    return tide_checkpoint_key_read(&shape, raw, false, ret_key, err);
}
