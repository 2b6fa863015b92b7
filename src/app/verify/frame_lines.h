/*
 * Lines of a file or of standard input, read in large blocks and given out where they lie. Data
 * that begin like zstd frames are decompressed on the way. One thread.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_unzstd;

struct tide_lines {
    const char *path;
    const char *byte_word; /* what a place counts: "byte", or that of what was compressed */
    int fd;
    size_t line_bytes_max;
    uint64_t file_bytes_wanted;
    uint64_t file_bytes; /* read so far */
    struct tide_unzstd *unzstd;
    struct tide_buf block;
    size_t start;      /* of the next line within the block */
    size_t scanned;    /* no line end before it */
    uint64_t block_at; /* place of the block within the lines */
    bool is_begun;     /* it is known what is read: the first block was */
    bool is_at_end;
};

/**
 * Opens a file, or standard input for "-". `path` must stay. A line of more than `line_bytes_max`
 * bytes is refused. Of the file just `file_bytes_wanted` bytes are read, as many as there were
 * before; UINT64_MAX: as many as there are.
 */
tide_status tide_lines_open(struct tide_lines *lines, const char *path, size_t line_bytes_max,
                            uint64_t file_bytes_wanted, struct tide_error *err);

/** Closes the file and frees the block. `{0}` with fd -1 is closed. For TIDE_CLEANUP too. */
void tide_lines_close(struct tide_lines *lines);

/**
 * The next line without its line end; valid until the next call. `ret_at` is its place (see
 * byte_word), `ret_is_ended` is false for a last line without line end.
 *
 * Errors:  TIDE_END after the last one; TIDE_IO it cannot be read, or a file is shorter than what
 *          was read or is wanted; TIDE_CORRUPT a line over the limit, or zstd data that are damaged
 * or cut off.
 */
tide_status tide_lines_next(struct tide_lines *lines, tide_str *ret_line, uint64_t *ret_at,
                            bool *ret_is_ended, struct tide_error *err);
