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

void tide_buf_grow(struct tide_buf *buf, size_t extra)
{
    TIDE_ASSERT(extra <= SIZE_MAX / 4 && buf->len <= SIZE_MAX / 4);
    size_t cap = buf->cap < 64 ? 64 : buf->cap * 2;
    if (cap < buf->len + extra) {
        cap = buf->len + extra;
    }
    buf->ptr = tide_realloc(buf->ptr, cap, 1);
    buf->cap = cap;
}

void tide_buf_append_u64(struct tide_buf *buf, uint64_t value)
{
    buf->len += tide_u64_to_text(value, tide_buf_reserve(buf, TIDE_I64_TEXT_MAX));
}

void tide_buf_append_i64(struct tide_buf *buf, int64_t value)
{
    buf->len += tide_i64_to_text(value, tide_buf_reserve(buf, TIDE_I64_TEXT_MAX));
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
