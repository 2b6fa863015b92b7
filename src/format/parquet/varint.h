/* Seven bits a byte, lowest first: lengths and counts of Parquet. Private to this folder. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

static inline void tide_varint_append(struct tide_buf *out, uint64_t value)
{
    while (value >= 0x80) {
        tide_buf_append_char(out, (char)(value | 0x80));
        value >>= 7;
    }
    tide_buf_append_char(out, (char)value);
}
