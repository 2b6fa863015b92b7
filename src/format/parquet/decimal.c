#include "format/parquet/decimal.h"

#include "base/status.h"

/* 10^exponent, for 0 to 38; as a product of at most three, since it is asked of every value. */
static tide_int128 power_of_ten(unsigned exponent)
{
    static const int64_t powers[] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000};
    tide_int128 power = 1;
    TIDE_ASSERT(exponent <= TIDE_PARQUET_DECIMAL_DIGITS_MAX);
    while (exponent > 18) {
        power *= powers[18];
        exponent -= 18;
    }
    return power * powers[exponent];
}

bool tide_parquet_decimal_fits(tide_int128 value, unsigned precision)
{
    tide_int128 limit = power_of_ten(precision);
    return value < limit && value > -limit;
}

/* The digits of a number's text: those before and behind its point, and its exponent. */
struct parts {
    bool is_negative;
    tide_str whole;
    tide_str fraction;
    int exponent;
};

static tide_str take_digits(tide_str *text)
{
    size_t count = 0;
    while (count < text->len && (unsigned)(unsigned char)text->ptr[count] - '0' <= 9) {
        count++;
    }
    tide_str digits = {text->ptr, count};
    *text = tide_str_of(text->ptr + count, text->len - count);
    return digits;
}

static bool take_char(tide_str *text, char a, char b)
{
    if (text->len == 0 || (text->ptr[0] != a && text->ptr[0] != b)) {
        return false;
    }
    *text = tide_str_of(text->ptr + 1, text->len - 1);
    return true;
}

static bool take_exponent(tide_str *text, int *ret_exponent)
{
    bool is_negative = take_char(text, '-', '-');
    if (!is_negative) {
        (void)take_char(text, '+', '+');
    }
    tide_str digits = take_digits(text);
    int exponent = 0;
    for (size_t i = 0; i < digits.len && exponent < 100000; i++) {
        exponent = exponent * 10 + (digits.ptr[i] - '0');
    }
    *ret_exponent = is_negative ? -exponent : exponent;
    return digits.len > 0;
}

static bool take_parts(tide_str text, struct parts *parts)
{
    parts->is_negative = take_char(&text, '-', '-');
    if (!parts->is_negative) {
        (void)take_char(&text, '+', '+');
    }
    parts->whole = take_digits(&text);
    bool has_digits = parts->whole.len > 0;
    if (take_char(&text, '.', '.')) {
        parts->fraction = take_digits(&text);
        has_digits |= parts->fraction.len > 0;
    }
    if (has_digits && take_char(&text, 'e', 'E')) {
        has_digits = take_exponent(&text, &parts->exponent);
    }
    return has_digits && text.len == 0;
}

/* Of the digits of whole and fraction, and then zeros without end. */
static char digit_at(const struct parts *parts, size_t at)
{
    if (at < parts->whole.len) {
        return parts->whole.ptr[at];
    }
    at -= parts->whole.len;
    return at < parts->fraction.len ? parts->fraction.ptr[at] : '0';
}

bool tide_parquet_decimal_from_text(tide_str text, unsigned scale, tide_int128 *ret_value)
{
    struct parts parts = {0};
    TIDE_ASSERT(scale <= TIDE_PARQUET_DECIMAL_DIGITS_MAX);
    if (text.len > INT32_MAX || !take_parts(text, &parts)) {
        return false;
    }
    /* How many digits, from the first, stand before the end of the scale. */
    int64_t kept = (int64_t)parts.whole.len + parts.exponent + scale;
    int64_t count = (int64_t)(parts.whole.len + parts.fraction.len);
    for (int64_t i = kept < 0 ? 0 : kept; i < count; i++) {
        if (digit_at(&parts, (size_t)i) != '0') {
            return false;
        }
    }
    tide_int128 value = 0;
    for (int64_t i = 0; i < kept && (i < count || value != 0); i++) {
        if (!tide_parquet_decimal_fits(value, TIDE_PARQUET_DECIMAL_DIGITS_MAX - 1)) {
            return false;
        }
        value = value * 10 + (digit_at(&parts, (size_t)i) - '0');
    }
    *ret_value = parts.is_negative ? -value : value;
    return true;
}

void tide_parquet_decimal_append(struct tide_buf *out, tide_int128 value, unsigned scale)
{
    char digits[40];
    size_t at = sizeof(digits);
    unsigned __int128 left = value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    TIDE_ASSERT(scale <= TIDE_PARQUET_DECIMAL_DIGITS_MAX);
    for (unsigned i = 0; left != 0 || i <= scale; i++) {
        digits[--at] = (char)('0' + (int)(left % 10));
        left /= 10;
    }
    size_t whole = sizeof(digits) - at - scale;
    if (value < 0) {
        tide_buf_append_char(out, '-');
    }
    tide_buf_append(out, digits + at, whole);
    if (scale > 0) {
        tide_buf_append_char(out, '.');
        tide_buf_append(out, digits + at + whole, scale);
    }
}
