/*
 * One lane of the channel: a ring of items in the order of publishing. Private to src/stream.
 *
 *     head ......... next ......... tail
 *      | delivered    | waiting      |         all three count up from 0 and never back,
 *      | some of them acknowledged   |         but for `next`, which redelivery takes back
 *
 * What is before `head` is acknowledged and gone: its last item is the floor. An item that was
 * acknowledged out of order stays until everything before it is acknowledged too, since a
 * redelivery from before it must bring it again. So everything from head to tail takes capacity.
 * No locks here: the channel holds its mutex around every call.
 */
#pragma once

#include "port/stream.h"

/* Items that left a lane; the channel lets go of them after it has given its mutex back. */
#define TIDE_RELEASE_MAX 16

struct tide_release {
    struct tide_item items[TIDE_RELEASE_MAX];
    size_t count;
};

struct tide_lane_entry {
    struct tide_item item;
    uint64_t build;
    size_t size;
    bool was_delivered;
    bool is_acknowledged;
};

struct tide_lane {
    char *name;
    size_t name_len;
    uint64_t generation;  /* of the consumer that owns the lane */
    uint64_t born;        /* generation of the lane itself: older ends belong to an earlier lane */
    uint64_t build_born;  /* the newest build number when the lane was added */
    uint64_t build_last;  /* of the item published last on it */
    uint64_t build_floor; /* of the floor; 0: none */
    uint64_t build_position; /* of the last positioned item at or before the floor; 0: none */
    struct tide_position position;
    struct tide_lane_entry *entries;
    size_t cap; /* a power of two, or 0 */
    uint64_t head;
    uint64_t next;
    uint64_t tail;
    size_t bytes;
    pthread_cond_t readable;
    unsigned waiters; /* threads in a wait on `readable`: the lane must stay */
    bool is_interrupted;
    struct tide_lane *next_dropped; /* list of lanes that were dropped and are kept for an end */
};

/** An empty lane. */
struct tide_lane *tide_lane_new(tide_str name, uint64_t born, uint64_t build_born);
/** NULL is fine. Nobody waits on it. */
void tide_lane_free(struct tide_lane *lane);

/** Bytes that an item counts for. */
size_t tide_item_size(const struct tide_item *item);

/** Whether an item of `size` may enter; an empty lane takes any. */
bool tide_lane_has_room(const struct tide_lane *lane, size_t size, size_t items_max,
                        size_t bytes_max);

/** Appends the item with a reference of its own. */
void tide_lane_push(struct tide_lane *lane, const struct tide_item *item, uint64_t build,
                    size_t size);

/** The next item, or NULL. */
struct tide_lane_entry *tide_lane_take(struct tide_lane *lane);

/** Marks the delivered item of number `build`; false: there is none, or it is acknowledged. */
bool tide_lane_acknowledge(struct tide_lane *lane, uint64_t build);

/** Moves the floor over everything acknowledged at the head; false: it did not move. */
bool tide_lane_advance(struct tide_lane *lane, struct tide_release *release);

/** Goes back to the delivered item of number `build`; false: as with tide_lane_acknowledge. */
bool tide_lane_give_back(struct tide_lane *lane, uint64_t build);

/** Goes back to the floor. */
void tide_lane_rewind(struct tide_lane *lane);

/** Lets go of everything not delivered yet. */
void tide_lane_cut(struct tide_lane *lane);

static inline size_t tide_lane_items(const struct tide_lane *lane)
{
    return (size_t)(lane->tail - lane->head);
}

/** Drops the references. */
void tide_release_done(struct tide_release *release);
