#include "net/tcp.h"

#include "base/clock.h"
#include "base/fsio.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

static void free_found(struct addrinfo **found)
{
    if (*found != NULL) {
        freeaddrinfo(*found);
    }
}

static tide_status resolve(const struct tide_address *address, int flags,
                           struct addrinfo **ret_found, struct tide_error *err)
{
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    int rc = getaddrinfo(address->host, address->port, &wanted, ret_found);
    if (rc == 0) {
        return TIDE_OK;
    }
    *ret_found = NULL;
    return tide_fail_retriable(err, TIDE_IO, "%s: the host is not known: %s", address->host,
                               rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof(in));
        return ntohl(in.sin_addr.s_addr) >> 24 == 127;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof(in6));
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static tide_status check_within(const struct tide_address *address, const struct addrinfo *found,
                                struct tide_error *err)
{
    for (; address->kind == TIDE_ADDRESS_TCP && found != NULL; found = found->ai_next) {
        if (!is_loopback(found->ai_addr)) {
            return tide_fail(err, TIDE_INVALID,
                             "tcp://%s:%s leads out of this machine, and is neither encrypted nor "
                             "asks who is there: use tls:// with a certificate and a token, or "
                             "tcp://127.0.0.1 and a tunnel (ssh -L)",
                             address->host, address->port);
        }
    }
    return TIDE_OK;
}

static int open_socket(const struct addrinfo *one)
{
    return socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool listen_on(int fd, const struct addrinfo *one)
{
    int yes = 1;
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
           bind(fd, one->ai_addr, one->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
}

static tide_status fail_here(const struct tide_address *address, const char *what,
                             struct tide_error *err)
{
    bool is_closed = errno == ECONNREFUSED || errno == ECONNRESET || errno == EHOSTUNREACH ||
                     errno == ENETUNREACH;
    tide_status status = is_closed ? TIDE_CLOSED : errno == ETIMEDOUT ? TIDE_TIMEOUT : TIDE_IO;
    struct tide_buf shown = {0};
    tide_address_append(address, &shown);
    tide_status failed =
        tide_fail(err, status, "cannot %s %s: %s", what, tide_buf_cstr(&shown), strerror(errno));
    err->retriable = is_closed || status == TIDE_TIMEOUT;
    tide_buf_done(&shown);
    return failed;
}

tide_status tide_tcp_listen(const struct tide_address *address, int *ret_fd, struct tide_error *err)
{
    TIDE_CLEANUP(free_found) struct addrinfo *found = NULL;
    TIDE_TRY(resolve(address, AI_PASSIVE, &found, err));
    TIDE_TRY(check_within(address, found, err));
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        int fd = open_socket(one);
        if (listen_on(fd, one)) {
            *ret_fd = fd;
            return TIDE_OK;
        }
        int saved = errno;
        tide_fd_close(&fd);
        errno = saved;
    }
    return fail_here(address, "listen on", err);
}

/* Waits for a connection that is being made; errno says how it went. */
static tide_status wait_connected(int fd, int64_t deadline_us, int stop_fd, struct tide_error *err)
{
    struct pollfd fds[] = {{.fd = fd, .events = POLLOUT}, {.fd = stop_fd, .events = POLLIN}};
    socklen_t size = sizeof(errno);
    int error = 0;
    for (;;) {
        int ready = poll(fds, 2, tide_clock_timeout_ms(deadline_us));
        if (ready > 0 && fds[1].revents != 0) {
            return tide_fail(err, TIDE_CANCELLED, "stopped while connecting");
        }
        if (ready > 0 && fds[0].revents != 0) {
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
            errno = error;
            return TIDE_OK;
        }
        if (tide_clock_monotonic_us() >= deadline_us) {
            errno = ETIMEDOUT;
            return TIDE_OK;
        }
    }
}

void tide_tcp_settle(int fd, int64_t patience_us)
{
    int yes = 1;
    /* our own deadlines come first, and say what has happened */
    unsigned patience_ms = (unsigned)(patience_us / 500);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof(patience_ms));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
}

tide_status tide_tcp_connect(const struct tide_address *address, int64_t patience_us, int stop_fd,
                             int *ret_fd, struct tide_error *err)
{
    int64_t deadline_us = tide_clock_deadline_us(patience_us);
    TIDE_CLEANUP(free_found) struct addrinfo *found = NULL;
    TIDE_TRY(resolve(address, 0, &found, err));
    TIDE_TRY(check_within(address, found, err));
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        TIDE_CLEANUP(tide_fd_close) int fd = open_socket(one);
        errno = fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
        if (fd >= 0 && errno == EINPROGRESS) {
            TIDE_TRY(wait_connected(fd, deadline_us, stop_fd, err));
        }
        if (fd >= 0 && errno == 0) {
            tide_tcp_settle(fd, patience_us);
            *ret_fd = fd;
            fd = -1;
            return TIDE_OK;
        }
        if (one->ai_next == NULL) {
            return fail_here(address, "reach", err);
        }
    }
    return tide_fail(err, TIDE_IO, "%s: the host has no address", address->host);
}

unsigned tide_tcp_port(int fd)
{
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof(name);
    struct sockaddr_in in;
    (void)getsockname(fd, (struct sockaddr *)&name, &size);
    memcpy(&in, &name, sizeof(in)); /* the port stands at the same place in both kinds */
    return ntohs(in.sin_port);
}

void tide_tcp_name(int fd, char ret_name[TIDE_TCP_NAME_SIZE])
{
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof(name);
    char host[NI_MAXHOST] = "";
    char port[8] = "";
    struct ucred peer = {0};
    if (getpeername(fd, (struct sockaddr *)&name, &size) != 0) {
        (void)snprintf(ret_name, TIDE_TCP_NAME_SIZE, "somebody");
        return;
    }
    if (name.ss_family == AF_UNIX) {
        socklen_t peer_size = sizeof(peer);
        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size);
        (void)snprintf(ret_name, TIDE_TCP_NAME_SIZE, "pid %d", (int)peer.pid);
        return;
    }
    (void)getnameinfo((struct sockaddr *)&name, size, host, sizeof(host), port, sizeof(port),
                      NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(ret_name, TIDE_TCP_NAME_SIZE,
                   name.ss_family == AF_INET6 ? "[%.60s]:%s" : "%.60s:%s", host, port);
}
