/* UUIDs (RFC 9562): version 7, 48-bit milliseconds, then random bits; version 4, random bits. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Characters of the text form, without NUL. */
#define TIDE_UUID_LEN 36

/** Writes a UUIDv7 of the instant `utc_us`, lower case with hyphens, NUL-terminated. Random from
 * getrandom(2). */
void tide_uuid_v7(int64_t utc_us, char ret_text[TIDE_UUID_LEN + 1]);

/** Pure part: the same from 10 given random bytes. */
void tide_uuid_v7_from(int64_t utc_us, const uint8_t random[10], char ret_text[TIDE_UUID_LEN + 1]);

/** Writes a random UUIDv4, lower case with hyphens, NUL-terminated. */
void tide_uuid_v4(char ret_text[TIDE_UUID_LEN + 1]);

/** Reads a UUID, of any version, in either case; writes it as above. False: it is none. */
bool tide_uuid_read(tide_str text, char ret_text[TIDE_UUID_LEN + 1]);

/** Fills `bytes` from getrandom(2); aborts where the system has none. */
void tide_random_bytes(void *bytes, unsigned len);
