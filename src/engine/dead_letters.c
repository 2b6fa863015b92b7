#include "engine/dead_letters.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/dead_letter_files.h"
#include "engine/dead_letter_ids.h"
#include "format/json_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tide_dead_letter_file {
    char *dir;
    char *path; /* of the file that is written to */
    struct tide_dead_letter_limits limits;
    const struct tide_position_kind *position_kind;
    _Atomic uint64_t count;
    pthread_mutex_t mutex; /* over what follows */
    int dir_fd;
    int fd;            /* -1: no letter yet, or the file before is full */
    uint64_t length;   /* of whole lines */
    bool is_dirty;     /* bytes of a failed write may lie behind `length` */
    bool is_dir_dirty; /* a file was renamed or removed and the directory not synced since */
    struct tide_buf line;
    uint64_t last_start; /* of the last line that was read */
    uint64_t number;     /* of the newest full file that was seen: not given again */
    struct tide_dead_letter_ids kept;
    struct tide_dead_letter_ids skipped;
};

struct tide_dead_letter_limits tide_dead_letter_limits_default(void)
{
    return (struct tide_dead_letter_limits){
        .record_bytes = TIDE_DEAD_LETTER_BYTES_DEFAULT,
        .file_bytes = TIDE_DEAD_LETTER_FILE_BYTES_DEFAULT,
        .files = TIDE_DEAD_LETTER_FILES_DEFAULT,
        .when_full = TIDE_DEAD_LETTERS_STOP,
    };
}

static tide_status fail_errno(const struct tide_dead_letter_file *letters, const char *what,
                              struct tide_error *err)
{
    return tide_fail_retriable(err, TIDE_IO, "cannot %s %s: %s", what, letters->path,
                               strerror(errno));
}

static tide_status fail_named(const struct tide_dead_letter_file *letters, const char *what,
                              const char *name, struct tide_error *err)
{
    return tide_fail_retriable(err, TIDE_IO, "cannot %s %s/%s: %s", what, letters->dir, name,
                               strerror(errno));
}

static tide_status remember(void *context, const struct tide_dead_letters_line *line,
                            struct tide_error *err)
{
    struct tide_dead_letter_file *letters = context;
    struct tide_dead_letter_id id;
    (void)err;
    letters->last_start = line->start;
    if (tide_dead_letter_line_id(line->text, &id)) {
        tide_dead_letter_ids_add(&letters->kept, id);
    }
    return TIDE_OK;
}

/* Only the start of each line matters. */
static tide_status read_ids(struct tide_dead_letter_file *letters, int fd, const char *path,
                            uint64_t size, uint64_t *ret_length, struct tide_error *err)
{
    return tide_dead_letters_each_line(fd, path, size, 64, remember, letters, ret_length, err);
}

/* When the power goes, the end of the last line may have reached the disk and what is before it
 * not. Such a line was never confirmed to anyone. */
static tide_status leave_out_torn_line(struct tide_dead_letter_file *letters,
                                       struct tide_error *err)
{
    struct tide_error ignored;
    uint64_t len = letters->length - letters->last_start;
    if (letters->length == 0 || len > TIDE_DEAD_LETTER_LINE_MAX) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_free_ptr) char *line = tide_alloc((size_t)len, 1);
    ssize_t got = pread(letters->fd, line, (size_t)len, (off_t)letters->last_start);
    if (got < 0) {
        return fail_errno(letters, "read", err);
    }
    if (tide_json_check(tide_str_of(line, (size_t)got), TIDE_JSON_DEPTH_MAX, &ignored) != TIDE_OK) {
        letters->length = letters->last_start;
    }
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

static int open_at(const struct tide_dead_letter_file *letters, const char *name, int flags)
{
    return openat(letters->dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static tide_status check_regular(const struct tide_dead_letter_file *letters, int fd,
                                 const char *name, uint64_t *ret_size, struct tide_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return fail_named(letters, "look at", name, err);
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_IO, "%s/%s is not a regular file", letters->dir, name);
    }
    *ret_size = (uint64_t)st.st_size;
    return TIDE_OK;
}

