/* The checksum of pages: CRC-32 as gzip and Ethernet have it. Pure. Private to this folder. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/** The CRC-32 of all bytes; 0xcbf43926 of "123456789". */
uint32_t tide_parquet_crc32(tide_str bytes);
