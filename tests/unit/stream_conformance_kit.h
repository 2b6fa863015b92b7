/* What the tests of the conformance suite are written with. */
#pragma once

#include "stream_conformance.h"

#include "base/clock.h"

/* Long enough for what must come, short enough for what must not. */
#define KIT_SOON_US   ((int64_t)5000000)
#define KIT_SHORT_US  ((int64_t)20000)
#define KIT_ITEM_SIZE ((size_t)1000)
#define KIT_ALL(n)    ((n) == 64 ? ~(tide_lane_set)0 : ((tide_lane_set)1 << (n)) - 1)

struct kit {
    struct tide_stream *stream;
    const struct tide_stream_ops *ops;
    unsigned lane_count;
    unsigned lanes[TIDE_LANES_MAX]; /* numbers in the stream */
    struct tide_lane_consumer ends[TIDE_LANES_MAX];
    struct tide_error err;
};

extern const struct stream_factory *kit_factory;

/** A stream with lanes "sink 0", "sink 1" … and a consumer at each. */
void kit_open(struct kit *kit, size_t items, size_t bytes, unsigned lane_count);
void kit_close(struct kit *kit);

/** The set of the first `count` lanes. */
tide_lane_set kit_set(const struct kit *kit, unsigned count);

/** A batch of `size` bytes; with the position `position` unless that is 0. */
struct tide_batch *kit_batch(uint64_t position, size_t size);

/** Publishes, waiting no longer than that. */
tide_status kit_try_publish(struct kit *kit, struct tide_publication *publication,
                            struct tide_waker *waker, int64_t wait_us);

/** Publishes a batch of KIT_ITEM_SIZE; it must not have to wait. Its build number. */
uint64_t kit_publish(struct kit *kit, tide_lane_set set, uint64_t position);

/** Publishes a marker of the request, for the table "t". */
uint64_t kit_publish_marker(struct kit *kit, tide_lane_set set, uint64_t request_id);

/** The next item of the i-th lane, which must be `build`. */
struct tide_delivery kit_expect(struct kit *kit, unsigned i, uint64_t build);

/** Nothing is to be had from the i-th lane: receive says `want`. */
void kit_expect_none(struct kit *kit, unsigned i, tide_status want);

void kit_acknowledge(struct kit *kit, unsigned i, const struct tide_delivery *delivery);
void kit_give_back(struct kit *kit, unsigned i, const struct tide_delivery *delivery);

/** Receives `build` and acknowledges it. */
void kit_pass(struct kit *kit, unsigned i, uint64_t build);

/** The watermark is that position; 0: there is none. */
void kit_expect_watermark(struct kit *kit, uint64_t position);

/** A number from 0 to `bound` - 1. */
unsigned kit_random(uint64_t *seed, unsigned bound);

void kit_sleep_us(int64_t us);
