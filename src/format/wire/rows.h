/*
 * The live rows in a rows frame, that stay encoded: walked when they have come, appended one by one
 * where a frame of them is written.
 *
 *     rows = u64 seq | state | u32 count, so many {text series | i64 ts | i64 wall offset | bytes}
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/reader.h"
#include "base/status.h"
#include "base/str.h"
#include "format/wire/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_wire_take;

struct tide_wire_row {
    tide_str series;
    int64_t ts;
    int64_t wall_offset;
    tide_str bytes;
};

struct tide_wire_rows {
    uint64_t seq; /* of the source, within the stream */
    struct tide_wire_state state;
    uint32_t count;
    tide_str rows; /* encoded, `count` of them */
};

/** Walks rows; slices borrow from the frame. */
struct tide_reader tide_wire_rows_walk(const struct tide_wire_rows *rows);
bool tide_wire_rows_next(struct tide_reader *walk, struct tide_wire_row *ret_row);

/* A rows frame that is being written at the end of a buffer. */
struct tide_wire_draft {
    size_t start; /* of the frame in the buffer */
    uint32_t count;
};

/** Begins a rows frame; nothing else may be appended to `out` until its end. */
struct tide_wire_draft tide_wire_rows_begin(uint32_t source, uint64_t seq,
                                            struct tide_wire_state state, struct tide_buf *out);

/** Whether any frame takes the row. */
bool tide_wire_row_fits(const struct tide_wire_row *row);

/** Whether the frame has room for this row too: it holds TIDE_WIRE_FRAME_BYTES_MAX. */
bool tide_wire_rows_has_room(const struct tide_wire_draft *draft, const struct tide_wire_row *row,
                             const struct tide_buf *out);

/** Adds a row. TIDE_INVALID: there is no room for it, or the name of its series is not UTF-8; the
 * draft stays as it was. */
tide_status tide_wire_rows_add(struct tide_wire_draft *draft, const struct tide_wire_row *row,
                               struct tide_buf *out, struct tide_error *err);

/** Makes the draft a frame. One that is given up instead is cut off: `out->len = draft.start`. */
void tide_wire_rows_end(const struct tide_wire_draft *draft, struct tide_buf *out);

/* Within frames. */

/** What keeps rows from being sent: bytes that are not `count` rows. NULL: nothing. */
const char *tide_wire_rows_wrong(const struct tide_wire_rows *rows);

/** Writes the fields where there is room for them; returns where to go on. */
char *tide_wire_rows_put(char *at, const struct tide_wire_rows *rows);
size_t tide_wire_rows_size(const struct tide_wire_rows *rows);

/** Takes the fields, and looks at all rows. */
struct tide_wire_rows tide_wire_rows_take(struct tide_wire_take *take);
