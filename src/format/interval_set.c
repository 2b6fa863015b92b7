#include "format/interval_set.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_NUMBERS 65536u
#define BITMAP_WORDS  (BLOCK_NUMBERS / 64)
#define RUNS_MAX      512u /* more runs than this and a bitmap is the better form */

struct run {
    uint16_t first;
    uint16_t last;
};

/* count 0: a free place. Full: `data` NULL. Else runs when run_cap > 0, else a bitmap. */
struct tide_interval_block {
    uint64_t number; /* of the block: its numbers' upper 48 bits */
    void *data;
    uint32_t count;
    uint16_t run_count;
    uint16_t run_cap;
};

static bool is_full(const struct tide_interval_block *block)
{
    return block->count == BLOCK_NUMBERS;
}

static bool is_runs(const struct tide_interval_block *block)
{
    return block->run_cap > 0;
}

void tide_interval_set_done(struct tide_interval_set *set)
{
    for (size_t i = 0; i < set->cap; i++) {
        free(set->blocks[i].data);
    }
    free(set->blocks);
    *set = (struct tide_interval_set){0};
}

/* The block's place, or the free place where it would go. */
static struct tide_interval_block *find(const struct tide_interval_set *set, uint64_t number)
{
    size_t mask = set->cap - 1;
    size_t i = (size_t)((number * 0x9e3779b97f4a7c15u) >> 20) & mask;
    while (set->blocks[i].count != 0 && set->blocks[i].number != number) {
        i = (i + 1) & mask;
    }
    return &set->blocks[i];
}

static void grow(struct tide_interval_set *set)
{
    struct tide_interval_set bigger = *set;
    bigger.cap = set->cap == 0 ? 4 : set->cap * 2;
    bigger.blocks = tide_alloc(bigger.cap, sizeof(*bigger.blocks));
    bigger.last = NULL;
    for (size_t i = 0; i < set->cap; i++) {
        if (set->blocks[i].count != 0) {
            *find(&bigger, set->blocks[i].number) = set->blocks[i];
        }
    }
    free(set->blocks);
    *set = bigger;
}

