#include "engine/dead_letters.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/thread.h"
#include "format/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME  "dead_letters.ndjson"
#define READ_BYTES ((size_t)64 * 1024)

struct tide_dead_letter_file {
    char *dir;
    char *path;
    size_t record_bytes_max;
    const struct tide_position_kind *position_kind;
    _Atomic uint64_t count;
    pthread_mutex_t mutex; /* over what follows */
    int fd;                /* -1: no letter yet */
    uint64_t length;       /* of whole lines */
    bool is_dirty;         /* bytes of a failed write may lie behind `length` */
    struct tide_buf line;
};

static tide_status fail_errno(const struct tide_dead_letter_file *letters, const char *what,
                              struct tide_error *err)
{
    return tide_fail_retriable(err, TIDE_IO, "cannot %s %s: %s", what, letters->path,
                               strerror(errno));
}

/* Counts the line ends and finds where the last one is. */
static tide_status read_lines(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr) char *bytes = tide_alloc(READ_BYTES, 1);
    uint64_t at = 0;
    ssize_t got;
    while ((got = pread(letters->fd, bytes, READ_BYTES, (off_t)at)) != 0) {
        if (got < 0 && errno != EINTR) {
            return fail_errno(letters, "read", err);
        }
        const char *end = bytes + (got > 0 ? got : 0);
        const char *from = bytes;
        while ((from = memchr(from, '\n', (size_t)(end - from))) != NULL) {
            from++;
            letters->count++;
            letters->length = at + (uint64_t)(from - bytes);
        }
        at += got > 0 ? (uint64_t)got : 0;
    }
    letters->is_dirty = at > letters->length;
    return TIDE_OK;
}

/* A line without end was never confirmed to anyone. */
static tide_status cut_torn_line(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    if (letters->is_dirty && ftruncate(letters->fd, (off_t)letters->length) != 0) {
        return fail_errno(letters, "cut", err);
    }
    letters->is_dirty = false;
    return TIDE_OK;
}

static tide_status open_existing(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    letters->fd = open(letters->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (letters->fd < 0) {
        return errno == ENOENT ? TIDE_OK : fail_errno(letters, "open", err);
    }
    struct stat st;
    if (fstat(letters->fd, &st) != 0) {
        return fail_errno(letters, "look at", err);
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_IO, "%s is not a regular file", letters->path);
    }
    TIDE_TRY(read_lines(letters, err));
    return cut_torn_line(letters, err);
}

static void close_ptr(struct tide_dead_letter_file **letters)
{
    tide_dead_letter_file_close(*letters);
}

tide_status tide_dead_letter_file_open(const char *dir, size_t record_bytes_max,
                                       const struct tide_position_kind *position_kind,
                                       struct tide_dead_letter_file **ret_letters,
                                       struct tide_error *err)
{
    struct tide_buf path = {0};
    tide_buf_printf(&path, "%s/%s", dir, FILE_NAME);
    TIDE_CLEANUP(close_ptr)
    struct tide_dead_letter_file *letters = tide_alloc(1, sizeof(*letters));
    letters->path = tide_strndup(path.ptr, path.len);
    letters->dir = tide_strndup(dir, strlen(dir));
    letters->record_bytes_max = record_bytes_max;
    letters->position_kind = position_kind;
    letters->fd = -1;
    (void)pthread_mutex_init(&letters->mutex, NULL);
    tide_buf_done(&path);
    TIDE_TRY(open_existing(letters, err));
    *ret_letters = letters;
    letters = NULL;
    return TIDE_OK;
}

void tide_dead_letter_file_close(struct tide_dead_letter_file *letters)
{
    if (letters != NULL) {
        tide_fd_close(&letters->fd);
        tide_buf_done(&letters->line);
        (void)pthread_mutex_destroy(&letters->mutex);
        free(letters->dir);
        free(letters->path);
        free(letters);
    }
}

static void append_text(struct tide_buf *buf, tide_str key, tide_str text)
{
    tide_buf_append_char(buf, ',');
    tide_json_append_key(buf, key);
    tide_json_append_string(buf, text);
}

static void append_number(struct tide_buf *buf, tide_str key, uint64_t number)
{
    tide_buf_append_char(buf, ',');
    tide_json_append_key(buf, key);
    tide_buf_append_u64(buf, number);
}

