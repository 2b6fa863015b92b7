/*
 * The snapshot envelope and change frames, written. A frame is one JSON object without line end;
 * docs/envelope.md has the layout of each. Pure: appends to a buffer.
 */
#pragma once

#include "base/buf.h"
#include "model/batch.h"

/* What the writer needs to know beyond the batch. */
struct tide_envelope_options {
    const struct tide_position_kind *position_kind;
    size_t record_bytes_max; /* a longer record becomes a stub */
    uint32_t incarnation;    /* for change frames; 0: the source's log never started over */
};

/** The begin or resume frame of a part whose `opening` is not NONE. */
void tide_envelope_append_opening(struct tide_buf *buf, const struct tide_envelope_options *options,
                                  const struct tide_snapshot_part *part);

/* A part whose row frames are about to be written: what is the same in each is written once. */
struct tide_envelope_rows {
    const struct tide_envelope_options *options;
    const struct tide_snapshot_part *part;
    struct tide_buf text; /* the head up to `"seq":`, then the tail after the record */
    size_t head_len;
};

/** Borrows `options` and `part` until done; no allocation for the rows that follow. */
void tide_envelope_rows_init(struct tide_envelope_rows *rows,
                             const struct tide_envelope_options *options,
                             const struct tide_snapshot_part *part);

/** Appends the row's key as a stub's row_key has it, `[…]`; nothing when no key column has a value.
 */
void tide_envelope_append_row_key(struct tide_buf *buf, const struct tide_relation *relation,
                                  const struct tide_value *row);

/** For TIDE_CLEANUP too. */
void tide_envelope_rows_done(struct tide_envelope_rows *rows);

/**
 * Row number `index` of the part: a row frame, or a stub when its record is over the limit; then
 * `ret_oversize` is the record's length (else 0) and, when `record_copy` is not NULL, the record's
 * bytes are appended to it for the dead letter. `record_copy` is another buffer than `buf`.
 */
void tide_envelope_rows_append(struct tide_buf *buf, const struct tide_envelope_rows *rows,
                               size_t index, size_t *ret_oversize, struct tide_buf *record_copy);

/** The stub of a row of the part whose record had `bytes` bytes; `key` NULL where it is not known.
 */
void tide_envelope_append_stub(struct tide_buf *buf, const struct tide_snapshot_part *part,
                               uint64_t seq, uint64_t bytes, const struct tide_value *key);

/** The end frame. `part->completed_us` must not be earlier than the snapshot's instant. */
void tide_envelope_append_end(struct tide_buf *buf, const struct tide_envelope_options *options,
                              const struct tide_snapshot_part *part);

/**
 * A change frame; one with a record over the limit says "oversize" instead, as above. A `before`
 * over the limit is left out: it is optional, and the frame would outgrow what the sink takes.
 */
void tide_envelope_append_change(struct tide_buf *buf, const struct tide_envelope_options *options,
                                 const struct tide_change *change, size_t *ret_oversize,
                                 struct tide_buf *record_copy);

/** A change frame whose record, of `bytes` bytes, is not there any more; `change` has no values. */
void tide_envelope_append_oversize_change(struct tide_buf *buf,
                                          const struct tide_envelope_options *options,
                                          const struct tide_change *change, uint64_t bytes);
