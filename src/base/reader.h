/*
 * Reads wire bytes in order without ever passing their end. On shortage the reader fails and stays
 * failed: every later read gives 0 or an empty slice. So a decoder reads like its protocol's table
 * and looks once per message, and before every loop whose count came from the wire:
 *
 *     if (reader.failed || reader.pos != reader.end) { return tide_fail(err, TIDE_CORRUPT, …); }
 */
#pragma once

#include "base/attr.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_reader {
    const char *pos; /* next unread byte; stays where it was when a read fails */
    const char *end;
    bool failed;
};

/** Reads `bytes`, which must stay as long as slices of it are in use. */
static inline struct tide_reader tide_reader_of(tide_str bytes)
{
    const char *start = bytes.len == 0 ? "" : bytes.ptr; /* to NULL nothing may be added */
    return (struct tide_reader){start, start + bytes.len, false};
}

/** Bytes not read yet; 0 after a failure. */
static inline size_t tide_reader_left(const struct tide_reader *reader)
{
    return reader->failed ? 0 : (size_t)(reader->end - reader->pos);
}

/** True when all bytes were read and none were missing. */
static inline bool tide_reader_is_done(const struct tide_reader *reader)
{
    return !reader->failed && reader->pos == reader->end;
}

/** The next `len` bytes as a slice of the input. */
static inline tide_str tide_reader_take(struct tide_reader *reader, size_t len)
{
    if (TIDE_UNLIKELY(len > tide_reader_left(reader))) {
        reader->failed = true;
        return (tide_str){"", 0};
    }
    tide_str taken = {reader->pos, len};
    reader->pos += len;
    return taken;
}

/** Unsigned and two's complement integers, most significant byte first. */
static inline uint8_t tide_reader_u8(struct tide_reader *reader)
{
    tide_str bytes = tide_reader_take(reader, 1);
    return bytes.len == 1 ? (uint8_t)bytes.ptr[0] : 0;
}

static inline uint16_t tide_reader_u16be(struct tide_reader *reader)
{
    uint16_t value = 0;
    tide_str bytes = tide_reader_take(reader, sizeof(value));
    memcpy(&value, bytes.ptr, bytes.len);
    return __builtin_bswap16(value);
}

static inline uint32_t tide_reader_u32be(struct tide_reader *reader)
{
    uint32_t value = 0;
    tide_str bytes = tide_reader_take(reader, sizeof(value));
    memcpy(&value, bytes.ptr, bytes.len);
    return __builtin_bswap32(value);
}

static inline uint64_t tide_reader_u64be(struct tide_reader *reader)
{
    uint64_t value = 0;
    tide_str bytes = tide_reader_take(reader, sizeof(value));
    memcpy(&value, bytes.ptr, bytes.len);
    return __builtin_bswap64(value);
}

static inline int32_t tide_reader_i32be(struct tide_reader *reader)
{
    return (int32_t)tide_reader_u32be(reader);
}

static inline int64_t tide_reader_i64be(struct tide_reader *reader)
{
    return (int64_t)tide_reader_u64be(reader);
}

/** The same, least significant byte first. */
static inline uint32_t tide_reader_u32le(struct tide_reader *reader)
{
    return __builtin_bswap32(tide_reader_u32be(reader));
}

static inline uint64_t tide_reader_u64le(struct tide_reader *reader)
{
    return __builtin_bswap64(tide_reader_u64be(reader));
}

static inline int64_t tide_reader_i64le(struct tide_reader *reader)
{
    return (int64_t)tide_reader_u64le(reader);
}

/** The bytes up to the next NUL, which is passed over; without one the reader fails. */
tide_str tide_reader_cstr(struct tide_reader *reader);
