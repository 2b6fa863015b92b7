#include "sink/file/frames_file.h"

#include "base/alloc.h"
#include "base/fsio.h"
#include "port/file_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SQLITE_HEADER "SQLite format 3" /* with its NUL */

struct tide_frames_file *tide_frames_file_new(const struct tide_frames_dir *dir, tide_str name,
                                              tide_str store)
{
    struct tide_frames_file *file = tide_alloc(1, sizeof(*file));
    struct tide_buf path = {0};
    if (strcmp(dir->path, ".") != 0) {
        tide_buf_printf(&path, "%s%s", dir->path, strcmp(dir->path, "/") == 0 ? "" : "/");
    }
    tide_buf_append_str(&path, name);
    file->dir = dir;
    file->name = tide_strndup(name.ptr, name.len);
    file->path = tide_strndup(path.ptr, path.len);
    file->store = store;
    file->fd = -1;
    tide_buf_done(&path);
    return file;
}

void tide_frames_file_free(struct tide_frames_file *file)
{
    if (file != NULL) {
        tide_fd_close(&file->fd);
        tide_buf_done(&file->buf);
        free(file->name);
        free(file->path);
        free(file);
    }
}

void tide_frames_file_close(struct tide_frames_file *file)
{
    TIDE_ASSERT(!file->needs_sync);
    tide_fd_close(&file->fd);
}

static tide_status fail_errno(const struct tide_frames_file *file, const char *what,
                              struct tide_error *err)
{
    return tide_file_fail(err, errno, what, file->path);
}

/* Opens for reading and writing and locks; a FIFO must not block us. */
static tide_status open_locked(struct tide_frames_file *file, int flags, struct stat *ret_st,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close)
    int fd =
        openat(file->dir->fd, file->name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0600);
    if (fd < 0) {
        bool is_missing = errno == ENOENT && (flags & O_CREAT) == 0;
        (void)fail_errno(file, "open", err);
        return is_missing ? TIDE_END : TIDE_IO;
    }
    if (fstat(fd, ret_st) != 0) {
        return fail_errno(file, "look at", err);
    }
    if (!S_ISREG(ret_st->st_mode)) {
        return tide_fail(err, TIDE_INVALID,
                         "%s is not a regular file; name one, or use - for a pipe", file->path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return tide_fail(err, TIDE_INVALID, "%s is being written by another process", file->path);
    }
    tide_fd_close(&file->fd);
    file->fd = fd;
    fd = -1;
    return TIDE_OK;
}

/* Reads the tail of the first `length` bytes. */
static tide_status read_tail(struct tide_frames_file *file, uint64_t length, struct tide_error *err)
{
    size_t len = length < TIDE_TAIL_BYTES ? (size_t)length : TIDE_TAIL_BYTES;
    ssize_t got = pread(file->fd, file->tail, len, (off_t)(length - len));
    if (got < 0) {
        return fail_errno(file, "read", err);
    }
    if ((size_t)got != len) {
        return tide_fail(err, TIDE_STALE, "%s became shorter while it was read", file->path);
    }
    file->tail_len = len;
    file->length = length;
    return TIDE_OK;
}

static bool leads_nowhere(const struct tide_frames_file *file)
{
    struct stat st;
    return fstatat(file->dir->fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(st.st_mode) && fstatat(file->dir->fd, file->name, &st, 0) != 0;
}

tide_status tide_frames_file_create(struct tide_frames_file *file, uint64_t *ret_size,
                                    struct tide_error *err)
{
    struct stat st;
    tide_status status = open_locked(file, 0, &st, err);
    if (status == TIDE_END) {
        status = open_locked(file, O_CREAT | O_EXCL, &st, err);
        if (status != TIDE_OK && leads_nowhere(file)) {
            return tide_fail(err, TIDE_IO,
                             "%s is a symbolic link that leads nowhere; remove it, or make what it "
                             "names",
                             file->path);
        }
    }
    TIDE_TRY(status);
    TIDE_TRY(read_tail(file, (uint64_t)st.st_size, err));
    file->inode = st.st_ino;
    *ret_size = (uint64_t)st.st_size;
    return TIDE_OK;
}

tide_status tide_frames_file_check_kind(const struct tide_frames_file *file, struct tide_error *err)
{
    char header[sizeof(SQLITE_HEADER)] = {0};
    if (pread(file->fd, header, sizeof(header), 0) < 0) {
        return fail_errno(file, "read", err);
    }
    return memcmp(header, SQLITE_HEADER, sizeof(header)) != 0
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "%s is an SQLite database, which frames behind it would damage (an "
                           "archive is written as archive:FILE)",
                           file->path);
}

