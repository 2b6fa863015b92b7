/* Decimals between text and the integer that Parquet keeps of them. Pure; never through a double.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "format/parquet/schema.h"

#include <stdbool.h>

/** Whether the value has at most `precision` (1 to 38) digits. */
bool tide_parquet_decimal_fits(tide_int128 value, unsigned precision);

/**
 * True and sets the value times 10^scale when `text` is a decimal (`-` or `+` allowed, digits, a
 * point with digits; an exponent as "1.5e-3") of at most 38 digits that needs no more than `scale`
 * digits behind the point. False for anything else, NaN and infinities too.
 */
bool tide_parquet_decimal_from_text(tide_str text, unsigned scale, tide_int128 *ret_value);

/** Appends the value over 10^scale, with exactly `scale` digits behind the point. */
void tide_parquet_decimal_append(struct tide_buf *out, tide_int128 value, unsigned scale);
