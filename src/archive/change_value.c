#include "archive/change_value.h"

#include "format/json_reader.h"

static bool is_word(tide_str text, const char *a, const char *b, const char *c)
{
    return tide_str_equal(text, tide_str_from(a)) || tide_str_equal(text, tide_str_from(b)) ||
           tide_str_equal(text, tide_str_from(c));
}

static size_t digits(tide_str text, size_t at)
{
    size_t end = at;
    while (end < text.len && text.ptr[end] >= '0' && text.ptr[end] <= '9') {
        end++;
    }
    return end - at;
}

/* Digits, without zeros before them. */
static size_t whole(tide_str text, size_t at)
{
    size_t count = digits(text, at);
    return count > 1 && text.ptr[at] == '0' ? 0 : count;
}

static bool is_integer(tide_str text)
{
    size_t sign = text.len > 0 && text.ptr[0] == '-';
    size_t count = whole(text, sign);
    return count > 0 && sign + count == text.len;
}

static bool is_number(tide_str text)
{
    size_t at = text.len > 0 && text.ptr[0] == '-';
    size_t count = whole(text, at);
    bool is_sound = count > 0;
    at += count;
    if (at < text.len && text.ptr[at] == '.') {
        count = digits(text, ++at);
        is_sound = is_sound && count > 0;
        at += count;
    }
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        at += at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+');
        count = digits(text, at);
        is_sound = is_sound && count > 0;
        at += count;
    }
    return is_sound && at == text.len;
}

static bool is_json(tide_str text)
{
    struct tide_error ignored;
    return tide_json_check(text, TIDE_JSON_DEPTH_MAX, &ignored) == TIDE_OK;
}

static bool is_sound(struct tide_value value)
{
    tide_str text = tide_value_str(value);
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_BOOL:
        return is_word(text, "true", "false", "false");
    case TIDE_VALUE_INTEGER:
        return is_integer(text);
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_REAL:
        return is_number(text) || is_word(text, "NaN", "Infinity", "-Infinity");
    case TIDE_VALUE_TEXT:
        return tide_str_is_utf8(text);
    case TIDE_VALUE_JSON:
        return is_json(text);
    case TIDE_VALUE_NULL:
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
    case TIDE_VALUE_RAW_TEXT:
    case TIDE_VALUE_BYTES:
        return true;
    default:
        return false;
    }
}

bool tide_change_values_are_sound(const struct tide_value *values, size_t count)
{
    for (size_t i = 0; values != NULL && i < count; i++) {
        if (!is_sound(values[i])) {
            return false;
        }
    }
    return true;
}
