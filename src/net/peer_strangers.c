/* Connections whose stream has not begun: TLS, who they are, what they hold. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "format/wire/opening.h"
#include "net/peer.h"

#include <poll.h>

#define READ_BYTES ((size_t)16 * 1024)

/* No stream begins: it is told why, where it can be. */
void tide_peer_refuse(struct tide_peer *peer, bool is_retriable, const char *reason)
{
    struct tide_wire_refusal refusal = {.is_retriable = is_retriable,
                                        .reason = tide_str_from(reason)};
    tide_peer_say(peer, true, "was refused: %s", reason);
    peer->peers->counts.refused++;
    tide_peer_forget(peer);
    tide_wire_refusal_append(&refusal, &peer->out);
    peer->state = TIDE_PEER_LEAVING;
    peer->deadline_us = tide_clock_deadline_us(TIDE_PEER_LEAVING_US);
}

/* A stranger becomes a follower; `hello` is NULL when it has said none. */
static void begin(struct tide_peer *peer, const struct tide_wire_hello *hello)
{
    struct tide_peers *peers = peer->peers;
    struct tide_error err;
    if (peers->followers >= peers->options.followers_max) {
        tide_peer_refuse(peer, true, "there are as many followers as may be (--max-followers)");
        return;
    }
    tide_status status = tide_peer_open_feed(peer, hello, &err);
    if (status != TIDE_OK) {
        tide_peer_say(peer, true, "cannot be served: %s", err.message);
        tide_peer_refuse(peer, true, "what it follows cannot be read just now");
        return;
    }
    tide_peer_forget(peer);
    tide_peer_say(peer, false, "follows; it has said %s",
                  hello != NULL ? "what it holds" : "nothing, and is sent all from the beginning");
}

static tide_str what_came(const struct tide_peer *peer)
{
    return tide_str_of(peer->in.ptr + peer->in_taken, peer->in.len - peer->in_taken);
}

static void take_hello(struct tide_peer *peer)
{
    struct tide_wire_hello hello;
    struct tide_error err;
    size_t size = 0;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    if (tide_wire_hello_size(what_came(peer), &size, &err) != TIDE_OK) {
        tide_peer_refuse(peer, false, err.message);
        return;
    }
    if (size == 0 || what_came(peer).len < size) {
        return;
    }
    tide_str bytes = tide_str_of(what_came(peer).ptr, size);
    if (tide_wire_hello_decode(bytes, &arena, &hello, &err) != TIDE_OK) {
        tide_peer_refuse(peer, false, err.message);
        return;
    }
    begin(peer, &hello);
}

static bool knows_token(const struct tide_peer *peer, const struct tide_wire_opening *opening)
{
    tide_str token = peer->peers->options.token;
    return token.len == 0 ||
           (opening->has_token &&
            tide_tls_secrets_equal(token.ptr, token.len, opening->token.ptr, opening->token.len));
}

/* True: there is one no more, whatever comes next. */
static bool take_opening(struct tide_peer *peer)
{
    struct tide_wire_opening opening;
    struct tide_error err;
    size_t size = 0;
    tide_str bytes = what_came(peer);
    tide_status status = tide_wire_opening_size(bytes, &size, &err);
    if (status == TIDE_OK && (size == 0 || bytes.len < size)) {
        return false;
    }
    bytes.len = size;
    if (status != TIDE_OK || tide_wire_opening_decode(bytes, &opening, &err) != TIDE_OK) {
        tide_peer_refuse(peer, false, err.message);
        return false;
    }
    if (!knows_token(peer, &opening)) {
        tide_peer_refuse(peer, false,
                         opening.has_token ? "the token is not the one that is asked for"
                                           : "a token is needed: --token-file");
        return false;
    }
    peer->ends = opening.ends;
    peer->has_opened = true;
    peer->in_taken += size;
    return true;
}

static void take_words(struct tide_peer *peer)
{
    tide_str have = what_came(peer);
    peer->has_spoken = true;
    if (!peer->has_opened && tide_wire_opening_may_be(have) && !take_opening(peer)) {
        return;
    }
    if (!peer->has_opened && peer->peers->options.token.len > 0) {
        tide_peer_refuse(peer, false, "a token is needed: --token-file");
        return;
    }
    if (what_came(peer).len > 0) {
        take_hello(peer);
    }
}

/* True: bytes came. */
static bool read_words(struct tide_peer *peer)
{
    struct tide_error err;
    size_t got = 0;
    char *to = tide_buf_reserve(&peer->in, READ_BYTES);
    tide_status status = tide_link_read(&peer->link, to, READ_BYTES, &got, &err);
    if (status != TIDE_OK) {
        peer->peers->counts.refused++;
        tide_peer_say(peer, true, "ended before its stream began: %s", err.message);
        tide_peer_end(peer);
        return false;
    }
    peer->in.len += got;
    peer->peers->stranger_bytes += got;
    if (peer->peers->stranger_bytes > TIDE_STRANGERS_BYTES_MAX) {
        tide_peer_refuse(peer, true, "too much is being said by too many at once");
        return false;
    }
    return got > 0;
}

void tide_peer_hear(struct tide_peer *peer)
{
    while (peer->state == TIDE_PEER_OPENING && read_words(peer)) {
        take_words(peer);
    }
}

/* TLS has told it why. It is given time to read that: a connection that is closed while something
 * of the other side was not read is cut, and what was sent last is lost. */
static void let_down(struct tide_peer *peer, const struct tide_error *why)
{
    tide_link_end_tls(&peer->link);
    if (why->status == TIDE_CORRUPT) { /* of one who does not speak it */
        tide_peer_refuse(peer, false, "it speaks TLS: give its address as tls://HOST:PORT");
        return;
    }
    peer->peers->counts.refused++;
    tide_peer_say(peer, true, "was not let in: %s", why->message);
    peer->state = TIDE_PEER_LEAVING;
    peer->deadline_us = tide_clock_deadline_us(TIDE_PEER_LEAVING_US);
}

void tide_peer_shake(struct tide_peer *peer)
{
    struct tide_error err;
    bool is_done = false;
    if (tide_link_handshake(&peer->link, &is_done, &err) != TIDE_OK) {
        let_down(peer, &err);
    } else if (is_done) {
        peer->state = TIDE_PEER_OPENING;
        peer->link.wants = POLLIN;
        tide_peer_hear(peer);
    }
}

void tide_peer_stay_silent(struct tide_peer *peer)
{
    if (peer->peers->options.token.len > 0) {
        tide_peer_refuse(peer, false, "a token is needed: --token-file");
    } else {
        begin(peer, NULL);
    }
}
