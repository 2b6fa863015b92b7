#include "archive/change_time.h"

#define DAY_US      INT64_C(86400000000)
#define DATE_LEN    10
#define SECONDS_LEN 8

#define DAYS_MIN (-719162) /* 0001-01-01 */
#define DAYS_MAX 2932896   /* 9999-12-31 */

/* Two digits at `p`; over 99 when they are none. */
static unsigned two(const char *p)
{
    unsigned high = (unsigned)(unsigned char)p[0] - '0';
    unsigned low = (unsigned)(unsigned char)p[1] - '0';
    return high > 9 || low > 9 ? 100 : high * 10 + low;
}

static bool is_leap(unsigned year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static unsigned days_in(unsigned year, unsigned month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year) ? 1U : 0U);
}

/* The calendar counted from March, so that leap days end its years, in cycles of 400 years. */
static int32_t days_of(unsigned year, unsigned month, unsigned day)
{
    unsigned from_march = (month + 9) % 12;
    unsigned y = year - (month <= 2 ? 1 : 0);
    unsigned day_of_year = (153 * from_march + 2) / 5 + day - 1;
    return (int32_t)(y * 365 + y / 4 - y / 100 + y / 400 + day_of_year) - 719468;
}

bool tide_change_date_parse(tide_str text, int32_t *ret_days)
{
    const char *p = text.ptr;
    if (text.len != DATE_LEN || p[4] != '-' || p[7] != '-') {
        return false;
    }
    unsigned century = two(p);
    unsigned rest = two(p + 2);
    unsigned month = two(p + 5);
    unsigned day = two(p + 8);
    unsigned year = century * 100 + rest;
    if (century > 99 || rest > 99 || year == 0 || month == 0 || month > 12 || day == 0 ||
        day > days_in(year, month)) {
        return false;
    }
    *ret_days = days_of(year, month, day);
    return true;
}

/* `.5`: one to six digits, the last of them no zero; or nothing. */
static bool fraction_parse(tide_str text, int64_t *ret_us)
{
    int64_t us = 0;
    if (text.len == 0) {
        *ret_us = 0;
        return true;
    }
    if (text.ptr[0] != '.' || text.len < 2 || text.len > 7 || text.ptr[text.len - 1] == '0') {
        return false;
    }
    for (size_t i = 1; i < 7; i++) {
        unsigned digit = i < text.len ? (unsigned)(unsigned char)text.ptr[i] - '0' : 0;
        if (digit > 9) {
            return false;
        }
        us = us * 10 + digit;
    }
    *ret_us = us;
    return true;
}

bool tide_change_clock_parse(tide_str text, int64_t *ret_us)
{
    const char *p = text.ptr;
    int64_t us = 0;
    if (text.len < SECONDS_LEN || p[2] != ':' || p[5] != ':' ||
        !fraction_parse(tide_str_of(p + SECONDS_LEN, text.len - SECONDS_LEN), &us)) {
        return false;
    }
    unsigned hours = two(p);
    unsigned minutes = two(p + 3);
    unsigned seconds = two(p + 6);
    if (hours > 23 || minutes > 59 || seconds > 59) {
        return false;
    }
    *ret_us = (int64_t)((hours * 60 + minutes) * 60 + seconds) * 1000000 + us;
    return true;
}

bool tide_change_timestamp_parse(tide_str text, int64_t *ret_us)
{
    int32_t days = 0;
    int64_t us = 0;
    if (text.len < DATE_LEN + 1 + SECONDS_LEN || text.ptr[DATE_LEN] != 'T' ||
        !tide_change_date_parse(tide_str_of(text.ptr, DATE_LEN), &days) ||
        !tide_change_clock_parse(tide_str_of(text.ptr + DATE_LEN + 1, text.len - DATE_LEN - 1),
                                 &us)) {
        return false;
    }
    *ret_us = days * DAY_US + us;
    return true;
}

static char *put_digits(char *to, unsigned value, unsigned count)
{
    for (unsigned i = count; i > 0; i--, value /= 10) {
        to[i - 1] = (char)('0' + value % 10);
    }
    return to + count;
}

bool tide_change_date_append(struct tide_buf *buf, int32_t days)
{
    if (days < DAYS_MIN || days > DAYS_MAX) {
        return false;
    }
    unsigned from = (unsigned)(days + 719468); /* since 0000-03-01 */
    unsigned cycle = from / 146097;
    unsigned of_cycle = from % 146097;
    unsigned y = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    unsigned of_year = of_cycle - (365 * y + y / 4 - y / 100);
    unsigned from_march = (5 * of_year + 2) / 153;
    unsigned month = (from_march + 2) % 12 + 1;
    char *to = tide_buf_reserve(buf, DATE_LEN);
    to = put_digits(to, cycle * 400 + y + (month <= 2 ? 1 : 0), 4);
    *to++ = '-';
    to = put_digits(to, month, 2);
    *to++ = '-';
    (void)put_digits(to, of_year - (153 * from_march + 2) / 5 + 1, 2);
    buf->len += DATE_LEN;
    return true;
}

bool tide_change_clock_append(struct tide_buf *buf, int64_t us)
{
    if (us < 0 || us >= DAY_US) {
        return false;
    }
    unsigned fraction = (unsigned)(us % 1000000);
    unsigned seconds = (unsigned)(us / 1000000);
    char *start = tide_buf_reserve(buf, SECONDS_LEN + 7);
    char *to = put_digits(start, seconds / 3600, 2);
    *to++ = ':';
    to = put_digits(to, seconds / 60 % 60, 2);
    *to++ = ':';
    to = put_digits(to, seconds % 60, 2);
    if (fraction > 0) {
        *to++ = '.';
        to = put_digits(to, fraction, 6);
        while (to[-1] == '0') {
            to--;
        }
    }
    buf->len += (size_t)(to - start);
    return true;
}

bool tide_change_timestamp_append(struct tide_buf *buf, int64_t us)
{
    int64_t of_day = us % DAY_US;
    int64_t days = us / DAY_US;
    if (of_day < 0) {
        of_day += DAY_US;
        days--;
    }
    if (days < DAYS_MIN || days > DAYS_MAX || !tide_change_date_append(buf, (int32_t)days)) {
        return false;
    }
    tide_buf_append_char(buf, 'T');
    return tide_change_clock_append(buf, of_day);
}