static tide_status open_existing(struct tide_dead_letter_file *letters, uint64_t *ret_size,
                                 struct tide_error *err)
{
    letters->fd = open_at(letters, TIDE_DEAD_LETTERS_FILE, O_RDWR);
    if (letters->fd < 0) {
        return errno == ENOENT ? TIDE_OK : fail_errno(letters, "open", err);
    }
    return check_regular(letters, letters->fd, TIDE_DEAD_LETTERS_FILE, ret_size, err);
}

/* Somebody may have removed it since it was listed: nothing is left to be known then. */
static tide_status read_full_file(struct tide_dead_letter_file *letters, uint64_t number,
                                  struct tide_error *err)
{
    char name[TIDE_DEAD_LETTERS_NAME_MAX];
    uint64_t size = 0;
    uint64_t length = 0;
    tide_dead_letters_name(number, name);
    TIDE_CLEANUP(tide_fd_close) int fd = open_at(letters, name, O_RDONLY);
    if (fd < 0) {
        return errno == ENOENT ? TIDE_OK : fail_named(letters, "open", name, err);
    }
    TIDE_TRY(check_regular(letters, fd, name, &size, err));
    return read_ids(letters, fd, name, size, &length, err);
}

static uint64_t size_of(const struct tide_dead_letter_file *letters, uint64_t number)
{
    char name[TIDE_DEAD_LETTERS_NAME_MAX];
    struct stat st;
    tide_dead_letters_name(number, name);
    return fstatat(letters->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* What comes again after a crash is among the newest: older files are not read. */
static tide_status read_full_files(struct tide_dead_letter_file *letters, uint64_t size,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr) uint64_t *numbers = NULL;
    size_t count = 0;
    TIDE_TRY(tide_dead_letters_list(letters->dir_fd, letters->dir, &numbers, &count, err));
    size_t first = count;
    while (first > 0 && size < TIDE_DEAD_LETTER_RECALL_BYTES) {
        size += size_of(letters, numbers[--first]);
    }
    for (size_t i = first; i < count; i++) {
        TIDE_TRY(read_full_file(letters, numbers[i], err));
    }
    return TIDE_OK;
}

static tide_status sync_file(const struct tide_dead_letter_file *letters, struct tide_error *err)
{
    return fdatasync(letters->fd) == 0 ? TIDE_OK : fail_errno(letters, "sync", err);
}

static tide_status sync_dir(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    if (fsync(letters->dir_fd) != 0) {
        return tide_fail_retriable(err, TIDE_IO, "cannot sync directory %s: %s", letters->dir,
                                   strerror(errno));
    }
    letters->is_dir_dirty = false;
    return TIDE_OK;
}

/* What a process that was killed had not synced yet would else count as held from now on. */
static tide_status adopt_existing(struct tide_dead_letter_file *letters, uint64_t size,
                                  struct tide_error *err)
{
    TIDE_TRY(read_ids(letters, letters->fd, letters->path, size, &letters->length, err));
    TIDE_TRY(leave_out_torn_line(letters, err));
    letters->is_dirty = size > letters->length;
    TIDE_TRY(cut_torn_line(letters, err));
    TIDE_TRY(sync_file(letters, err));
    return sync_dir(letters, err);
}

static tide_status open_files(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    uint64_t size = 0;
    TIDE_TRY(tide_dir_open(letters->dir, &letters->dir_fd, err));
    TIDE_TRY(open_existing(letters, &size, err));
    TIDE_TRY(read_full_files(letters, size, err));
    return letters->fd < 0 ? TIDE_OK : adopt_existing(letters, size, err);
}

static void close_ptr(struct tide_dead_letter_file **letters)
{
    tide_dead_letter_file_close(*letters);
}

tide_status tide_dead_letter_file_open(const char *dir,
                                       const struct tide_dead_letter_limits *limits,
                                       const struct tide_position_kind *position_kind,
                                       struct tide_dead_letter_file **ret_letters,
                                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf path = {0};
    TIDE_CLEANUP(close_ptr)
    struct tide_dead_letter_file *letters = tide_alloc(1, sizeof(*letters));
    tide_buf_printf(&path, "%s/%s", dir, TIDE_DEAD_LETTERS_FILE);
    letters->path = tide_strndup(path.ptr, path.len);
    letters->dir = tide_strndup(dir, strlen(dir));
    letters->limits = *limits;
    letters->position_kind = position_kind;
    letters->dir_fd = -1;
    letters->fd = -1;
    letters->is_dir_dirty = true; /* for all that is known: killed after a rename */
    tide_dead_letter_ids_init(&letters->kept, TIDE_DEAD_LETTER_IDS_MAX);
    tide_dead_letter_ids_init(&letters->skipped, TIDE_DEAD_LETTER_IDS_MAX);
    (void)pthread_mutex_init(&letters->mutex, NULL);
    TIDE_TRY(open_files(letters, err));
    *ret_letters = letters;
    letters = NULL;
    return TIDE_OK;
}

void tide_dead_letter_file_close(struct tide_dead_letter_file *letters)
{
    if (letters != NULL) {
        tide_fd_close(&letters->fd);
        tide_fd_close(&letters->dir_fd);
        tide_buf_done(&letters->line);
        tide_dead_letter_ids_done(&letters->kept);
        tide_dead_letter_ids_done(&letters->skipped);
        (void)pthread_mutex_destroy(&letters->mutex);
        free(letters->dir);
        free(letters->path);
        free(letters);
    }
}

static tide_status count_line(void *context, const struct tide_dead_letters_line *line,
                              struct tide_error *err)
{
    uint64_t *count = context;
    (void)line;
    (void)err;
    ++*count;
    return TIDE_OK;
}

static tide_status drop(struct tide_dead_letter_file *letters, uint64_t number,
                        struct tide_error *err)
{
    char name[TIDE_DEAD_LETTERS_NAME_MAX];
    uint64_t count = 0;
    uint64_t length = 0;
    tide_dead_letters_name(number, name);
    TIDE_CLEANUP(tide_fd_close) int fd = open_at(letters, name, O_RDONLY);
    if (fd >= 0) { /* else it cannot be read, or somebody has just removed it */
        TIDE_TRY(tide_dead_letters_each_line(fd, name, size_of(letters, number), 1, count_line,
                                             &count, &length, err));
    }
    if (unlinkat(letters->dir_fd, name, 0) != 0 && errno != ENOENT) {
        return fail_named(letters, "remove", name, err);
    }
    letters->is_dir_dirty = true;
    tide_log(TIDE_LOG_WARN, "dropped the %llu oldest dead letters with %s/%s to make room",
             (unsigned long long)count, letters->dir, name);
    return TIDE_OK;
}

static tide_status fail_full(const struct tide_dead_letter_file *letters, struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "the dead letters in %s have filled their %llu files of %llu bytes; look at "
                     "them (`tidemark dead-letters list %s`) and remove the oldest files, or allow "
                     "more dead_letters.files, or set dead_letters.when_full to drop_oldest",
                     letters->dir, (unsigned long long)letters->limits.files,
                     (unsigned long long)letters->limits.file_bytes, letters->dir);
}

