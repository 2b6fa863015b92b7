/* Private to this folder: what the files of the subscriber share. */
#pragma once

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
    struct tide_subscriber_place *places; /* as many as the order has */
    size_t place_cap;
    struct tide_map place_of; /* the bytes of a source's id, to the last place that it has */
    bool has_said_hello;
    bool is_failed;
    bool is_filling;      /* see tide_archive_set_filling */
    bool is_to_be_filled; /* it should be: the archive had nothing, and no row has come yet */
    bool has_newest;      /* newest_index is set */
    int64_t newest_index;
    struct tide_map held_index; /* caller rows that came again: a digest to how often */
    bool warned[TIDE_WARNINGS];
    size_t open_bytes; /* applied and not committed */
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

/** Tells the user, once a connection. */
void tide_subscriber_warn(struct tide_subscriber *subscriber, enum tide_subscriber_warning warning,
                          const char *fmt, ...) TIDE_PRINTF(3, 4);
