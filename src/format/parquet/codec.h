/* Compression of pages: none, ZSTD or LZ4 (raw blocks). Pure. Not for several threads at once. */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

/* As numbered in the file. */
enum tide_parquet_codec {
    TIDE_PARQUET_UNCOMPRESSED = 0,
    TIDE_PARQUET_ZSTD = 6,
    TIDE_PARQUET_LZ4_RAW = 7,
};

struct tide_parquet_packer {
    enum tide_parquet_codec codec;
    int level;                /* of zstd */
    struct ZSTD_CCtx_s *zstd; /* made at its first use */
};

/** Frees what packing has needed. */
void tide_parquet_packer_done(struct tide_parquet_packer *packer);

/** Appends `bytes` (fewer than 2^31 - 2^24) as the codec compresses them. */
void tide_parquet_pack(struct tide_parquet_packer *packer, struct tide_buf *out, tide_str bytes);

struct tide_parquet_unpacker {
    struct ZSTD_DCtx_s *zstd; /* made at its first use */
};

/** Frees what unpacking has needed. */
void tide_parquet_unpacker_done(struct tide_parquet_unpacker *unpacker);

/**
 * TIDE_CORRUPT when bytes that were compressed by `codec` can never have been `size` bytes. To be
 * asked before those are reserved. TIDE_UNSUPPORTED for other codecs.
 */
tide_status tide_parquet_unpack_check(int32_t codec, tide_str packed, size_t size,
                                      struct tide_error *err);

/** Fills exactly `size` bytes at `to`; else TIDE_CORRUPT. Asked of tide_parquet_unpack_check
 * before. */
tide_status tide_parquet_unpack(struct tide_parquet_unpacker *unpacker, int32_t codec,
                                tide_str packed, char *to, size_t size, struct tide_error *err);
