/* The typed key values whose value is one JSON scalar or an array of bytes. */
#include "format/checkpoint_private.h"

#include <string.h>

static struct tide_value value_of(enum tide_value_kind kind, tide_str text)
{
    return (struct tide_value){.ptr = text.ptr, .len = (uint32_t)text.len, .kind = (uint8_t)kind};
}

static tide_status read_bool(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    bool ignored = false;
    (void)nested;
    TIDE_TRY(tide_shape_bool(shape, raw, &ignored, err));
    *ret_value = value_of(TIDE_VALUE_BOOL, raw);
    return TIDE_OK;
}

static tide_status read_int(const struct tide_shape *shape, tide_str raw, int64_t min, int64_t max,
                            struct tide_value *ret_value, struct tide_error *err)
{
    TIDE_TRY(tide_shape_i64(shape, raw, min, max, err));
    *ret_value = value_of(TIDE_VALUE_INTEGER, raw);
    return TIDE_OK;
}

static tide_status read_int16(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    (void)nested;
    return read_int(shape, raw, INT16_MIN, INT16_MAX, ret_value, err);
}

static tide_status read_int32(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    (void)nested;
    return read_int(shape, raw, INT32_MIN, INT32_MAX, ret_value, err);
}

static tide_status read_int64(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    (void)nested;
    return read_int(shape, raw, INT64_MIN, INT64_MAX, ret_value, err);
}

static tide_status read_float(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    (void)nested;
    if (!tide_shape_is_double(raw)) {
        return tide_shape_fail(shape, raw, "no finite number", err);
    }
    *ret_value = value_of(TIDE_VALUE_REAL, raw);
    return TIDE_OK;
}

static tide_status read_text(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    tide_str text = {0};
    (void)nested;
    TIDE_TRY(tide_shape_string(shape, raw, &text, err));
    *ret_value = value_of(TIDE_VALUE_TEXT, text);
    return TIDE_OK;
}

/* Not by way of slices: they would take many times the memory of the bytes. */
static tide_status read_bytes(const struct tide_shape *shape, tide_str raw,
                              struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                              struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    (void)nested;
    tide_json_reader_init(&reader, raw, 1);
    TIDE_TRY(tide_json_next(&reader, &token, err));
    if (token.type != TIDE_JSON_ARRAY_BEGIN) {
        return tide_shape_fail(shape, raw, "no array", err);
    }
    char *bytes = tide_arena_bytes(shape->arena, raw.len / 2); /* a digit and a comma each */
    for (size_t count = 0;; count++) {
        uint64_t byte = 0;
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            tide_arena_give_back(shape->arena, raw.len / 2 - count);
            *ret_value = value_of(TIDE_VALUE_BYTES, tide_str_of(bytes, count));
            return TIDE_OK;
        }
        if (token.type != TIDE_JSON_NUMBER) {
            return tide_shape_fail(shape, raw, "no array of bytes", err);
        }
        TIDE_TRY(tide_shape_u64(shape, token.text, UINT8_MAX, &byte, err));
        bytes[count] = (char)byte;
    }
}

/* Takes `min` to `max` digits at `*at`. */
static bool digits(tide_str text, size_t *at, size_t min, size_t max, unsigned *ret_value)
{
    size_t count = 0;
    unsigned value = 0;
    for (; count < max && *at < text.len; count++, (*at)++) {
        char c = text.ptr[*at];
        if (c < '0' || c > '9') {
            break;
        }
        value = value * 10 + (unsigned)(c - '0');
    }
    *ret_value = value;
    return count >= min;
}

static bool one_of(tide_str text, size_t *at, const char *any_of)
{
    if (*at < text.len && text.ptr[*at] != '\0' && strchr(any_of, text.ptr[*at]) != NULL) {
        (*at)++;
        return true;
    }
    return false;
}

static bool in_range(unsigned value, unsigned min, unsigned max)
{
    return value >= min && value <= max;
}

/* "2024-01-02": a year with a sign may have up to six digits, as chrono's. */
static bool date(tide_str text, size_t *at)
{
    static const unsigned char month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned year = 0;
    unsigned month = 0;
    unsigned day = 0;
    bool is_signed = one_of(text, at, "+-");
    if (!digits(text, at, 4, is_signed ? 6 : 4, &year) || !one_of(text, at, "-") ||
        !digits(text, at, 2, 2, &month) || !one_of(text, at, "-") ||
        !digits(text, at, 2, 2, &day) || !in_range(month, 1, 12)) {
        return false;
    }
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return in_range(year, 0, 262142) && in_range(day, 1, month_days[month - 1]) &&
           (month != 2 || day < 29 || is_leap);
}

static bool time_of_day(tide_str text, size_t *at)
{
    unsigned hour = 0;
    unsigned minute = 0;
    unsigned second = 0;
    unsigned ignored = 0;
    return digits(text, at, 2, 2, &hour) && one_of(text, at, ":") &&
           digits(text, at, 2, 2, &minute) && one_of(text, at, ":") &&
           digits(text, at, 2, 2, &second) && hour < 24 && minute < 60 && second < 61 &&
           (!one_of(text, at, ".") || digits(text, at, 1, SIZE_MAX, &ignored));
}

