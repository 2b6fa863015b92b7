/* Frames of the replication wire for tests: as text, and made at random from a seed. */
#pragma once

#include "base/buf.h"
#include "format/wire/wire.h"

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
