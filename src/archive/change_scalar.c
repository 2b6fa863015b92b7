#include "archive/change_scalar.h"

#include "archive/change_real.h"
#include "archive/change_time.h"
#include "format/parquet/decimal.h"
#include "format/real_text.h"

#include <math.h>

#define UTC_SUFFIX TIDE_STR("+00")

#define FLOAT8_EXPONENT_MAX 15
#define FLOAT4_EXPONENT_MAX 6

void tide_change_scratch_done(struct tide_change_scratch *scratch)
{
    tide_buf_done(&scratch->text);
}

static bool is_word(tide_str text, const char *word)
{
    return tide_str_equal(text, tide_str_from(word));
}

static bool integer_of(tide_str text, int64_t *ret_value)
{
    return tide_str_to_i64(text, ret_value) && !(*ret_value == 0 && text.len > 1);
}

/* -1: no hex digit, in small letters. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hyphen_place(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

static bool uuid_of(tide_str text, uint8_t ret_uuid[16])
{
    size_t count = 0;
    if (text.len != 36) {
        return false;
    }
    for (size_t i = 0; i < text.len;) {
        if (is_hyphen_place(i)) {
            if (text.ptr[i++] != '-') {
                return false;
            }
            continue;
        }
        int high = hex_digit(text.ptr[i]);
        int low = hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_uuid[count++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}

static void append_uuid(struct tide_buf *buf, const uint8_t uuid[16])
{
    static const char digits[] = "0123456789abcdef";
    char *to = tide_buf_reserve(buf, 36);
    for (size_t i = 0, count = 0; i < 36;) {
        if (is_hyphen_place(i)) {
            to[i++] = '-';
            continue;
        }
        to[i++] = digits[uuid[count] >> 4];
        to[i++] = digits[uuid[count++] & 15];
    }
    buf->len += 36;
}

static bool timestamp_utc_of(tide_str text, int64_t *ret_us)
{
    if (!tide_str_ends_with(text, UTC_SUFFIX)) {
        return false;
    }
    return tide_change_timestamp_parse(tide_str_of(text.ptr, text.len - UTC_SUFFIX.len), ret_us);
}

/* Appends a decimal without the zeros behind its last digit; true when it is an integer. */
static bool append_number(struct tide_buf *buf, tide_int128 value, unsigned scale)
{
    while (scale > 0 && value % 10 == 0) {
        value /= 10;
        scale--;
    }
    tide_parquet_decimal_append(buf, value, scale);
    return scale == 0;
}

static bool append_real(struct tide_buf *buf, enum tide_change_form form, double value)
{
    char text[TIDE_REAL_TEXT_SIZE];
    if (!isfinite(value)) {
        return false;
    }
    if (form == TIDE_FORM_DOUBLE) {
        tide_buf_append(buf, text, tide_real_to_text(value, text));
    } else {
        tide_change_real_append_pg(
            buf, value, form == TIDE_FORM_FLOAT_PG ? FLOAT4_EXPONENT_MAX : FLOAT8_EXPONENT_MAX);
    }
    return true;
}

/* The scalar that the value may have: whether it gives back the same is asked after. */
static bool guess(const struct tide_change_column *column, struct tide_value value,
                  struct tide_change_scalar *scalar)
{
    tide_str text = tide_value_str(value);
    bool is_text = value.kind == TIDE_VALUE_TEXT;
    switch (column->form) {
    case TIDE_FORM_JSON:
        scalar->bytes = text;
        return value.kind == TIDE_VALUE_JSON && tide_str_is_utf8(text);
    case TIDE_FORM_BINARY:
        scalar->bytes = text;
        return value.kind == TIDE_VALUE_BYTES;
    case TIDE_FORM_BOOL:
        scalar->flag = is_word(text, "true");
        return value.kind == TIDE_VALUE_BOOL && (scalar->flag || is_word(text, "false"));
    case TIDE_FORM_I64:
        return value.kind == TIDE_VALUE_INTEGER && integer_of(text, &scalar->i64);
    case TIDE_FORM_DOUBLE:
    case TIDE_FORM_DOUBLE_PG:
    case TIDE_FORM_FLOAT_PG:
        return value.kind == TIDE_VALUE_REAL && tide_change_real_parse(text, &scalar->real);
    case TIDE_FORM_DECIMAL:
        return value.kind == TIDE_VALUE_DECIMAL &&
               tide_parquet_decimal_from_text(text, column->scale, &scalar->i128);
    case TIDE_FORM_NUMBER:
        return (value.kind == TIDE_VALUE_INTEGER || value.kind == TIDE_VALUE_REAL) &&
               tide_parquet_decimal_from_text(text, column->scale, &scalar->i128);
    case TIDE_FORM_DATE:
        return is_text && tide_change_date_parse(text, &scalar->i32);
    case TIDE_FORM_TIME:
        return is_text && tide_change_clock_parse(text, &scalar->i64);
    case TIDE_FORM_TIMESTAMP:
        return is_text && tide_change_timestamp_parse(text, &scalar->i64);
    case TIDE_FORM_TIMESTAMP_UTC:
        return is_text && timestamp_utc_of(text, &scalar->i64);
    case TIDE_FORM_UUID:
        return is_text && uuid_of(text, scalar->uuid);
    case TIDE_FORM_STRING:
    default:
        return false;
    }
}

