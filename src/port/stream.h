/*
 * The stream port: what sits between the ingest engine and the sink engines. One lane per sink
 * carries items down; one request lane carries backfill requests up; the stream owns the watermark,
 * the minimum over lanes of what is acknowledged. Two threads or two processes may be at its ends.
 *
 * Held: would survive a power cut at the sink; acknowledging says held. Build number: 1, 2, 3 … in
 * the order of publishing, within one run of the ingest process. The floor of a lane is the last
 * item such that it and every item published before it on that lane are acknowledged.
 *
 * Deadlines are absolute (base/clock.h). After tide_stream_close every call returns TIDE_CLOSED,
 * but consumers first drain what is there. TIDE_CANCELLED: tide_stream_cancel was called.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"
#include "base/thread.h"
#include "model/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lanes of one stream, as bits of a set. */
#define TIDE_LANES_MAX 64
typedef uint64_t tide_lane_set;

enum tide_item_kind {
    TIDE_ITEM_BATCH,
    TIDE_ITEM_SNAPSHOT_COMPLETE
};

/* Ends a request on a lane: the tables that it asked for, and those that failed. Counted,
 * immutable. */
struct tide_marker {
    _Atomic uint32_t refs;
    uint64_t request_id;
    tide_str *tables; /* store names; owned */
    size_t table_count;
    tide_str *failed;
    size_t failed_count;
};

/** Copies the names. One reference. */
struct tide_marker *tide_marker_new(uint64_t request_id, const tide_str *tables, size_t table_count,
                                    const tide_str *failed, size_t failed_count);
struct tide_marker *tide_marker_ref(struct tide_marker *marker);
/** NULL is fine. Any thread. */
void tide_marker_unref(struct tide_marker *marker);

struct tide_item {
    enum tide_item_kind kind;
    struct tide_batch *batch; /* one of the two, by kind */
    struct tide_marker *marker;
};

/** One more reference to the batch or the marker; returns the item. */
struct tide_item tide_item_ref(struct tide_item item);
/** Gives that reference back; nothing for the zeroed item. */
void tide_item_unref(struct tide_item item);

/* An item under way to several lanes: what is still to be published where. Zeroed to begin with. */
struct tide_publication {
    struct tide_item item; /* borrowed; the lanes take references of their own */
    tide_lane_set pending; /* lanes that have not got it yet */
    uint64_t build;        /* assigned by the first publish call; 0 before */
};

/* A received item. The item stays valid until it is acknowledged or returned (or its lane is
 * fenced). */
struct tide_delivery {
    struct tide_item item;
    uint64_t build;
    uint64_t generation; /* of the consumer's attachment */
    bool is_redelivered;
};

/* A request for a backfill: one sink, some tables. Strings owned by the request. */
struct tide_request {
    uint64_t id;
    unsigned lane;
    tide_str *tables; /* store names */
    size_t table_count;
};

/** Copies the names. */
struct tide_request *tide_request_new(uint64_t id, unsigned lane, const tide_str *tables,
                                      size_t table_count);
void tide_request_free(struct tide_request *request); /* NULL is fine */

struct tide_stream;

/* One sink's end of its lane. Belongs to one thread at a time. */
struct tide_lane_consumer {
    struct tide_stream *stream;
    unsigned lane;
    uint64_t generation;
};

struct tide_stream_ops {
    const char *name; /* "channel" */
    void (*free)(struct tide_stream *stream);

    /** Adds a lane under a new name; TIDE_INVALID when the name is taken or TIDE_LANES_MAX is
     * reached. */
    tide_status (*add_lane)(struct tide_stream *stream, tide_str name, unsigned *ret_lane,
                            struct tide_error *err);
    /** Drops a lane: its items go, it no longer holds the minimum, its ends get TIDE_CLOSED. */
    tide_status (*drop_lane)(struct tide_stream *stream, unsigned lane, struct tide_error *err);
    /** The number of the lane named so; TIDE_INVALID when there is none. */
    tide_status (*find_lane)(struct tide_stream *stream, tide_str name, unsigned *ret_lane,
                             struct tide_error *err);

