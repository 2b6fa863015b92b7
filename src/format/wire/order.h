/*
 * In which order frames may come, and which rows of a stream can be used. Pure: it looks at each
 * frame that was decoded, before that is applied, and keeps a few numbers a source.
 *
 * A source is introduced once in a stream, by a handshake; a frame that names one that was not is
 * TIDE_INVALID: its bytes are right and its sender is wrong, so reading the stream again gives the
 * same. Its numbers hold for one stream: after a reconnect all begins anew.
 *
 * Rows are written against the state of their source's caller rows, and are used when that is the
 * state which the last index frame left. They are not used before a first full index, unless they
 * say that they need none ({0, 0}).
 *
 * Where states are known to be folded, each index frame is held to the ones before it. When one is
 * missing, no rows of the source are used any more in this stream: nobody knows which columns they
 * have.
 *
 * The seq of rows counts the intervals of a source. One that jumps says that intervals were not
 * sent, by whatever cause; such rows are used nonetheless. A first one of 2^63 or more says the
 * same of those before it.
 */
#pragma once

#include "base/map.h"
#include "base/status.h"
#include "format/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The first seq of a source of which intervals were not sent before it. */
#define TIDE_WIRE_SEQ_BEHIND_GAP (UINT64_C(1) << 63)

/* One source of the stream. */
struct tide_wire_place {
    uint32_t source;
    bool has_full; /* a full index has come */
    /* Set by who knows that its states are those of tide_wire_state_fold, in the first lane: */
    bool is_folded;
    bool has_missed; /* an index frame, as a state has shown */
    bool has_seq;
    uint64_t last_seq;
    struct tide_wire_state state; /* after the last index */
};

/* `{0}`: nothing has come. */
struct tide_wire_order {
    struct tide_map numbers; /* a source's number in the stream, to its index in `places` */
    struct tide_wire_place *places;
    size_t count;
    size_t cap;
};

/* What is to be done with a frame. */
struct tide_wire_verdict {
    size_t place;      /* of its source, in order of introduction: 0, 1, … */
    bool is_new;       /* it introduces the source */
    bool is_gap;       /* rows: intervals before it were not sent */
    bool is_unmatched; /* rows, segment: they cannot be used */
    bool is_missing;   /* index, rows: they show first that an index frame did not come */
};

/** Frees the memory, and nothing has come. For TIDE_CLEANUP too. */
void tide_wire_order_done(struct tide_wire_order *order);

/**
 * Takes the next frame of a stream.
 * Errors: TIDE_INVALID its source has not been introduced, or is introduced again;
 *         TIDE_UNSUPPORTED more sources than TIDE_WIRE_SOURCES_MAX.
 */
tide_status tide_wire_order_take(struct tide_wire_order *order, const struct tide_wire_frame *frame,
                                 struct tide_wire_verdict *ret_verdict, struct tide_error *err);
