/* Whether values that come from a file are what their kinds say. Pure. */
#pragma once

#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>

/** Whether each has the text of its kind (model/value.h), so that it can be written as JSON.
 * `values` may be NULL. */
bool tide_change_values_are_sound(const struct tide_value *values, size_t count);
