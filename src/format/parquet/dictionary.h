/*
 * The distinct values of a column and their numbers, in order of first appearance. Pure. Private
 * to this folder.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define TIDE_PARQUET_NO_INDEX UINT32_MAX

struct tide_parquet_dictionary_slot {
    uint32_t hash;
    uint32_t number; /* of the value, from 1; 0: free */
};

struct tide_parquet_dictionary {
    struct tide_buf values; /* PLAIN */
    struct tide_buf starts; /* size_t: where each value's bytes start in `values` */
    struct tide_parquet_dictionary_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
};

/** Frees the memory and leaves an empty dictionary. `{0}` is an empty one. */
void tide_parquet_dictionary_done(struct tide_parquet_dictionary *dictionary);

/** Forgets all values, keeps the memory. */
void tide_parquet_dictionary_reset(struct tide_parquet_dictionary *dictionary);

/**
 * The number, from 0, of a value of `len` bytes, which is added if it is new and `values` stays
 * within `size_max`; else TIDE_PARQUET_NO_INDEX. `is_prefixed`: values have their length before
 * them. All values of one dictionary have it or have it not.
 */
uint32_t tide_parquet_dictionary_index(struct tide_parquet_dictionary *dictionary,
                                       const char *bytes, size_t len, bool is_prefixed,
                                       size_t size_max);

/** The PLAIN form of a value: with its length before it if `is_prefixed`. */
tide_str tide_parquet_dictionary_value(const struct tide_parquet_dictionary *dictionary,
                                       uint32_t index);
