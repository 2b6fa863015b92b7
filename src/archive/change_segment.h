/*
 * Makes a segment: a Parquet file of rows of one series and of one schema, that explains itself.
 * Pure; for one thread at a time.
 */
#pragma once

#include "archive/change_row.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct tide_change_segment;

/** `schema` is the JSON of change_schema.h, which is kept in the file as it is. */
tide_status tide_change_segment_new(tide_str series, tide_str schema,
                                    struct tide_change_segment **ret_segment,
                                    struct tide_error *err);
void tide_change_segment_free(struct tide_change_segment *segment);
void tide_change_segment_free_ptr(struct tide_change_segment **segment);

/** Rows as the live tail has them; `bytes` must stay until the segment is finished. */
tide_status tide_change_segment_add_bytes(struct tide_change_segment *segment, int64_t time,
                                          tide_str bytes, struct tide_error *err);

/** A row of the same number of columns; copied. */
tide_status tide_change_segment_add(struct tide_change_segment *segment, int64_t time,
                                    const struct tide_change_row *row, struct tide_error *err);

/** Bytes so far, as tide_parquet_writer_size has them. */
size_t tide_change_segment_size(const struct tide_change_segment *segment);

/** Appends the file to `buf`. Then the segment can only be freed. */
tide_status tide_change_segment_finish(struct tide_change_segment *segment, struct tide_buf *buf,
                                       struct tide_error *err);
