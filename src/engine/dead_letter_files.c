#include "engine/dead_letter_files.h"

#include "base/fsio.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAD       "dead_letters."
#define TAIL       ".ndjson"
#define READ_BYTES ((size_t)64 * 1024)

void tide_dead_letters_name(uint64_t number, char ret_name[TIDE_DEAD_LETTERS_NAME_MAX])
{
    (void)snprintf(ret_name, TIDE_DEAD_LETTERS_NAME_MAX, LEAD "%llu" TAIL,
                   (unsigned long long)number);
}

bool tide_dead_letters_number(tide_str name, uint64_t *ret_number)
{
    tide_str lead = TIDE_STR(LEAD);
    tide_str tail = TIDE_STR(TAIL);
    uint64_t number = 0;
    if (name.len <= lead.len + tail.len || !tide_str_starts_with(name, lead) ||
        !tide_str_ends_with(name, tail) ||
        !tide_str_to_u64(tide_str_of(name.ptr + lead.len, name.len - lead.len - tail.len),
                         &number) ||
        number == 0) {
        return false;
    }
    *ret_number = number;
    return true;
}

bool tide_dead_letters_is_name(tide_str name)
{
    uint64_t number;
    return tide_str_equal(name, TIDE_STR(TIDE_DEAD_LETTERS_FILE)) ||
           tide_str_equal(name, TIDE_STR(TIDE_DEAD_LETTERS_MARKS)) ||
           tide_dead_letters_number(name, &number);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

tide_status tide_dead_letters_list(int dir_fd, const char *dir, uint64_t **ret_numbers,
                                   size_t *ret_count, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf numbers = {0};
    TIDE_CLEANUP(tide_fd_close)
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    TIDE_CLEANUP(close_dir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (entries == NULL) {
        return tide_fail_retriable(err, TIDE_IO, "cannot list %s: %s", dir, strerror(errno));
    }
    fd = -1; /* `entries` has it */
    errno = 0;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        uint64_t number;
        if (tide_dead_letters_number(tide_str_from(entry->d_name), &number)) {
            tide_buf_append(&numbers, &number, sizeof(number));
        }
    }
    if (errno != 0) {
        return tide_fail_retriable(err, TIDE_IO, "cannot list %s: %s", dir, strerror(errno));
    }
    *ret_count = numbers.len / sizeof(uint64_t);
    if (*ret_count > 1) {
        qsort(numbers.ptr, *ret_count, sizeof(uint64_t), compare);
    }
    *ret_numbers = (uint64_t *)(void *)numbers.ptr;
    numbers = (struct tide_buf){0};
    return TIDE_OK;
}

/* Gathers a line that lies over several reads. */
struct lines {
    tide_dead_letters_each each;
    void *context;
    size_t line_max;
    struct tide_dead_letters_line line;
    struct tide_buf partial;
    uint64_t len; /* of the line so far, all of it */
};

static void keep_partial(struct lines *lines, const char *from, size_t len)
{
    size_t room = lines->line_max - lines->partial.len;
    tide_buf_append(&lines->partial, from, len < room ? len : room);
    lines->len += len;
}

static tide_status take_line(struct lines *lines, const char *from, size_t len,
                             struct tide_error *err)
{
    tide_str text = {from, len};
    if (lines->len > 0 || len > lines->line_max) {
        keep_partial(lines, from, len);
        text = tide_buf_str(&lines->partial);
    } else {
        lines->len = len;
    }
    lines->line.number++;
    lines->line.text = text;
    lines->line.is_cut = lines->len > text.len;
    tide_status status = lines->each(lines->context, &lines->line, err);
    lines->line.start += lines->len + 1;
    lines->len = 0;
    if (lines->partial.cap > READ_BYTES) {
        tide_buf_done(&lines->partial); /* rare and large: not worth keeping */
    }
    tide_buf_reset(&lines->partial);
    return status;
}

/* `*ret_used`: up to behind the last line end; 0 when there is none. */
static tide_status take_piece(struct lines *lines, const char *piece, size_t len, size_t *ret_used,
                              struct tide_error *err)
{
    const char *from = piece;
    const char *end = piece + len;
    const char *stop;
    while ((stop = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        TIDE_TRY(take_line(lines, from, (size_t)(stop - from), err));
        from = stop + 1;
    }
    keep_partial(lines, from, (size_t)(end - from));
    *ret_used = (size_t)(from - piece);
    return TIDE_OK;
}

static tide_status read_pieces(int fd, const char *path, uint64_t end, struct lines *lines,
                               struct tide_buf *piece, uint64_t *ret_length, struct tide_error *err)
{
    char *bytes = tide_buf_reserve(piece, READ_BYTES);
    for (uint64_t at = 0; at < end;) {
        size_t want = end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES;
        ssize_t got = pread(fd, bytes, want, (off_t)at);
        if (got < 0 && errno != EINTR) {
            return tide_fail_retriable(err, TIDE_IO, "cannot read %s: %s", path, strerror(errno));
        }
        if (got == 0) {
            break;
        }
        size_t used = 0;
        TIDE_TRY(take_piece(lines, bytes, got > 0 ? (size_t)got : 0, &used, err));
        *ret_length = used > 0 ? at + used : *ret_length;
        at += got > 0 ? (uint64_t)got : 0;
    }
    return TIDE_OK;
}

tide_status tide_dead_letters_each_line(int fd, const char *path, uint64_t end, size_t line_max,
                                        tide_dead_letters_each each, void *context,
                                        uint64_t *ret_length, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf piece = {0};
    struct lines lines = {.each = each, .context = context, .line_max = line_max};
    *ret_length = 0;
    tide_status status = read_pieces(fd, path, end, &lines, &piece, ret_length, err);
    tide_buf_done(&lines.partial);
    return status;
}
