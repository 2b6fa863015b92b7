/*
 * An archive as the bytes of a stream (docs/replication.md), for one follower: what is there, then
 * what comes, as it comes. It reads beside the archive's writer, through a small connection of its
 * own, and holds no snapshot from one call to the next.
 *
 * A follower that has said hello gets what it does not hold: segments and rows now, and each
 * segment again when it is sealed; when a source is renewed or ends, it is introduced anew.
 * Whoever has not gets segments at the beginning alone, then rows, as from the crate's publisher.
 * A row that no frame takes comes in its segment, if that fits; else it is left out, as a gap.
 *
 * One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "format/wire/hello.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_publisher;

enum tide_publish_from {
    TIDE_PUBLISH_ALL,
    TIDE_PUBLISH_NOW,   /* rows that come from now on, and all that rows are read by */
    TIDE_PUBLISH_SINCE, /* segments that reach to `since_ts` or behind it, and later rows */
};

struct tide_publisher_options {
    enum tide_publish_from from; /* of what a hello does not tell */
    int64_t since_ts;
    const struct tide_wire_hello *hello; /* NULL: the follower said nothing; copied */
    /** Told what is left out; NULL: nobody is. */
    void (*warn)(void *context, const char *message);
    void *context;
};

/**
 * Opens an archive for one follower.
 * Errors: those of tide_archive_open for reading.
 */
tide_status tide_publisher_open(const char *path, const struct tide_publisher_options *options,
                                struct tide_publisher **ret_publisher, struct tide_error *err);

/** NULL is fine. */
void tide_publisher_close(struct tide_publisher *publisher);
void tide_publisher_close_ptr(struct tide_publisher **publisher);

/**
 * Appends what follows in the stream, of about `bytes_max` bytes; a piece may end within a frame.
 * With `ret_is_caught_up` there is no more now, and the stream stands between two frames. Where
 * nothing has been written since the last call, that costs one look at the archive's log.
 * Errors: TIDE_STALE (retriable) what was being sent, or should have been, is not there any more,
 * or is not as it was, also where another file has the archive's name: drop the connection, a new
 * one goes on; those of reading. After an error the publisher can only be closed.
 */
tide_status tide_publisher_next(struct tide_publisher *publisher, struct tide_buf *out,
                                size_t bytes_max, bool *ret_is_caught_up, struct tide_error *err);

/** Appends a rows frame without rows for each source: nothing has come. Only where the last call
 * has caught up. */
tide_status tide_publisher_keepalive(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err);
