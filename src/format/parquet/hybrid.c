#include "format/parquet/hybrid.h"

#include "base/status.h"
#include "format/parquet/varint.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Parquet's byte order is used as it is");

#define GROUP 8

void tide_hybrid_append_run(struct tide_buf *out, uint32_t value, size_t count, unsigned width)
{
    tide_varint_append(out, (uint64_t)count << 1);
    tide_buf_append(out, &value, (width + 7) / 8);
}

/* Values of one or of four bytes. */
struct values {
    const void *list;
    size_t count;
    bool is_wide;
};

static inline uint32_t value_at(const struct values *values, size_t at)
{
    return values->is_wide ? ((const uint32_t *)values->list)[at]
                           : ((const uint8_t *)values->list)[at];
}

static size_t run_length(const struct values *values, size_t start)
{
    uint32_t value = value_at(values, start);
    size_t at = start + 1;
    while (at < values->count && value_at(values, at) == value) {
        at++;
    }
    return at - start;
}

/* Packs the values from `start` to `end`; the last group is filled up with zeros. */
static void append_packed(struct tide_buf *out, const struct values *values, size_t start,
                          size_t end, unsigned width)
{
    size_t groups = (end - start + GROUP - 1) / GROUP;
    tide_varint_append(out, (uint64_t)groups << 1 | 1);
    size_t size = groups * width;
    char *to = tide_buf_reserve(out, size + sizeof(uint64_t));
    char *stop = to + size;
    uint64_t bits = 0;
    unsigned filled = 0;
    for (size_t at = start; at < end; at++) {
        bits |= (uint64_t)value_at(values, at) << filled;
        filled += width;
        if (filled >= 32) {
            memcpy(to, &bits, 4);
            to += 4;
            bits >>= 32;
            filled -= 32;
        }
    }
    memcpy(to, &bits, sizeof(bits));
    to += (filled + 7) / 8;
    if (to < stop) {
        memset(to, 0, (size_t)(stop - to));
    }
    out->len += size;
}

static void append(struct tide_buf *out, const struct values *values, unsigned width)
{
    size_t at = 0;
    while (at < values->count) {
        size_t packed = at;
        size_t run = 0;
        while (packed < values->count) {
            run = run_length(values, packed);
            if (run >= GROUP || packed + run == values->count) {
                break;
            }
            run = 0;
            packed += GROUP;
        }
        if (packed > values->count) {
            packed = values->count;
        }
        if (packed > at) {
            append_packed(out, values, at, packed, width);
        }
        if (run > 0) {
            tide_hybrid_append_run(out, value_at(values, packed), run, width);
        }
        at = packed + run;
    }
}

void tide_hybrid_append_u8(struct tide_buf *out, const uint8_t *values, size_t count,
                           unsigned width)
{
    TIDE_ASSERT(width >= 1 && width <= 8);
    append(out, &(struct values){values, count, false}, width);
}

void tide_hybrid_append_u32(struct tide_buf *out, const uint32_t *values, size_t count,
                            unsigned width)
{
    TIDE_ASSERT(width >= 1 && width <= 32);
    append(out, &(struct values){values, count, true}, width);
}

struct tide_hybrid_reader tide_hybrid_reader_of(tide_str bytes, unsigned width)
{
    TIDE_ASSERT(width <= 32);
    const char *start = bytes.len == 0 ? "" : bytes.ptr;
    struct tide_hybrid_reader reader = {.pos = start, .end = start + bytes.len, .width = width};
    if (width == 0) {
        reader.left = SIZE_MAX;
    }
    return reader;
}

static bool take_varint(struct tide_hybrid_reader *reader, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35 && reader->pos < reader->end; shift += 7) {
        uint8_t byte = (uint8_t)*reader->pos++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* The head of the next run or of packed values. Packed groups may end early at the page's end. */
static bool take_head(struct tide_hybrid_reader *reader)
{
    uint64_t head = 0;
    reader->pos += reader->bit > 0; /* bits that fill up the last byte */
    reader->bit = 0;
    if (!take_varint(reader, &head) || head >> 1 == 0) {
        return false;
    }
    size_t bytes_left = (size_t)(reader->end - reader->pos);
    reader->is_packed = head & 1;
    if (reader->is_packed) {
        uint64_t values = (head >> 1) * GROUP;
        uint64_t there = (uint64_t)bytes_left * 8 / reader->width;
        reader->left = values < there ? values : there;
        return reader->left > 0;
    }
    size_t size = (reader->width + 7) / 8;
    if (bytes_left < size) {
        return false;
    }
    reader->value = 0;
    memcpy(&reader->value, reader->pos, size);
    reader->pos += size;
    reader->left = head >> 1;
    return reader->width == 32 || reader->value >> reader->width == 0;
}

/* Width and bit together stay below 40, so that eight bytes hold each value. */
static void read_packed(struct tide_hybrid_reader *reader, uint32_t *values, size_t count)
{
    unsigned width = reader->width;
    uint64_t mask = ((uint64_t)1 << width) - 1;
    const char *pos = reader->pos;
    unsigned bit = reader->bit;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = 0;
        if (TIDE_LIKELY(reader->end - pos >= (ptrdiff_t)sizeof(word))) {
            memcpy(&word, pos, sizeof(word));
        } else {
            memcpy(&word, pos, (size_t)(reader->end - pos));
        }
        values[i] = (uint32_t)(word >> bit & mask);
        bit += width;
        pos += bit / 8;
        bit %= 8;
    }
    reader->pos = pos;
    reader->bit = bit;
}

bool tide_hybrid_read(struct tide_hybrid_reader *reader, uint32_t *ret_values, size_t count)
{
    while (count > 0) {
        if (reader->left == 0 && !take_head(reader)) {
            return false;
        }
        size_t now = count < reader->left ? count : reader->left;
        if (reader->is_packed) {
            read_packed(reader, ret_values, now);
        } else {
            for (size_t i = 0; i < now; i++) {
                ret_values[i] = reader->value;
            }
        }
        reader->left -= now;
        ret_values += now;
        count -= now;
    }
    return true;
}

bool tide_hybrid_take_run(struct tide_hybrid_reader *reader, uint32_t value, size_t count)
{
    struct tide_hybrid_reader ahead = *reader;
    if ((ahead.left == 0 && count > 0 && !take_head(&ahead)) || ahead.is_packed ||
        ahead.value != value || ahead.left < count) {
        return false;
    }
    ahead.left -= count;
    *reader = ahead;
    return true;
}
