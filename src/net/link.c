#include "net/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct tide_link tide_link_of_socket(int fd)
{
    return (struct tide_link){.fd = fd, .is_socket = true};
}

/* A standard stream is shared with whoever else has it, so its mode is left as it is: a socket is
 * asked not to block in each call, and a pipe is opened once more. */
static struct tide_link standard(int standard_fd, int access)
{
    struct stat info;
    bool is_known = fstat(standard_fd, &info) == 0;
    int fd = -1;
    if (is_known && S_ISFIFO(info.st_mode)) {
        char path[] = "/proc/self/fd/0";
        path[sizeof(path) - 2] = (char)('0' + standard_fd);
        fd = open(path, access | O_NONBLOCK | O_CLOEXEC);
    }
    if (fd < 0) {
        fd = fcntl(standard_fd, F_DUPFD_CLOEXEC, 3);
    }
    if (fd < 0) {
        tide_none_left("file descriptors", errno, "raise the limit (ulimit -n)");
    }
    return (struct tide_link){.fd = fd, .is_socket = is_known && S_ISSOCK(info.st_mode)};
}

struct tide_link tide_link_of_input(void)
{
    return standard(STDIN_FILENO, O_RDONLY);
}

struct tide_link tide_link_of_output(void)
{
    return standard(STDOUT_FILENO, O_WRONLY);
}

void tide_link_close(struct tide_link *link)
{
    tide_tls_close(link->tls);
    if (link->fd >= 0) {
        (void)close(link->fd);
    }
    *link = (struct tide_link){.fd = -1};
}

void tide_link_end_tls(struct tide_link *link)
{
    tide_tls_close(link->tls);
    link->tls = NULL;
}

tide_status tide_link_handshake(struct tide_link *link, bool *ret_is_done, struct tide_error *err)
{
    link->wants = 0;
    if (link->tls != NULL) {
        TIDE_TRY(tide_tls_handshake(link->tls, &link->wants, err));
    }
    *ret_is_done = link->wants == 0;
    return TIDE_OK;
}

/* What a call that moved no byte means. */
static tide_status judge(struct tide_link *link, short wants, struct tide_error *err)
{
    const char *what = link->is_socket ? "the connection" : "the pipe or file";
    switch (errno) {
    case EAGAIN:
    case EINTR:
        link->wants = wants;
        return TIDE_OK;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
        return tide_fail_retriable(err, TIDE_CLOSED, "%s was cut: %s", what, strerror(errno));
    default:
        return tide_fail_retriable(err, TIDE_IO, "%s failed: %s", what, strerror(errno));
    }
}

tide_status tide_link_read(struct tide_link *link, char *to, size_t size, size_t *ret_size,
                           struct tide_error *err)
{
    link->wants = 0;
    if (link->tls != NULL) {
        return tide_tls_read(link->tls, to, size, ret_size, &link->wants, err);
    }
    ssize_t got =
        link->is_socket ? recv(link->fd, to, size, MSG_DONTWAIT) : read(link->fd, to, size);
    if (got == 0) {
        return tide_fail(err, TIDE_END, "the other side has ended");
    }
    if (got < 0) {
        TIDE_TRY(judge(link, POLLIN, err));
    }
    *ret_size = got > 0 ? (size_t)got : 0;
    return TIDE_OK;
}

tide_status tide_link_write(struct tide_link *link, const char *from, size_t size, size_t *ret_size,
                            struct tide_error *err)
{
    link->wants = 0;
    if (link->tls != NULL) {
        return tide_tls_write(link->tls, from, size, ret_size, &link->wants, err);
    }
    ssize_t put = link->is_socket ? send(link->fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : write(link->fd, from, size);
    if (put < 0) {
        TIDE_TRY(judge(link, POLLOUT, err));
    }
    *ret_size = put > 0 ? (size_t)put : 0;
    return TIDE_OK;
}

tide_status tide_link_end(struct tide_link *link, bool *ret_is_done, struct tide_error *err)
{
    link->wants = 0;
    if (link->tls != NULL) {
        TIDE_TRY(tide_tls_end(link->tls, &link->wants, err));
    }
    *ret_is_done = link->wants == 0;
    if (*ret_is_done && link->is_socket) {
        (void)shutdown(link->fd, SHUT_WR);
    }
    return TIDE_OK;
}
