/*
 * The snapshot envelope and change frames, written. A frame is one JSON object without line end;
 * docs/envelope.md has the layout of each. Pure: appends to a buffer.
 */
#pragma once

#include "base/buf.h"
#include "model/batch.h"

/* The sizes that the writer needs to know beyond the batch. */
struct tide_envelope_options {
    const struct tide_position_kind *position_kind;
    size_t record_bytes_max; /* a longer record becomes a stub */
};

void tide_envelope_append_opening(struct tide_buf *buf, const struct tide_envelope_options *options,
                                  const struct tide_snapshot_part *part);

/**
 * Row number `index` of the part: a row frame, or a stub when its record is over the limit; then
 * `ret_oversize` is the record's length (else 0) and, when `record_copy` is not NULL, the record's
 * bytes are appended to it for the dead letter.
 */
void tide_envelope_append_row(struct tide_buf *buf, const struct tide_envelope_options *options,
                              const struct tide_snapshot_part *part, size_t index,
                              size_t *ret_oversize, struct tide_buf *record_copy);

void tide_envelope_append_end(struct tide_buf *buf, const struct tide_envelope_options *options,
                              const struct tide_snapshot_part *part);

/** A change frame; one with a record over the limit says "oversize" instead, as above. */
void tide_envelope_append_change(struct tide_buf *buf, const struct tide_envelope_options *options,
                                 const struct tide_change *change, size_t *ret_oversize,
                                 struct tide_buf *record_copy);
