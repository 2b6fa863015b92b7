/* Connections that are sent their stream, up to their end. */
#include "base/clock.h"
#include "net/peer.h"

#include <inttypes.h>
#include <poll.h>

#define PIECES_A_TURN 2
#define LINGERING_US  2000000

/* True: all of `out` has been sent. */
static bool send_out(struct tide_peer *peer)
{
    struct tide_error err;
    while (peer->out_sent < peer->out.len) {
        size_t put = 0;
        const char *from = peer->out.ptr + peer->out_sent;
        if (tide_link_write(&peer->link, from, peer->out.len - peer->out_sent, &put, &err) !=
            TIDE_OK) {
            tide_peer_say(peer, false, "has gone after %" PRIu64 " bytes: %s", peer->bytes,
                          err.message);
            tide_peer_end_with(peer, &err);
            return false;
        }
        if (put == 0) {
            return false;
        }
        peer->out_sent += put;
        if (peer->state == TIDE_PEER_FOLLOWING) {
            peer->bytes += put;
            peer->peers->counts.bytes += put;
        }
    }
    return true;
}

/* What a large frame has made of it is not kept. */
static void reset_out(struct tide_peer *peer)
{
    if (peer->out.cap > 4 * peer->peers->options.piece_bytes) {
        tide_buf_done(&peer->out);
    }
    tide_buf_reset(&peer->out);
    peer->out_sent = 0;
    peer->deadline_us = TIDE_NO_DEADLINE;
}

static tide_status next_piece(struct tide_peer *peer, int64_t now_us, struct tide_error *err)
{
    const struct tide_server_options *options = &peer->peers->options;
    TIDE_TRY(options->feeds->next(peer->feed, &peer->out, options->piece_bytes, &peer->is_caught_up,
                                  err));
    bool is_due = !peer->is_told || peer->ends || /* it is the last frame of a stream, too */
                  (peer->out.len == 0 && now_us >= peer->keep_alive_at_us);
    if (peer->is_caught_up && is_due) {
        peer->is_told = true;
        TIDE_TRY(options->feeds->keep_alive(peer->feed, &peer->out, err));
        peer->keep_alive_at_us = tide_clock_deadline_us(options->keep_alive_us);
    }
    peer->is_whole = peer->is_caught_up && peer->ends;
    return TIDE_OK;
}

/* Whoever has got nothing yet can be told why nothing comes. */
static void fail(struct tide_peer *peer, const struct tide_error *err)
{
    tide_peer_say(peer, true, "is cut off after %" PRIu64 " bytes: %s", peer->bytes, err->message);
    if (peer->is_pipe || peer->bytes > 0) {
        tide_peer_end_with(peer, err);
        return;
    }
    bool is_damaged = err->status == TIDE_CORRUPT;
    reset_out(peer);
    tide_peer_close_feed(peer);
    tide_peer_refuse(peer, !is_damaged,
                     is_damaged ? "the archive that it follows is damaged: verify it"
                                : "what it follows cannot be read just now");
}

/* Asks for the next piece. True: there is one. */
static bool fill_out(struct tide_peer *peer)
{
    const struct tide_server_options *options = &peer->peers->options;
    struct tide_error err;
    int64_t now_us = tide_clock_monotonic_us();
    if (peer->is_caught_up && now_us < peer->look_at_us && !peer->ends) {
        return false;
    }
    if (next_piece(peer, now_us, &err) != TIDE_OK) {
        fail(peer, &err);
        return false;
    }
    peer->look_at_us = now_us + options->look_us;
    if (peer->out.len > 0) {
        peer->deadline_us =
            peer->is_pipe ? TIDE_NO_DEADLINE : tide_clock_deadline_us(options->patience_us);
        peer->keep_alive_at_us = tide_clock_deadline_us(options->keep_alive_us);
    }
    return peer->out.len > 0;
}

static void leave(struct tide_peer *peer)
{
    tide_peer_say(peer, false, "has all, %" PRIu64 " bytes", peer->bytes);
    tide_peer_close_feed(peer);
    peer->state = TIDE_PEER_LEAVING;
    peer->deadline_us = tide_clock_deadline_us(TIDE_PEER_LEAVING_US);
}

void tide_peer_follow(struct tide_peer *peer)
{
    for (unsigned i = 0; send_out(peer) && i < PIECES_A_TURN; i++) {
        reset_out(peer);
        bool is_more = !peer->is_whole && fill_out(peer);
        if (peer->state != TIDE_PEER_FOLLOWING) {
            return;
        }
        if (!is_more && peer->is_whole) {
            leave(peer);
            return;
        }
        if (!is_more) {
            return;
        }
    }
}

/* The end. */

void tide_peer_linger(struct tide_peer *peer)
{
    char ignored[4096];
    struct tide_error err;
    size_t got = 1;
    for (unsigned i = 0; i < 64 && got > 0; i++) {
        if (tide_link_read(&peer->link, ignored, sizeof(ignored), &got, &err) != TIDE_OK) {
            tide_peer_end(peer);
            return;
        }
    }
}

void tide_peer_finish(struct tide_peer *peer)
{
    struct tide_error err;
    bool is_done = false;
    if (!send_out(peer)) {
        return;
    }
    if (peer->is_pipe || tide_link_end(&peer->link, &is_done, &err) != TIDE_OK) {
        tide_peer_end(peer);
    } else if (is_done) {
        peer->state = TIDE_PEER_LINGERING;
        peer->link.wants = POLLIN;
        peer->deadline_us = tide_clock_deadline_us(LINGERING_US);
        tide_peer_linger(peer);
    }
}
