#include "format/parquet/dictionary.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>
#include <xxhash.h>

#define SLOTS_FIRST 1024

void tide_parquet_dictionary_done(struct tide_parquet_dictionary *dictionary)
{
    tide_buf_done(&dictionary->values);
    tide_buf_done(&dictionary->starts);
    free(dictionary->slots);
    *dictionary = (struct tide_parquet_dictionary){0};
}

void tide_parquet_dictionary_reset(struct tide_parquet_dictionary *dictionary)
{
    tide_buf_reset(&dictionary->values);
    tide_buf_reset(&dictionary->starts);
    if (dictionary->count > 0) {
        memset(dictionary->slots, 0, dictionary->slot_count * sizeof(*dictionary->slots));
    }
    dictionary->count = 0;
}

static size_t start_of(const struct tide_parquet_dictionary *dictionary, size_t index)
{
    size_t start = 0;
    if (index == dictionary->count) {
        return dictionary->values.len;
    }
    memcpy(&start, dictionary->starts.ptr + index * sizeof(start), sizeof(start));
    return start;
}

tide_str tide_parquet_dictionary_value(const struct tide_parquet_dictionary *dictionary,
                                       uint32_t index)
{
    size_t start = start_of(dictionary, index);
    size_t end = start_of(dictionary, (size_t)index + 1);
    return tide_str_of(dictionary->values.ptr + start, end - start);
}

static uint32_t hash_of(const char *bytes, size_t len)
{
    uint64_t word = 0;
    if (len == sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
    } else if (len == sizeof(uint32_t)) {
        memcpy(&word, bytes, sizeof(uint32_t));
    } else {
        return (uint32_t)XXH3_64bits(bytes, len);
    }
    word *= 0x9e3779b97f4a7c15U;
    return (uint32_t)(word >> 32) ^ (uint32_t)(word >> 50);
}

static void grow(struct tide_parquet_dictionary *dictionary)
{
    size_t count = dictionary->slot_count == 0 ? SLOTS_FIRST : dictionary->slot_count * 2;
    struct tide_parquet_dictionary_slot *slots = tide_alloc(count, sizeof(*slots));
    for (size_t i = 0; i < dictionary->slot_count; i++) {
        struct tide_parquet_dictionary_slot slot = dictionary->slots[i];
        size_t at = slot.hash & (count - 1);
        while (slot.number != 0 && slots[at].number != 0) {
            at = (at + 1) & (count - 1);
        }
        if (slot.number != 0) {
            slots[at] = slot;
        }
    }
    free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->slot_count = count;
}

static bool is_value(const struct tide_parquet_dictionary *dictionary, uint32_t index,
                     const char *bytes, size_t len, size_t prefix)
{
    tide_str value = tide_parquet_dictionary_value(dictionary, index);
    return value.len == len + prefix && (len == 0 || memcmp(value.ptr + prefix, bytes, len) == 0);
}

static void add(struct tide_parquet_dictionary *dictionary, const char *bytes, size_t len,
                bool is_prefixed)
{
    size_t start = dictionary->values.len;
    uint32_t prefix = (uint32_t)len;
    tide_buf_append(&dictionary->starts, &start, sizeof(start));
    if (is_prefixed) {
        tide_buf_append(&dictionary->values, &prefix, sizeof(prefix));
    }
    tide_buf_append(&dictionary->values, bytes, len);
    dictionary->count++;
}

uint32_t tide_parquet_dictionary_index(struct tide_parquet_dictionary *dictionary,
                                       const char *bytes, size_t len, bool is_prefixed,
                                       size_t size_max)
{
    size_t prefix = is_prefixed ? sizeof(uint32_t) : 0;
    if (dictionary->count * 2 >= dictionary->slot_count) {
        grow(dictionary);
    }
    uint32_t hash = hash_of(bytes, len);
    size_t mask = dictionary->slot_count - 1;
    size_t at = hash & mask;
    while (dictionary->slots[at].number != 0) {
        uint32_t index = dictionary->slots[at].number - 1;
        if (dictionary->slots[at].hash == hash && is_value(dictionary, index, bytes, len, prefix)) {
            return index;
        }
        at = (at + 1) & mask;
    }
    if (len + prefix > size_max || dictionary->values.len > size_max - len - prefix) {
        return TIDE_PARQUET_NO_INDEX;
    }
    add(dictionary, bytes, len, is_prefixed);
    dictionary->slots[at] =
        (struct tide_parquet_dictionary_slot){hash, (uint32_t)dictionary->count};
    return (uint32_t)dictionary->count - 1;
}
