/*
 * What the parts of the channel share. Private to src/stream. Every field but `base`, the bounds
 * and `room` is protected by `mutex`.
 */
#pragma once

#include "stream/floor.h"
#include "stream/lane.h"
#include "stream/requests.h"

struct tide_channel {
    struct tide_stream base;
    size_t items_max;
    size_t bytes_max;
    pthread_mutex_t mutex;
    struct tide_lane *lanes[TIDE_LANES_MAX]; /* NULL where the bit of `present` is 0 */
    tide_lane_set present;
    tide_lane_set ever;        /* numbers that were given out once */
    struct tide_lane *dropped; /* whose consumers hold items in hand */
    uint64_t generation;       /* counts lanes and attachments */
    uint64_t build;            /* the newest build number */
    size_t items;              /* on all present lanes */
    struct tide_watermark watermark;
    struct tide_requests requests;
    pthread_cond_t request_placed;
    struct tide_waker room;         /* wakes the publisher */
    tide_lane_set publisher_awaits; /* lanes in which it waits for room; 0: it does not wait */
    struct tide_waker *waker;
    bool is_closed;
    bool is_cancelled;
};

static inline struct tide_channel *tide_channel_of(struct tide_stream *stream)
{
    return (struct tide_channel *)stream;
}

/** The lane of that number, or NULL. */
static inline struct tide_lane *tide_channel_lane(const struct tide_channel *channel, unsigned lane)
{
    return lane < TIDE_LANES_MAX ? channel->lanes[lane] : NULL;
}

/** Tells whoever waits for news; lanes of `room` may have got room. */
void tide_channel_notify(struct tide_channel *channel, tide_lane_set room);

/** TIDE_CANCELLED after cancel. */
tide_status tide_channel_check(const struct tide_channel *channel, struct tide_error *err);

/** TIDE_INVALID that names the lane's number. */
tide_status tide_channel_unknown_lane(unsigned lane, struct tide_error *err);

/** The operations of port/stream.h, which says what each does. */
tide_status tide_channel_publish(struct tide_stream *stream, struct tide_publication *publication,
                                 struct tide_waker *waker, int64_t deadline_us,
                                 struct tide_error *err);

/** The lane's side of them, in channel_consume.c. */
tide_status tide_channel_attach(struct tide_stream *stream, unsigned lane,
                                struct tide_lane_consumer *ret_consumer, struct tide_error *err);
tide_status tide_channel_receive(struct tide_lane_consumer *consumer, int64_t deadline_us,
                                 struct tide_delivery *ret_delivery, struct tide_error *err);
tide_status tide_channel_acknowledge(struct tide_lane_consumer *consumer,
                                     const struct tide_delivery *delivery, struct tide_error *err);
tide_status tide_channel_give_back(struct tide_lane_consumer *consumer,
                                   const struct tide_delivery *delivery, struct tide_error *err);
void tide_channel_interrupt(struct tide_stream *stream, unsigned number);
bool tide_channel_is_empty(struct tide_lane_consumer *consumer);