tide_status tide_frames_file_check(struct tide_frames_file *file, const struct tide_held_file *held,
                                   struct tide_error *err)
{
    struct stat st;
    tide_status status = open_locked(file, 0, &st, err);
    if (status == TIDE_END) {
        return tide_fail(err, TIDE_STALE, "%s is gone", file->path);
    }
    TIDE_TRY(status);
    unsigned long long want = held->length;
    if (st.st_ino != held->inode) {
        return tide_fail(err, TIDE_STALE, "%s is another file than the one that was written",
                         file->path);
    }
    if ((uint64_t)st.st_size < held->length) {
        return tide_fail(err, TIDE_STALE, "%s has %lld bytes, but %llu were held", file->path,
                         (long long)st.st_size, want);
    }
    TIDE_TRY(read_tail(file, held->length, err));
    if (tide_frames_file_tail_hash(file) != held->tail_hash) {
        return tide_fail(err, TIDE_STALE, "%s was changed: its bytes before byte %llu differ",
                         file->path, want);
    }
    file->inode = st.st_ino;
    file->has_more = (uint64_t)st.st_size > held->length;
    return TIDE_OK;
}

/* Opens again what was closed for want of descriptors. */
static tide_status reopen(struct tide_frames_file *file, struct tide_error *err)
{
    struct stat st;
    if (file->fd >= 0) {
        return TIDE_OK;
    }
    tide_status status = open_locked(file, 0, &st, err);
    if (status == TIDE_END || (status == TIDE_OK && st.st_ino != file->inode)) {
        return tide_fail(err, TIDE_STALE, "%s was moved or replaced while it was being written",
                         file->path);
    }
    return status;
}

tide_status tide_frames_file_cut(struct tide_frames_file *file, uint64_t length,
                                 struct tide_error *err)
{
    TIDE_TRY(reopen(file, err));
    if (ftruncate(file->fd, (off_t)length) != 0) {
        return fail_errno(file, "cut", err);
    }
    file->needs_sync = true;
    file->has_more = false;
    return read_tail(file, length, err);
}

void tide_frames_file_end_line(struct tide_frames_file *file)
{
    if (file->length > 0 && file->tail[file->tail_len - 1] != '\n') {
        tide_buf_append_char(&file->buf, '\n');
    }
}

static void remember_tail(struct tide_frames_file *file, const char *bytes, size_t len)
{
    if (len >= TIDE_TAIL_BYTES) {
        memcpy(file->tail, bytes + (len - TIDE_TAIL_BYTES), TIDE_TAIL_BYTES);
        file->tail_len = TIDE_TAIL_BYTES;
        return;
    }
    size_t keep = TIDE_TAIL_BYTES - len < file->tail_len ? TIDE_TAIL_BYTES - len : file->tail_len;
    memmove(file->tail, file->tail + (file->tail_len - keep), keep);
    memcpy(file->tail + keep, bytes, len);
    file->tail_len = keep + len;
}

tide_status tide_frames_file_write_out(struct tide_frames_file *file, struct tide_error *err)
{
    if (file->buf.len == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(reopen(file, err));
    file->needs_sync = true;
    size_t done = 0;
    while (done < file->buf.len) {
        ssize_t put = pwrite(file->fd, file->buf.ptr + done, file->buf.len - done,
                             (off_t)(file->length + done));
        if (put < 0 && errno != EINTR) {
            return fail_errno(file, "write", err);
        }
        done += put > 0 ? (size_t)put : 0;
    }
    /* the disk begins at once, so that the sync has less to wait for; whether it does is no matter
     */
    (void)sync_file_range(file->fd, (off_t)file->length, (off_t)file->buf.len,
                          SYNC_FILE_RANGE_WRITE);
    remember_tail(file, file->buf.ptr, file->buf.len);
    file->length += file->buf.len;
    tide_buf_reset(&file->buf);
    return TIDE_OK;
}

tide_status tide_frames_file_sync(struct tide_frames_file *file, struct tide_error *err)
{
    if (!file->needs_sync) {
        return TIDE_OK;
    }
    struct stat st;
    if (fdatasync(file->fd) != 0) {
        return fail_errno(file, "sync", err);
    }
    /* a file that is no longer under its name, or not only ours, holds nothing for us */
    if (fstatat(file->dir->fd, file->name, &st, 0) != 0 || st.st_ino != file->inode ||
        (uint64_t)st.st_size != file->length) {
        return tide_fail(err, TIDE_STALE,
                         "%s was moved, replaced or changed while it was being written",
                         file->path);
    }
    file->needs_sync = false;
    return TIDE_OK;
}

uint64_t tide_frames_file_tail_hash(const struct tide_frames_file *file)
{
    return XXH3_64bits(file->tail, file->tail_len);
}
