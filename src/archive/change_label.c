#include "archive/change_label.h"

#include "base/base64.h"
#include "base/status.h"

#define KIND_COUNT (TIDE_VALUE_JSON + 1)

struct kind_label {
    tide_str plain;
    tide_str base64; /* for text that is not UTF-8 */
};

#define LABELS(name)                                                                               \
    {                                                                                              \
        {name, sizeof(name) - 1},                                                                  \
        {                                                                                          \
            name ";base64", sizeof(name ";base64") - 1                                             \
        }                                                                                          \
    }

static const struct kind_label labels[KIND_COUNT] = {
    [TIDE_VALUE_NULL] = LABELS("null"),       [TIDE_VALUE_UNCHANGED] = LABELS("unchanged"),
    [TIDE_VALUE_ABSENT] = LABELS("absent"),   [TIDE_VALUE_BOOL] = LABELS("bool"),
    [TIDE_VALUE_INTEGER] = LABELS("integer"), [TIDE_VALUE_DECIMAL] = LABELS("decimal"),
    [TIDE_VALUE_REAL] = LABELS("real"),       [TIDE_VALUE_TEXT] = LABELS("text"),
    [TIDE_VALUE_RAW_TEXT] = LABELS("raw"),    [TIDE_VALUE_BYTES] = LABELS("bytes"),
    [TIDE_VALUE_JSON] = LABELS("json"),
};

static bool has_text(uint8_t kind)
{
    return kind > TIDE_VALUE_ABSENT;
}

/* Always base64, which goes without saying. */
static bool is_binary(uint8_t kind)
{
    return kind == TIDE_VALUE_BYTES || kind == TIDE_VALUE_RAW_TEXT;
}

static bool is_told_base64(struct tide_value value)
{
    return has_text(value.kind) && !is_binary(value.kind) &&
           !tide_str_is_utf8(tide_value_str(value));
}

tide_str tide_change_label_kind(struct tide_value value)
{
    TIDE_ASSERT(value.kind < KIND_COUNT);
    return is_told_base64(value) ? labels[value.kind].base64 : labels[value.kind].plain;
}

void tide_change_label_append_text(struct tide_buf *buf, struct tide_value value)
{
    if (is_binary(value.kind) || is_told_base64(value)) {
        tide_base64_append(buf, tide_value_str(value));
    } else if (has_text(value.kind)) {
        tide_buf_append_str(buf, tide_value_str(value));
    }
}

void tide_change_label_append(struct tide_buf *buf, struct tide_value value)
{
    tide_buf_append_str(buf, tide_change_label_kind(value));
    if (has_text(value.kind)) {
        tide_buf_append_char(buf, ':');
        tide_change_label_append_text(buf, value);
    }
}

static bool find_kind(tide_str kind, uint8_t *ret_kind, bool *ret_is_base64)
{
    for (size_t at = 0; at < KIND_COUNT; at++) {
        uint8_t i = (uint8_t)at;
        bool is_told = tide_str_equal(kind, labels[i].base64) && has_text(i) && !is_binary(i);
        if (is_told || tide_str_equal(kind, labels[i].plain)) {
            *ret_kind = i;
            *ret_is_base64 = is_told || is_binary(i);
            return true;
        }
    }
    return false;
}

bool tide_change_label_join(tide_str kind, tide_str text, struct tide_arena *arena,
                            struct tide_value *ret_value)
{
    struct tide_value value = {0};
    bool is_base64 = false;
    if (!find_kind(kind, &value.kind, &is_base64) || (!has_text(value.kind) && text.len > 0) ||
        (is_base64 && !tide_base64_decode(text, arena, &text)) || text.len > UINT32_MAX) {
        return false;
    }
    if (has_text(value.kind)) {
        value.ptr = text.ptr;
        value.len = (uint32_t)text.len;
    }
    *ret_value = value;
    return true;
}

bool tide_change_label_parse(tide_str label, struct tide_arena *arena, struct tide_value *ret_value)
{
    const char *colon = label.len == 0 ? NULL : memchr(label.ptr, ':', label.len);
    tide_str kind = label;
    tide_str text = {0};
    if (colon != NULL) {
        kind.len = (size_t)(colon - label.ptr);
        text = tide_str_of(colon + 1, label.len - kind.len - 1);
    }
    struct tide_value value = {0};
    if (!tide_change_label_join(kind, text, arena, &value) ||
        has_text(value.kind) != (colon != NULL)) {
        return false;
    }
    *ret_value = value;
    return true;
}
