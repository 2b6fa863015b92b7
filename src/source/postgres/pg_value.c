#include "source/postgres/pg_value.h"

#include "base/limits.h"
#include "format/json_reader.h"
#include "source/postgres/pg_rule.h"

static struct tide_value value_of(tide_str text, enum tide_value_kind kind)
{
    return (struct tide_value){text.ptr, (uint32_t)text.len, (uint8_t)kind};
}

static tide_status fail_text(const char *what, tide_str text, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT,
                     "value of %zu bytes from PostgreSQL is no text of %s: the table's types and "
                     "the connection are not in step",
                     text.len, what);
}

static struct tide_value text_value(tide_str text)
{
    return value_of(text, tide_str_is_utf8(text) ? TIDE_VALUE_TEXT : TIDE_VALUE_RAW_TEXT);
}

static tide_status bool_value(tide_str text, struct tide_value *ret_value, struct tide_error *err)
{
    if (text.len != 1 || (text.ptr[0] != 't' && text.ptr[0] != 'f')) {
        return fail_text("a boolean", text, err);
    }
    tide_str word = text.ptr[0] == 't' ? TIDE_STR("true") : TIDE_STR("false");
    *ret_value = value_of(word, TIDE_VALUE_BOOL);
    return TIDE_OK;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p)) {
        p++;
    }
    return p;
}

/* The end of JSON's `-? int` at the start of `text`, or NULL when there is none. */
static inline const char *skip_integer(tide_str text)
{
    const char *p = text.ptr;
    const char *end = p + text.len;
    if (p < end && *p == '-') {
        p++;
    }
    const char *digits = p;
    p = skip_digits(p, end);
    bool is_integer = p > digits && (*digits != '0' || p == digits + 1);
    return is_integer ? p : NULL;
}

static tide_status integer_value(tide_str text, struct tide_value *ret_value,
                                 struct tide_error *err)
{
    const char *end = skip_integer(text);
    if (end == NULL || end != text.ptr + text.len) {
        return fail_text("an integer", text, err);
    }
    *ret_value = value_of(text, TIDE_VALUE_INTEGER);
    return TIDE_OK;
}

/* `e+20` and the like; `p` itself when there is none or it is not whole. */
static const char *skip_exponent(const char *p, const char *end)
{
    if (p == end || (*p != 'e' && *p != 'E')) {
        return p;
    }
    const char *digits = p + 1;
    if (digits < end && (*digits == '+' || *digits == '-')) {
        digits++;
    }
    const char *after = skip_digits(digits, end);
    return after > digits ? after : p;
}

static bool is_json_number(tide_str text)
{
    const char *end = text.ptr + text.len;
    const char *p = skip_integer(text);
    if (p == NULL) {
        return false;
    }
    if (p < end && *p == '.') {
        const char *digits = p + 1;
        p = skip_digits(digits, end);
        if (p == digits) {
            return false;
        }
    }
    return skip_exponent(p, end) == end;
}

static bool is_special_number(tide_str text)
{
    return tide_str_equal(text, TIDE_STR("NaN")) || tide_str_equal(text, TIDE_STR("Infinity")) ||
           tide_str_equal(text, TIDE_STR("-Infinity"));
}

static tide_status number_value(tide_str text, enum tide_value_kind kind,
                                struct tide_value *ret_value, struct tide_error *err)
{
    if (TIDE_UNLIKELY(!is_json_number(text)) && !is_special_number(text)) {
        return fail_text("a number", text, err);
    }
    *ret_value = value_of(text, kind);
    return TIDE_OK;
}

/* The server takes some texts for json that strict readers refuse: they go out as text. */
static struct tide_value json_value(tide_str text)
{
    struct tide_error ignored;
    if (tide_json_check(text, TIDE_PG_JSON_DEPTH_MAX, &ignored) != TIDE_OK) {
        return text_value(text);
    }
    return value_of(text, TIDE_VALUE_JSON);
}

