/*
 * Rows of a series as the frames that they came from (docs/envelope.md). Pure. What a frame cannot
 * say of a row, such as a snapshot's instant on each of its rows, is remembered from its begin, or
 * read from its UUIDv7.
 */
#pragma once

#include "archive/change_scan.h"
#include "base/buf.h"
#include "format/envelope.h"

/* What is remembered from row to row. `{0}` is ready. */
struct tide_change_framer {
    char snapshot_id[TIDE_UUID_LEN + 1];
    int64_t at_us;
};

/**
 * Appends the frame of a row, without a line end.
 * Errors: TIDE_CORRUPT no frame can say what the row says; TIDE_UNSUPPORTED its positions are of an
 * unknown kind. Nothing is appended then.
 */
tide_status tide_change_frame_append(struct tide_change_framer *framer,
                                     const struct tide_change_seen *seen, struct tide_buf *buf,
                                     struct tide_error *err);
