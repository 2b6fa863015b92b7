#include "net/peer.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES_AT_ONCE  50.0
#define LINES_A_SECOND 2.0

/* What is said. */

static bool may_say(struct tide_peers *peers)
{
    int64_t now_us = tide_clock_monotonic_us();
    double filled = (double)(now_us - peers->lines_at_us) * LINES_A_SECOND / 1e6;
    peers->lines_left += filled;
    peers->lines_left = peers->lines_left > LINES_AT_ONCE ? LINES_AT_ONCE : peers->lines_left;
    peers->lines_at_us = now_us;
    if (peers->lines_left < 1) {
        peers->lines_kept++;
        return false;
    }
    peers->lines_left -= 1;
    return true;
}

void tide_peer_say(struct tide_peer *peer, bool is_problem, const char *fmt, ...)
{
    struct tide_peers *peers = peer->peers;
    char what[640];
    char line[800];
    va_list args;
    if (!may_say(peers)) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    int len = snprintf(line, sizeof(line), "%s %s", peer->name, what);
    if (peers->lines_kept > 0 && len > 0 && (size_t)len < sizeof(line)) {
        (void)snprintf(line + len, sizeof(line) - (size_t)len, " (and %" PRIu64 " lines like it)",
                       peers->lines_kept);
        peers->lines_kept = 0;
    }
    peers->options.say(peers->options.say_context, is_problem, line);
}

/* Its life. */

static bool is_stranger(const struct tide_peer *peer)
{
    return peer->state == TIDE_PEER_SHAKING || peer->state == TIDE_PEER_OPENING;
}

void tide_peer_forget(struct tide_peer *peer)
{
    peer->peers->stranger_bytes -= peer->in.len;
    tide_buf_done(&peer->in);
    peer->in_taken = 0;
}

void tide_peer_close_feed(struct tide_peer *peer)
{
    if (peer->feed != NULL) {
        peer->peers->options.feeds->close(peer->feed);
        peer->feed = NULL;
        peer->peers->followers--;
    }
}

void tide_peer_end(struct tide_peer *peer)
{
    tide_peer_forget(peer);
    tide_peer_close_feed(peer);
    tide_buf_done(&peer->out);
    tide_link_close(&peer->link);
    peer->state = TIDE_PEER_ENDED;
}

void tide_peer_end_with(struct tide_peer *peer, const struct tide_error *err)
{
    peer->peers->ended = *err;
    tide_peer_end(peer);
}

struct tide_peer *tide_peer_new(struct tide_peers *peers, int fd, uint64_t number)
{
    struct tide_peer *peer = tide_alloc(1, sizeof(*peer));
    struct tide_error err;
    peer->peers = peers;
    peer->link = tide_link_of_socket(fd);
    peer->number = number;
    peer->state = TIDE_PEER_SHAKING;
    peer->deadline_us = tide_clock_deadline_us(peers->options.patience_us);
    tide_tcp_name(fd, peer->name);
    tide_tcp_settle(fd, peers->options.patience_us);
    if (peers->options.tls != NULL &&
        tide_tls_open(peers->options.tls, fd, NULL, &peer->link.tls, &err) != TIDE_OK) {
        tide_peer_say(peer, true, "could not be let in: %s", err.message);
        tide_peer_end(peer);
    }
    return peer;
}

void tide_peer_free(struct tide_peer *peer)
{
    tide_peer_end(peer);
    free(peer);
}

void tide_peer_give_way(struct tide_peer *peer)
{
    if (is_stranger(peer)) {
        peer->peers->counts.refused++;
        tide_peer_say(peer, true, "had to give way to others before its stream began");
    }
    tide_peer_end(peer);
}

tide_status tide_peer_open_feed(struct tide_peer *peer, const struct tide_wire_hello *hello,
                                struct tide_error *err)
{
    struct tide_peers *peers = peer->peers;
    TIDE_TRY(peers->options.feeds->open(peers->options.context, hello, &peer->feed, err));
    peers->followers++;
    peers->counts.followers++;
    peer->state = TIDE_PEER_FOLLOWING;
    peer->deadline_us = TIDE_NO_DEADLINE;
    peer->keep_alive_at_us = tide_clock_deadline_us(peers->options.keep_alive_us);
    return TIDE_OK;
}

