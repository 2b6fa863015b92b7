/*
 * From PLAIN bytes, or numbers of a dictionary, to values in memory. Pure. Private to this folder.
 */
#pragma once

#include "format/parquet/metadata.h"

/**
 * Decodes `count` PLAIN values, one after another, to `ret_values`, which has room for them in the
 * column's storage. Slices borrow from `bytes`. Text is checked to be UTF-8. Bytes that are left
 * over are passed over.
 */
tide_status tide_parquet_plain_read(const struct tide_parquet_column *column,
                                    const struct tide_parquet_leaf *leaf, tide_str bytes,
                                    size_t count, void *ret_values, struct tide_error *err);

/** Sets values of `size` bytes by their numbers; false when one is not below `known_count`. */
bool tide_parquet_gather(const void *known, size_t known_count, const uint32_t *numbers,
                         size_t count, size_t size, void *ret_values);

/**
 * Moves the `value_count` values of `size` bytes at the start of `values` apart, so that of `count`
 * slots those with a 0 in `is_null` have them, in order; the others become zeros.
 */
void tide_parquet_spread(void *values, size_t size, const uint8_t *is_null, size_t count,
                         size_t value_count);