/* The index of the first run that ends at or after `low`, or run_count. */
static size_t run_at(const struct tide_interval_block *block, uint32_t low)
{
    const struct run *runs = block->data;
    size_t from = 0;
    size_t to = block->run_count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (runs[middle].last < low) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static void set_bits(uint64_t *bits, struct run run)
{
    for (uint32_t i = run.first; i <= run.last; i++) {
        bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
}

static void turn_into_bitmap(struct tide_interval_block *block)
{
    uint64_t *bits = tide_alloc(BITMAP_WORDS, sizeof(*bits));
    const struct run *runs = block->data;
    for (size_t i = 0; i < block->run_count; i++) {
        set_bits(bits, runs[i]);
    }
    free(block->data);
    block->data = bits;
    block->run_count = 0;
    block->run_cap = 0;
}

static void insert_bit(struct tide_interval_block *block, uint32_t low)
{
    uint64_t *bits = block->data;
    bits[low / 64] |= UINT64_C(1) << (low % 64);
}

static void insert_new_run(struct tide_interval_block *block, size_t at, uint32_t low)
{
    if (block->run_count == RUNS_MAX) {
        turn_into_bitmap(block);
        insert_bit(block, low);
        return;
    }
    if (block->run_count == block->run_cap) {
        block->run_cap = (uint16_t)(block->run_cap == 0 ? 2 : block->run_cap * 2);
        block->data = tide_realloc(block->data, block->run_cap, sizeof(struct run));
    }
    struct run *runs = block->data;
    memmove(&runs[at + 1], &runs[at], (block->run_count - at) * sizeof(*runs));
    runs[at] = (struct run){(uint16_t)low, (uint16_t)low};
    block->run_count++;
}

/* `low` is not in the block; `at` is what run_at says. */
static void insert_into_runs(struct tide_interval_block *block, size_t at, uint32_t low)
{
    struct run *runs = block->data;
    bool joins_left = at > 0 && runs[at - 1].last + 1u == low;
    bool joins_right = at < block->run_count && runs[at].first == low + 1u;
    if (joins_left && joins_right) {
        runs[at - 1].last = runs[at].last;
        block->run_count--;
        memmove(&runs[at], &runs[at + 1], (block->run_count - at) * sizeof(*runs));
    } else if (joins_left) {
        runs[at - 1].last = (uint16_t)low;
    } else if (joins_right) {
        runs[at].first = (uint16_t)low;
    } else {
        insert_new_run(block, at, low);
    }
}

static bool block_contains(const struct tide_interval_block *block, uint32_t low)
{
    if (is_full(block)) {
        return true;
    }
    if (is_runs(block)) {
        size_t at = run_at(block, low);
        return at < block->run_count && ((const struct run *)block->data)[at].first <= low;
    }
    return (((const uint64_t *)block->data)[low / 64] >> (low % 64) & 1) != 0;
}

static bool block_insert(struct tide_interval_block *block, uint32_t low)
{
    if (is_full(block)) {
        return false;
    }
    if (is_runs(block) || block->count == 0) {
        size_t at = run_at(block, low);
        if (at < block->run_count && ((const struct run *)block->data)[at].first <= low) {
            return false;
        }
        insert_into_runs(block, at, low);
    } else if (block_contains(block, low)) {
        return false;
    } else {
        insert_bit(block, low);
    }
    block->count++;
    if (is_full(block)) {
        free(block->data);
        block->data = NULL;
        block->run_cap = 0;
        block->run_count = 0;
    }
    return true;
}

static struct tide_interval_block *block_for(struct tide_interval_set *set, uint64_t number)
{
    if (set->last != NULL && set->last->number == number) {
        return set->last;
    }
    if ((set->block_count + 1) * 4 > set->cap * 3) {
        grow(set);
    }
    struct tide_interval_block *block = find(set, number);
    if (block->count == 0) {
        block->number = number;
        set->block_count++;
    }
    set->last = block;
    return block;
}

bool tide_interval_set_insert(struct tide_interval_set *set, uint64_t number)
{
    struct tide_interval_block *block = block_for(set, number >> 16);
    if (!block_insert(block, (uint32_t)(number & 0xffff))) {
        return false;
    }
    set->min = set->count == 0 || number < set->min ? number : set->min;
    set->max = set->count == 0 || number > set->max ? number : set->max;
    set->count++;
    return true;
}

bool tide_interval_set_contains(const struct tide_interval_set *set, uint64_t number)
{
    if (set->count == 0 || number < set->min || number > set->max) {
        return false;
    }
    const struct tide_interval_block *block = find(set, number >> 16);
    return block->count != 0 && block_contains(block, (uint32_t)(number & 0xffff));
}

static uint64_t bitmap_count_below(const uint64_t *bits, uint32_t bound)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < bound / 64; i++) {
        count += (uint64_t)__builtin_popcountll(bits[i]);
    }
    uint64_t below = (UINT64_C(1) << (bound % 64)) - 1;
    return bound % 64 == 0 ? count
                           : count + (uint64_t)__builtin_popcountll(bits[bound / 64] & below);
}

static uint64_t block_count_below(const struct tide_interval_block *block, uint32_t bound)
{
    if (is_full(block)) {
        return bound;
    }
    if (!is_runs(block)) {
        return bitmap_count_below(block->data, bound);
    }
    const struct run *runs = block->data;
    uint64_t count = 0;
    for (size_t i = 0; i < block->run_count && runs[i].first < bound; i++) {
        uint32_t end = runs[i].last < bound ? runs[i].last + 1u : bound;
        count += end - runs[i].first;
    }
    return count;
}

uint64_t tide_interval_set_count_below(const struct tide_interval_set *set, uint64_t bound)
{
    if (set->count == 0 || bound > set->max) {
        return set->count;
    }
    uint64_t count = 0;
    for (size_t i = 0; i < set->cap; i++) {
        const struct tide_interval_block *block = &set->blocks[i];
        if (block->count != 0 && block->number < bound >> 16) {
            count += block->count;
        } else if (block->count != 0 && block->number == bound >> 16) {
            count += block_count_below(block, (uint32_t)(bound & 0xffff));
        }
    }
    return count;
}

/* Walking in order: the blocks sorted by number. */
struct walk {
    const struct tide_interval_block **blocks;
    size_t count;
    size_t at; /* blocks before it are behind */
};

static int compare_blocks(const void *a, const void *b)
{
    const struct tide_interval_block *const *left = a;
    const struct tide_interval_block *const *right = b;
    return ((*left)->number > (*right)->number) - ((*left)->number < (*right)->number);
}

static struct walk walk_start(const struct tide_interval_set *set, uint64_t from)
{
    struct walk walk = {.blocks = tide_alloc(set->block_count + 1, sizeof(*walk.blocks))};
    for (size_t i = 0; i < set->cap; i++) {
        if (set->blocks[i].count != 0 && set->blocks[i].number >= from >> 16) {
            walk.blocks[walk.count++] = &set->blocks[i];
        }
    }
    qsort(walk.blocks, walk.count, sizeof(*walk.blocks), compare_blocks);
    return walk;
}

