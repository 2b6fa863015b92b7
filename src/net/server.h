/*
 * Serves streams to followers: to those that connect, as many as it takes, or to one standard
 * output. It knows nothing of what it sends: each follower has a feed, that gives bytes.
 *
 * One thread serves all. Nothing waits for a follower: each has one piece of its stream in memory,
 * and the next is asked for when that has been taken. One that does not take a piece in time is
 * dropped. Before its stream begins a connection is a stranger: few of them are kept, the oldest
 * makes room, and what they send is bounded for all together.
 *
 *     accepted ─▶ TLS ─▶ opening, hello ─▶ follows ─▶ ends ─▶ waits for the other side, closed
 *                              └▶ says nothing ─▶ follows
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "format/wire/hello.h"
#include "net/link.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What followers are fed from. Called by the thread that serves alone. */
struct tide_feed_ops {
    /* A feed for one follower. `hello` is what it said that it holds, NULL when it said nothing;
     * borrowed. */
    tide_status (*open)(void *context, const struct tide_wire_hello *hello, void **ret_feed,
                        struct tide_error *err);

    /* Appends about `bytes_max` bytes more at most. With `ret_is_caught_up` there is no more now.
     * An error ends the follower's connection. */
    tide_status (*next)(void *feed, struct tide_buf *out, size_t bytes_max, bool *ret_is_caught_up,
                        struct tide_error *err);

    /* Appends bytes that say that nothing has come; after a next that has caught up. */
    tide_status (*keep_alive)(void *feed, struct tide_buf *out, struct tide_error *err);

    void (*close)(void *feed);
};

struct tide_server_options {
    const struct tide_feed_ops *feeds;
    void *context;                /* of `open` */
    struct tide_tls_context *tls; /* NULL: connections are not encrypted */
    tide_str token;               /* that followers have to name; empty: none */
    size_t followers_max;
    size_t piece_bytes;    /* of a stream, in memory for each follower */
    int64_t look_us;       /* from one look at a feed that has caught up to the next */
    int64_t silence_us;    /* after it a connection is taken for one that says nothing */
    int64_t keep_alive_us; /* after the last bytes of a stream */
    int64_t patience_us;   /* for a handshake, a hello, a piece that is sent */

    /* Told a line about a connection; in a flood some are left out. */
    void (*say)(void *context, bool is_problem, const char *line);
    void *say_context;
};

/* So far. */
struct tide_server_counts {
    uint64_t connections; /* accepted */
    uint64_t followers;   /* whose stream began */
    uint64_t refused;     /* strangers that no stream began for */
    uint64_t dropped;     /* followers that were too slow */
    uint64_t bytes;       /* sent to followers */
};

struct tide_server;

/** The options are copied; what they point to must outlive the server. */
struct tide_server *tide_server_new(const struct tide_server_options *options);

/** Closes all connections. NULL is fine. */
void tide_server_free(struct tide_server *server);
void tide_server_free_ptr(struct tide_server **server);

/** Accepts followers from a socket that listens, which stays the caller's. */
void tide_server_listen(struct tide_server *server, int fd);

/** Feeds one follower by a link, which is the server's from then on, and ends with it. `ends`: when
 * it has caught up. It has no deadline. */
tide_status tide_server_feed(struct tide_server *server, struct tide_link link, const char *name,
                             bool ends, struct tide_error *err);

/**
 * Serves until `stop_fd` can be read, which is left to the caller, or the one follower has ended.
 * Then it lets followers catch up, for 5 s at most.
 * Errors: of the one follower, TIDE_CANCELLED where that was stopped before it had all; none where
 * many are served.
 */
tide_status tide_server_run(struct tide_server *server, int stop_fd, struct tide_error *err);

/** Counts, also while it runs, by the same thread. */
void tide_server_counts(const struct tide_server *server, struct tide_server_counts *ret_counts);
