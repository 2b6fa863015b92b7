/*
 * Dates and times between the one spelling that sources give them and the integers of Parquet.
 * Pure. Years 0001 to 9999.
 *
 *     2026-11-29    13:40:55.5    2026-11-29T13:40:55.5
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/** True when `text` is what the appending function of the same name writes, and nothing else. */
bool tide_change_date_parse(tide_str text, int32_t *ret_days);
bool tide_change_clock_parse(tide_str text, int64_t *ret_us);
bool tide_change_timestamp_parse(tide_str text, int64_t *ret_us);

/** Appends; false, and nothing appended, for what has no such text. */
bool tide_change_date_append(struct tide_buf *buf, int32_t days);
bool tide_change_clock_append(struct tide_buf *buf, int64_t us);
bool tide_change_timestamp_append(struct tide_buf *buf, int64_t us);
