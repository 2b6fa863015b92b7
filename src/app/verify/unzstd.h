/*
 * Bytes out of zstd frames, one after another, as `zstd` and its parallel kin write them; skippable
 * frames are passed over. Streaming: memory is the window that a frame asks for, at most
 * TIDE_ZSTD_WINDOW_LOG_MAX. One thread.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_ZSTD_MAGIC_BYTES 4

struct tide_unzstd;

/** Whether data that start like this are zstd frames. */
bool tide_unzstd_is_zstd(tide_str start);

/** A decoder at the start of its data. */
struct tide_unzstd *tide_unzstd_new(void);

/** NULL is fine. */
void tide_unzstd_free(struct tide_unzstd *unzstd);

/** Where the next bytes of the data are to be put, and how many find room. */
char *tide_unzstd_room(struct tide_unzstd *unzstd, size_t *ret_room);

/** Says that `len` bytes were put there; none: the data have ended. */
void tide_unzstd_put(struct tide_unzstd *unzstd, size_t len);

/**
 * Writes up to `room` bytes to `to`. `ret_len` 0: more data are needed, or, once they have ended,
 * everything was given out.
 *
 * Errors:  TIDE_CORRUPT, with `path` and the byte: damaged, a wrong checksum, another thing behind
 *          the last frame, or ended within a frame; TIDE_UNSUPPORTED a window over the limit.
 */
tide_status tide_unzstd_take(struct tide_unzstd *unzstd, const char *path, char *to, size_t room,
                             size_t *ret_len, struct tide_error *err);
