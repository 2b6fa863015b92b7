#include "app/verify_input.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (1 * TIDE_MIB)

void tide_inputs_done(struct tide_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
    }
    free(inputs->items);
    *inputs = (struct tide_inputs){0};
}

static void add_item(struct tide_inputs *inputs, char *path, const struct stat *info)
{
    if (inputs->count == inputs->cap) {
        inputs->cap = inputs->cap == 0 ? 8 : inputs->cap * 2;
        inputs->items = tide_realloc(inputs->items, inputs->cap, sizeof(*inputs->items));
    }
    struct tide_input *input = &inputs->items[inputs->count++];
    *input = (struct tide_input){.path = path, .is_regular = S_ISREG(info->st_mode)};
    if (input->is_regular) {
        input->mtime_us = (int64_t)info->st_mtim.tv_sec * 1000000 + info->st_mtim.tv_nsec / 1000;
    }
}

static int is_frame_file(const struct dirent *entry)
{
    tide_str name = tide_str_from(entry->d_name);
    return name.ptr[0] != '.' && (tide_str_ends_with(name, TIDE_STR(".ndjson")) ||
                                  tide_str_ends_with(name, TIDE_STR(".json")));
}

static char *join(const char *dir, const char *name)
{
    struct tide_buf path = {0};
    tide_buf_printf(&path, "%s%s%s", dir,
                    tide_str_ends_with(tide_str_from(dir), TIDE_STR("/")) ? "" : "/", name);
    (void)tide_buf_cstr(&path);
    return path.ptr;
}

static tide_status fail_read(const char *path, struct tide_error *err)
{
    return tide_fail(err, TIDE_IO, "%s: could not be read: %s", path, strerror(errno));
}

static tide_status add_directory(struct tide_inputs *inputs, const char *dir,
                                 struct tide_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_frame_file, alphasort);
    if (count < 0) {
        return fail_read(dir, err);
    }
    tide_status status = TIDE_OK;
    for (int i = 0; i < count; i++) {
        char *path = join(dir, entries[i]->d_name);
        struct stat info;
        if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
            add_item(inputs, tide_strndup(path, strlen(path)), &info);
        } else if (!S_ISDIR(info.st_mode) && status == TIDE_OK) {
            status = fail_read(path, err);
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    return status;
}

tide_status tide_inputs_add(struct tide_inputs *inputs, const char *path, struct tide_error *err)
{
    struct stat info;
    bool is_standard_input = strcmp(path, "-") == 0;
    if ((is_standard_input ? fstat(STDIN_FILENO, &info) : stat(path, &info)) != 0) {
        return fail_read(path, err);
    }
    if (!is_standard_input && S_ISDIR(info.st_mode)) {
        return add_directory(inputs, path, err);
    }
    add_item(inputs, tide_strndup(path, strlen(path)), &info);
    /* standard input stands where the one who opened it left it: it is read once */
    struct tide_input *input = &inputs->items[inputs->count - 1];
    input->is_regular = input->is_regular && !is_standard_input;
    return TIDE_OK;
}

tide_status tide_lines_open(struct tide_lines *lines, const char *path, size_t line_bytes_max,
                            struct tide_error *err)
{
    bool is_standard_input = strcmp(path, "-") == 0;
    int fd = is_standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_read(path, err);
    }
    *lines = (struct tide_lines){.path = is_standard_input ? "standard input" : path,
                                 .fd = fd,
                                 .line_bytes_max = line_bytes_max};
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
}

static tide_status check_length(const struct tide_lines *lines, size_t len, struct tide_error *err)
{
    if (TIDE_LIKELY(len <= lines->line_bytes_max)) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "%s: byte %" PRIu64 ": a frame of more than %zu bytes; --max-frame-bytes "
                     "raises the limit",
                     lines->path, lines->block_at + lines->start, lines->line_bytes_max);
}

/* Moves what is left of the block to its front and reads on behind it. */
static tide_status read_more(struct tide_lines *lines, struct tide_error *err)
{
    struct tide_buf *block = &lines->block;
    size_t rest = block->len - lines->start;
    TIDE_TRY(check_length(lines, rest, err));
    if (lines->start > 0) {
        memmove(block->ptr, block->ptr + lines->start, rest);
        lines->block_at += lines->start;
        lines->scanned -= lines->start;
        lines->start = 0;
        block->len = rest;
    }
    size_t room = rest > BLOCK_BYTES / 2 ? rest : BLOCK_BYTES - rest;
    char *to = tide_buf_reserve(block, room);
    ssize_t got;
    do {
        got = read(lines->fd, to, room);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return fail_read(lines->path, err);
    }
    block->len += (size_t)got;
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
