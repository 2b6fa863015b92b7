#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define US_PER_S         INT64_C(1000000)
#define S_PER_DAY        INT64_C(86400)
#define YEAR_0000_US     (INT64_C(-62167219200) * US_PER_S)
#define YEAR_9999_END_US (INT64_C(253402300800) * US_PER_S - 1)

struct civil {
    int64_t year;
    unsigned month, day, hour, minute, second, micros;
};

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    TIDE_ASSERT(rc == 0);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t tide_clock_monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t tide_clock_utc_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t tide_clock_deadline_us(int64_t delay_us)
{
    int64_t now = tide_clock_monotonic_us();
    return delay_us >= TIDE_NO_DEADLINE - now ? TIDE_NO_DEADLINE : now + delay_us;
}

int tide_clock_timeout_ms(int64_t deadline_us)
{
    if (deadline_us == TIDE_NO_DEADLINE) {
        return -1;
    }
    int64_t left_us = deadline_us - tide_clock_monotonic_us();
    int64_t left_ms = left_us <= 0 ? 0 : (left_us + 999) / 1000;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

/* Days since 1970-01-01 and back, proleptic Gregorian, by eras of 400 years from 1 March. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, struct civil *ret_civil)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t shifted = (5 * doy + 2) / 153;
    ret_civil->day = (unsigned)(doy - (153 * shifted + 2) / 5 + 1);
    ret_civil->month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    ret_civil->year = yoe + era * 400 + (ret_civil->month <= 2);
}

static struct civil civil_from_us(int64_t utc_us)
{
    if (utc_us < YEAR_0000_US) {
        utc_us = YEAR_0000_US;
    } else if (utc_us > YEAR_9999_END_US) {
        utc_us = YEAR_9999_END_US;
    }
    int64_t per_day = S_PER_DAY * US_PER_S;
    int64_t days = utc_us / per_day - (utc_us % per_day < 0);
    int64_t in_day = utc_us - days * per_day;
    struct civil civil = {0};
    civil_from_days(days, &civil);
    civil.micros = (unsigned)(in_day % US_PER_S);
    unsigned seconds = (unsigned)(in_day / US_PER_S);
    civil.second = seconds % 60;
    civil.minute = seconds / 60 % 60;
    civil.hour = seconds / 3600;
    return civil;
}

/* `count` digits with leading zeros, then `after`; returns the place behind. */
static char *put_digits(char *to, unsigned value, size_t count, char after)
{
    for (size_t i = count; i > 0; i--, value /= 10) {
        to[i - 1] = (char)('0' + value % 10);
    }
    to[count] = after;
    return to + count + 1;
}

/* Every change frame has one: printf would cost more than the rest of the frame. */
void tide_rfc3339_ms(int64_t utc_us, char ret_text[TIDE_RFC3339_MS_LEN + 1])
{
    struct civil c = civil_from_us(utc_us);
    char *to = put_digits(ret_text, (unsigned)c.year, 4, '-');
    to = put_digits(to, c.month, 2, '-');
    to = put_digits(to, c.day, 2, 'T');
    to = put_digits(to, c.hour, 2, ':');
    to = put_digits(to, c.minute, 2, ':');
    to = put_digits(to, c.second, 2, '.');
    to = put_digits(to, c.micros / 1000, 3, 'Z');
    *to = '\0';
    TIDE_ASSERT(to == ret_text + TIDE_RFC3339_MS_LEN);
}

void tide_rfc3339_us(int64_t utc_us, const char *zone, char ret_text[40])
{
    struct civil c = civil_from_us(utc_us);
    char fraction[16] = "";
    if (c.micros != 0) {
        (void)snprintf(fraction, sizeof(fraction), ".%06u", c.micros);
    }
    char text[80];
    (void)snprintf(text, sizeof(text), "%04d-%02u-%02uT%02u:%02u:%02u%s%.6s", (int)c.year, c.month,
                   c.day, c.hour, c.minute, c.second, fraction, zone);
    memcpy(ret_text, text, 40);
    ret_text[39] = '\0';
}

/* Reads `count` digits at `*at`; false when there are fewer. */
static bool digits(tide_str text, size_t *at, size_t count, unsigned *ret_value)
{
    unsigned value = 0;
    for (size_t i = 0; i < count; i++, (*at)++) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(text.ptr[*at] - '0');
    }
    *ret_value = value;
    return true;
}

static bool literal(tide_str text, size_t *at, const char *any_of)
{
    if (*at < text.len && text.ptr[*at] != '\0' && strchr(any_of, text.ptr[*at]) != NULL) {
        (*at)++;
        return true;
    }
    return false;
}

static bool fraction(tide_str text, size_t *at, unsigned *ret_micros)
{
    size_t count = 0;
    unsigned micros = 0;
    for (unsigned digit = 0; digits(text, at, 1, &digit); count++) {
        if (count < 6) {
            micros = micros * 10 + digit;
        }
    }
    for (size_t i = count; i < 6; i++) {
        micros *= 10;
    }
    *ret_micros = micros;
    return count > 0;
}

static bool offset(tide_str text, size_t *at, int64_t *ret_seconds)
{
    *ret_seconds = 0;
    if (literal(text, at, "Zz")) {
        return true;
    }
    bool negative = *at < text.len && text.ptr[*at] == '-';
    unsigned hours = 0;
    unsigned minutes = 0;
    if (!literal(text, at, "+-") || !digits(text, at, 2, &hours) || !literal(text, at, ":") ||
        !digits(text, at, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    int64_t seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    *ret_seconds = negative ? -seconds : seconds;
    return true;
}

static bool civil_is_valid(const struct civil *c)
{
    static const unsigned char month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (c->year % 4 == 0 && c->year % 100 != 0) || c->year % 400 == 0;
    return c->month >= 1 && c->month <= 12 && c->day >= 1 && c->day <= month_days[c->month - 1] &&
           (c->month != 2 || c->day < 29 || leap) && c->hour < 24 && c->minute < 60 &&
           c->second < 61;
}

tide_status tide_rfc3339_parse(tide_str text, int64_t *ret_utc_us, struct tide_error *err)
{
    struct civil c = {0};
    unsigned year = 0;
    size_t at = 0;
    int64_t offset_s = 0;
    bool ok = digits(text, &at, 4, &year) && literal(text, &at, "-") &&
              digits(text, &at, 2, &c.month) && literal(text, &at, "-") &&
              digits(text, &at, 2, &c.day) && literal(text, &at, "Tt") &&
              digits(text, &at, 2, &c.hour) && literal(text, &at, ":") &&
              digits(text, &at, 2, &c.minute) && literal(text, &at, ":") &&
              digits(text, &at, 2, &c.second) &&
              (!literal(text, &at, ".") || fraction(text, &at, &c.micros)) &&
              offset(text, &at, &offset_s) && at == text.len;
    c.year = year;
    if (!ok || !civil_is_valid(&c)) {
        int shown = text.len < 64 ? (int)text.len : 64;
        return tide_fail(err, TIDE_CORRUPT, "\"%.*s\" is no RFC 3339 time", shown, text.ptr);
    }
    int64_t seconds = days_from_civil(c.year, c.month, c.day) * S_PER_DAY + c.hour * INT64_C(3600) +
                      c.minute * INT64_C(60) + c.second - offset_s;
    *ret_utc_us = seconds * US_PER_S + c.micros;
    return TIDE_OK;
}
