/*
 * The frames in which an archive goes to another place, of protocol version 1: that of the public
 * Rust crate dendro, byte for byte. Pure. What a stream of them is: stream.h.
 *
 *     frame = u32 length | u8 kind | fields       the length counts the kind and the fields
 *
 *     1 handshake     u32 source | opt<text> uuid | map labels | map metadata
 *                     | i64 clock anchor | boolean is complete
 *     2 index         u32 source | text series | i64 ts | u8 0 full, 1 delta | state | bytes
 *     3 rows          u32 source | u64 seq | state
 *                     | u32 count, so many {text series | i64 ts | i64 wall offset | bytes}
 *     4 segment       u32 source | text series | u64 rows | i64 first ts | i64 last ts
 *                     | bytes | opt<bytes> caller index
 *     5 clock offset  u32 source | i64 ts | i64 offset
 *
 *     map = u32 count, so many {text key | text value}          state = u64 | u64
 *
 * Decoding takes no memory: what varies in number (rows, pairs) stays as bytes that have been
 * looked at, and is walked. So what was decoded can be encoded as it is.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/str.h"
#include "format/wire/map.h"
#include "format/wire/rows.h"
#include "format/wire/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tide_wire_kind {
    TIDE_WIRE_HANDSHAKE = 1, /* introduces a source, gives it a number within the stream */
    TIDE_WIRE_INDEX = 2,     /* one caller row */
    TIDE_WIRE_ROWS = 3,      /* live rows; none: nothing came in an interval */
    TIDE_WIRE_SEGMENT = 4,
    TIDE_WIRE_CLOCK_OFFSET = 5,
};

struct tide_wire_handshake {
    bool has_uuid;
    tide_str uuid; /* any text: it is not checked to be one */
    struct tide_wire_map labels;
    struct tide_wire_map metadata;
    int64_t clock_anchor_wall_ns;
    bool is_complete;
};

struct tide_wire_index {
    tide_str series; /* of the caller rows */
    int64_t ts;
    bool is_delta; /* else all of the caller's index as it is then */
    struct tide_wire_state state;
    tide_str bytes;
};

struct tide_wire_segment {
    tide_str series;
    int64_t rows; /* never negative */
    int64_t first_ts;
    int64_t last_ts;
    tide_str bytes;
    bool has_caller_index; /* an empty one is not none */
    tide_str caller_index;
};

struct tide_wire_clock_offset {
    int64_t ts;
    int64_t offset_ns;
};

struct tide_wire_frame {
    enum tide_wire_kind kind;
    uint32_t source; /* its number within the stream */

    union {
        struct tide_wire_handshake handshake;
        struct tide_wire_index index;
        struct tide_wire_rows rows;
        struct tide_wire_segment segment;
        struct tide_wire_clock_offset clock_offset;
    };
};

/** Whether a kind is one of those above: in a stream all others are passed over. */
static inline bool tide_wire_kind_is_known(unsigned kind)
{
    return kind >= TIDE_WIRE_HANDSHAKE && kind <= TIDE_WIRE_CLOCK_OFFSET;
}

/** What people call a kind: "handshake", "clock offset"; "unknown". */
const char *tide_wire_kind_name(unsigned kind);

/**
 * Appends one frame, its length included; no slice of it may lie in `out`. On failure `out` is as
 * it was, and has not grown.
 * Errors: TIDE_INVALID the frame would be larger than TIDE_WIRE_FRAME_BYTES_MAX, a text is not
 *         UTF-8, keys of a map do not rise, a segment has less than no rows, or encoded pairs or
 *         rows are not what they should be.
 */
tide_status tide_wire_encode(const struct tide_wire_frame *frame, struct tide_buf *out,
                             struct tide_error *err);

/**
 * Decodes one frame without its length: the kind and the fields, all of them.
 * Owns:   slices borrow from `body`.
 * Errors: TIDE_CORRUPT malformed; TIDE_UNSUPPORTED a kind that is not known.
 */
tide_status tide_wire_decode(tide_str body, struct tide_wire_frame *ret_frame,
                             struct tide_error *err);
