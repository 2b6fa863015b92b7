/*
 * What a follower holds, said before the stream that answers it, so that the stream begins there.
 * Ours, and no part of dendro's protocol: whoever does not know it never sees one. Pure.
 *
 *     hello  = "tidemark-hi" NUL | u16 version, 1 | u32 length of what follows | sources
 *     sources = u32 count, so many {text uuid | u32 count, so many series}
 *     series = text name | opt<i64> newest ts | opt<i64> sealed to
 *
 * Sources rise by uuid, series by name, each is there once. A series that is sealed to some time
 * has a newest row that is not before it.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_WIRE_HELLO_VERSION   1
#define TIDE_WIRE_HELLO_HEAD_SIZE 18

struct tide_wire_hello_series {
    tide_str name;
    bool has_newest;
    int64_t newest_ts; /* of all its rows, sealed and live */
    bool is_sealed;
    int64_t sealed_to;
};

struct tide_wire_hello_source {
    tide_str uuid; /* not empty */
    struct tide_wire_hello_series *series;
    size_t series_count;
};

struct tide_wire_hello {
    struct tide_wire_hello_source *sources;
    size_t source_count;
};

/** Appends a hello. TIDE_INVALID: it is not as said above, or larger than
 * TIDE_WIRE_HELLO_BYTES_MAX; `out` is as it was then. */
tide_status tide_wire_hello_encode(const struct tide_wire_hello *hello, struct tide_buf *out,
                                   struct tide_error *err);

/**
 * How many bytes the hello has that begins with `have`; 0: TIDE_WIRE_HELLO_HEAD_SIZE bytes are
 * needed to tell.
 * Errors: TIDE_CORRUPT it is none, or too large; TIDE_UNSUPPORTED another version.
 */
tide_status tide_wire_hello_size(tide_str have, size_t *ret_size, struct tide_error *err);

/** Decodes a whole hello. Texts borrow from `bytes`, arrays live in `arena`. Errors as above. */
tide_status tide_wire_hello_decode(tide_str bytes, struct tide_arena *arena,
                                   struct tide_wire_hello *ret_hello, struct tide_error *err);
