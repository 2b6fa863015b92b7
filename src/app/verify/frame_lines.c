#include "app/verify/frame_lines.h"

#include "app/verify/unzstd.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (1 * TIDE_MIB)

static tide_status fail_read(const char *path, struct tide_error *err)
{
    return tide_fail(err, TIDE_IO, "%s: could not be read: %s", path, strerror(errno));
}

tide_status tide_lines_open(struct tide_lines *lines, const char *path, size_t line_bytes_max,
                            uint64_t file_bytes_wanted, struct tide_error *err)
{
    bool is_standard_input = strcmp(path, "-") == 0;
    int fd = is_standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_read(path, err);
    }
    *lines = (struct tide_lines){.path = is_standard_input ? "standard input" : path,
                                 .byte_word = "byte",
                                 .fd = fd,
                                 .line_bytes_max = line_bytes_max,
                                 .file_bytes_wanted = file_bytes_wanted};
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return TIDE_OK;
}

void tide_lines_close(struct tide_lines *lines)
{
    if (lines->fd > STDIN_FILENO) {
        (void)close(lines->fd);
    }
    lines->fd = -1;
    tide_buf_done(&lines->block);
    tide_unzstd_free(lines->unzstd);
    lines->unzstd = NULL;
}

/* A file that lost bytes while it was read may have lost any that were not read yet. */
static tide_status check_size(const struct tide_lines *lines, struct tide_error *err)
{
    struct stat info;
    if (fstat(lines->fd, &info) != 0) {
        return fail_read(lines->path, err);
    }
    if (!S_ISREG(info.st_mode) || lines->fd == STDIN_FILENO) {
        return TIDE_OK;
    }
    uint64_t wanted = lines->file_bytes_wanted;
    uint64_t before = wanted != UINT64_MAX ? wanted : lines->file_bytes;
    uint64_t now = (uint64_t)info.st_size;
    if (now < before) {
        return tide_fail(err, TIDE_IO,
                         "%s: became shorter while it was read: %" PRIu64 " bytes, then %" PRIu64
                         "; verify it again when nobody changes it",
                         lines->path, before, now);
    }
    return TIDE_OK;
}

/* Reads bytes of the file as they are; none at its end. */
static tide_status read_file(struct tide_lines *lines, char *to, size_t room, size_t *ret_got,
                             struct tide_error *err)
{
    uint64_t left = lines->file_bytes_wanted - lines->file_bytes;
    ssize_t got;
    do {
        got = read(lines->fd, to, room < left ? room : (size_t)left);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return fail_read(lines->path, err);
    }
    lines->file_bytes += (size_t)got;
    *ret_got = (size_t)got;
    return got == 0 ? check_size(lines, err) : TIDE_OK;
}

static tide_status read_zstd(struct tide_lines *lines, char *to, size_t room, size_t *ret_got,
                             struct tide_error *err)
{
    for (;;) {
        TIDE_TRY(tide_unzstd_take(lines->unzstd, lines->path, to, room, ret_got, err));
        if (*ret_got > 0) {
            return TIDE_OK;
        }
        size_t data_room = 0;
        size_t got = 0;
        char *data = tide_unzstd_room(lines->unzstd, &data_room);
        TIDE_TRY(read_file(lines, data, data_room, &got, err));
        tide_unzstd_put(lines->unzstd, got);
        if (got == 0) {
            return tide_unzstd_take(lines->unzstd, lines->path, to, room, ret_got, err);
        }
    }
}

static tide_status check_name(const struct tide_lines *lines, struct tide_error *err)
{
    if (lines->block.len == 0 ||
        !tide_str_ends_with(tide_str_from(lines->path), TIDE_STR(".zst"))) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_CORRUPT, "%s: byte 0: is named like zstd data, but is none",
                     lines->path);
}