/* First number of the block at or after `low` that is in it, or is not; BLOCK_NUMBERS: none. */
static uint32_t bitmap_next(const uint64_t *bits, uint32_t low, bool wanted)
{
    for (uint32_t i = low / 64; i < BITMAP_WORDS; i++) {
        uint64_t word = wanted ? bits[i] : ~bits[i];
        word &= i == low / 64 ? ~UINT64_C(0) << (low % 64) : ~UINT64_C(0);
        if (word != 0) {
            return i * 64 + (uint32_t)__builtin_ctzll(word);
        }
    }
    return BLOCK_NUMBERS;
}

static uint32_t runs_next(const struct tide_interval_block *block, uint32_t low, bool wanted)
{
    const struct run *runs = block->data;
    size_t at = run_at(block, low);
    if (at == block->run_count) {
        return wanted ? BLOCK_NUMBERS : low;
    }
    if (wanted) {
        return runs[at].first > low ? runs[at].first : low;
    }
    return runs[at].first > low ? low : runs[at].last + 1u;
}

static uint32_t block_next(const struct tide_interval_block *block, uint32_t low, bool wanted)
{
    if (is_full(block)) {
        return wanted ? low : BLOCK_NUMBERS;
    }
    return is_runs(block) ? runs_next(block, low, wanted) : bitmap_next(block->data, low, wanted);
}

/* Moves *pos to the first number at or after it that is in the set; false: there is none. */
static bool next_present(struct walk *walk, uint64_t *pos)
{
    while (walk->at < walk->count) {
        const struct tide_interval_block *block = walk->blocks[walk->at];
        uint64_t base = block->number << 16;
        if (base + (BLOCK_NUMBERS - 1) >= *pos) {
            uint32_t low = base > *pos ? 0 : (uint32_t)(*pos & 0xffff);
            uint32_t found = block_next(block, low, true);
            if (found < BLOCK_NUMBERS) {
                *pos = base + found;
                return true;
            }
        }
        walk->at++;
    }
    return false;
}

/* Moves *pos to the first number at or after it that is not in the set. */
static bool next_missing(struct walk *walk, uint64_t *pos)
{
    for (; walk->at < walk->count; walk->at++) {
        const struct tide_interval_block *block = walk->blocks[walk->at];
        if (block->number > *pos >> 16) {
            return true;
        }
        if (block->number == *pos >> 16) {
            uint32_t found = block_next(block, (uint32_t)(*pos & 0xffff), false);
            if (found < BLOCK_NUMBERS) {
                *pos = (block->number << 16) + found;
                return true;
            }
            if (block->number == UINT64_MAX >> 16) {
                return false;
            }
            *pos = (block->number + 1) << 16;
        }
    }
    return true;
}

static size_t ranges(const struct tide_interval_set *set, struct tide_interval span, bool wanted,
                     struct tide_interval *ret_ranges, size_t ranges_max)
{
    struct walk walk = walk_start(set, span.first);
    uint64_t pos = span.first;
    size_t count = 0;
    while (count < ranges_max && (wanted ? next_present(&walk, &pos) : next_missing(&walk, &pos)) &&
           pos < span.last) {
        ret_ranges[count].first = pos;
        bool ends = wanted ? next_missing(&walk, &pos) : next_present(&walk, &pos);
        bool is_inside = ends && pos < span.last;
        ret_ranges[count++].last = (is_inside ? pos : span.last) - 1;
        if (!is_inside) {
            break;
        }
    }
    free(walk.blocks);
    return count;
}

size_t tide_interval_set_missing(const struct tide_interval_set *set, uint64_t from, uint64_t bound,
                                 struct tide_interval *ret_ranges, size_t ranges_max)
{
    return ranges(set, (struct tide_interval){from, bound}, false, ret_ranges, ranges_max);
}

size_t tide_interval_set_present(const struct tide_interval_set *set, uint64_t from, uint64_t bound,
                                 struct tide_interval *ret_ranges, size_t ranges_max)
{
    return ranges(set, (struct tide_interval){from, bound}, true, ret_ranges, ranges_max);
}

size_t tide_interval_set_size(const struct tide_interval_set *set)
{
    size_t size = set->cap * sizeof(*set->blocks);
    for (size_t i = 0; i < set->cap; i++) {
        const struct tide_interval_block *block = &set->blocks[i];
        if (block->count != 0 && is_runs(block)) {
            size += block->run_cap * sizeof(struct run);
        } else if (block->count != 0 && !is_full(block)) {
            size += BITMAP_WORDS * sizeof(uint64_t);
        }
    }
    return size;
}