static void append_place(struct tide_buf *buf, const struct tide_dead_letter *letter,
                         const struct tide_position_kind *kind)
{
    if (letter->has_seq) {
        append_text(buf, TIDE_STR("snapshot_id"), tide_str_from(letter->snapshot_id));
        append_number(buf, TIDE_STR("seq"), letter->seq);
    } else if (letter->place.known) {
        tide_buf_append_str(buf, TIDE_STR(",\"position\":"));
        kind->write(letter->place.position, buf);
        append_number(buf, TIDE_STR("index"), letter->place.index);
    }
}

/* The first bytes of the record: a text without half a character, or anything else. */
static void append_record(struct tide_buf *buf, tide_str record, size_t bytes_max)
{
    tide_str kept = record.len > bytes_max ? tide_str_of(record.ptr, bytes_max) : record;
    size_t valid = tide_str_utf8_valid_prefix(kept);
    if (valid == kept.len || tide_str_is_utf8(record)) {
        append_text(buf, TIDE_STR("record"), tide_str_of(kept.ptr, valid));
        return;
    }
    tide_buf_append_str(buf, TIDE_STR(",\"record_base64\":"));
    tide_json_append_base64(buf, kept);
}

static void append_letter(struct tide_buf *buf, const struct tide_dead_letter_file *letters,
                          const struct tide_dead_letter *letter)
{
    char now[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(tide_clock_utc_us(), now);
    tide_buf_append_char(buf, '{');
    tide_json_append_key(buf, TIDE_STR("timestamp"));
    tide_json_append_string(buf, tide_str_from(now));
    append_text(buf, TIDE_STR("store"), letter->store);
    append_text(buf, TIDE_STR("destination"), letter->destination);
    append_text(buf, TIDE_STR("reason"), letter->reason);
    append_place(buf, letter, letters->position_kind);
    append_number(buf, TIDE_STR("bytes"), letter->bytes.len);
    append_record(buf, letter->bytes, letters->record_bytes_max);
    tide_buf_append_str(buf, TIDE_STR("}\n"));
}

static tide_status make_file(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    letters->fd = open(letters->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return letters->fd >= 0 ? TIDE_OK : fail_errno(letters, "make", err);
}

static tide_status write_line(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    const struct tide_buf *line = &letters->line;
    size_t done = 0;
    letters->is_dirty = true;
    while (done < line->len) {
        ssize_t put = pwrite(letters->fd, line->ptr + done, line->len - done,
                             (off_t)(letters->length + done));
        if (put < 0 && errno != EINTR) {
            return fail_errno(letters, "write", err);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return fdatasync(letters->fd) == 0 ? TIDE_OK : fail_errno(letters, "sync", err);
}

static tide_status put_locked(struct tide_dead_letter_file *letters,
                              const struct tide_dead_letter *letter, struct tide_error *err)
{
    tide_buf_reset(&letters->line);
    append_letter(&letters->line, letters, letter);
    if (letters->fd < 0) {
        TIDE_TRY(make_file(letters, err));
    }
    TIDE_TRY(cut_torn_line(letters, err));
    TIDE_TRY(write_line(letters, err));
    if (letters->length == 0 && tide_dir_sync(letters->dir, err) != TIDE_OK) {
        err->retriable = true;
        return err->status;
    }
    letters->is_dirty = false;
    letters->length += letters->line.len;
    letters->count++;
    return TIDE_OK;
}

static tide_status put(void *context, const struct tide_dead_letter *letter, struct tide_error *err)
{
    struct tide_dead_letter_file *letters = context;
    tide_mutex_lock(&letters->mutex);
    tide_status status = put_locked(letters, letter, err);
    if (status != TIDE_OK && letters->fd >= 0) {
        struct tide_error ignored; /* the next put tries again */
        (void)cut_torn_line(letters, &ignored);
    }
    tide_mutex_unlock(&letters->mutex);
    return status;
}

struct tide_dead_letters tide_dead_letter_file_target(struct tide_dead_letter_file *letters)
{
    return (struct tide_dead_letters){.put = put, .context = letters};
}

uint64_t tide_dead_letter_file_count(const struct tide_dead_letter_file *letters)
{
    return letters->count;
}
