/*
 * What frames are made of, for the codecs of this folder. Numbers have a fixed width, least
 * significant byte first.
 *
 *     bytes   = u32 length, so many bytes
 *     text    = bytes that are UTF-8; may be empty, may hold NUL
 *     opt<X>  = 0, or 1 and X
 *     boolean = 0 or 1
 *
 * Writing goes into room that was reserved for the whole frame: put_* return where to go on.
 */
#pragma once

#include "base/attr.h"
#include "base/reader.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline char *tide_wire_put_u8(char *at, uint8_t value)
{
    *at = (char)value;
    return at + 1;
}

static inline char *tide_wire_put_u32(char *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value)); /* little-endian machines alone: see reader.c */
    return at + sizeof(value);
}

static inline char *tide_wire_put_u64(char *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline char *tide_wire_put_i64(char *at, int64_t value)
{
    return tide_wire_put_u64(at, (uint64_t)value);
}

/** Bytes without their length. */
static inline char *tide_wire_put_raw(char *at, tide_str bytes)
{
    if (bytes.len > 0) {
        memcpy(at, bytes.ptr, bytes.len);
    }
    return at + bytes.len;
}

static inline char *tide_wire_put_bytes(char *at, tide_str bytes)
{
    return tide_wire_put_raw(tide_wire_put_u32(at, (uint32_t)bytes.len), bytes);
}

static inline size_t tide_wire_bytes_size(tide_str bytes)
{
    return sizeof(uint32_t) + bytes.len;
}

/* Reads one frame. `wrong` says what is not as it must be, beside bytes that are missing. */
struct tide_wire_take {
    struct tide_reader reader;
    const char *wrong;
};

static inline tide_str tide_wire_take_bytes(struct tide_wire_take *take)
{
    return tide_reader_take(&take->reader, tide_reader_u32le(&take->reader));
}

static inline tide_str tide_wire_take_text(struct tide_wire_take *take)
{
    tide_str text = tide_wire_take_bytes(take);
    if (TIDE_UNLIKELY(!tide_str_is_utf8(text))) {
        take->wrong = "a text in it is not UTF-8";
    }
    return text;
}

/** 0 or 1, a boolean or whether something is there. */
bool tide_wire_take_bool(struct tide_wire_take *take);

/** TIDE_OK when every byte was taken and nothing was wrong; else TIDE_CORRUPT, "malformed `what`:
 * …". */
tide_status tide_wire_take_done(const struct tide_wire_take *take, const char *what,
                                struct tide_error *err);
