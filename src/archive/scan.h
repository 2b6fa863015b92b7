/*
 * Reading a series by time: its segments by number, then its live tail, all of one moment. A scan
 * holds a snapshot from open to close.
 */
#pragma once

#include "archive/container.h"
#include "archive/encoder.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_archive_scan;

struct tide_archive_range {
    int64_t source;
    tide_str series;
    int64_t start_ts; /* both included; INT64_MIN and INT64_MAX are everything */
    int64_t end_ts;
};

/* A segment, whole also where it reaches out of the range; or some rows of the live tail, inside of
 * it. Valid until the next part. */
struct tide_archive_part {
    bool is_live;
    struct tide_archive_segment segment;
    const struct tide_archive_live_row *rows;
    size_t row_count;
};

/** `range` is copied, but for its name. */
tide_status tide_archive_scan_open(struct tide_archive *archive,
                                   const struct tide_archive_range *range,
                                   struct tide_archive_scan **ret_scan, struct tide_error *err);

/** The next part, by rising time. TIDE_END after the last. */
tide_status tide_archive_scan_next(struct tide_archive_scan *scan,
                                   struct tide_archive_part *ret_part, struct tide_error *err);

/** NULL is fine. */
void tide_archive_scan_close(struct tide_archive_scan *scan);
void tide_archive_scan_close_ptr(struct tide_archive_scan **scan);

/**
 * Hands each row of the range to the taker, by rising time.
 * Errors: TIDE_CORRUPT a segment does not hold what the catalogue says; TIDE_UNSUPPORTED the
 * source's rows are of another version of the encoder; what the taker fails with.
 */
tide_status tide_archive_rows_read(struct tide_archive *archive,
                                   const struct tide_archive_range *range,
                                   const struct tide_archive_encoder *encoder,
                                   const struct tide_archive_row_taker *taker,
                                   struct tide_error *err);

/** TIDE_UNSUPPORTED when the source names another encoder version; either may name none. */
tide_status tide_archive_encoder_check(struct tide_archive *archive, int64_t source,
                                       const struct tide_archive_encoder *encoder,
                                       struct tide_error *err);