static bool zone(tide_str text, size_t *at)
{
    unsigned hours = 0;
    unsigned minutes = 0;
    if (one_of(text, at, "Zz")) {
        return true;
    }
    if (!one_of(text, at, "+-") || !digits(text, at, 2, 2, &hours)) {
        return false;
    }
    return (!one_of(text, at, ":") || *at + 2 == text.len) &&
           (*at == text.len || digits(text, at, 2, 2, &minutes)) && hours < 24 && minutes < 60;
}

bool tide_checkpoint_is_datetime(tide_str text)
{
    size_t at = 0;
    return date(text, &at) && one_of(text, &at, "Tt ") && time_of_day(text, &at) &&
           zone(text, &at) && at == text.len;
}

static tide_status read_datetime(const struct tide_shape *shape, tide_str raw,
                                 struct tide_value *ret_value,
                                 struct tide_checkpoint_nested *nested, struct tide_error *err)
{
    TIDE_TRY(read_text(shape, raw, ret_value, nested, err));
    return tide_checkpoint_is_datetime(tide_value_str(*ret_value))
               ? TIDE_OK
               : tide_shape_fail(shape, raw, "no RFC 3339 time", err);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four spellings that are read: simple, hyphenated, in braces, as a URN. */
static tide_str uuid_inside(tide_str text)
{
    tide_str urn = TIDE_STR("urn:uuid:");
    if (text.len == urn.len + TIDE_UUID_LEN && tide_str_starts_with(text, urn)) {
        return tide_str_of(text.ptr + urn.len, TIDE_UUID_LEN);
    }
    if (text.len == TIDE_UUID_LEN + 2 && text.ptr[0] == '{' && text.ptr[text.len - 1] == '}') {
        return tide_str_of(text.ptr + 1, TIDE_UUID_LEN);
    }
    return text;
}

static bool uuid_normalize(tide_str text, char to[TIDE_UUID_LEN])
{
    text = uuid_inside(text);
    bool has_hyphens = text.len == TIDE_UUID_LEN;
    if (!has_hyphens && text.len != TIDE_UUID_LEN - 4) {
        return false;
    }
    size_t from = 0;
    for (size_t i = 0; i < TIDE_UUID_LEN; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (has_hyphens && text.ptr[from++] != '-') {
                return false;
            }
            to[i] = '-';
            continue;
        }
        int digit = hex_digit(text.ptr[from++]);
        if (digit < 0) {
            return false;
        }
        to[i] = "0123456789abcdef"[digit];
    }
    return true;
}

static tide_status read_uuid(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    TIDE_TRY(read_text(shape, raw, ret_value, nested, err));
    char *to = tide_arena_bytes(shape->arena, TIDE_UUID_LEN);
    if (!uuid_normalize(tide_value_str(*ret_value), to)) {
        return tide_shape_fail(shape, raw, "no UUID", err);
    }
    *ret_value = value_of(TIDE_VALUE_TEXT, tide_str_of(to, TIDE_UUID_LEN));
    return TIDE_OK;
}

/* 26 characters of Crockford's base 32. */
static tide_status read_ulid(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    TIDE_TRY(read_text(shape, raw, ret_value, nested, err));
    bool ok = ret_value->len == 26;
    for (size_t i = 0; ok && i < ret_value->len; i++) {
        char c = ret_value->ptr[i];
        ok = c != '\0' && strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz", c);
    }
    return ok ? TIDE_OK : tide_shape_fail(shape, raw, "no ULID", err);
}

static tide_status read_json(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    (void)nested;
    (void)err;
    *ret_value = value_of(TIDE_VALUE_JSON, tide_shape_compact(shape->arena, raw));
    return TIDE_OK;
}

static tide_status read_null(const struct tide_shape *shape, tide_str raw,
                             struct tide_value *ret_value, struct tide_checkpoint_nested *nested,
                             struct tide_error *err)
{
    (void)nested;
    if (raw.ptr != NULL && !tide_shape_is_null(raw)) {
        return tide_shape_fail(shape, raw, "a Null with a value", err);
    }
    *ret_value = (struct tide_value){.kind = TIDE_VALUE_NULL};
    return TIDE_OK;
}

const struct tide_checkpoint_variant tide_checkpoint_scalars[] = {
    {"Bool", read_bool},
    {"Int16", read_int16},
    {"Int32", read_int32},
    {"Int64", read_int64},
    {"Float32", read_float},
    {"Float64", read_float},
    {"Text", read_text},
    {"Blob", read_bytes},
    {"Bytes", read_bytes},
    {"Date", read_datetime},
    {"Time", read_datetime},
    {"LocalDateTime", read_datetime},
    {"LocalDateTimeNano", read_datetime},
    {"ZonedDateTime", read_datetime},
    {"TimeTz", read_text},
    {"Uuid", read_uuid},
    {"Ulid", read_ulid},
    {"Json", read_json},
    {"Jsonb", read_json},
    {"Null", read_null},
    {NULL, NULL},
};
