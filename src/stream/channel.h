/*
 * The stream inside one process: lanes and the request lane are kept in memory under one mutex,
 * taken once per call. Nothing of it survives the process; what was not acknowledged is read from
 * the source again, and requests live on in the pipeline's checkpoint.
 *
 * Beyond what port/stream.h says:
 * - A lane is bounded in items and bytes. What was delivered and does not lie at or before the
 *   floor counts. An item that does not fit alone enters an empty lane.
 * - Items are published by one thread at a time, a lane's in the order of their build numbers.
 * - An acknowledgement before which something is not yet acknowledged is forgotten when the
 *   earlier item is delivered again: everything behind it comes again, in order.
 * - A lane that is added while the stream runs leaves the watermark where it is until that lane
 *   too has acknowledged a positioned item. With no lane left the watermark stays.
 * - Of a dropped lane, what its consumer has in hand stays valid until that consumer's next call.
 * - Positioned items go to all lanes; the watermark relies on it.
 * - A wake of the waker given to publish is taken only when publish returns TIDE_TIMEOUT for it.
 * - Idle looks at the sinks' lanes, not at requests.
 * - Numbers of dropped lanes are used again; ends of the former lane still get TIDE_CLOSED.
 */
#pragma once

#include "port/stream.h"

#include <stddef.h>
#include <stdint.h>

struct tide_channel_options {
    size_t lane_items;         /* 0: TIDE_LANE_ITEMS_DEFAULT */
    size_t lane_bytes;         /* 0: TIDE_LANE_BYTES_DEFAULT */
    uint64_t first_request_id; /* 0: microseconds of now in UTC, so that no earlier run had it */
};

/**
 * A stream without lanes. `options` may be NULL: the defaults.
 *
 * Owns:    the caller frees it with ops->free once no thread is in a call and none will call.
 * Errors:  TIDE_INVALID when `lane_items` is over TIDE_LANE_ITEMS_MAX.
 * Threads: any thread may call any function, but for the ends: see port/stream.h.
 */
tide_status tide_channel_new(const struct tide_channel_options *options,
                             struct tide_stream **ret_stream, struct tide_error *err);
