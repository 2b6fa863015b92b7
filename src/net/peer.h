/* One connection of a server (server.h): what it is in, and how it goes on. */
#pragma once

#include "base/attr.h"
#include "net/server.h"
#include "net/tcp.h"

/* How long the other side is given to take the last bytes. */
#define TIDE_PEER_LEAVING_US 5000000

enum tide_peer_state {
    TIDE_PEER_SHAKING,   /* hands: TLS */
    TIDE_PEER_OPENING,   /* says who it is and what it holds, or nothing */
    TIDE_PEER_FOLLOWING, /* is sent its stream */
    TIDE_PEER_LEAVING,   /* is sent the last bytes, then that there are no more */
    TIDE_PEER_LINGERING, /* has all, and is waited for, so that nothing of it is lost */
    TIDE_PEER_ENDED,     /* is closed */
};

/* What the connections of a server share. */
struct tide_peers {
    struct tide_server_options options;
    struct tide_server_counts counts;
    size_t followers;      /* now */
    size_t stranger_bytes; /* now, of all */
    double lines_left;     /* that may still be said: it fills up with time */
    int64_t lines_at_us;
    uint64_t lines_kept;     /* that were not said */
    struct tide_error ended; /* how the last one ended; status TIDE_OK: well */
};

struct tide_peer {
    struct tide_peers *peers;
    enum tide_peer_state state;
    struct tide_link link;
    uint64_t number;
    char name[TIDE_TCP_NAME_SIZE];
    bool is_pipe;        /* it has no deadlines, and nothing is read */
    int64_t deadline_us; /* of the state it is in */
    struct tide_buf in;  /* of a stranger */
    size_t in_taken;
    bool has_opened;
    bool has_spoken;
    bool ends; /* its stream ends when it has caught up */
    void *feed;
    struct tide_buf out;
    size_t out_sent;
    bool is_caught_up;
    bool is_told;  /* that it had caught up */
    bool is_whole; /* its stream ends behind `out` */
    int64_t look_at_us;
    int64_t keep_alive_at_us;
    uint64_t bytes;
};

/** A connection that was accepted. */
struct tide_peer *tide_peer_new(struct tide_peers *peers, int fd, uint64_t number);

/** A stream that begins without a word. Errors of opening its feed; the link is closed then. */
tide_status tide_peer_new_pipe(struct tide_peers *peers, struct tide_link link, const char *name,
                               bool ends, struct tide_peer **ret_peer, struct tide_error *err);

/** Closes it. */
void tide_peer_free(struct tide_peer *peer);

/** What to wait for (`ret_events` of poll()), and until when. */
int64_t tide_peer_wait(const struct tide_peer *peer, short *ret_events);

/** Goes on as far as it can without waiting, but not for long: others have their turn. */
void tide_peer_step(struct tide_peer *peer, short revents);

/** Drops a stranger, to make room for another. */
void tide_peer_give_way(struct tide_peer *peer);

/* Within the files of a peer. */

/** Tells a line about it, unless there have been too many. */
void tide_peer_say(struct tide_peer *peer, bool is_problem, const char *fmt, ...) TIDE_PRINTF(3, 4);

/** Opens its feed: from then on it follows. `hello`: NULL, it has said none. */
tide_status tide_peer_open_feed(struct tide_peer *peer, const struct tide_wire_hello *hello,
                                struct tide_error *err);
void tide_peer_close_feed(struct tide_peer *peer);

/** Forgets what a stranger has said. */
void tide_peer_forget(struct tide_peer *peer);

/** Closes the connection; with an error, which a server of one follower ends with. */
void tide_peer_end(struct tide_peer *peer);
void tide_peer_end_with(struct tide_peer *peer, const struct tide_error *err);

/** Strangers: goes on with TLS; reads what is said; begins without a word. */
void tide_peer_shake(struct tide_peer *peer);
void tide_peer_hear(struct tide_peer *peer);
void tide_peer_stay_silent(struct tide_peer *peer);

/** No stream begins: it is told why. */
void tide_peer_refuse(struct tide_peer *peer, bool is_retriable, const char *reason);

/** Followers: sends; then the last bytes; then waits for the other side. */
void tide_peer_follow(struct tide_peer *peer);
void tide_peer_finish(struct tide_peer *peer);
void tide_peer_linger(struct tide_peer *peer);
