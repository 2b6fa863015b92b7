/* The least and the greatest of a column's values, in the order that its type has. Pure. Private
 * to this folder. */
#pragma once

#include "format/parquet/metadata.h"

/* Longer bounds of strings are cut to this many bytes. */
#define TIDE_PARQUET_BOUND_BYTES 64

/**
 * Sets the minimum and maximum of `count` PLAIN values (booleans a byte each). There are none where
 * a NaN is among the values, where there is no value, and where a greatest string cannot be cut.
 * The slices live in `arena`.
 */
void tide_parquet_statistics_of(const struct tide_parquet_column *column,
                                const struct tide_parquet_leaf *leaf, tide_str plain, size_t count,
                                struct tide_arena *arena,
                                struct tide_parquet_statistics *statistics);
