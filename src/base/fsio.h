/*
 * Files that must survive: read whole with a limit, replace atomically, lock a directory.
 * Messages name the path and the system's reason. EINTR is handled here.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Appends the whole file to `ret_bytes`. TIDE_CORRUPT when it is larger than `size_max`; TIDE_IO
 * else. */
tide_status tide_file_read(const char *path, size_t size_max, struct tide_buf *ret_bytes,
                           struct tide_error *err);

/**
 * Replaces `dir`/`name` atomically and durably: temporary file ".NAME.tmp" (0600) in the same
 * directory, written, fsynced, renamed, directory fsynced.
 */
tide_status tide_file_replace(const char *dir, const char *name, tide_str bytes,
                              struct tide_error *err);

/** The same in an open directory: `dir` is only for messages. For those who replace often. After
 * TIDE_IO errno says why. */
tide_status tide_file_replace_at(int dir_fd, const char *dir, const char *name, tide_str bytes,
                                 struct tide_error *err);

/** Writes all bytes at `fd`'s place, through short writes. `path` is for the message. */
tide_status tide_file_write_all(int fd, const char *path, tide_str bytes, struct tide_error *err);

/** mkdir -p with mode 0700 for what it makes, durably. Fine when it exists as a directory. */
tide_status tide_dir_make(const char *path, struct tide_error *err);

/**
 * Looks whether `path` is a directory that may be written to, or one that tide_dir_make could make.
 * TIDE_IO when it is neither.
 */
tide_status tide_dir_may_make(const char *path, struct tide_error *err);

/** Opens a directory for the `…at` calls. TIDE_IO when it cannot be. */
tide_status tide_dir_open(const char *path, int *ret_fd, struct tide_error *err);

/** fsync of a directory. */
tide_status tide_dir_sync(const char *path, struct tide_error *err);

/**
 * Takes an exclusive flock on `dir`/lock and writes our pid into it. TIDE_INVALID with the other
 * pid in the message when it is taken. Returns the descriptor to close; the kernel frees it at
 * exit.
 */
tide_status tide_dir_lock(const char *dir, int *ret_fd, struct tide_error *err);

/** For TIDE_CLEANUP on a descriptor: closes it unless it is negative. */
void tide_fd_close(int *fd);
