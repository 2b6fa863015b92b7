#include "base/base64.h"

#include "base/status.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void tide_base64_append(struct tide_buf *buf, tide_str bytes)
{
    const unsigned char *from = (const unsigned char *)bytes.ptr;
    TIDE_ASSERT(bytes.len <= SIZE_MAX / 4);
    char *to = tide_buf_reserve(buf, (bytes.len + 2) / 3 * 4);
    char *start = to;
    size_t at = 0;
    for (; bytes.len - at >= 3; at += 3) {
        unsigned group = (unsigned)from[at] << 16 | (unsigned)from[at + 1] << 8 | from[at + 2];
        *to++ = digits[group >> 18];
        *to++ = digits[group >> 12 & 63];
        *to++ = digits[group >> 6 & 63];
        *to++ = digits[group & 63];
    }
    if (at < bytes.len) {
        bool has_two = bytes.len - at == 2;
        unsigned group = (unsigned)from[at] << 16 | (has_two ? (unsigned)from[at + 1] << 8 : 0);
        to[0] = digits[group >> 18];
        to[1] = digits[group >> 12 & 63];
        to[2] = '=';
        to[3] = '=';
        if (has_two) {
            to[2] = digits[group >> 6 & 63];
        }
        to += 4;
    }
    buf->len += (size_t)(to - start);
}

static int base64_digit(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* RFC 4648 with padding, nothing else. False when `text` is not that. */
bool tide_base64_decode(tide_str text, struct tide_arena *arena, tide_str *ret_bytes)
{
    if (text.len % 4 != 0) {
        return false;
    }
    size_t padding = tide_str_ends_with(text, TIDE_STR("=="))  ? 2
                     : tide_str_ends_with(text, TIDE_STR("=")) ? 1
                                                               : 0;
    char *to = tide_arena_bytes(arena, text.len / 4 * 3);
    for (size_t i = 0; i < text.len; i += 4) {
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            bool is_padding = i + k >= text.len - padding;
            int digit = is_padding ? 0 : base64_digit(text.ptr[i + k]);
            if (digit < 0) {
                return false;
            }
            group = group << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k < 3; k++) {
            to[i / 4 * 3 + k] = (char)(group >> (16 - 8 * k));
        }
    }
    *ret_bytes = tide_str_of(to, text.len / 4 * 3 - padding);
    return true;
}
