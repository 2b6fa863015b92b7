/*
 * What turns rows into segments and back. To the container rows and segments are bytes; an encoder
 * is a table of functions that knows what is in them.
 *
 * A segment says of itself what it holds: `rows`, `first_ts` and `last_ts` of a draft describe what
 * the encoder has put in, never what it was given. It may leave out rows at the end, which stay in
 * the live tail, and no others: whatever is before a segment's end counts as sealed.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of the live tail. `ts` is in nanoseconds, any 64-bit number; ts + wall_offset is the wall
 * clock. */
struct tide_archive_live_row {
    int64_t ts;
    int64_t wall_offset;
    tide_str bytes;
};

/* Bytes kept against a time for whoever writes the rows, such as the table's columns from then on.
 */
struct tide_archive_caller_row {
    int64_t ts;
    tide_str bytes;
};

struct tide_archive_encode_input {
    tide_str series;
    const struct tide_archive_live_row *rows; /* by rising ts; at least one */
    size_t row_count;
    /* Those in force: the newest at or before the first row (all of that time), then all up to the
     * last row; by ts, then as they were written. */
    const struct tide_archive_caller_row *caller_rows;
    size_t caller_row_count;
};

/* A segment to be. Both buffers are empty when a function is called, and not the function's to
 * free. */
struct tide_archive_draft {
    struct tide_buf bytes;
    int64_t rows; /* 0 with empty bytes: there is nothing to seal in these rows */
    int64_t first_ts;
    int64_t last_ts;
    bool has_index; /* `index` is kept beside the segment, and can be read without it */
    struct tide_buf index;
};

/* A segment as it is stored. */
struct tide_archive_segment {
    int64_t seq;
    int64_t rows;
    int64_t first_ts;
    int64_t last_ts;
    tide_str bytes;
    tide_str index; /* ptr NULL: it has none */
};

/* Takes rows one after the other; a failure ends the walk and is passed on. */
struct tide_archive_row_taker {
    tide_status (*take)(void *context, int64_t ts, tide_str bytes, struct tide_error *err);
    void *context;
};

struct tide_archive_encoder {
    const char *name; /* for messages */
    /* Recorded in each source and compared when it is resumed or read; NULL: neither. */
    const char *version;
    void *context;

    /** Makes a segment of rows. Must work from the input alone. */
    tide_status (*encode)(void *context, const struct tide_archive_encode_input *input,
                          struct tide_archive_draft *ret_draft, struct tide_error *err);

    /**
     * Hands each row of a segment to the taker, by rising ts, in the form the live tail keeps rows
     * in. The bytes are from a file: TIDE_CORRUPT for any that are no segment.
     */
    tide_status (*decode)(void *context, tide_str series,
                          const struct tide_archive_segment *segment,
                          const struct tide_archive_row_taker *taker, struct tide_error *err);

    /** Whether two segments are of one form, so that compaction may join them. May be NULL with
     * merge. */
    bool (*may_merge)(void *context, const struct tide_archive_segment *a,
                      const struct tide_archive_segment *b);

    /** Makes one segment of adjacent ones: all of their rows, in their order. */
    tide_status (*merge)(void *context, tide_str series,
                         const struct tide_archive_segment *segments, size_t count,
                         struct tide_archive_draft *ret_draft, struct tide_error *err);
};

/** Frees what a draft holds. For TIDE_CLEANUP too. */
void tide_archive_draft_done(struct tide_archive_draft *draft);

/** Empties a draft, keeping its memory. */
void tide_archive_draft_reset(struct tide_archive_draft *draft);

/** What a draft is when it is stored under a number; borrows from it. */
struct tide_archive_segment tide_archive_draft_segment(const struct tide_archive_draft *draft,
                                                       int64_t seq);

/**
 * What a draft must keep to, given the rows it was made of: the first of them, without a gap.
 * Errors: TIDE_INVALID, naming the encoder.
 */
tide_status tide_archive_draft_check(const struct tide_archive_encoder *encoder,
                                     const struct tide_archive_encode_input *input,
                                     const struct tide_archive_draft *draft,
                                     struct tide_error *err);
