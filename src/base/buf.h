/*
 * A growable byte buffer. Appends cannot fail (see alloc.h); bounds are checked by whoever
 * accepts input, before it is appended.
 *
 *     ptr            ptr+len          ptr+cap
 *      | bytes written | free for appends |
 */
#pragma once

#include "base/attr.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct tide_buf {
    char *ptr;
    size_t len;
    size_t cap;
};

/** Frees the memory and leaves an empty, usable buffer. `{0}` is an empty buffer. For TIDE_CLEANUP
 * too. */
void tide_buf_done(struct tide_buf *buf);

/** Makes room for `extra` more bytes where there is none: what reserve does. */
void tide_buf_grow(struct tide_buf *buf, size_t extra);

/** Makes room for `extra` more bytes and returns where they go; the caller then adds to `len`. */
static inline char *tide_buf_reserve(struct tide_buf *buf, size_t extra)
{
    if (TIDE_UNLIKELY(buf->cap - buf->len < extra || buf->ptr == NULL)) {
        tide_buf_grow(buf, extra);
    }
    return buf->ptr + buf->len;
}

static inline void tide_buf_reset(struct tide_buf *buf)
{
    buf->len = 0;
}

static inline tide_str tide_buf_str(const struct tide_buf *buf)
{
    return (tide_str){buf->ptr, buf->len};
}

/** Appends; memory grows by doubling. */
static inline void tide_buf_append(struct tide_buf *buf, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(tide_buf_reserve(buf, len), bytes, len);
        buf->len += len;
    }
}

/** Likewise. */
static inline void tide_buf_append_str(struct tide_buf *buf, tide_str s)
{
    tide_buf_append(buf, s.ptr, s.len);
}

/** Likewise. */
static inline void tide_buf_append_char(struct tide_buf *buf, char c)
{
    *tide_buf_reserve(buf, 1) = c;
    buf->len++;
}

/** Likewise: numbers in decimal, printf without its NUL. */
void tide_buf_append_u64(struct tide_buf *buf, uint64_t value);
void tide_buf_append_i64(struct tide_buf *buf, int64_t value);
void tide_buf_printf(struct tide_buf *buf, const char *fmt, ...) TIDE_PRINTF(2, 3);

/** The bytes as a C string: a NUL is kept behind `len`. Valid until the next append. */
const char *tide_buf_cstr(struct tide_buf *buf);
