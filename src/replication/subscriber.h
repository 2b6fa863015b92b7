/*
 * Builds an archive from the bytes of a stream (docs/replication.md), and goes on with it in the
 * next stream: it is the archive's one writer. Sources are known by their uuid.
 *
 *     open, then for each connection:
 *         hello (where the transport has one), {room, came}…, go_on and sync whenever no more is
 *         there to read, end, restart
 *
 * What a frame brings is written wholly or not at all, in the order of the stream; several frames
 * may share a transaction, which sync, end and close commit. One thread at a time; large groups are
 * committed by another one meanwhile.
 */
#pragma once

#include "archive/encoder.h"
#include "archive/seal_policy.h"
#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_subscriber;

struct tide_subscriber_options {
    const struct tide_archive_encoder *encoder;    /* NULL: of tables; must outlive it */
    const struct tide_archive_seal_policy *policy; /* NULL: the usual one; copied. Where the
                                                      publisher does not send segments */
    size_t group_bytes; /* so much is applied before it is committed, where nobody asks for that;
                           0: 16 MiB. Half as much again may come meanwhile, and waits */
    /** Told what a user should know, once for each cause and connection; NULL: nobody is. */
    void (*warn)(void *context, const char *message);
    void *context;
};

/**
 * Opens the archive at `path`, made (0600) when there is none, and locks it against other writers
 * of ours.
 * Errors: TIDE_INVALID a pipeline writes it, or has written it; those of opening an archive.
 */
tide_status tide_subscriber_open(const char *path, const struct tide_subscriber_options *options,
                                 struct tide_subscriber **ret_subscriber, struct tide_error *err);

/** Closing takes the archive away again, where it was made here and no frame has come. */
void tide_subscriber_leave_nothing(struct tide_subscriber *subscriber);

/** Commits what was applied. NULL is fine. */
void tide_subscriber_close(struct tide_subscriber *subscriber);
void tide_subscriber_close_ptr(struct tide_subscriber **subscriber);

/**
 * Appends what the archive holds, for a publisher of ours, before the first byte of its stream.
 * Whoever answers a hello sends its segments, so nothing is sealed here then.
 */
tide_status tide_subscriber_hello(struct tide_subscriber *subscriber, struct tide_buf *out,
                                  struct tide_error *err);

/** Room for `size` bytes of the stream, to be read into. */
char *tide_subscriber_room(struct tide_subscriber *subscriber, size_t size);

/**
 * Says that `size` bytes have come into the room; applies all frames that are whole by now, or lets
 * some MiB of them wait while what came before is being committed.
 * Errors: those of the stream (format/wire/stream.h, order.h); TIDE_UNSUPPORTED another encoder;
 * TIDE_INVALID a row or segment that contradicts what is held; those of writing. The frame that
 * failed has left nothing, those before it are kept. After an error: end, then restart or close.
 */
tide_status tide_subscriber_came(struct tide_subscriber *subscriber, size_t size,
                                 struct tide_error *err);

/** Applies what waits for a commit that has ended, for when no more is there to be read; whether
 * some waits still. Errors as above. */
tide_status tide_subscriber_go_on(struct tide_subscriber *subscriber, bool *ret_is_busy,
                                  struct tide_error *err);

/** Applies what waits, and commits: everything applied is durable and can be seen. Cheap where
 * nothing was applied. */
tide_status tide_subscriber_sync(struct tide_subscriber *subscriber, struct tide_error *err);

/**
 * Says that no more bytes will come, also after an error, and commits. Where the stream is whole,
 * sources that it said are complete are so from then on.
 * Errors: TIDE_CLOSED (retriable) the stream was cut, what had come is kept; those of writing.
 */
tide_status tide_subscriber_end(struct tide_subscriber *subscriber, struct tide_error *err);

/** Ready for the stream of another connection; what was not committed is. */
tide_status tide_subscriber_restart(struct tide_subscriber *subscriber, struct tide_error *err);

/* Since opening, over all connections. */
struct tide_subscriber_counts {
    uint64_t bytes; /* of whole frames */
    uint64_t frames;
    uint64_t rows;         /* written */
    uint64_t rows_held;    /* were there already */
    uint64_t rows_skipped; /* of columns that are not known: they could not be used */
    uint64_t segments;
    uint64_t segments_held;
    uint64_t segments_opened; /* reached across what is sealed here: taken row by row */
    uint64_t index_entries;
    uint64_t index_entries_held;
    uint64_t clock_offsets;
    uint64_t gaps; /* intervals were not sent before a frame of rows */
    uint64_t unknown_frames;
    uint64_t sealed; /* segments made here */
};

/** All so far. */
void tide_subscriber_counts(const struct tide_subscriber *subscriber,
                            struct tide_subscriber_counts *ret_counts);

/** Whether a frame of rows without rows has come for each source of this connection, of one at
 * least: then all is here that the publisher had. */
bool tide_subscriber_is_caught_up(const struct tide_subscriber *subscriber);

/** Whether the last frame of each source was such a one, too: the stream does not end in between.
 * One without sources may. */
bool tide_subscriber_is_at_rest(const struct tide_subscriber *subscriber);
