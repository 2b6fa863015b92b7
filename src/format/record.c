#include "format/record.h"

#include "base/status.h"
#include "format/json_writer.h"

static bool is_sent(struct tide_value value)
{
    return value.kind != TIDE_VALUE_UNCHANGED && value.kind != TIDE_VALUE_ABSENT;
}

/* NaN, Infinity and -Infinity are no JSON numbers. */
static bool is_finite_text(tide_str text)
{
    TIDE_ASSERT(text.len > 0);
    char last = text.ptr[text.len - 1];
    return last >= '0' && last <= '9';
}

static void append_number(struct tide_buf *buf, tide_str text)
{
    if (TIDE_LIKELY(is_finite_text(text))) {
        tide_buf_append_str(buf, text);
    } else {
        tide_json_append_string(buf, text);
    }
}

/* As it is, but on one line: inside JSON, raw line ends are only ever white space. */
static void append_embedded(struct tide_buf *buf, tide_str json)
{
    size_t start = buf->len;
    tide_buf_append_str(buf, json);
    if (memchr(json.ptr, '\n', json.len) == NULL && memchr(json.ptr, '\r', json.len) == NULL) {
        return;
    }
    for (size_t i = start; i < buf->len; i++) {
        if (buf->ptr[i] == '\n' || buf->ptr[i] == '\r') {
            buf->ptr[i] = ' ';
        }
    }
}

static void append_raw_text(struct tide_buf *buf, tide_str text)
{
    tide_buf_append_str(buf, TIDE_STR("{\"$text\":"));
    tide_json_append_base64(buf, text);
    tide_buf_append_char(buf, '}');
}

void tide_record_append_value(struct tide_buf *buf, struct tide_value value)
{
    tide_str text = tide_value_str(value);
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_NULL:
        tide_buf_append_str(buf, TIDE_STR("null"));
        break;
    case TIDE_VALUE_BOOL:
    case TIDE_VALUE_INTEGER:
        TIDE_ASSERT(text.len > 0);
        tide_buf_append_str(buf, text);
        break;
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_REAL:
        append_number(buf, text);
        break;
    case TIDE_VALUE_TEXT:
        tide_json_append_string(buf, text);
        break;
    case TIDE_VALUE_RAW_TEXT:
        append_raw_text(buf, text);
        break;
    case TIDE_VALUE_BYTES:
        tide_json_append_base64(buf, text);
        break;
    case TIDE_VALUE_JSON:
        TIDE_ASSERT(text.len > 0);
        append_embedded(buf, text);
        break;
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
    default:
        TIDE_ASSERT(is_sent(value) && value.kind <= TIDE_VALUE_JSON);
    }
}

static void append_member(struct tide_buf *buf, tide_str name, struct tide_value value)
{
    tide_json_append_key(buf, name);
    tide_record_append_value(buf, value);
    tide_buf_append_char(buf, ',');
}

/* Turns the comma after the last item into the closing bracket. */
static void close_with(struct tide_buf *buf, size_t start, char bracket)
{
    if (buf->len > start + 1) {
        buf->ptr[buf->len - 1] = bracket;
    } else {
        tide_buf_append_char(buf, bracket);
    }
}

void tide_record_append(struct tide_buf *buf, const struct tide_relation *relation,
                        const struct tide_value *values)
{
    size_t start = buf->len;
    tide_buf_append_char(buf, '{');
    for (size_t i = 0; i < relation->column_count; i++) {
        if (TIDE_LIKELY(is_sent(values[i]))) {
            append_member(buf, relation->columns[i].name, values[i]);
        }
    }
    close_with(buf, start, '}');
}

void tide_record_append_key(struct tide_buf *buf, const struct tide_relation *relation,
                            const struct tide_value *key)
{
    size_t start = buf->len;
    tide_buf_append_char(buf, '{');
    for (size_t i = 0; i < relation->key_count; i++) {
        if (is_sent(key[i])) {
            append_member(buf, relation->columns[relation->key_columns[i]].name, key[i]);
        }
    }
    close_with(buf, start, '}');
}

void tide_record_append_row_key(struct tide_buf *buf, const struct tide_relation *relation,
                                const struct tide_value *key)
{
    size_t start = buf->len;
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < relation->key_count; i++) {
        if (is_sent(key[i])) {
            tide_record_append_value(buf, key[i]);
            tide_buf_append_char(buf, ',');
        }
    }
    close_with(buf, start, ']');
}
