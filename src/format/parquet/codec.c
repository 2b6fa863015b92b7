#include "format/parquet/codec.h"

#include "format/parquet/metadata.h"

#include <lz4.h>
#include <zstd.h>

/* How many bytes one compressed byte can stand for at most: LZ4's lengths grow by 255 a byte, a
 * zstd block of 3 bytes and one repeated byte holds up to 128 KiB. */
#define LZ4_RATIO_MAX  255
#define ZSTD_RATIO_MAX 32768

void tide_parquet_packer_done(struct tide_parquet_packer *packer)
{
    (void)ZSTD_freeCCtx(packer->zstd);
    packer->zstd = NULL;
}

static void pack_zstd(struct tide_parquet_packer *packer, struct tide_buf *out, tide_str bytes)
{
    if (packer->zstd == NULL) {
        packer->zstd = ZSTD_createCCtx();
        TIDE_ASSERT(packer->zstd != NULL);
    }
    size_t bound = ZSTD_compressBound(bytes.len);
    char *to = tide_buf_reserve(out, bound);
    size_t size = ZSTD_compressCCtx(packer->zstd, to, bound, bytes.ptr, bytes.len, packer->level);
    TIDE_ASSERT(!ZSTD_isError(size)); /* there is room, so only memory can be short */
    out->len += size;
}

static void pack_lz4(struct tide_buf *out, tide_str bytes)
{
    int bound = LZ4_compressBound((int)bytes.len);
    char *to = tide_buf_reserve(out, (size_t)bound);
    int size = LZ4_compress_default(bytes.ptr, to, (int)bytes.len, bound);
    TIDE_ASSERT(size > 0);
    out->len += (size_t)size;
}

void tide_parquet_pack(struct tide_parquet_packer *packer, struct tide_buf *out, tide_str bytes)
{
    TIDE_ASSERT(bytes.len <= LZ4_MAX_INPUT_SIZE);
    switch (packer->codec) {
    case TIDE_PARQUET_UNCOMPRESSED:
        tide_buf_append_str(out, bytes);
        break;
    case TIDE_PARQUET_ZSTD:
        pack_zstd(packer, out, bytes);
        break;
    case TIDE_PARQUET_LZ4_RAW:
        pack_lz4(out, bytes);
        break;
    }
}

void tide_parquet_unpacker_done(struct tide_parquet_unpacker *unpacker)
{
    (void)ZSTD_freeDCtx(unpacker->zstd);
    unpacker->zstd = NULL;
}

static tide_status fail_size(size_t packed, size_t size, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "a page of %zu bytes cannot become one of %zu bytes",
                     packed, size);
}

tide_status tide_parquet_unpack_check(int32_t codec, tide_str packed, size_t size,
                                      struct tide_error *err)
{
    if (size == 0) {
        return TIDE_OK; /* some leave out the frame around nothing */
    }
    if (codec == TIDE_PARQUET_UNCOMPRESSED) {
        return packed.len == size ? TIDE_OK : fail_size(packed.len, size, err);
    }
    if (codec == TIDE_PARQUET_LZ4_RAW) {
        return size / LZ4_RATIO_MAX <= packed.len ? TIDE_OK : fail_size(packed.len, size, err);
    }
    if (codec != TIDE_PARQUET_ZSTD) {
        return tide_fail(err, TIDE_UNSUPPORTED, "compressed by %s, which is not read",
                         tide_parquet_codec_name(codec));
    }
    unsigned long long said = ZSTD_getFrameContentSize(packed.ptr, packed.len);
    if (said == ZSTD_CONTENTSIZE_ERROR || size / ZSTD_RATIO_MAX > packed.len) {
        return fail_size(packed.len, size, err);
    }
    return TIDE_OK;
}

tide_status tide_parquet_unpack(struct tide_parquet_unpacker *unpacker, int32_t codec,
                                tide_str packed, char *to, size_t size, struct tide_error *err)
{
    if (size == 0) {
        return TIDE_OK;
    }
    if (codec == TIDE_PARQUET_UNCOMPRESSED) {
        TIDE_ASSERT(packed.len == size);
        memcpy(to, packed.ptr, size);
        return TIDE_OK;
    }
    if (codec == TIDE_PARQUET_LZ4_RAW) {
        int got = LZ4_decompress_safe(packed.ptr, to, (int)packed.len, (int)size);
        return got >= 0 && (size_t)got == size
                   ? TIDE_OK
                   : tide_fail(err, TIDE_CORRUPT, "a page is not what LZ4 makes of %zu bytes",
                               size);
    }
    if (unpacker->zstd == NULL) {
        unpacker->zstd = ZSTD_createDCtx();
        TIDE_ASSERT(unpacker->zstd != NULL);
    }
    size_t got = ZSTD_decompressDCtx(unpacker->zstd, to, size, packed.ptr, packed.len);
    if (ZSTD_isError(got)) {
        return tide_fail(err, TIDE_CORRUPT, "a page is not what zstd makes of %zu bytes: %s", size,
                         ZSTD_getErrorName(got));
    }
    return got == size ? TIDE_OK : fail_size(packed.len, size, err);
}