/* Above 15: no hex digit. */
static inline unsigned hex_digit(char c)
{
    if (is_digit(c)) {
        return (unsigned)(c - '0');
    }
    unsigned letter = (unsigned)((c | 0x20) - 'a');
    return letter < 6 ? letter + 10 : 16;
}

/* Reads ahead of where it writes, so `bytes` may be text.ptr. */
static tide_status bytes_value(tide_str text, char *bytes, struct tide_value *ret_value,
                               struct tide_error *err)
{
    if (text.len % 2 != 0 || !tide_str_starts_with(text, TIDE_STR("\\x"))) {
        return fail_text("a bytea in hex", text, err);
    }
    size_t len = text.len / 2 - 1;
    const char *hex = text.ptr + 2;
    unsigned bad = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned high = hex_digit(hex[2 * i]);
        unsigned low = hex_digit(hex[2 * i + 1]);
        bad |= high | low;
        bytes[i] = (char)(unsigned char)(high << 4 | low);
    }
    if (bad > 15) {
        return fail_text("a bytea in hex", text, err);
    }
    *ret_value = value_of(tide_str_of(bytes, len), TIDE_VALUE_BYTES);
    return TIDE_OK;
}

/* ISO 8601 has a T between day and time where the server writes a space: `2026-11-29T13:40:55+00`.
 * Years past 9999, BC and infinity stay as the server writes them; it reads the T as well. */
static size_t space_before_time(tide_str text)
{
    const char *space = text.len == 0 ? NULL : memchr(text.ptr, ' ', text.len);
    size_t at = space == NULL ? text.len : (size_t)(space - text.ptr);
    return at + 1 < text.len && is_digit(text.ptr[at + 1]) ? at : text.len;
}

static struct tide_value timestamp_value(tide_str text, char *bytes)
{
    size_t at = space_before_time(text);
    if (at == text.len) {
        return text_value(text);
    }
    TIDE_ASSERT(bytes != NULL);
    memmove(bytes, text.ptr, text.len);
    bytes[at] = 'T';
    return text_value(tide_str_of(bytes, text.len));
}

static struct tide_value timestamp_in_arena(tide_str text, struct tide_arena *arena)
{
    bool is_rewritten = space_before_time(text) < text.len;
    return timestamp_value(text, is_rewritten ? tide_arena_bytes(arena, text.len) : NULL);
}

tide_status tide_pg_scalar_value(enum tide_pg_rule_kind kind, tide_str text, char *bytes,
                                 struct tide_value *ret_value, struct tide_error *err)
{
    switch (kind) {
    case TIDE_PG_RULE_TEXT:
        *ret_value = text_value(text);
        return TIDE_OK;
    case TIDE_PG_RULE_BOOL:
        return bool_value(text, ret_value, err);
    case TIDE_PG_RULE_INTEGER:
        return integer_value(text, ret_value, err);
    case TIDE_PG_RULE_DECIMAL:
        return number_value(text, TIDE_VALUE_DECIMAL, ret_value, err);
    case TIDE_PG_RULE_REAL:
        return number_value(text, TIDE_VALUE_REAL, ret_value, err);
    case TIDE_PG_RULE_JSON:
        *ret_value = json_value(text);
        return TIDE_OK;
    case TIDE_PG_RULE_BYTES:
        return bytes_value(text, bytes, ret_value, err);
    case TIDE_PG_RULE_TIMESTAMP:
        *ret_value = timestamp_value(text, bytes);
        return TIDE_OK;
    case TIDE_PG_RULE_ARRAY:
    default:
        TIDE_ASSERT(kind < TIDE_PG_RULE_ARRAY);
        return fail_text("a known type", text, err);
    }
}

static tide_status bytes_in_arena(tide_str text, struct tide_arena *arena,
                                  struct tide_value *ret_value, struct tide_error *err)
{
    char *bytes = tide_arena_bytes(arena, text.len / 2);
    return bytes_value(text, bytes, ret_value, err);
}

