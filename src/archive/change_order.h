/* The order of a state's rows: by the bytes of their encoded keys. Pure. Private to change_fold.c.
 */
#pragma once

#include "archive/change_state.h"

/**
 * Sorts numbers of items. Nearly free where keys came in their order but for some at the end, as
 * from a copy that reads by the key, and changes after it.
 */
void tide_change_order(const struct tide_change_rows *rows, uint32_t *numbers, size_t count);