tide_status tide_peer_new_pipe(struct tide_peers *peers, struct tide_link link, const char *name,
                               bool ends, struct tide_peer **ret_peer, struct tide_error *err)
{
    struct tide_peer *peer = tide_alloc(1, sizeof(*peer));
    peer->peers = peers;
    peer->link = link;
    peer->is_pipe = true;
    peer->ends = ends;
    (void)snprintf(peer->name, sizeof(peer->name), "%s", name);
    tide_status status = tide_peer_open_feed(peer, NULL, err);
    if (status != TIDE_OK) {
        tide_peer_free(peer);
        return status;
    }
    *ret_peer = peer;
    return TIDE_OK;
}

static int64_t silence_deadline(const struct tide_peer *peer)
{
    const struct tide_server_options *options = &peer->peers->options;
    return peer->deadline_us - options->patience_us + options->silence_us;
}

static void drop(struct tide_peer *peer, const char *why)
{
    peer->peers->counts.dropped++;
    tide_peer_say(peer, true, "was dropped: %s; it goes on from there when it comes again", why);
    tide_peer_end(peer);
}

static void time_is_up(struct tide_peer *peer)
{
    switch (peer->state) {
    case TIDE_PEER_SHAKING:
        peer->peers->counts.refused++;
        tide_peer_say(peer, true, "did not finish the TLS handshake in time");
        tide_peer_end(peer);
        break;
    case TIDE_PEER_OPENING:
        if (peer->has_spoken) {
            tide_peer_refuse(peer, true, "its hello did not come whole in time");
        }
        break;
    case TIDE_PEER_FOLLOWING:
        drop(peer, "it did not take what was sent in time (--timeout)");
        break;
    case TIDE_PEER_LEAVING:
    case TIDE_PEER_LINGERING:
    case TIDE_PEER_ENDED:
        tide_peer_end(peer);
        break;
    }
}

/* Whoever has spoken does not half-close its side: it has gone. */
static bool has_gone(struct tide_peer *peer, short revents)
{
    if (peer->state != TIDE_PEER_FOLLOWING || (revents & (POLLERR | POLLHUP | POLLRDHUP)) == 0) {
        return false;
    }
    tide_peer_say(peer, false, "has gone after %" PRIu64 " bytes", peer->bytes);
    struct tide_error err;
    (void)tide_fail_retriable(&err, TIDE_CLOSED, "%s has been closed", peer->name);
    tide_peer_end_with(peer, &err);
    return true;
}

void tide_peer_step(struct tide_peer *peer, short revents)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (has_gone(peer, revents)) {
        return;
    }
    if (peer->state == TIDE_PEER_SHAKING) {
        tide_peer_shake(peer);
    } else if (peer->state == TIDE_PEER_OPENING && revents != 0) {
        tide_peer_hear(peer);
    }
    if (peer->state == TIDE_PEER_OPENING && !peer->has_spoken && now_us >= silence_deadline(peer)) {
        tide_peer_stay_silent(peer);
    }
    if (peer->state == TIDE_PEER_FOLLOWING) {
        tide_peer_follow(peer);
    }
    if (peer->state == TIDE_PEER_LEAVING) {
        tide_peer_finish(peer);
    } else if (peer->state == TIDE_PEER_LINGERING && revents != 0) {
        tide_peer_linger(peer);
    }
    if (peer->state != TIDE_PEER_ENDED && now_us >= peer->deadline_us) {
        time_is_up(peer);
    }
}

static int64_t follower_wait(const struct tide_peer *peer, short *ret_events)
{
    short gone = peer->has_spoken ? POLLRDHUP : 0;
    if (peer->out_sent < peer->out.len) {
        *ret_events = (short)(peer->link.wants | gone);
        return peer->deadline_us;
    }
    *ret_events = gone;
    return peer->is_caught_up && !peer->ends ? peer->look_at_us : 0;
}

int64_t tide_peer_wait(const struct tide_peer *peer, short *ret_events)
{
    if (peer->state == TIDE_PEER_FOLLOWING) {
        return follower_wait(peer, ret_events);
    }
    *ret_events = peer->link.wants;
    if (peer->state == TIDE_PEER_OPENING && !peer->has_spoken) {
        return silence_deadline(peer);
    }
    return peer->deadline_us;
}
