#include "format/real_text.h"

#include "base/status.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimals of so many digits and doubles: every one reads back as itself (DBL_DIG). */
#define EXACT_DIGITS 15
#define EXACT_LIMIT  1e15

static size_t put_text(char *to, const char *text)
{
    size_t len = strlen(text);
    memcpy(to, text, len + 1);
    return len;
}

/* `digits` divided by 10^places, with the point and at least one digit on each side of it. */
static size_t put_decimal(char *to, bool negative, uint64_t digits, unsigned places)
{
    char reversed[TIDE_REAL_TEXT_SIZE];
    size_t count = 0;
    if (places == 0) {
        reversed[count++] = '0';
        reversed[count++] = '.';
    }
    for (unsigned i = 0; digits > 0 || i <= places; i++, digits /= 10) {
        if (i == places && places > 0) {
            reversed[count++] = '.';
        }
        reversed[count++] = (char)('0' + digits % 10);
    }
    if (negative) {
        reversed[count++] = '-';
    }
    TIDE_ASSERT(count < TIDE_REAL_TEXT_SIZE);
    for (size_t i = 0; i < count; i++) {
        to[i] = reversed[count - 1 - i];
    }
    to[count] = '\0';
    return count;
}

/*
 * The shortest decimal of up to 15 digits that is the double, 0 when there is none. Both the digits
 * (below 2^53) and the power of ten (below 10^22) are exact as doubles, so their quotient is
 * rounded once: just as a correct reader rounds the text.
 */
static size_t try_short_decimal(double value, char *to)
{
    static const double powers[EXACT_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    double magnitude = fabs(value);
    for (unsigned places = 0; places <= EXACT_DIGITS; places++) {
        double scaled = magnitude * powers[places];
        if (scaled >= EXACT_LIMIT) {
            return 0;
        }
        uint64_t digits = (uint64_t)(scaled + 0.5);
        if ((double)digits / powers[places] == magnitude) {
            return put_decimal(to, signbit(value) != 0, digits, places);
        }
    }
    return 0;
}

/* 10^0 … 10^22: times 53 bits they fit into 128. */
static unsigned __int128 power_of_ten(unsigned exponent)
{
    static const uint64_t powers[] = {1u,
                                      10u,
                                      100u,
                                      1000u,
                                      10000u,
                                      100000u,
                                      1000000u,
                                      10000000u,
                                      100000000u,
                                      1000000000u,
                                      10000000000u,
                                      100000000000u,
                                      1000000000000u,
                                      10000000000000u,
                                      100000000000000u,
                                      1000000000000000u,
                                      10000000000000000u,
                                      100000000000000000u};
    return exponent <= 17 ? powers[exponent]
                          : (unsigned __int128)powers[17] * powers[exponent - 17];
}

/* A double apart: `bits` / 2^`shift`. */
struct parts {
    uint64_t bits;
    unsigned shift;
};

/*
 * Rounds to `digits` digits, of which `places` stand behind the point, as printf does: exactly, and
 * ties to even. True when the text reads back: it is nearer to the double than half of the way to
 * its neighbours, `bits` / 2^shift ± 1 / 2^shift.
 */
static bool round_exactly(struct parts parts, unsigned places, uint64_t *ret_digits)
{
    unsigned __int128 power = power_of_ten(places);
    unsigned __int128 scaled = parts.bits * power;
    unsigned __int128 unit = (unsigned __int128)1 << parts.shift;
    unsigned __int128 rest = scaled & (unit - 1);
    uint64_t digits = (uint64_t)(scaled >> parts.shift);
    if (rest * 2 > unit || (rest * 2 == unit && (digits & 1) != 0)) {
        digits++;
        rest = unit - rest;
    }
    *ret_digits = digits;
    return rest * 2 < power;
}

/*
 * What put_long_decimal writes, faster: for doubles from 1e-4 to 1e15, which print without an
 * exponent. 0 when it is none of these, or lies at a bound.
 */
static size_t try_long_decimal(double value, char *to)
{
    double magnitude = fabs(value);
    if (!(magnitude >= 1e-4 && magnitude < EXACT_LIMIT)) {
        return 0;
    }
    int exponent = 0;
    struct parts parts = {.bits = (uint64_t)ldexp(frexp(magnitude, &exponent), DBL_MANT_DIG)};
    parts.shift = (unsigned)(DBL_MANT_DIG - exponent);
    if ((parts.bits & (parts.bits - 1)) == 0) {
        return 0; /* the neighbour below is nearer than the one above */
    }
    static const double bounds[] = {1e-3, 1e-2, 1e-1, 1e0, 1e1,  1e2,  1e3,  1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
    unsigned places = EXACT_DIGITS + 3; /* of 15 digits when the first one is the fourth place */
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]) && magnitude >= bounds[i]; i++) {
        places--;
    }
    for (unsigned digits = EXACT_DIGITS; digits <= EXACT_DIGITS + 2; digits++, places++) {
        uint64_t decimal = 0;
        bool reads_back = round_exactly(parts, places, &decimal);
        if (decimal < power_of_ten(digits - 1) || decimal >= power_of_ten(digits)) {
            return 0;
        }
        if (reads_back) {
            for (; places > 0 && decimal % 10 == 0; places--) {
                decimal /= 10;
            }
            return put_decimal(to, signbit(value) != 0, decimal, places);
        }
    }
    return 0;
}

/* printf writes the locale's decimal point, which may be several bytes: makes it one `.`. */
static size_t put_with_point(char *to, const char *printed)
{
    size_t len = 0;
    bool has_mark = false;
    for (const char *p = printed; *p != '\0'; p++) {
        bool is_number = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e';
        if (is_number || !(len > 0 && to[len - 1] == '.')) {
            to[len] = '.';
            if (is_number) {
                to[len] = *p;
            }
            len++;
        }
        has_mark = has_mark || !is_number || *p == 'e';
    }
    if (!has_mark) {
        to[len++] = '.';
        to[len++] = '0';
    }
    to[len] = '\0';
    return len;
}

static size_t put_long_decimal(double value, char *to)
{
    char printed[64];
    TIDE_ASSERT(TIDE_REAL_TEXT_SIZE > sizeof("-1.2345678901234567e-308"));
    for (int digits = EXACT_DIGITS; digits <= EXACT_DIGITS + 2; digits++) {
        (void)snprintf(printed, sizeof(printed), "%.*g", digits, value);
        if (digits == EXACT_DIGITS + 2 || strtod(printed, NULL) == value) {
            break;
        }
    }
    return put_with_point(to, printed);
}

size_t tide_real_to_text(double value, char ret_text[TIDE_REAL_TEXT_SIZE])
{
    if (isnan(value)) {
        return put_text(ret_text, "NaN");
    }
    if (isinf(value)) {
        return put_text(ret_text, value < 0 ? "-Infinity" : "Infinity");
    }
    size_t len = try_short_decimal(value, ret_text);
    if (len == 0) {
        len = try_long_decimal(value, ret_text);
    }
    return len > 0 ? len : put_long_decimal(value, ret_text);
}