    /**
     * Publishes to all of `publication->pending`, waiting for full lanes. On TIDE_TIMEOUT what is
     * still pending stays there and the same call again goes on; no lane gets it twice. Wakes up
     * early (TIDE_TIMEOUT) when `waker` is woken; `waker` may be NULL. An item larger than a lane's
     * capacity enters an empty lane. A lane dropped meanwhile is taken out of `pending`.
     */
    tide_status (*publish)(struct tide_stream *stream, struct tide_publication *publication,
                           struct tide_waker *waker, int64_t deadline_us, struct tide_error *err);

    /** A consumer for the lane. Fences the former one: its items are redelivered in order. */
    tide_status (*attach)(struct tide_stream *stream, unsigned lane,
                          struct tide_lane_consumer *ret_consumer, struct tide_error *err);
    /** The next item. TIDE_TIMEOUT, TIDE_CLOSED (drained), TIDE_STALE (fenced). */
    tide_status (*receive)(struct tide_lane_consumer *consumer, int64_t deadline_us,
                           struct tide_delivery *ret_delivery, struct tide_error *err);
    /** Says that the delivery is held. TIDE_STALE: the handle is of a former owner or done; nothing
     * changed. */
    tide_status (*acknowledge)(struct tide_lane_consumer *consumer,
                               const struct tide_delivery *delivery, struct tide_error *err);
    /** Gives the delivery back: it and everything after it on the lane is delivered again, in
     * order. */
    tide_status (*give_back)(struct tide_lane_consumer *consumer,
                             const struct tide_delivery *delivery, struct tide_error *err);
    /** Makes a receive that waits on the lane, else the next one that would wait, return
     * TIDE_TIMEOUT at once. Any thread; nothing for an unknown lane. */
    void (*interrupt)(struct tide_stream *stream, unsigned lane);
    /** Advisory: nothing waits behind what was delivered. */
    bool (*is_empty)(struct tide_lane_consumer *consumer);

    /** Places a request; one with the same lane and tables that still waits is merged (its id is
     * returned). Never blocks. */
    tide_status (*request)(struct tide_stream *stream, unsigned lane, const tide_str *tables,
                           size_t table_count, uint64_t *ret_id, struct tide_error *err);
    /** The next request not yet received by this end; the caller frees it. TIDE_TIMEOUT when none.
     */
    tide_status (*receive_request)(struct tide_stream *stream, int64_t deadline_us,
                                   struct tide_request **ret_request, struct tide_error *err);
    /** Done with the request. Twice is TIDE_STALE and changes nothing. */
    tide_status (*acknowledge_request)(struct tide_stream *stream, uint64_t id,
                                       struct tide_error *err);
    /** Attaches a new request consumer: what was received and not acknowledged comes again. */
    void (*attach_requests)(struct tide_stream *stream);

    /** Build number of a lane's floor; 0: none yet. */
    uint64_t (*held)(struct tide_stream *stream, unsigned lane);
    /** The newest position at or before the smallest floor; false: none until every lane
     * acknowledged a positioned item. Never goes back. */
    bool (*watermark)(struct tide_stream *stream, struct tide_position *ret_position,
                      uint64_t *ret_build);
    /** Nothing queued, nothing outstanding on any lane. */
    bool (*is_idle)(struct tide_stream *stream);
    /** Bytes and items that wait or are outstanding on a lane. */
    void (*lane_load)(struct tide_stream *stream, unsigned lane, size_t *ret_items,
                      size_t *ret_bytes);
    /** Waker to wake whenever an acknowledgement, a request or free room comes up; NULL: none. */
    void (*set_waker)(struct tide_stream *stream, struct tide_waker *waker);

    /** Nothing more will be published; consumers drain, then get TIDE_CLOSED. */
    void (*close)(struct tide_stream *stream);
    /** Every waiting and later call returns TIDE_CANCELLED. */
    void (*cancel)(struct tide_stream *stream);
};

/* What every adapter's object begins with. */
struct tide_stream {
    const struct tide_stream_ops *ops;
};