void tide_pg_scratch_done(struct tide_pg_scratch *scratch)
{
    tide_buf_done(&scratch->json);
    tide_buf_done(&scratch->element);
}

tide_status tide_pg_value(struct tide_pg_rule rule, tide_str text, struct tide_arena *arena,
                          struct tide_pg_scratch *scratch, struct tide_value *ret_value,
                          struct tide_error *err)
{
    TIDE_ASSERT(text.ptr != NULL);
    if (text.len > TIDE_PG_MESSAGE_BYTES_MAX) {
        return fail_text("less than a gigabyte", text, err);
    }
    switch ((enum tide_pg_rule_kind)rule.kind) {
    case TIDE_PG_RULE_ARRAY:
        return tide_pg_array_value(rule, text, arena, scratch, ret_value, err);
    case TIDE_PG_RULE_BYTES:
        return bytes_in_arena(text, arena, ret_value, err);
    case TIDE_PG_RULE_TIMESTAMP:
        *ret_value = timestamp_in_arena(text, arena);
        return TIDE_OK;
    case TIDE_PG_RULE_TEXT:
    case TIDE_PG_RULE_BOOL:
    case TIDE_PG_RULE_INTEGER:
    case TIDE_PG_RULE_DECIMAL:
    case TIDE_PG_RULE_REAL:
    case TIDE_PG_RULE_JSON:
    default:
        return tide_pg_scalar_value((enum tide_pg_rule_kind)rule.kind, text, NULL, ret_value, err);
    }
}

static inline tide_status field_value(struct tide_pg_rule rule, struct tide_pg_field field,
                                      struct tide_arena *arena, struct tide_pg_scratch *scratch,
                                      struct tide_value *ret_value, struct tide_error *err)
{
    if (field.kind == TIDE_PG_FIELD_TEXT) {
        return tide_pg_value(rule, tide_pg_field_str(field), arena, scratch, ret_value, err);
    }
    bool is_null = field.kind == TIDE_PG_FIELD_NULL;
    *ret_value = (struct tide_value){.kind = is_null ? TIDE_VALUE_NULL : TIDE_VALUE_UNCHANGED};
    return TIDE_OK;
}

tide_status tide_pg_row_values(const struct tide_pg_rule *rules, const struct tide_pg_field *fields,
                               size_t count, struct tide_arena *arena,
                               struct tide_pg_scratch *scratch, struct tide_value *ret_values,
                               size_t *ret_index, struct tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        tide_status status = field_value(rules[i], fields[i], arena, scratch, &ret_values[i], err);
        if (TIDE_UNLIKELY(status != TIDE_OK)) {
            *ret_index = i;
            return status;
        }
    }
    return TIDE_OK;
}

static void append_hex(struct tide_buf *buf, tide_str bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *to = tide_buf_reserve(buf, 2 + 2 * bytes.len);
    *to++ = '\\';
    *to++ = 'x';
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned byte = (unsigned char)bytes.ptr[i];
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 15];
    }
    buf->len += 2 + 2 * bytes.len;
}

tide_status tide_pg_value_to_text(struct tide_value value, struct tide_buf *buf,
                                  struct tide_error *err)
{
    tide_str text = tide_value_str(value);
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_BOOL:
        TIDE_ASSERT(text.len > 0);
        tide_buf_append(buf, text.ptr, 1);
        return TIDE_OK;
    case TIDE_VALUE_BYTES:
        append_hex(buf, text);
        return TIDE_OK;
    case TIDE_VALUE_INTEGER:
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_REAL:
    case TIDE_VALUE_TEXT:
    case TIDE_VALUE_JSON:
        tide_buf_append_str(buf, text);
        return TIDE_OK;
    case TIDE_VALUE_RAW_TEXT:
        return tide_fail(err, TIDE_INVALID,
                         "text that is not UTF-8 cannot be written into a statement: mend the row");
    case TIDE_VALUE_NULL:
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
    default:
        return tide_fail(err, TIDE_INVALID, "a value of kind %u has no text in PostgreSQL",
                         value.kind);
    }
}
