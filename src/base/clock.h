/* Time: monotonic for deadlines, UTC for people and frames. All in microseconds. */
#pragma once

#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

/* A deadline that never comes. Deadlines are absolute, on the monotonic clock. */
#define TIDE_NO_DEADLINE INT64_MAX

/* Characters of "2026-11-29T13:40:55.567Z", without NUL. */
#define TIDE_RFC3339_MS_LEN 24

/** Microseconds of CLOCK_MONOTONIC. */
int64_t tide_clock_monotonic_us(void);

/** Microseconds since 1970-01-01 UTC. */
int64_t tide_clock_utc_us(void);

/** The deadline `delay_us` from now; saturates at TIDE_NO_DEADLINE. */
int64_t tide_clock_deadline_us(int64_t delay_us);

/** What poll() waits until then: milliseconds, rounded up, a minute at most; -1 for ever. */
int tide_clock_timeout_ms(int64_t deadline_us);

/** RFC 3339 in UTC with three fraction digits (truncated) and Z; years 0 to 9999 (clamped). */
void tide_rfc3339_ms(int64_t utc_us, char ret_text[TIDE_RFC3339_MS_LEN + 1]);

/**
 * RFC 3339 in UTC as chrono writes it: no fraction when it is zero, else six digits; `zone` is "Z"
 * or "+00:00". `ret_text` needs 40 bytes.
 */
void tide_rfc3339_us(int64_t utc_us, const char *zone, char ret_text[40]);

/** Parses RFC 3339 (any offset, any number of fraction digits; below a microsecond is cut). */
tide_status tide_rfc3339_parse(tide_str text, int64_t *ret_utc_us, struct tide_error *err);
