/*
 * Places of changes as consumers see them: the position is the source's own JSON, and to tell a
 * lost change from a redelivered one it must be ordered here, without the source.
 *
 * Forms that are known: an integer; PostgreSQL's LSN as text, "16/B374D848"; a log file and a place
 * in it, {"file":"name.000123","pos":N}. Any other JSON is compared for equality only, by its hash.
 */
#pragma once

#include "base/buf.h"
#include "format/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum tide_place_form {
    TIDE_PLACE_NONE, /* null: before every other place of its incarnation */
    TIDE_PLACE_INTEGER,
    TIDE_PLACE_LSN,
    TIDE_PLACE_FILE,   /* hi: number of the file, lo: place in it */
    TIDE_PLACE_OPAQUE, /* hi, lo: hash of the bytes */
};

struct tide_ordered_place {
    uint64_t hi;
    uint64_t lo;
    uint64_t index;
    uint32_t incarnation;
    uint32_t family; /* of FILE: hash of the name before its number */
    enum tide_place_form form;
};

enum tide_place_order {
    TIDE_PLACE_BEFORE,
    TIDE_PLACE_SAME,
    TIDE_PLACE_AFTER,
    TIDE_PLACE_UNORDERED,
};

/** The place `[position, index]`; `position` is one valid JSON value. */
struct tide_ordered_place tide_ordered_place_of(tide_str position, uint64_t index,
                                                uint32_t incarnation);

/** The same for a place of a frame; one that is null or not given has form NONE. */
struct tide_ordered_place tide_ordered_place_from(const struct tide_frame_place *place,
                                                  uint32_t incarnation);

/** Where `a` stands, seen from `b`. */
enum tide_place_order tide_ordered_place_compare(const struct tide_ordered_place *a,
                                                 const struct tide_ordered_place *b);

/** An order over everything, for sorting: among places of one form the true one. <0, 0, >0. */
int tide_ordered_place_sort(const struct tide_ordered_place *a, const struct tide_ordered_place *b);

/** Appends `[position,index]` or null as JSON; a file's name and an opaque position are only hinted
 * at, since they are not kept. */
void tide_ordered_place_append(struct tide_buf *buf, const struct tide_ordered_place *place);
