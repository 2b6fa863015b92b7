#include "base/str.h"

#include <string.h>

int tide_str_compare(tide_str a, tide_str b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared == 0 ? 0 : memcmp(a.ptr, b.ptr, shared);
    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool tide_str_to_u64(tide_str s, uint64_t *ret_value)
{
    if (s.len == 0 || s.len > 20 || (s.len > 1 && s.ptr[0] == '0')) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

bool tide_str_to_i64(tide_str s, int64_t *ret_value)
{
    bool negative = s.len > 0 && s.ptr[0] == '-';
    tide_str digits = negative ? tide_str_of(s.ptr + 1, s.len - 1) : s;
    uint64_t value = 0;
    if (!tide_str_to_u64(digits, &value) || value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    *ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Length of the valid sequence that starts at `p` (left bytes remain), or 0. RFC 3629, section 4.
 */
static size_t sequence_len(const unsigned char *p, size_t left)
{
    unsigned char lead = p[0];
    size_t len = lead < 0x80   ? 1
                 : lead < 0xc2 ? 0
                 : lead < 0xe0 ? 2
                 : lead < 0xf0 ? 3
                 : lead < 0xf5 ? 4
                               : 0;
    if (len == 0 || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (lead == 0xe0 && p[1] < 0xa0) || (lead == 0xed && p[1] > 0x9f) ||
               (lead == 0xf0 && p[1] < 0x90) || (lead == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : len;
}

size_t tide_str_utf8_valid_prefix(tide_str s)
{
    const unsigned char *bytes = (const unsigned char *)s.ptr;
    size_t i = 0;
    while (i < s.len) {
        uint64_t word = 0;
        if (s.len - i >= sizeof(word)) {
            memcpy(&word, bytes + i, sizeof(word));
            if ((word & 0x8080808080808080u) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t len = sequence_len(bytes + i, s.len - i);
        if (len == 0) {
            return i;
        }
        i += len;
    }
    return i;
}

static size_t digits_of(uint64_t value)
{
    size_t count = 1;
    for (; value >= 10000; value /= 10000) {
        count += 4;
    }
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

size_t tide_u64_to_text(uint64_t value, char *to)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    size_t count = digits_of(value);
    char *at = to + count;
    for (; value >= 100; value /= 100) {
        at -= 2;
        memcpy(at, pairs + value % 100 * 2, 2);
    }
    if (value >= 10) {
        memcpy(to, pairs + value * 2, 2);
    } else {
        *to = (char)('0' + value);
    }
    return count;
}

size_t tide_i64_to_text(int64_t value, char *to)
{
    if (value >= 0) {
        return tide_u64_to_text((uint64_t)value, to);
    }
    *to = '-';
    return 1 + tide_u64_to_text(0 - (uint64_t)value, to + 1);
}
