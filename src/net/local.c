#include "net/local.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Under load many may come at once: they wait here instead of being refused. */
#define BACKLOG  1024
#define PROBE_US 1000000 /* for the one that may listen already */
#define LOCK_US  3000000 /* for others that start or end just now */
#define NAP_US   10000

/* Where the directory's path is too long for an address, a shorter one leads through its open
 * descriptor. False: the name alone is too long. */
static bool address_of(const char *dir, const char *name, int dir_fd,
                       struct sockaddr_un *ret_address)
{
    size_t cap = sizeof(ret_address->sun_path);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(ret_address->sun_path, cap, "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= cap) {
        len = snprintf(ret_address->sun_path, cap, "/proc/self/fd/%d/%s", dir_fd, name);
    }
    return len > 0 && (size_t)len < cap;
}

/* For messages: before a slash and a name. */
static const char *shown(const char *dir)
{
    return strcmp(dir, "/") == 0 ? "" : dir;
}

static tide_status fail_errno(struct tide_error *err, tide_status status, const char *what,
                              const char *dir, const char *name)
{
    return tide_fail(err, status, "cannot %s %s/%s: %s", what, shown(dir), name, strerror(errno));
}

static tide_status open_socket(const char *dir, const char *name, int *ret_dir_fd, int *ret_fd,
                               struct sockaddr_un *ret_address, struct tide_error *err)
{
    TIDE_TRY(tide_dir_open(dir, ret_dir_fd, err));
    if (!address_of(dir, name, *ret_dir_fd, ret_address)) {
        return tide_fail(err, TIDE_INVALID, "%s/%s: the name is too long for a socket", shown(dir),
                         name);
    }
    *ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return *ret_fd < 0 ? fail_errno(err, TIDE_IO, "make a socket for", dir, name) : TIDE_OK;
}

/* The mode is set before the socket has a name, so that it is never open to others. */
static bool bind_private(int fd, const struct sockaddr_un *address)
{
    return fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
           bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
           listen(fd, BACKLOG) == 0 && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
}

static int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

tide_status tide_local_listen(const char *dir, const char *name, int *ret_fd,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct sockaddr_un address;
    TIDE_TRY(open_socket(dir, name, &dir_fd, &fd, &address, err));
    if (unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT) {
        return fail_errno(err, TIDE_IO, "replace", dir, name);
    }
    if (!bind_private(fd, &address)) {
        return fail_errno(err, TIDE_IO, "listen on", dir, name);
    }
    *ret_fd = take_fd(&fd);
    return TIDE_OK;
}

void tide_local_remove(const char *dir, const char *name)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    struct tide_error ignored;
    if (tide_dir_open(dir, &dir_fd, &ignored) == TIDE_OK) {
        (void)unlinkat(dir_fd, name, 0);
    }
}

tide_status tide_local_connect(const char *dir, const char *name, int64_t deadline_us, int *ret_fd,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct sockaddr_un address;
    int64_t left_us = deadline_us - tide_clock_monotonic_us();
    struct timeval limit = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    if (access(dir, F_OK) != 0 && errno == ENOENT) {
        return fail_errno(err, TIDE_CLOSED, "reach", dir, name);
    }
    if (left_us <= 0) {
        return tide_fail(err, TIDE_TIMEOUT, "%s/%s was not reached in time", shown(dir), name);
    }
    TIDE_TRY(open_socket(dir, name, &dir_fd, &fd, &address, err));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect, too */
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        tide_status status = errno == ENOENT || errno == ECONNREFUSED ? TIDE_CLOSED
                             : errno == EAGAIN                        ? TIDE_TIMEOUT
                                                                      : TIDE_IO;
        return fail_errno(err, status, "reach", dir, name);
    }
    *ret_fd = take_fd(&fd);
    return TIDE_OK;
}

/* At a path of the user's. */

static void split(const char *path, char **ret_dir, char **ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t dir_len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    *ret_dir = slash == NULL ? tide_strndup(".", 1) : tide_strndup(path, dir_len);
    *ret_name = tide_strndup(name, strlen(name));
}

