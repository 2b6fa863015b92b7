#include "app/control_socket.h"

#include "base/clock.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Under load many commands may come at once: they wait here instead of being refused. */
#define BACKLOG 1024

/* Where the directory's path is too long for an address, a shorter one leads through its open
 * descriptor. */
static void address_of(const char *dir, int dir_fd, struct sockaddr_un *ret_address)
{
    size_t cap = sizeof(ret_address->sun_path);
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(ret_address->sun_path, cap, "%s/" TIDE_CONTROL_SOCKET, dir);
    if (len < 0 || (size_t)len >= cap) {
        (void)snprintf(ret_address->sun_path, cap, "/proc/self/fd/%d/" TIDE_CONTROL_SOCKET, dir_fd);
    }
}

static tide_status fail_errno(struct tide_error *err, tide_status status, const char *what,
                              const char *dir)
{
    return tide_fail(err, status, "cannot %s %s/" TIDE_CONTROL_SOCKET ": %s", what, dir,
                     strerror(errno));
}

static tide_status open_socket(const char *dir, int *ret_dir_fd, int *ret_fd,
                               struct tide_error *err)
{
    TIDE_TRY(tide_dir_open(dir, ret_dir_fd, err));
    *ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return *ret_fd < 0 ? fail_errno(err, TIDE_IO, "make a socket for", dir) : TIDE_OK;
}

/* The mode is set before the socket has a name, so that it is never open to others. */
static bool bind_private(int fd, const struct sockaddr_un *address)
{
    return fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
           bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
           listen(fd, BACKLOG) == 0 && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
}

tide_status tide_control_listen(const char *dir, int *ret_fd, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct sockaddr_un address;
    TIDE_TRY(open_socket(dir, &dir_fd, &fd, err));
    if (unlinkat(dir_fd, TIDE_CONTROL_SOCKET, 0) != 0 && errno != ENOENT) {
        return fail_errno(err, TIDE_IO, "replace", dir);
    }
    address_of(dir, dir_fd, &address);
    if (!bind_private(fd, &address)) {
        return fail_errno(err, TIDE_IO, "listen on", dir);
    }
    *ret_fd = fd;
    fd = -1;
    return TIDE_OK;
}

void tide_control_remove(const char *dir)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    struct tide_error ignored;
    if (tide_dir_open(dir, &dir_fd, &ignored) == TIDE_OK) {
        (void)unlinkat(dir_fd, TIDE_CONTROL_SOCKET, 0);
    }
}

tide_status tide_control_connect(const char *dir, int64_t deadline_us, int *ret_fd,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct sockaddr_un address;
    int64_t left_us = deadline_us - tide_clock_monotonic_us();
    struct timeval limit = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    if (access(dir, F_OK) != 0 && errno == ENOENT) {
        return fail_errno(err, TIDE_CLOSED, "reach", dir);
    }
    if (left_us <= 0) {
        return tide_fail(err, TIDE_TIMEOUT, "%s/" TIDE_CONTROL_SOCKET " was not reached in time",
                         dir);
    }
    TIDE_TRY(open_socket(dir, &dir_fd, &fd, err));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect, too */
    address_of(dir, dir_fd, &address);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        tide_status status = errno == ENOENT || errno == ECONNREFUSED ? TIDE_CLOSED
                             : errno == EAGAIN                        ? TIDE_TIMEOUT
                                                                      : TIDE_IO;
        return fail_errno(err, status, "reach", dir);
    }
    *ret_fd = fd;
    fd = -1;
    return TIDE_OK;
}
