/* What `tidemark verify` says of a snapshot: a line for people, or a line of JSON. */
#pragma once

#include "base/buf.h"
#include "format/reassembler.h"

#include <stdint.h>

/**
 * Appends one line without line end. `last_frame_us` is when the latest frame was written (UTC) as
 * far as that can be told, or 0; `now_us` is the time to count from.
 */
void tide_verify_append_text(struct tide_buf *buf, const struct tide_snapshot_report *report,
                             int64_t last_frame_us, int64_t now_us);

/** The same as one JSON object; docs/envelope.md lists its keys. */
void tide_verify_append_json(struct tide_buf *buf, const struct tide_snapshot_report *report,
                             int64_t last_frame_us, int64_t now_us);