/* Room for one more full file. */
static tide_status make_room(struct tide_dead_letter_file *letters, uint64_t *ret_number,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr) uint64_t *numbers = NULL;
    size_t count = 0;
    TIDE_TRY(tide_dead_letters_list(letters->dir_fd, letters->dir, &numbers, &count, err));
    if (count > 0 && numbers[count - 1] > letters->number) {
        letters->number = numbers[count - 1];
    }
    if (letters->number == UINT64_MAX) {
        return tide_fail(err, TIDE_INVALID, "%s has a file of dead letters of the highest number",
                         letters->dir);
    }
    if (count + 2 > letters->limits.files && letters->limits.when_full == TIDE_DEAD_LETTERS_STOP) {
        return fail_full(letters, err);
    }
    for (size_t i = 0; count - i + 2 > letters->limits.files && i < count; i++) {
        TIDE_TRY(drop(letters, numbers[i], err));
    }
    *ret_number = letters->number + 1;
    return TIDE_OK;
}

static tide_status rotate(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    char name[TIDE_DEAD_LETTERS_NAME_MAX];
    uint64_t number = 0;
    TIDE_TRY(make_room(letters, &number, err));
    tide_dead_letters_name(number, name);
    if (renameat(letters->dir_fd, TIDE_DEAD_LETTERS_FILE, letters->dir_fd, name) != 0) {
        return fail_errno(letters, "rename", err);
    }
    letters->is_dir_dirty = true;
    letters->number = number;
    tide_fd_close(&letters->fd);
    letters->length = 0;
    return TIDE_OK;
}

