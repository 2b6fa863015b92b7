#include "format/json_shape.h"

#include "base/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longer numbers are refused where a double is wanted: serde reads any, but nobody writes them. */
#define DOUBLE_LEN_MAX 1100

tide_status tide_shape_fail(const struct tide_shape *shape, tide_str raw, const char *wanted,
                            struct tide_error *err)
{
    size_t at = raw.ptr == NULL ? 0 : (size_t)(raw.ptr - shape->document);
    return tide_fail(err, TIDE_CORRUPT, "%s at byte %zu", wanted, at);
}

/* Opens `raw` and takes its first token. */
static tide_status begin(tide_str raw, struct tide_json_reader *reader,
                         struct tide_json_token *ret_token, struct tide_error *err)
{
    tide_json_reader_init(reader, raw, TIDE_JSON_DEPTH_MAX);
    return tide_json_next(reader, ret_token, err);
}

static tide_status find_field(const struct tide_shape *shape, const struct tide_shape_form *form,
                              const struct tide_json_token *key, size_t *ret_index,
                              struct tide_error *err)
{
    tide_str name = tide_json_unescape(key, shape->arena);
    for (size_t i = 0; i < form->count; i++) {
        const struct tide_shape_field *field = &form->fields[i];
        if (tide_str_equal(name, tide_str_from(field->name)) ||
            (field->alias != NULL && tide_str_equal(name, tide_str_from(field->alias)))) {
            *ret_index = i;
            return TIDE_OK;
        }
    }
    if (form->refuse_unknown) {
        return tide_shape_fail(shape, key->text, "unknown key", err);
    }
    *ret_index = form->count;
    return TIDE_OK;
}

static tide_status object_fields(const struct tide_shape *shape, struct tide_json_reader *reader,
                                 const struct tide_shape_form *form, tide_str *values,
                                 struct tide_error *err)
{
    for (;;) {
        struct tide_json_token key = {0};
        TIDE_TRY(tide_json_next(reader, &key, err));
        if (key.type == TIDE_JSON_OBJECT_END) {
            return TIDE_OK;
        }
        size_t index = 0;
        tide_str value = {0};
        TIDE_TRY(find_field(shape, form, &key, &index, err));
        TIDE_TRY(tide_json_skip(reader, &value, err));
        if (index == form->count) {
            continue;
        }
        if (values[index].ptr != NULL) {
            return tide_fail(err, TIDE_CORRUPT, "repeated key `%s` at byte %zu",
                             form->fields[index].name, (size_t)(key.text.ptr - shape->document));
        }
        values[index] = value;
    }
}

static tide_status array_fields(const struct tide_shape *shape, struct tide_json_reader *reader,
                                tide_str raw, const struct tide_shape_form *form, tide_str *values,
                                struct tide_error *err)
{
    for (size_t i = 0;; i++) {
        struct tide_json_token token = {0};
        TIDE_TRY(tide_json_next(reader, &token, err));
        bool is_end = token.type == TIDE_JSON_ARRAY_END;
        if (is_end || i == form->sequence_count) {
            return is_end && i == form->sequence_count
                       ? TIDE_OK
                       : tide_shape_fail(shape, raw, "array of the wrong length", err);
        }
        TIDE_TRY(tide_json_skip_rest(reader, &token, &values[i], err));
    }
}

tide_status tide_shape_fields(const struct tide_shape *shape, tide_str raw,
                              const struct tide_shape_form *form, tide_str *ret_values,
                              struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    for (size_t i = 0; i < form->count; i++) {
        ret_values[i] = (tide_str){0};
    }
    TIDE_TRY(begin(raw, &reader, &token, err));
    if (token.type == TIDE_JSON_ARRAY_BEGIN && form->sequence_count > 0) {
        return array_fields(shape, &reader, raw, form, ret_values, err);
    }
    if (token.type != TIDE_JSON_OBJECT_BEGIN) {
        return tide_shape_fail(shape, raw, "no object", err);
    }
    TIDE_TRY(object_fields(shape, &reader, form, ret_values, err));
    for (size_t i = 0; i < form->count; i++) {
        if (ret_values[i].ptr == NULL && !form->fields[i].is_optional) {
            return tide_fail(err, TIDE_CORRUPT, "missing key `%s` in the object at byte %zu",
                             form->fields[i].name, (size_t)(raw.ptr - shape->document));
        }
    }
    return TIDE_OK;
}

/* A growing array of slices in the arena: doubling leaves at most as much behind as it holds. */
struct slices {
    tide_str *items;
    size_t count;
    size_t cap;
};

static tide_status slices_add(const struct tide_shape *shape, struct slices *slices, tide_str item,
                              struct tide_error *err)
{
    if (slices->count == TIDE_SHAPE_ITEMS_MAX) {
        return tide_shape_fail(shape, item, "too many elements", err);
    }
    if (slices->count == slices->cap) {
        size_t cap = slices->cap == 0 ? 4 : slices->cap * 2;
        tide_str *items = tide_arena_alloc(shape->arena, cap, sizeof(*items));
        if (slices->count > 0) {
            memcpy(items, slices->items, slices->count * sizeof(*items));
        }
        slices->items = items;
        slices->cap = cap;
    }
    slices->items[slices->count++] = item;
    return TIDE_OK;
}

