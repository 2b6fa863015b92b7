/*
 * Lines of files, directories and standard input, read in large blocks and given out where they
 * lie. One thread.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file to read. */
struct tide_input {
    char *path;       /* "-" is standard input */
    bool is_regular;  /* can be read again */
    int64_t mtime_us; /* UTC; 0 when it is not a regular file */
};

struct tide_inputs {
    struct tide_input *items;
    size_t count;
    size_t cap;
};

/** Frees the list. For TIDE_CLEANUP too. */
void tide_inputs_done(struct tide_inputs *inputs);

/**
 * Adds what `path` names: a file, `-`, or every *.ndjson and *.json file directly in a directory,
 * by name (hidden ones left out). TIDE_IO when it is not there.
 */
tide_status tide_inputs_add(struct tide_inputs *inputs, const char *path, struct tide_error *err);

struct tide_lines {
    const char *path;
    int fd;
    size_t line_bytes_max;
    struct tide_buf block;
    size_t start;      /* of the next line within the block */
    size_t scanned;    /* no line end before it */
    uint64_t block_at; /* place of the block within the file */
    bool is_at_end;
};

/** Opens a file, or standard input for "-". `path` must stay. */
tide_status tide_lines_open(struct tide_lines *lines, const char *path, size_t line_bytes_max,
                            struct tide_error *err);

/** Closes the file and frees the block. `{0}` with fd -1 is closed. For TIDE_CLEANUP too. */
void tide_lines_close(struct tide_lines *lines);

/**
 * The next line without its line end; valid until the next call. `ret_at` is its byte in the file,
 * `ret_is_ended` is false for a last line without line end. TIDE_END after the last one;
 * TIDE_CORRUPT for a line over the limit.
 */
tide_status tide_lines_next(struct tide_lines *lines, tide_str *ret_line, uint64_t *ret_at,
                            bool *ret_is_ended, struct tide_error *err);
