#include "archive/change_real.h"

#include "base/status.h"
#include "format/real_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Longer numbers are none that a float has been written as. */
#define TEXT_MAX 64

/* As many digits are below 2^53, and as high a power of ten is exact: their quotient is rounded
 * once, as a correct reader rounds the text. */
#define EXACT_DIGITS 15

/* `-12.5`, of few digits: true and the value. */
static bool parse_short(tide_str text, double *ret_value)
{
    static const double powers[EXACT_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t digits = 0;
    size_t point = text.len;
    size_t start = is_negative ? 1 : 0;
    if (text.len > EXACT_DIGITS + 1 || text.len == start) {
        return false;
    }
    for (size_t i = start; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.ptr[i] - '0';
        if (digit <= 9) {
            digits = digits * 10 + digit;
        } else if (text.ptr[i] == '.' && point == text.len) {
            point = i;
        } else {
            return false;
        }
    }
    size_t places = point == text.len ? 0 : text.len - point - 1;
    double value = (double)digits / powers[places];
    *ret_value = is_negative ? -value : value;
    return true;
}

bool tide_change_real_parse(tide_str text, double *ret_value)
{
    char copy[TEXT_MAX + 1];
    char *end = NULL;
    if (parse_short(text, ret_value)) {
        return true;
    }
    bool is_number =
        text.len > 0 && (text.ptr[0] == '-' || (text.ptr[0] >= '0' && text.ptr[0] <= '9'));
    if (!is_number || text.len > TEXT_MAX) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    double value = strtod(copy, &end);
    if (end != copy + text.len || !isfinite(value)) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* A decimal apart: 0.d1d2d3… times 10^exponent, with neither zeros before nor behind. */
struct decimal {
    bool is_negative;
    char digits[TIDE_REAL_TEXT_SIZE];
    int count; /* 0 for zero */
    int exponent;
};

static struct decimal take_apart(double value)
{
    char text[TIDE_REAL_TEXT_SIZE];
    struct decimal decimal = {0};
    (void)tide_real_to_text(value, text);
    const char *p = text;
    if (*p == '-') {
        decimal.is_negative = true;
        p++;
    }
    bool is_behind = false;
    for (; *p == '.' || (*p >= '0' && *p <= '9'); p++) {
        if (*p == '.') {
            is_behind = true;
            continue;
        }
        if (decimal.count > 0 || *p != '0') {
            decimal.digits[decimal.count++] = *p;
            decimal.exponent += !is_behind;
        } else {
            decimal.exponent -= is_behind;
        }
    }
    decimal.exponent += *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0;
    while (decimal.count > 0 && decimal.digits[decimal.count - 1] == '0') {
        decimal.count--;
    }
    return decimal;
}

static void append_zeros(struct tide_buf *buf, int count)
{
    for (int i = 0; i < count; i++) {
        tide_buf_append_char(buf, '0');
    }
}

static void append_scientific(struct tide_buf *buf, const struct decimal *decimal, int exponent)
{
    tide_buf_append_char(buf, decimal->digits[0]);
    if (decimal->count > 1) {
        tide_buf_append_char(buf, '.');
        tide_buf_append(buf, decimal->digits + 1, (size_t)decimal->count - 1);
    }
    tide_buf_printf(buf, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

static void append_positional(struct tide_buf *buf, const struct decimal *decimal)
{
    int whole = decimal->exponent;
    int count = decimal->count;
    if (whole <= 0) {
        tide_buf_append_str(buf, TIDE_STR("0."));
        append_zeros(buf, -whole);
        tide_buf_append(buf, decimal->digits, (size_t)count);
    } else if (count <= whole) {
        tide_buf_append(buf, decimal->digits, (size_t)count);
        append_zeros(buf, whole - count);
    } else {
        tide_buf_append(buf, decimal->digits, (size_t)whole);
        tide_buf_append_char(buf, '.');
        tide_buf_append(buf, decimal->digits + whole, (size_t)(count - whole));
    }
}

void tide_change_real_append_pg(struct tide_buf *buf, double value, int exponent_max)
{
    TIDE_ASSERT(isfinite(value));
    struct decimal decimal = take_apart(value);
    int exponent = decimal.exponent - 1;
    if (decimal.is_negative) {
        tide_buf_append_char(buf, '-');
    }
    if (decimal.count == 0) {
        tide_buf_append_char(buf, '0');
    } else if (exponent < -4 || exponent >= exponent_max) {
        append_scientific(buf, &decimal, exponent);
    } else {
        append_positional(buf, &decimal);
    }
}
