/*
 * Parquet's RLE / bit-packed hybrid: levels, dictionary indexes and (in some files) booleans. Pure.
 *
 *     run of one value = count << 1 as a varint, the value in (width + 7) / 8 bytes
 *     packed values    = groups << 1 | 1 as a varint, 8 values a group, lowest bits first
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How many bits the values 0 to `max` take. */
static inline unsigned tide_hybrid_width(uint32_t max)
{
    return max == 0 ? 0 : 32 - (unsigned)__builtin_clz(max);
}

/** Appends `count` values of `width` bits each (1 to 32; no value is larger). */
void tide_hybrid_append_u8(struct tide_buf *out, const uint8_t *values, size_t count,
                           unsigned width);
void tide_hybrid_append_u32(struct tide_buf *out, const uint32_t *values, size_t count,
                            unsigned width);

/** Appends one run: `count` times `value`. */
void tide_hybrid_append_run(struct tide_buf *out, uint32_t value, size_t count, unsigned width);

struct tide_hybrid_reader {
    const char *pos;
    const char *end;
    unsigned width;
    bool is_packed;
    uint32_t value; /* of a run */
    size_t left;    /* values of the current run or packed values */
    unsigned bit;   /* where the next packed value starts, from pos; below 8 */
};

/** Reads values of `width` bits (0 to 32; of width 0 all values are 0 and take no bytes). */
struct tide_hybrid_reader tide_hybrid_reader_of(tide_str bytes, unsigned width);

/** The next `count` values; false when there are fewer. */
bool tide_hybrid_read(struct tide_hybrid_reader *reader, uint32_t *ret_values, size_t count);

/** True when the next `count` values are one run of `value`, which is then passed over. */
bool tide_hybrid_take_run(struct tide_hybrid_reader *reader, uint32_t value, size_t count);
