#include "format/json_writer.h"

#include "base/base64.h"
#include "base/status.h"
#include "format/json_scan.h"

#include <string.h>

/* `\u00XX`, the longest escape of one byte. */
#define ESCAPE_LEN_MAX 6

/* Writes the escape of one special byte and returns the place after it. */
static char *put_escape(char *to, char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    unsigned char byte = (unsigned char)c;
    *to++ = '\\';
    if (byte >= 0x20) {
        *to++ = c;
    } else if (letters[byte] != '\0') {
        *to++ = letters[byte];
    } else {
        *to++ = 'u';
        *to++ = '0';
        *to++ = '0';
        *to++ = hex[byte >> 4];
        *to++ = hex[byte & 15];
    }
    return to;
}

/*
 * Copies the plain run at `from` to `to` and returns its length; it ends at a special byte or
 * after `left` bytes. `to` has room for `left`: overlapping words cover the rest that does not fill
 * sixteen bytes, so nothing is written or read past it.
 */
static inline size_t copy_plain(char *to, const char *from, size_t left)
{
    size_t at = 0;
#ifdef TIDE_JSON_SSE2
    for (; left - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + at));
        unsigned special = tide_json_special_mask(bytes);
        _mm_storeu_si128((__m128i *)(void *)(to + at), bytes);
        if (special != 0) {
            return at + (size_t)__builtin_ctz(special);
        }
    }
#endif
    for (uint64_t word = 0; left - at >= 8; at += 8) {
        memcpy(&word, from + at, sizeof(word));
        if (tide_json_word_is_special(word)) {
            break;
        }
        memcpy(to + at, &word, sizeof(word));
    }
    while (at < left && !tide_json_is_special(from[at])) {
        to[at] = from[at];
        at++;
    }
    return at;
}

void tide_json_append_string(struct tide_buf *buf, tide_str text)
{
#ifdef TIDE_DEBUG
    TIDE_ASSERT(tide_str_is_utf8(text));
#endif
    if (text.len == 0) { /* its pointer may be NULL, to which nothing may be added */
        tide_buf_append(buf, "\"\"", 2);
        return;
    }
    char *to = tide_buf_reserve(buf, text.len + 2);
    *to++ = '"';
    size_t at = 0;
    while (true) {
        size_t plain = copy_plain(to, text.ptr + at, text.len - at);
        at += plain;
        to += plain;
        if (TIDE_LIKELY(at == text.len)) {
            break;
        }
        buf->len = (size_t)(to - buf->ptr);
        to = tide_buf_reserve(buf, ESCAPE_LEN_MAX + (text.len - at) + 1);
        to = put_escape(to, text.ptr[at++]);
    }
    *to++ = '"';
    buf->len = (size_t)(to - buf->ptr);
}

void tide_json_append_key(struct tide_buf *buf, tide_str name)
{
    tide_json_append_string(buf, name);
    tide_buf_append_char(buf, ':');
}

void tide_json_append_base64(struct tide_buf *buf, tide_str bytes)
{
    tide_buf_append_char(buf, '"');
    tide_base64_append(buf, bytes);
    tide_buf_append_char(buf, '"');
}
