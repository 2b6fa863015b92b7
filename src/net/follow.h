/*
 * Follows a stream: connects, says what is held, hands over the bytes that come, and begins again
 * when the connection has gone. It knows nothing of what the bytes are.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "net/address.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who takes the bytes. Called by the thread that follows alone. */
struct tide_follower_ops {
    /* A connection begins: with a hello (appended to `hello`), or, of a pipe (NULL), without. */
    tide_status (*begin)(void *context, struct tide_buf *hello, struct tide_error *err);

    /* Where the next bytes go, and that they have come. */
    char *(*room)(void *context, size_t size);
    tide_status (*came)(void *context, size_t size, struct tide_error *err);

    /* No more is there to be read just now: what was put off is done, as far as it can be;
     * `ret_is_busy`: some of it cannot, and this is to be called again soon. */
    tide_status (*idle)(void *context, bool *ret_is_busy, struct tide_error *err);

    /* What came is made durable, and can be seen. */
    tide_status (*rest)(void *context, struct tide_error *err);

    /* Whether all is there that the other side had when it was asked. */
    bool (*is_caught_up)(void *context);

    /* The connection has ended, in whatever way; TIDE_CLOSED: within something. Not called after
     * a begin that failed. */
    tide_status (*end)(void *context, struct tide_error *err);
};

struct tide_follow_options {
    struct tide_address address;
    struct tide_tls_context *tls; /* of tls:// */
    tide_str token;               /* empty: none */
    bool goes_on;                 /* else it ends when it has caught up */
    int64_t patience_us;          /* for a connection to begin, and between two bytes of it */
    int64_t wait_first_us;        /* before the second attempt, doubled before each that follows */
    int64_t wait_most_us;

    /* Told a line about a connection. */
    void (*say)(void *context, bool is_problem, const char *line);
    void *say_context;
};

/**
 * Follows until it has caught up, or, when it goes on, until `stop_fd` can be read, or an error
 * comes that another attempt would not mend. `ret_connections` counts those that began.
 *
 * Errors: TIDE_CANCELLED it was stopped before it had caught up (when it goes on that is TIDE_OK);
 *         TIDE_REMOTE the other side refuses; TIDE_CLOSED, TIDE_TIMEOUT of connections, when it
 *         does not go on; those of the other side's certificate; those of `ops`.
 */
tide_status tide_follow_run(const struct tide_follow_options *options,
                            const struct tide_follower_ops *ops, void *context, int stop_fd,
                            uint64_t *ret_connections, struct tide_error *err);