tide_status tide_shape_items(const struct tide_shape *shape, tide_str raw, tide_str **ret_items,
                             size_t *ret_count, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct slices slices = {0};
    TIDE_TRY(begin(raw, &reader, &token, err));
    if (token.type != TIDE_JSON_ARRAY_BEGIN) {
        return tide_shape_fail(shape, raw, "no array", err);
    }
    for (;;) {
        tide_str item = {0};
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            break;
        }
        TIDE_TRY(tide_json_skip_rest(&reader, &token, &item, err));
        TIDE_TRY(slices_add(shape, &slices, item, err));
    }
    *ret_items = slices.items;
    *ret_count = slices.count;
    return TIDE_OK;
}

tide_status tide_shape_values(const struct tide_shape *shape, tide_str raw, tide_str **ret_items,
                              size_t *ret_count, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct slices slices = {0};
    TIDE_TRY(begin(raw, &reader, &token, err));
    if (token.type != TIDE_JSON_OBJECT_BEGIN) {
        return tide_shape_fail(shape, raw, "no object", err);
    }
    for (;;) {
        tide_str item = {0};
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            break;
        }
        TIDE_TRY(tide_json_skip(&reader, &item, err));
        TIDE_TRY(slices_add(shape, &slices, item, err));
    }
    *ret_items = slices.items;
    *ret_count = slices.count;
    return TIDE_OK;
}

tide_status tide_shape_string(const struct tide_shape *shape, tide_str raw, tide_str *ret_text,
                              struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    TIDE_TRY(begin(raw, &reader, &token, err));
    if (token.type != TIDE_JSON_STRING) {
        return tide_shape_fail(shape, raw, "no string", err);
    }
    *ret_text = tide_json_unescape(&token, shape->arena);
    return TIDE_OK;
}

tide_status tide_shape_strings(const struct tide_shape *shape, tide_str raw,
                               const tide_str **ret_texts, size_t *ret_count,
                               struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(tide_shape_string(shape, items[i], &items[i], err));
    }
    *ret_texts = items;
    *ret_count = count;
    return TIDE_OK;
}

tide_status tide_shape_bool(const struct tide_shape *shape, tide_str raw, bool *ret_value,
                            struct tide_error *err)
{
    if (tide_str_equal(raw, TIDE_STR("true"))) {
        *ret_value = true;
    } else if (tide_str_equal(raw, TIDE_STR("false"))) {
        *ret_value = false;
    } else {
        return tide_shape_fail(shape, raw, "neither true nor false", err);
    }
    return TIDE_OK;
}

tide_status tide_shape_u64(const struct tide_shape *shape, tide_str raw, uint64_t max,
                           uint64_t *ret_value, struct tide_error *err)
{
    uint64_t value = 0;
    if (!tide_str_to_u64(raw, &value) || value > max) {
        return tide_shape_fail(shape, raw, "no unsigned integer within bounds", err);
    }
    *ret_value = value;
    return TIDE_OK;
}

tide_status tide_shape_i64(const struct tide_shape *shape, tide_str raw, int64_t min, int64_t max,
                           struct tide_error *err)
{
    int64_t value = 0;
    bool is_minus_zero = tide_str_equal(raw, TIDE_STR("-0")); /* a float to serde */
    if (is_minus_zero || !tide_str_to_i64(raw, &value) || value < min || value > max) {
        return tide_shape_fail(shape, raw, "no integer within bounds", err);
    }
    return TIDE_OK;
}

/* RFC 8259, section 6, all of `s`. */
static bool is_number(tide_str s)
{
    struct tide_error ignored;
    bool starts = s.len > 0 && (s.ptr[0] == '-' || (s.ptr[0] >= '0' && s.ptr[0] <= '9'));
    bool ends = s.len > 0 && s.ptr[s.len - 1] >= '0' && s.ptr[s.len - 1] <= '9';
    return starts && ends && tide_json_check(s, 1, &ignored) == TIDE_OK;
}

bool tide_shape_is_double(tide_str raw)
{
    char text[DOUBLE_LEN_MAX + 1];
    if (raw.len > DOUBLE_LEN_MAX || !is_number(raw)) {
        return false;
    }
    memcpy(text, raw.ptr, raw.len);
    text[raw.len] = '\0';
    return isfinite(strtod(text, NULL));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Copies without white space outside strings; `to` NULL only counts. */
static size_t squeeze(tide_str raw, char *to)
{
    size_t len = 0;
    bool in_string = false;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (!in_string && is_space(c)) {
            continue;
        }
        bool escape = in_string && c == '\\';
        if (c == '"') {
            in_string = !in_string;
        }
        for (size_t n = escape ? 2 : 1; n > 0; n--, len++) {
            if (to != NULL) {
                to[len] = raw.ptr[i + (escape && n == 1)];
            }
        }
        i += escape;
    }
    return len;
}

tide_str tide_shape_compact(struct tide_arena *arena, tide_str raw)
{
    size_t len = squeeze(raw, NULL);
    if (len == raw.len) {
        return raw;
    }
    char *to = tide_arena_bytes(arena, len);
    (void)squeeze(raw, to);
    return (tide_str){to, len};
}