/* The name must not be given anew before the file that had it is safe under its number. */
static tide_status make_file(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    if (letters->is_dir_dirty) {
        TIDE_TRY(sync_dir(letters, err));
    }
    letters->fd = open_at(letters, TIDE_DEAD_LETTERS_FILE, O_RDWR | O_CREAT | O_EXCL);
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
    return sync_file(letters, err);
}

/* A file that somebody has taken away would take what is written to it from now on with it. */
static tide_status check_in_place(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    struct stat named;
    struct stat opened;
    uint64_t size = 0;
    bool is_there =
        fstatat(letters->dir_fd, TIDE_DEAD_LETTERS_FILE, &named, AT_SYMLINK_NOFOLLOW) == 0;
    if (letters->fd >= 0 && is_there && fstat(letters->fd, &opened) == 0 &&
        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) {
        return TIDE_OK;
    }
    tide_fd_close(&letters->fd);
    letters->length = 0;
    letters->is_dirty = false;
    TIDE_TRY(open_existing(letters, &size, err));
    return letters->fd < 0 ? TIDE_OK : adopt_existing(letters, size, err);
}

static tide_status prepare_file(struct tide_dead_letter_file *letters, struct tide_error *err)
{
    TIDE_TRY(check_in_place(letters, err));
    TIDE_TRY(cut_torn_line(letters, err));
    if (letters->length > 0 && letters->length + letters->line.len > letters->limits.file_bytes) {
        TIDE_TRY(rotate(letters, err));
    }
    return letters->fd < 0 ? make_file(letters, err) : TIDE_OK;
}

static tide_status put_new(struct tide_dead_letter_file *letters,
                           const struct tide_dead_letter *letter, struct tide_dead_letter_id id,
                           struct tide_error *err)
{
    tide_buf_reset(&letters->line);
    tide_dead_letter_append(&letters->line, letter, id, tide_clock_utc_us(),
                            (size_t)letters->limits.record_bytes, letters->position_kind);
    TIDE_TRY(prepare_file(letters, err));
    TIDE_TRY(write_line(letters, err));
    if (letters->length == 0) {
        TIDE_TRY(sync_dir(letters, err));
    }
    letters->is_dirty = false;
    letters->length += letters->line.len;
    tide_dead_letter_ids_add(&letters->kept, id);
    letters->count++;
    return TIDE_OK;
}

static tide_status put(void *context, const struct tide_dead_letter *letter, bool *ret_is_new,
                       struct tide_error *err)
{
    struct tide_dead_letter_file *letters = context;
    struct tide_dead_letter_id id = tide_dead_letter_id(letter);
    tide_status status = TIDE_OK;
    tide_mutex_lock(&letters->mutex);
    bool is_new = !tide_dead_letter_ids_has(&letters->kept, id);
    if (is_new) {
        status = put_new(letters, letter, id, err);
    }
    if (status != TIDE_OK && letters->fd >= 0) {
        struct tide_error ignored; /* the next put tries again */
        (void)cut_torn_line(letters, &ignored);
    }
    tide_mutex_unlock(&letters->mutex);
    TIDE_TRY(status);
    *ret_is_new = is_new;
    return TIDE_OK;
}

static void note_skipped(void *context, const struct tide_dead_letter *letter, bool *ret_is_new)
{
    struct tide_dead_letter_file *letters = context;
    struct tide_dead_letter_id id = tide_dead_letter_id(letter);
    tide_mutex_lock(&letters->mutex);
    *ret_is_new = !tide_dead_letter_ids_has(&letters->skipped, id);
    tide_dead_letter_ids_add(&letters->skipped, id);
    tide_mutex_unlock(&letters->mutex);
}

struct tide_dead_letters tide_dead_letter_file_target(struct tide_dead_letter_file *letters)
{
    return (struct tide_dead_letters){.put = put, .note_skipped = note_skipped, .context = letters};
}

uint64_t tide_dead_letter_file_count(const struct tide_dead_letter_file *letters)
{
    return letters->count;
}