/* Whoever may write to the folder could remove the socket and listen there instead. */
static tide_status check_rights(const char *dir, int dir_fd, struct tide_error *err)
{
    struct stat info;
    if (fstat(dir_fd, &info) != 0) {
        return tide_fail(err, TIDE_IO, "%s: %s", dir, strerror(errno));
    }
    bool is_shared = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (is_shared || (info.st_uid != geteuid() && info.st_uid != 0)) {
        return tide_fail(err, TIDE_INVALID,
                         "the folder %s is not the user's alone, so that others could take the "
                         "socket's place: chmod go-w it, or use another one",
                         dir);
    }
    return TIDE_OK;
}

static tide_status check_name(const struct tide_local *local, int dir_fd, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct stat info;
    struct tide_error why;
    if (fstatat(dir_fd, local->name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? TIDE_OK
                               : fail_errno(err, TIDE_IO, "look at", local->dir, local->name);
    }
    if (!S_ISSOCK(info.st_mode)) {
        return tide_fail(err, TIDE_INVALID,
                         "%s/%s is there, and is no socket; give another name for the socket",
                         shown(local->dir), local->name);
    }
    int64_t deadline_us = tide_clock_deadline_us(PROBE_US);
    if (tide_local_connect(local->dir, local->name, deadline_us, &fd, &why) != TIDE_CLOSED) {
        return tide_fail(err, TIDE_INVALID, "another program listens on %s/%s already",
                         shown(local->dir), local->name);
    }
    return TIDE_OK;
}

static tide_status lock_folder(const char *dir, int dir_fd, struct tide_error *err)
{
    int64_t deadline_us = tide_clock_deadline_us(LOCK_US);
    while (flock(dir_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return tide_fail(err, TIDE_IO, "cannot lock the folder %s: %s", dir, strerror(errno));
        }
        if (tide_clock_monotonic_us() > deadline_us) {
            return tide_fail(err, TIDE_TIMEOUT,
                             "another program has the folder %s locked: try again, or use another "
                             "folder",
                             dir);
        }
        (void)usleep(NAP_US);
    }
    return TIDE_OK;
}

/* The folder is locked meanwhile, so that of two that start at once one is refused. */
static tide_status listen_at(struct tide_local *local, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    struct stat info;
    TIDE_TRY(tide_dir_open(local->dir, &dir_fd, err));
    TIDE_TRY(check_rights(local->dir, dir_fd, err));
    TIDE_TRY(lock_folder(local->dir, dir_fd, err));
    TIDE_TRY(check_name(local, dir_fd, err));
    TIDE_TRY(tide_local_listen(local->dir, local->name, &local->fd, err));
    if (fstatat(dir_fd, local->name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        local->made = info.st_ctim;
    }
    return TIDE_OK;
}

static void forget(struct tide_local *local)
{
    tide_fd_close(&local->fd);
    free(local->dir);
    free(local->name);
    *local = (struct tide_local){.fd = -1};
}

tide_status tide_local_open(const char *path, struct tide_local *ret_local, struct tide_error *err)
{
    struct tide_local local = {.fd = -1};
    split(path, &local.dir, &local.name);
    tide_status status = listen_at(&local, err);
    if (status != TIDE_OK) {
        forget(&local);
        return status;
    }
    *ret_local = local;
    return TIDE_OK;
}

static void remove_own(const struct tide_local *local)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    struct tide_error ignored;
    struct stat info;
    if (tide_dir_open(local->dir, &dir_fd, &ignored) != TIDE_OK ||
        lock_folder(local->dir, dir_fd, &ignored) != TIDE_OK) {
        return;
    }
    if (fstatat(dir_fd, local->name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        info.st_ctim.tv_sec == local->made.tv_sec && info.st_ctim.tv_nsec == local->made.tv_nsec) {
        (void)unlinkat(dir_fd, local->name, 0);
    }
}

void tide_local_close(struct tide_local *local)
{
    if (local->fd >= 0) {
        remove_own(local);
        forget(local);
    }
}

tide_status tide_local_reach(const char *path, int64_t deadline_us, int *ret_fd,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr) char *dir = NULL;
    TIDE_CLEANUP(tide_free_ptr) char *name = NULL;
    split(path, &dir, &name);
    return tide_local_connect(dir, name, deadline_us, ret_fd, err);
}
