#include "net/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "net/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ACCEPTS_A_TURN 16
#define COOLING_US     100000  /* after the process ran out of descriptors */
#define STOPPING_US    5000000 /* for followers to catch up in */
#define OTHERS         2       /* in `fds` before the peers: the stop, the listener */

struct tide_server {
    struct tide_peers peers;
    struct tide_peer **list;
    struct pollfd *fds;
    size_t count;
    size_t cap;
    int listener; /* -1: none */
    int64_t cooling_until_us;
    uint64_t numbers;
    bool is_stopping;
    int64_t stop_at_us;
};

struct tide_server *tide_server_new(const struct tide_server_options *options)
{
    struct tide_server *server = tide_alloc(1, sizeof(*server));
    server->peers.options = *options;
    server->cap = options->followers_max + TIDE_STRANGERS_MAX;
    server->list = tide_alloc(server->cap, sizeof(struct tide_peer *));
    server->fds = tide_alloc(server->cap + OTHERS, sizeof(*server->fds));
    server->listener = -1;
    return server;
}

void tide_server_free(struct tide_server *server)
{
    if (server == NULL) {
        return;
    }
    for (size_t i = 0; i < server->count; i++) {
        tide_peer_free(server->list[i]);
    }
    free(server->list);
    free(server->fds);
    free(server);
}

void tide_server_free_ptr(struct tide_server **server)
{
    tide_server_free(*server);
}

void tide_server_listen(struct tide_server *server, int fd)
{
    server->listener = fd;
}

tide_status tide_server_feed(struct tide_server *server, struct tide_link link, const char *name,
                             bool ends, struct tide_error *err)
{
    struct tide_peer *peer;
    TIDE_TRY(tide_peer_new_pipe(&server->peers, link, name, ends, &peer, err));
    server->list[server->count++] = peer;
    return TIDE_OK;
}

void tide_server_counts(const struct tide_server *server, struct tide_server_counts *ret_counts)
{
    *ret_counts = server->peers.counts;
}

/* Takes out those that have ended; the others keep their order, oldest first. */
static void sweep(struct tide_server *server)
{
    size_t kept = 0;
    for (size_t i = 0; i < server->count; i++) {
        if (server->list[i]->state == TIDE_PEER_ENDED) {
            tide_peer_free(server->list[i]);
        } else {
            server->list[kept++] = server->list[i];
        }
    }
    server->count = kept;
}

/* Where there is no place left, the stranger that has been there for longest gives way. */
static void make_place(struct tide_server *server)
{
    size_t strangers = 0;
    struct tide_peer *oldest = NULL;
    for (size_t i = 0; i < server->count; i++) {
        if (server->list[i]->state != TIDE_PEER_FOLLOWING) {
            oldest = oldest == NULL ? server->list[i] : oldest;
            strangers++;
        }
    }
    if (strangers >= TIDE_STRANGERS_MAX) {
        tide_peer_give_way(oldest);
        sweep(server);
    }
}

/* False: nobody waits, or cannot be let in now. */
static bool accept_one(struct tide_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            server->cooling_until_us = tide_clock_deadline_us(COOLING_US);
        }
        return errno == EINTR || errno == ECONNABORTED;
    }
    make_place(server);
    TIDE_ASSERT(server->count < server->cap);
    struct tide_peer *peer = tide_peer_new(&server->peers, fd, ++server->numbers);
    server->peers.counts.connections++;
    server->list[server->count++] = peer;
    tide_peer_step(peer, 0);
    return true;
}

static bool is_listening(const struct tide_server *server)
{
    return server->listener >= 0 && !server->is_stopping;
}

static void wait_for_any(struct tide_server *server, int stop_fd)
{
    int64_t until_us = server->is_stopping ? server->stop_at_us : TIDE_NO_DEADLINE;
    bool is_cooling = server->cooling_until_us > tide_clock_monotonic_us();
    if (is_cooling && server->cooling_until_us < until_us) {
        until_us = server->cooling_until_us;
    }
    server->fds[0] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
    server->fds[1] = (struct pollfd){
        .fd = is_listening(server) && !is_cooling ? server->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < server->count; i++) {
        struct pollfd *fd = &server->fds[OTHERS + i];
        *fd = (struct pollfd){.fd = server->list[i]->link.fd};
        int64_t deadline_us = tide_peer_wait(server->list[i], &fd->events);
        until_us = deadline_us < until_us ? deadline_us : until_us;
    }
    size_t count = OTHERS + server->count;
    if (poll(server->fds, count, tide_clock_timeout_ms(until_us)) < 0) {
        for (size_t i = 0; i < count; i++) {
            server->fds[i].revents = 0;
        }
    }
}

/* Those that follow are sent what there is now. */
static void begin_to_stop(struct tide_server *server)
{
    server->is_stopping = true;
    server->stop_at_us = tide_clock_deadline_us(STOPPING_US);
    for (size_t i = 0; i < server->count; i++) {
        struct tide_peer *peer = server->list[i];
        peer->ends = true;
        if (peer->state == TIDE_PEER_SHAKING || peer->state == TIDE_PEER_OPENING) {
            tide_peer_give_way(peer);
        }
    }
    sweep(server);
}

static bool is_over(const struct tide_server *server)
{
    bool is_late = server->is_stopping && tide_clock_monotonic_us() >= server->stop_at_us;
    return is_late || (server->count == 0 && !is_listening(server));
}

/* The peers' turn, then those that wait outside. */
static void serve(struct tide_server *server)
{
    size_t count = server->count; /* those that are let in now have had their turn */
    for (size_t i = 0; i < count; i++) {
        tide_peer_step(server->list[i], server->fds[OTHERS + i].revents);
    }
    sweep(server);
    if (is_listening(server) && server->fds[1].revents != 0) {
        for (unsigned i = 0; i < ACCEPTS_A_TURN && accept_one(server); i++) {
        }
        sweep(server);
    }
}

tide_status tide_server_run(struct tide_server *server, int stop_fd, struct tide_error *err)
{
    bool is_single = server->listener < 0;
    while (!is_over(server)) {
        wait_for_any(server, server->is_stopping ? -1 : stop_fd);
        if (!server->is_stopping && server->fds[0].revents != 0) {
            begin_to_stop(server);
            continue; /* what poll said is of peers that may have gone */
        }
        serve(server);
    }
    if (is_single && server->peers.ended.status != TIDE_OK) {
        *err = server->peers.ended;
        return err->status;
    }
    if (is_single && server->count > 0) {
        return tide_fail(err, TIDE_CANCELLED, "stopped before all was sent");
    }
    return TIDE_OK;
}
