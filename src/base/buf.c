#include "base/buf.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tide_buf_done(struct tide_buf *buf)
{
    free(buf->ptr);
    *buf = (struct tide_buf){0};
}

char *tide_buf_reserve(struct tide_buf *buf, size_t extra)
{
    if (TIDE_UNLIKELY(buf->cap - buf->len < extra || buf->ptr == NULL)) {
        TIDE_ASSERT(extra <= SIZE_MAX / 4 && buf->len <= SIZE_MAX / 4);
        size_t cap = buf->cap < 64 ? 64 : buf->cap * 2;
        if (cap < buf->len + extra) {
            cap = buf->len + extra;
        }
        buf->ptr = tide_realloc(buf->ptr, cap, 1);
        buf->cap = cap;
    }
    return buf->ptr + buf->len;
}

void tide_buf_append(struct tide_buf *buf, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(tide_buf_reserve(buf, len), bytes, len);
        buf->len += len;
    }
}

void tide_buf_append_str(struct tide_buf *buf, tide_str s)
{
    tide_buf_append(buf, s.ptr, s.len);
}

void tide_buf_append_char(struct tide_buf *buf, char c)
{
    *tide_buf_reserve(buf, 1) = c;
    buf->len++;
}

void tide_buf_append_u64(struct tide_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    tide_buf_append(buf, digits + at, sizeof(digits) - at);
}

void tide_buf_append_i64(struct tide_buf *buf, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;
    if (value < 0) {
        tide_buf_append_char(buf, '-');
        magnitude = 0 - magnitude;
    }
    tide_buf_append_u64(buf, magnitude);
}

void tide_buf_printf(struct tide_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    TIDE_ASSERT(len >= 0);
    char *to = tide_buf_reserve(buf, (size_t)len + 1);
    (void)vsnprintf(to, (size_t)len + 1, fmt, again);
    va_end(again);
    buf->len += (size_t)len;
}

const char *tide_buf_cstr(struct tide_buf *buf)
{
    *tide_buf_reserve(buf, 1) = '\0';
    return buf->ptr;
}