/* Reads the first bytes, by which zstd data are told from lines. */
static tide_status begin(struct tide_lines *lines, struct tide_error *err)
{
    struct tide_buf *block = &lines->block;
    char *to = tide_buf_reserve(block, BLOCK_BYTES);
    size_t got = 1;
    while (block->len < TIDE_ZSTD_MAGIC_BYTES && got > 0) {
        TIDE_TRY(read_file(lines, to + block->len, TIDE_ZSTD_MAGIC_BYTES - block->len, &got, err));
        block->len += got;
    }
    lines->is_begun = true;
    lines->is_at_end = got == 0;
    if (!tide_unzstd_is_zstd(tide_buf_str(block))) {
        return check_name(lines, err);
    }
    size_t room = 0;
    lines->unzstd = tide_unzstd_new();
    lines->byte_word = "decompressed byte";
    memcpy(tide_unzstd_room(lines->unzstd, &room), block->ptr, block->len);
    tide_unzstd_put(lines->unzstd, block->len);
    block->len = 0;
    return TIDE_OK;
}

static tide_status check_length(const struct tide_lines *lines, size_t len, struct tide_error *err)
{
    if (TIDE_LIKELY(len <= lines->line_bytes_max)) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "%s: %s %" PRIu64 ": a frame of more than %zu bytes; --max-frame-bytes "
                     "raises the limit",
                     lines->path, lines->byte_word, lines->block_at + lines->start,
                     lines->line_bytes_max);
}

/* Moves what is left of the block to its front. */
static void shift(struct tide_lines *lines)
{
    struct tide_buf *block = &lines->block;
    if (lines->start > 0) {
        block->len -= lines->start;
        memmove(block->ptr, block->ptr + lines->start, block->len);
        lines->block_at += lines->start;
        lines->scanned -= lines->start;
        lines->start = 0;
    }
}

/*
 * Reads on behind what is left. A long line doubles the block, but never to more than one block
 * above the longest line: what is longer is refused when that is read.
 */
static tide_status read_more(struct tide_lines *lines, struct tide_error *err)
{
    if (!lines->is_begun) {
        return begin(lines, err);
    }
    struct tide_buf *block = &lines->block;
    TIDE_TRY(check_length(lines, block->len - lines->start, err));
    shift(lines);
    size_t rest = block->len;
    size_t room = rest > BLOCK_BYTES / 2 ? rest : BLOCK_BYTES - rest;
    size_t room_max = lines->line_bytes_max - rest + BLOCK_BYTES;
    room = room < room_max ? room : room_max;
    char *to = tide_buf_reserve(block, room);
    size_t got = 0;
    if (lines->unzstd != NULL) {
        TIDE_TRY(read_zstd(lines, to, room, &got, err));
    } else {
        TIDE_TRY(read_file(lines, to, room, &got, err));
    }
    block->len += got;
    lines->is_at_end = got == 0;
    return TIDE_OK;
}

/* Gives out the bytes from `start` up to `end`; the next line starts `skip` bytes after them. */
static tide_status give(struct tide_lines *lines, size_t end, size_t skip, tide_str *ret_line,
                        uint64_t *ret_at, struct tide_error *err)
{
    TIDE_TRY(check_length(lines, end - lines->start, err));
    *ret_line = tide_str_of(lines->block.ptr + lines->start, end - lines->start);
    *ret_at = lines->block_at + lines->start;
    lines->start = end + skip;
    lines->scanned = lines->start;
    return TIDE_OK;
}

tide_status tide_lines_next(struct tide_lines *lines, tide_str *ret_line, uint64_t *ret_at,
                            bool *ret_is_ended, struct tide_error *err)
{
    for (;;) {
        const struct tide_buf *block = &lines->block;
        size_t left = block->len - lines->scanned;
        const char *end = left == 0 ? NULL : memchr(block->ptr + lines->scanned, '\n', left);
        if (end != NULL) {
            *ret_is_ended = true;
            return give(lines, (size_t)(end - block->ptr), 1, ret_line, ret_at, err);
        }
        lines->scanned = block->len;
        if (lines->is_at_end && lines->start == block->len) {
            return TIDE_END;
        }
        if (lines->is_at_end) {
            *ret_is_ended = false;
            return give(lines, block->len, 0, ret_line, ret_at, err);
        }
        TIDE_TRY(read_more(lines, err));
    }
}
