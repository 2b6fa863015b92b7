#include "format/parquet/crc32.h"

#include "base/status.h"

#include <pthread.h>

#define POLYNOMIAL 0xedb88320U
#define SLICES     8 /* bytes at once */

/* tables[n][byte]: what a byte adds when n more bytes follow it. */
static uint32_t tables[SLICES][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        }
        tables[0][byte] = crc;
    }
    for (size_t slice = 1; slice < SLICES; slice++) {
        for (size_t byte = 0; byte < 256; byte++) {
            uint32_t crc = tables[slice - 1][byte];
            tables[slice][byte] = crc >> 8 ^ tables[0][crc & 0xff];
        }
    }
}

static uint32_t eight_bytes(uint32_t crc, const char *bytes)
{
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof(word));
    word ^= crc;
    return tables[7][word & 0xff] ^ tables[6][word >> 8 & 0xff] ^ tables[5][word >> 16 & 0xff] ^
           tables[4][word >> 24 & 0xff] ^ tables[3][word >> 32 & 0xff] ^
           tables[2][word >> 40 & 0xff] ^ tables[1][word >> 48 & 0xff] ^ tables[0][word >> 56];
}

uint32_t tide_parquet_crc32(tide_str bytes)
{
    TIDE_ASSERT(pthread_once(&tables_once, make_tables) == 0);
    uint32_t crc = UINT32_MAX;
    size_t at = 0;
    for (; bytes.len - at >= SLICES; at += SLICES) {
        crc = eight_bytes(crc, bytes.ptr + at);
    }
    for (; at < bytes.len; at++) {
        crc = crc >> 8 ^ tables[0][(crc ^ (unsigned char)bytes.ptr[at]) & 0xff];
    }
    return ~crc;
}
