#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_STEP (64 * (size_t)1024)

void tide_fd_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static tide_status fail_errno(struct tide_error *err, const char *what, const char *path)
{
    return tide_fail(err, TIDE_IO, "%s %s: %s", what, path, strerror(errno));
}

static int open_retry(int dir_fd, const char *path, int flags)
{
    int fd;
    do {
        fd = openat(dir_fd, path, flags | O_CLOEXEC | O_NOCTTY, 0600);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int fsync_retry(int fd)
{
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

/* Appends up to `max` bytes from `fd`; 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, size_t max, struct tide_buf *buf)
{
    char *to = tide_buf_reserve(buf, max);
    ssize_t got;
    do {
        got = read(fd, to, max);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        buf->len += (size_t)got;
    }
    return got;
}

tide_status tide_file_read(const char *path, size_t size_max, struct tide_buf *ret_bytes,
                           struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = open_retry(AT_FDCWD, path, O_RDONLY);
    if (fd < 0) {
        return fail_errno(err, "cannot open", path);
    }
    size_t before = ret_bytes->len;
    for (;;) {
        size_t left = size_max - (ret_bytes->len - before);
        /* one byte past the limit is asked for, to tell a file of just that size from a larger */
        ssize_t got = read_some(fd, left < READ_STEP ? left + 1 : READ_STEP, ret_bytes);
        if (got == 0) {
            return TIDE_OK;
        }
        if (got < 0) {
            ret_bytes->len = before;
            return fail_errno(err, "cannot read", path);
        }
        if ((size_t)got > left) {
            ret_bytes->len = before;
            return tide_fail(err, TIDE_CORRUPT, "%s is larger than %zu bytes", path, size_max);
        }
    }
}

tide_status tide_file_write_all(int fd, const char *path, tide_str bytes, struct tide_error *err)
{
    size_t done = 0;
    while (done < bytes.len) {
        ssize_t put = write(fd, bytes.ptr + done, bytes.len - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return fail_errno(err, "cannot write", path);
        }
        done += (size_t)put;
    }
    return TIDE_OK;
}

/* The temporary file, written and synced. */
static tide_status write_synced(int dir_fd, const char *temporary, const char *shown,
                                tide_str bytes, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close)
    int fd = open_retry(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    if (fd < 0) {
        return fail_errno(err, "cannot make", shown);
    }
    TIDE_TRY(tide_file_write_all(fd, shown, bytes, err));
    if (fsync_retry(fd) != 0) {
        return fail_errno(err, "cannot sync", shown);
    }
    int rc = close(fd); /* some file systems report a failed write only here */
    fd = -1;
    return rc == 0 || errno == EINTR ? TIDE_OK : fail_errno(err, "cannot close", shown);
}

tide_status tide_file_replace_at(int dir_fd, const char *dir, const char *name, tide_str bytes,
                                 struct tide_error *err)
{
    char temporary[NAME_MAX + 1];
    char shown[PATH_MAX];
    int len = snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
    if (len < 0 || (size_t)len >= sizeof(temporary) || strchr(name, '/') != NULL) {
        return tide_fail(err, TIDE_INVALID, "\"%s\" cannot be the name of a file in %s", name, dir);
    }
    (void)snprintf(shown, sizeof(shown), "%s/%s", dir, temporary);
    tide_status status = write_synced(dir_fd, temporary, shown, bytes, err);
    if (status == TIDE_OK && renameat(dir_fd, temporary, dir_fd, name) != 0) {
        status = fail_errno(err, "cannot rename", shown);
    }
    if (status != TIDE_OK) {
        int failed = errno;
        (void)unlinkat(dir_fd, temporary, 0);
        errno = failed;
        return status;
    }
    return fsync_retry(dir_fd) == 0 ? TIDE_OK : fail_errno(err, "cannot sync directory", dir);
}

tide_status tide_file_replace(const char *dir, const char *name, tide_str bytes,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    TIDE_TRY(tide_dir_open(dir, &dir_fd, err));
    return tide_file_replace_at(dir_fd, dir, name, bytes, err);
}

tide_status tide_dir_open(const char *path, int *ret_fd, struct tide_error *err)
{
    int fd = open_retry(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        return fail_errno(err, "cannot open directory", path);
    }
    *ret_fd = fd;
    return TIDE_OK;
}

tide_status tide_dir_sync(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    TIDE_TRY(tide_dir_open(path, &fd, err));
    return fsync_retry(fd) == 0 ? TIDE_OK : fail_errno(err, "cannot sync directory", path);
}

/* Syncs the directory that holds `path`, whose last part begins at `path + last`. */
static tide_status sync_parent(char *path, size_t last, struct tide_error *err)
{
    if (last == 0) {
        return tide_dir_sync(".", err);
    }
    char kept = path[last];
    path[last] = '\0';
    tide_status status = tide_dir_sync(path, err);
    path[last] = kept;
    return status;
}

static tide_status make_one(char *path, size_t last, struct tide_error *err)
{
    if (mkdir(path, 0700) == 0) {
        return sync_parent(path, last, err);
    }
    int failed = errno;
    struct stat st;
    if (stat(path, &st) == 0) {
        return S_ISDIR(st.st_mode)
                   ? TIDE_OK
                   : tide_fail(err, TIDE_IO, "%s is there, but is no directory", path);
    }
    errno = failed;
    return fail_errno(err, "cannot make directory", path);
}

tide_status tide_dir_make(const char *path, struct tide_error *err)
{
    char partial[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(partial)) {
        return tide_fail(err, TIDE_INVALID, "\"%.64s\" cannot be the path of a directory", path);
    }
    memcpy(partial, path, len + 1);
    size_t last = 0; /* where the part in hand begins */
    for (size_t i = 0; i <= len; i++) {
        bool ends = path[i] == '\0' || path[i] == '/';
        if (ends && i > last) {
            partial[i] = '\0';
            TIDE_TRY(make_one(partial, last, err));
            partial[i] = path[i];
        }
        if (ends) {
            last = i + 1;
        }
    }
    return TIDE_OK;
}

/* Cuts the last part off; false when nothing is left but "." or "/". */
static bool to_parent(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        bool is_more = strcmp(path, ".") != 0;
        memcpy(path, ".", 2);
        return is_more;
    }
    if (slash == path) {
        bool is_more = path[1] != '\0';
        path[1] = '\0';
        return is_more;
    }
    *slash = '\0';
    return true;
}

