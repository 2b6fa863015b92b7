/*
 * A set of 64-bit numbers that are mostly runs: the seqs of a snapshot that were seen.
 *
 * Numbers are kept in blocks of 2^16. A block is full (no memory), a short sorted list of runs, or
 * a bitmap of 8 KiB; so memory grows with what was put in, never with how large the numbers are,
 * and is at worst about one bit a number where they are dense. Putting them in in order costs a
 * comparison and an increment. Not for several threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_interval_block;

struct tide_interval_set {
    struct tide_interval_block *blocks; /* open addressing by number >> 16; private */
    size_t cap;                         /* a power of two, or 0 */
    size_t block_count;
    struct tide_interval_block *last; /* the block of the latest insert, or NULL */
    uint64_t count;                   /* numbers in the set */
    uint64_t min;                     /* when count > 0 */
    uint64_t max;                     /* when count > 0 */
};

/* Both ends included. */
struct tide_interval {
    uint64_t first;
    uint64_t last;
};

/** Frees the memory and leaves an empty set. `{0}` is an empty set. For TIDE_CLEANUP too. */
void tide_interval_set_done(struct tide_interval_set *set);

/** Puts `number` in; false when it was there already. */
bool tide_interval_set_insert(struct tide_interval_set *set, uint64_t number);

/** Whether `number` was put in. */
bool tide_interval_set_contains(const struct tide_interval_set *set, uint64_t number);

/** How many numbers of the set are below `bound`. */
uint64_t tide_interval_set_count_below(const struct tide_interval_set *set, uint64_t bound);

/**
 * The first ranges of numbers from `from` on, below `bound`, that are not in the set: at most
 * `ranges_max`, ascending; returns how many. Costs a sort of the blocks.
 */
size_t tide_interval_set_missing(const struct tide_interval_set *set, uint64_t from, uint64_t bound,
                                 struct tide_interval *ret_ranges, size_t ranges_max);

/** As above, the ranges that are in the set. */
size_t tide_interval_set_present(const struct tide_interval_set *set, uint64_t from, uint64_t bound,
                                 struct tide_interval *ret_ranges, size_t ranges_max);

/** Bytes of memory that the set holds. */
size_t tide_interval_set_size(const struct tide_interval_set *set);
