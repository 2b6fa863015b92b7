#include "base/uuid.h"

#include "base/status.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define TIME_MS_MAX ((INT64_C(1) << 48) - 1)

void tide_random_bytes(void *bytes, unsigned len)
{
    char *to = bytes;
    unsigned done = 0;
    while (done < len) {
        ssize_t got = getrandom(to + done, len - done, 0);
        TIDE_ASSERT(got >= 0 || errno == EINTR);
        done += got > 0 ? (unsigned)got : 0;
    }
}

static void format(const uint8_t bytes[16], char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

/*
 *  0..5 milliseconds, big endian | 6: 0111 and 4 random bits | 7: random | 8: 10 and 6 random bits
 *  | 9..15 random
 */
void tide_uuid_v7_from(int64_t utc_us, const uint8_t random[10], char ret_text[TIDE_UUID_LEN + 1])
{
    int64_t ms = utc_us < 0 ? 0 : utc_us / 1000;
    if (ms > TIME_MS_MAX) {
        ms = TIME_MS_MAX;
    }
    uint8_t bytes[16];
    for (unsigned i = 0; i < 6; i++) {
        bytes[i] = (uint8_t)((uint64_t)ms >> (40 - 8 * i));
    }
    memcpy(bytes + 6, random, 10);
    bytes[6] = (uint8_t)(0x70 | (bytes[6] & 0x0f));
    bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
    format(bytes, ret_text);
}

void tide_uuid_v7(int64_t utc_us, char ret_text[TIDE_UUID_LEN + 1])
{
    uint8_t random[10];
    tide_random_bytes(random, sizeof(random));
    tide_uuid_v7_from(utc_us, random, ret_text);
}

void tide_uuid_v4(char ret_text[TIDE_UUID_LEN + 1])
{
    uint8_t bytes[16];
    tide_random_bytes(bytes, sizeof(bytes));
    bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0f));
    bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f));
    format(bytes, ret_text);
}

bool tide_uuid_read(tide_str text, char ret_text[TIDE_UUID_LEN + 1])
{
    char found[TIDE_UUID_LEN + 1] = "";
    if (text.len != TIDE_UUID_LEN) {
        return false;
    }
    for (size_t i = 0; i < TIDE_UUID_LEN; i++) {
        char c = text.ptr[i];
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        found[i] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
        c = found[i];
        if (is_dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    memcpy(ret_text, found, sizeof(found));
    return true;
}