tide_status tide_dir_may_make(const char *path, struct tide_error *err)
{
    char there[PATH_MAX];
    struct stat st;
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(there)) {
        return tide_fail(err, TIDE_INVALID, "\"%.64s\" cannot be the path of a directory", path);
    }
    memcpy(there, path, len + 1);
    while (stat(there, &st) != 0) {
        if (errno != ENOENT || !to_parent(there)) {
            return fail_errno(err, "cannot look at directory", there);
        }
    }
    if (!S_ISDIR(st.st_mode)) {
        return tide_fail(err, TIDE_IO, "%s is there, but is no directory", there);
    }
    if (access(there, W_OK | X_OK) != 0) {
        return fail_errno(err, "cannot write into directory", there);
    }
    return TIDE_OK;
}

/* Someone else holds the lock: says who, from what they wrote into it. */
static tide_status fail_locked(int fd, const char *dir, struct tide_error *err)
{
    char pid[24] = "";
    ssize_t got = pread(fd, pid, sizeof(pid) - 1, 0);
    size_t digits = got > 0 ? strspn(pid, "0123456789") : 0;
    if (digits == 0) {
        return tide_fail(err, TIDE_INVALID, "%s is in use by another process", dir);
    }
    pid[digits] = '\0';
    return tide_fail(err, TIDE_INVALID,
                     "%s is in use by process %s: stop that one first, or use another directory",
                     dir, pid);
}

static tide_status write_pid(int fd, const char *path, struct tide_error *err)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0) {
        return fail_errno(err, "cannot write", path);
    }
    return tide_file_write_all(fd, path, tide_str_of(text, (size_t)len), err);
}

tide_status tide_dir_lock(const char *dir, int *ret_fd, struct tide_error *err)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/lock", dir);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return tide_fail(err, TIDE_INVALID, "\"%.64s…\" is too long a path", dir);
    }
    TIDE_CLEANUP(tide_fd_close) int fd = open_retry(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (fd < 0) {
        return fail_errno(err, "cannot open", path);
    }
    int rc;
    do {
        rc = flock(fd, LOCK_EX | LOCK_NB);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EWOULDBLOCK) {
        return fail_locked(fd, dir, err);
    }
    if (rc != 0) {
        return fail_errno(err, "cannot lock", path);
    }
    TIDE_TRY(write_pid(fd, path, err));
    *ret_fd = fd;
    fd = -1;
    return TIDE_OK;
}
