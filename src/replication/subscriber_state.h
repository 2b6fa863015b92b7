/* Private to this folder: what the files of the subscriber share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "archive/follow.h"
#include "archive/place.h"
#include "base/map.h"
#include "format/wire/order.h"
#include "format/wire/stream.h"
#include "replication/subscriber.h"

/* What a user is told once for each cause and connection. */
enum tide_subscriber_warning {
    TIDE_WARN_SKIPPED,
    TIDE_WARN_GAP,
    TIDE_WARN_UNKNOWN,
    TIDE_WARNINGS,
};

/* A source of the stream, by its place in it. */
struct tide_subscriber_place {
    int64_t source; /* in our archive */
    bool is_complete;
    bool has_rested;                  /* rows without rows have come: it had no more */
    bool is_at_rest;                  /* nothing has come since then */
    struct tide_archive_series *last; /* that was written to: rows come in runs */
};

/* A group that is being committed, beside the subscriber's thread. */
struct tide_subscriber_commit {
    bool is_pending; /* it has begun, and its end was not taken */
    pthread_t thread;
    struct tide_archive_writer *writer;
    _Atomic bool is_done;
    /* of the commit, once it is done */
    tide_status status;
    struct tide_error err;
};

struct tide_subscriber {
    struct tide_subscriber_options options;
    struct tide_archive_seal_policy policy;
    struct tide_archive_place place;
    struct tide_archive_writer *writer;
    bool is_new;         /* there was nothing at its place */
    bool leaves_nothing; /* is_new, and nothing has come: it goes again */
    /* of a connection */
    struct tide_wire_decoder decoder;
    struct tide_wire_order order;
    struct tide_subscriber_place *places; /* as many as the order has, once all were taken */
    size_t place_count;
    size_t place_cap;
    struct tide_map place_of; /* the bytes of a source's id, to the last place that it has */
    bool has_said_hello;
    bool compares; /* what was sealed here has been asked for */
    uint64_t skipped_rows_before;
    bool is_failed;
    bool is_filling;      /* see tide_archive_set_filling */
    bool is_to_be_filled; /* it should be: the archive had nothing, and no row has come yet */
    bool has_newest;      /* newest_index is set */
    int64_t newest_index;
    struct tide_map held_index; /* caller rows that came again: a digest to how often */
    bool warned[TIDE_WARNINGS];
    size_t open_bytes;                    /* applied and not committed */
    struct tide_subscriber_commit commit; /* while it is pending nothing else uses the writer */
    uint64_t skipped_before;
    uint64_t bytes_before; /* of the stream, that were counted */
    /* series written to since sealing was looked at */
    struct tide_archive_series **touched;
    size_t touched_count;
    size_t touched_cap;
    struct tide_subscriber_counts counts;
};

/** Applies one frame: all of it, or nothing. */
tide_status tide_subscriber_apply(struct tide_subscriber *subscriber,
                                  const struct tide_wire_frame *frame, struct tide_error *err);

/** From now on single rows come: the archive is being filled no more. */
void tide_subscriber_is_filled(struct tide_subscriber *subscriber);

/** Makes it be filled, or no more, as it should be, if that can be done now. */
tide_status tide_subscriber_set_filling(struct tide_subscriber *subscriber, struct tide_error *err);

/** Begins to commit, where enough has been applied. */
tide_status tide_subscriber_commit_begin_if_due(struct tide_subscriber *subscriber,
                                                struct tide_error *err);

/** Waits for the end of the commit that was begun, if one was. */
tide_status tide_subscriber_commit_end(struct tide_subscriber *subscriber, struct tide_error *err);

/** Waits for the commit, and applies what waits for it. Errors as tide_subscriber_came. */
tide_status tide_subscriber_settle(struct tide_subscriber *subscriber, struct tide_error *err);

/** Whether a commit goes on, and frames may wait for its end. */
bool tide_subscriber_may_wait(const struct tide_subscriber *subscriber);

/** Tells the user, once a connection. */
void tide_subscriber_warn(struct tide_subscriber *subscriber, enum tide_subscriber_warning warning,
                          const char *fmt, ...) TIDE_PRINTF(3, 4);
