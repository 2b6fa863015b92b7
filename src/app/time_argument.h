/* Moments as users write them. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* What every place that takes a moment says of it. */
#define TIDE_TIME_ARGUMENT_HELP                                                                    \
    "a time (2026-11-29T13:40:55Z, 2026-11-29 13:40 or 2026-11-29, in UTC where no zone is "       \
    "named) or an age (90s, 15m, 12h, 30d, 2w)"

/** An age in microseconds: a whole number and one of s, m, h, d, w. */
bool tide_age_parse(tide_str text, int64_t *ret_age_us);

/** A moment in microseconds since 1970-01-01 UTC; an age counts back from `now_us`. False when it
 * is none. */
bool tide_time_argument_parse(tide_str text, int64_t now_us, int64_t *ret_utc_us);
