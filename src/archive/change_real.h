/* Binary floats between text and double, exactly. Pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/** The double nearest to a JSON number; false when `text` is none, or none that is finite. */
bool tide_change_real_parse(tide_str text, double *ret_value);

/**
 * Appends a finite double as PostgreSQL writes it: the fewest digits that read back, with an
 * exponent when it is under -4 or at least `exponent_max` (15 for float8, 6 for float4).
 */
void tide_change_real_append_pg(struct tide_buf *buf, double value, int exponent_max);
