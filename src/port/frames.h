/*
 * What sinks that write frames share: a batch as the frames that a sink takes one after the other,
 * each a line, with oversize records refused (port/refusals.h) before their stub exists.
 *
 *     tide_frames_start(&frames, batch, first_change);
 *     while ((relation = tide_frames_peek(&frames)) != NULL) {
 *         TIDE_TRY(tide_frames_append(&frames, buffer_of(relation), err));
 *     }
 *
 * One sink thread uses it; only tide_frames_counts may be called by others.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "format/envelope.h"
#include "port/refusals.h"
#include "port/sink.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct tide_frames {
    struct tide_envelope_options envelope;
    struct tide_refusals refusals;
    /* private */
    struct tide_envelope_rows prepared; /* of the snapshot part under way */
    struct tide_buf record;             /* of the oversize row under way */
    const struct tide_batch *batch;
    size_t at;  /* number of the next frame: a change, or 0 opening, 1… rows, row_count + 1 end */
    size_t end; /* one past the last frame's number */
    _Atomic uint64_t rows;
    _Atomic uint64_t stubs;
    _Atomic uint64_t changes;
    _Atomic uint64_t bytes;
};

/** Takes what it needs of `options`; `destination`, as a user writes it, must stay. */
void tide_frames_init(struct tide_frames *frames, const struct tide_sink_options *options,
                      tide_str destination);
void tide_frames_done(struct tide_frames *frames);

/** Begins `batch`, which must stay until its last frame; of a live one from `first_change` on. */
void tide_frames_start(struct tide_frames *frames, const struct tide_batch *batch,
                       size_t first_change);

/** The relation of the next frame, NULL after the last one. */
const struct tide_relation *tide_frames_peek(const struct tide_frames *frames);

/**
 * Appends the next frame and a line end; line ends inside it become spaces. What becomes of an
 * oversize record is done, its dead letter held, before the frame is there. Errors: those of
 * port/refusals.h; nothing is appended then.
 */
tide_status tide_frames_append(struct tide_frames *frames, struct tide_buf *buf,
                               struct tide_error *err);

/** Any thread. */
void tide_frames_counts(const struct tide_frames *frames, struct tide_sink_counts *ret_counts);
