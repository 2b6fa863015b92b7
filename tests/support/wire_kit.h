/* Frames of the replication wire for tests: as text, made at random from a seed, and streams of
 * them read in both ways. */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "format/wire/stream.h"

#include <stdint.h>

/** Appends the frame as one line with everything that is in it, as others' programs can, too. */
void wire_print(struct tide_buf *out, const struct tide_wire_frame *frame);

/* Makes frames; each is valid until the next. `state` is the seed, not 0. */
struct wire_maker {
    uint64_t state;
    struct tide_buf texts; /* what slices of the frame lie in, with room for all */
    struct tide_buf labels;
    struct tide_buf metadata;
    struct tide_buf rows;
};

void wire_maker_done(struct wire_maker *maker);

/** A number below `below`. */
uint64_t wire_random(struct wire_maker *maker, uint64_t below);

/** A frame of any kind; it can be encoded. */
void wire_make(struct wire_maker *maker, struct tide_wire_frame *ret_frame);

/* What came of reading a stream. */
struct wire_outcome {
    struct tide_buf text; /* the frames */
    tide_status status;   /* TIDE_END: the stream is whole */
    struct tide_wire_progress progress;
    struct tide_error err;
};

void wire_outcome_done(struct wire_outcome *outcome);

/** Reads a whole stream from its slice. */
void wire_read(tide_str stream, struct wire_outcome *ret_outcome);

/** Feeds a decoder pieces of 1 to `size_max` bytes, as `maker` draws them. */
void wire_push(tide_str stream, struct wire_maker *maker, size_t size_max,
               struct wire_outcome *ret_outcome);

/** NULL when both ways gave the same, else what differs. */
const char *wire_differ(const struct wire_outcome *a, const struct wire_outcome *b);
