#include "archive/change_order.h"

#include "base/alloc.h"

#include <stdlib.h>

#define HEAD_BYTES 16

/* With the key's first bytes as numbers, which mostly tell. */
struct entry {
    uint64_t head[HEAD_BYTES / sizeof(uint64_t)];
    const struct tide_change_held *held;
};

static tide_str key_of(const struct tide_change_rows *rows, uint32_t number)
{
    return tide_change_held_key(&rows->items[number]);
}

static struct entry entry_of(const struct tide_change_held *held)
{
    struct entry entry = {.held = held};
    tide_str key = tide_change_held_key(held);
    memcpy(entry.head, key.ptr, key.len < HEAD_BYTES ? key.len : HEAD_BYTES);
    entry.head[0] = __builtin_bswap64(entry.head[0]);
    entry.head[1] = __builtin_bswap64(entry.head[1]);
    return entry;
}

static int compare(const void *a, const void *b)
{
    const struct entry *first = a;
    const struct entry *second = b;
    for (size_t i = 0; i < HEAD_BYTES / sizeof(uint64_t); i++) {
        if (first->head[i] != second->head[i]) {
            return first->head[i] < second->head[i] ? -1 : 1;
        }
    }
    return tide_str_compare(tide_change_held_key(first->held), tide_change_held_key(second->held));
}

/* How many of the numbers are in their order already. */
static size_t sorted_count(const struct tide_change_rows *rows, const uint32_t *numbers,
                           size_t count)
{
    size_t sorted = 1;
    while (sorted < count &&
           tide_str_compare(key_of(rows, numbers[sorted - 1]), key_of(rows, numbers[sorted])) < 0) {
        sorted++;
    }
    return sorted < count ? sorted : count;
}

/* Puts the sorted entries among the numbers before them, from the end. */
static void merge(const struct tide_change_rows *rows, uint32_t *numbers, size_t count,
                  const struct entry *entries, size_t entry_count)
{
    size_t left = count - entry_count;
    for (size_t to = count; entry_count > 0; to--) {
        const struct tide_change_held *held = entries[entry_count - 1].held;
        if (left > 0 &&
            tide_str_compare(key_of(rows, numbers[left - 1]), tide_change_held_key(held)) > 0) {
            numbers[to - 1] = numbers[--left];
        } else {
            numbers[to - 1] = (uint32_t)(held - rows->items);
            entry_count--;
        }
    }
}

void tide_change_order(const struct tide_change_rows *rows, uint32_t *numbers, size_t count)
{
    size_t sorted = sorted_count(rows, numbers, count);
    size_t rest = count - sorted;
    if (rest == 0) {
        return;
    }
    struct entry *entries = tide_alloc(rest, sizeof(*entries));
    for (size_t i = 0; i < rest; i++) {
        entries[i] = entry_of(&rows->items[numbers[sorted + i]]);
    }
    qsort(entries, rest, sizeof(*entries), compare);
    merge(rows, numbers, count, entries, rest);
    free(entries);
}
