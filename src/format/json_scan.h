/*
 * Finding the bytes that end or break the plain run of a JSON string: `"`, `\` and controls below
 * 0x20. Sixteen at a time where the machine has SSE2, else one by one. Shared by the JSON reader
 * and writer; never reads past the given end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(TIDE_JSON_NO_SIMD)
#include <emmintrin.h>
#define TIDE_JSON_SSE2 1
#endif

static inline bool tide_json_is_special(char c)
{
    return c == '"' || c == '\\' || (unsigned char)c < 0x20;
}

/* Whether any of the eight bytes is special: exact for the word as a whole, not byte by byte. */
static inline bool tide_json_word_is_special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = word ^ (ones * '"');
    uint64_t backslash = word ^ (ones * '\\');
    uint64_t found = ((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) |
                     ((backslash - ones) & ~backslash);
    return (found & (ones * 0x80)) != 0;
}

#ifdef TIDE_JSON_SSE2
/* Bit i is set when byte i of the sixteen is special. */
static inline unsigned tide_json_special_mask(__m128i bytes)
{
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));
}
#endif

/** The first special byte from `p` on, or `end`. Sets `*is_ascii` to false when a byte before it is
 * not ASCII. */
static inline const char *tide_json_scan(const char *p, const char *end, bool *is_ascii)
{
#ifdef TIDE_JSON_SSE2
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned special = tide_json_special_mask(bytes);
        unsigned high = (unsigned)_mm_movemask_epi8(bytes);
        if (special != 0) {
            /* only bytes below the first special one count */
            *is_ascii = *is_ascii && (high & (special ^ (special - 1))) == 0;
            return p + __builtin_ctz(special);
        }
        *is_ascii = *is_ascii && high == 0;
        p += 16;
    }
#endif
    unsigned char seen = 0;
    while (p < end && !tide_json_is_special(*p)) {
        seen |= (unsigned char)*p++;
    }
    *is_ascii = *is_ascii && seen < 0x80;
    return p;
}
