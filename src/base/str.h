/*
 * A borrowed slice of bytes. It never owns, may contain NUL and is passed by value.
 * C strings appear only at the borders to libraries.
 */
#pragma once

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tide_str {
    const char *ptr;
    size_t len;
} tide_str;

/* A slice of a string literal. */
#define TIDE_STR(literal) ((tide_str){(literal), sizeof(literal) - 1})

/* For printf's "%.*s". */
#define TIDE_STR_ARG(s) (int)(s).len, (s).ptr

static inline tide_str tide_str_from(const char *text)
{
    return (tide_str){text, strlen(text)};
}

static inline tide_str tide_str_of(const void *ptr, size_t len)
{
    return (tide_str){(const char *)ptr, len};
}

static inline bool tide_str_equal(tide_str a, tide_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool tide_str_starts_with(tide_str s, tide_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool tide_str_ends_with(tide_str s, tide_str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0);
}

/** Compares bytes as unsigned, the shorter first when one is a prefix; <0, 0, >0 as memcmp. */
int tide_str_compare(tide_str a, tide_str b);

/** True and sets `ret_value` when all of `s` is a decimal without sign or leading zeros, <= 2^64-1.
 */
bool tide_str_to_u64(tide_str s, uint64_t *ret_value);

/** True and sets `ret_value` when all of `s` is a decimal within int64, `-` allowed, no leading
 * zeros. */
bool tide_str_to_i64(tide_str s, int64_t *ret_value);

/* Bytes that an int64 takes at most as text. */
#define TIDE_I64_TEXT_MAX ((size_t)20)

/** Writes the number in decimal, `-` before a negative one: at most TIDE_I64_TEXT_MAX bytes.
 * Returns the length; there is no NUL. */
size_t tide_u64_to_text(uint64_t value, char *to);
size_t tide_i64_to_text(int64_t value, char *to);

/** Index of the first invalid UTF-8 sequence (RFC 3629: no overlong, no surrogates), or `s.len`. */
size_t tide_str_utf8_valid_prefix(tide_str s);

static inline bool tide_str_is_utf8(tide_str s)
{
    return tide_str_utf8_valid_prefix(s) == s.len;
}
