/* The canonical text of a binary float. Pure, and the same in every locale. */
#pragma once

#include <stddef.h>

#define TIDE_REAL_TEXT_SIZE 32

/**
 * Writes `value` as text that reads back to the same double, NUL-terminated, and returns its
 * length.
 *
 * Shape: finite values are JSON numbers that show they are no integers ("1.0", "-0.0", "1e+300");
 *        decimals of up to 15 digits are as short as can be. Else "NaN", "Infinity", "-Infinity".
 */
size_t tide_real_to_text(double value, char ret_text[TIDE_REAL_TEXT_SIZE]);
