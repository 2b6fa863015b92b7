/*
 * The watermark: the newest position that every lane holds. Private to src/stream.
 *
 * Each lane knows the last positioned item at or before its floor; the watermark is the one with
 * the smallest build number among them. Positioned items go to every lane, so this is the newest
 * position at or before the smallest floor. Positions are never compared, and it never goes back:
 * a lane that has no position yet (a new one) leaves it where it is until the lane has caught up.
 */
#pragma once

#include "stream/lane.h"

struct tide_watermark {
    uint64_t build; /* 0: none yet */
    struct tide_position position;
};

/** Takes the lanes of `set` into account after one has moved, come or gone; true when it moved. */
bool tide_watermark_update(struct tide_watermark *watermark, struct tide_lane *const *lanes,
                           tide_lane_set set);
