#include "app/verify/unzstd.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define DATA_BYTES (256 * TIDE_KIB)

struct tide_unzstd {
    ZSTD_DCtx *context;
    ZSTD_inBuffer in; /* of `data` */
    uint64_t data_at; /* place of `data` in the file */
    uint64_t frame_at;
    bool is_in_frame;
    bool has_more_out; /* the latest output filled its room: more may wait within the decoder */
    bool is_ended;
    char data[DATA_BYTES];
};

bool tide_unzstd_is_zstd(tide_str start)
{
    if (start.len < TIDE_ZSTD_MAGIC_BYTES) {
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)start.ptr;
    uint32_t magic =
        bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

struct tide_unzstd *tide_unzstd_new(void)
{
    struct tide_unzstd *unzstd = tide_alloc(1, sizeof(*unzstd));
    unzstd->context = ZSTD_createDCtx();
    TIDE_ASSERT(unzstd->context != NULL);
    size_t code =
        ZSTD_DCtx_setParameter(unzstd->context, ZSTD_d_windowLogMax, TIDE_ZSTD_WINDOW_LOG_MAX);
    TIDE_ASSERT(!ZSTD_isError(code));
    unzstd->in.src = unzstd->data;
    return unzstd;
}

void tide_unzstd_free(struct tide_unzstd *unzstd)
{
    if (unzstd != NULL) {
        (void)ZSTD_freeDCtx(unzstd->context);
        free(unzstd);
    }
}

/* Only called for when all of it was taken. */
char *tide_unzstd_room(struct tide_unzstd *unzstd, size_t *ret_room)
{
    TIDE_ASSERT(unzstd->in.pos == unzstd->in.size);
    *ret_room = sizeof(unzstd->data);
    return unzstd->data;
}

void tide_unzstd_put(struct tide_unzstd *unzstd, size_t len)
{
    TIDE_ASSERT(len <= sizeof(unzstd->data));
    unzstd->data_at += unzstd->in.size;
    unzstd->in.size = len;
    unzstd->in.pos = 0;
    unzstd->is_ended = len == 0;
}

static uint64_t place(const struct tide_unzstd *unzstd)
{
    return unzstd->data_at + unzstd->in.pos;
}

static tide_status fail_data(const struct tide_unzstd *unzstd, const char *path, size_t code,
                             struct tide_error *err)
{
    if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "%s: byte %" PRIu64 ": the zstd frame that starts here wants a window of "
                         "more than %zu MiB; decompress it with zstd --long=31 first",
                         path, unzstd->frame_at,
                         ((size_t)1 << TIDE_ZSTD_WINDOW_LOG_MAX) / TIDE_MIB);
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "%s: byte %" PRIu64 ": the zstd data cannot be read, in the frame that starts "
                     "at byte %" PRIu64 ": %s",
                     path, place(unzstd), unzstd->frame_at, ZSTD_getErrorName(code));
}

static tide_status check_end(const struct tide_unzstd *unzstd, const char *path,
                             struct tide_error *err)
{
    if (!unzstd->is_ended || !unzstd->is_in_frame) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "%s: byte %" PRIu64 ": the zstd data end here, within the frame that starts "
                     "at byte %" PRIu64,
                     path, place(unzstd), unzstd->frame_at);
}

static tide_status step(struct tide_unzstd *unzstd, const char *path, ZSTD_outBuffer *out,
                        struct tide_error *err)
{
    if (!unzstd->is_in_frame) {
        unzstd->frame_at = place(unzstd);
        unzstd->is_in_frame = true;
    }
    size_t left = ZSTD_decompressStream(unzstd->context, out, &unzstd->in);
    if (ZSTD_isError(left)) {
        return fail_data(unzstd, path, left, err);
    }
    unzstd->is_in_frame = left > 0;
    unzstd->has_more_out = left > 0 && out->pos == out->size;
    return TIDE_OK;
}

tide_status tide_unzstd_take(struct tide_unzstd *unzstd, const char *path, char *to, size_t room,
                             size_t *ret_len, struct tide_error *err)
{
    TIDE_ASSERT(room > 0);
    ZSTD_outBuffer out = {to, room, 0};
    while (out.pos == 0 && (unzstd->has_more_out || unzstd->in.pos < unzstd->in.size)) {
        TIDE_TRY(step(unzstd, path, &out, err));
    }
    if (out.pos == 0) {
        TIDE_TRY(check_end(unzstd, path, err));
    }
    *ret_len = out.pos;
    return TIDE_OK;
}