/* Forms of which not every text that can be read is the one that is written. */
static bool is_to_be_compared(enum tide_change_form form)
{
    return form >= TIDE_FORM_DOUBLE && form <= TIDE_FORM_NUMBER;
}

bool tide_change_scalar_of(const struct tide_change_column *column, unsigned precision,
                           struct tide_value value, struct tide_change_scratch *scratch,
                           struct tide_change_scalar *ret_scalar)
{
    if (!guess(column, value, ret_scalar)) {
        return false;
    }
    bool is_decimal = column->form == TIDE_FORM_DECIMAL || column->form == TIDE_FORM_NUMBER;
    if (is_decimal && !tide_parquet_decimal_fits(ret_scalar->i128, precision)) {
        return false;
    }
    if (!is_to_be_compared(column->form)) {
        return true;
    }
    uint8_t kind = 0;
    tide_buf_reset(&scratch->text);
    return tide_change_scalar_append(column, ret_scalar, &scratch->text, &kind) &&
           kind == value.kind &&
           tide_str_equal(tide_buf_str(&scratch->text), tide_value_str(value));
}

bool tide_change_scalar_append(const struct tide_change_column *column,
                               const struct tide_change_scalar *scalar, struct tide_buf *buf,
                               uint8_t *ret_kind)
{
    *ret_kind = TIDE_VALUE_TEXT;
    switch (column->form) {
    case TIDE_FORM_JSON:
        *ret_kind = TIDE_VALUE_JSON;
        return true;
    case TIDE_FORM_BINARY:
        *ret_kind = TIDE_VALUE_BYTES;
        return true;
    case TIDE_FORM_BOOL:
        *ret_kind = TIDE_VALUE_BOOL;
        tide_buf_append_str(buf, scalar->flag ? TIDE_STR("true") : TIDE_STR("false"));
        return true;
    case TIDE_FORM_I64:
        *ret_kind = TIDE_VALUE_INTEGER;
        tide_buf_append_i64(buf, scalar->i64);
        return true;
    case TIDE_FORM_DOUBLE:
    case TIDE_FORM_DOUBLE_PG:
    case TIDE_FORM_FLOAT_PG:
        *ret_kind = TIDE_VALUE_REAL;
        return append_real(buf, column->form, scalar->real);
    case TIDE_FORM_DECIMAL:
        *ret_kind = TIDE_VALUE_DECIMAL;
        tide_parquet_decimal_append(buf, scalar->i128, column->scale);
        return true;
    case TIDE_FORM_NUMBER:
        *ret_kind =
            append_number(buf, scalar->i128, column->scale) ? TIDE_VALUE_INTEGER : TIDE_VALUE_REAL;
        return true;
    case TIDE_FORM_DATE:
        return tide_change_date_append(buf, scalar->i32);
    case TIDE_FORM_TIME:
        return tide_change_clock_append(buf, scalar->i64);
    case TIDE_FORM_TIMESTAMP:
        return tide_change_timestamp_append(buf, scalar->i64);
    case TIDE_FORM_TIMESTAMP_UTC:
        if (!tide_change_timestamp_append(buf, scalar->i64)) {
            return false;
        }
        tide_buf_append_str(buf, UTC_SUFFIX);
        return true;
    case TIDE_FORM_UUID:
        append_uuid(buf, scalar->uuid);
        return true;
    case TIDE_FORM_STRING:
    default:
        return false;
    }
}
