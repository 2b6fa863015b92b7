/*
 * Forgetting what is older than a cutoff: segments that end before it, live rows, clock offsets and
 * caller rows before it, in one transaction. A segment that spans the cutoff stays whole.
 */
#pragma once

#include "archive/container.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_archive_retention {
    int64_t source;
    int64_t cutoff_ts; /* what is before it goes */
    /* Whether a series is concerned, also one that has only caller rows; NULL: all are. */
    bool (*is_removed)(void *context, tide_str series);
    /*
     * From when on caller rows of a series are kept, if that is before the cutoff: asked inside the
     * transaction, with the oldest row that is left. NULL: from the cutoff on. INT64_MIN keeps all.
     */
    int64_t (*keep_from)(void *context, tide_str series, bool has_rows, int64_t oldest_ts);
    void *context;
};

struct tide_archive_retained {
    int64_t segments;
    int64_t wal_rows;
    int64_t live_rows; /* of wal_rows, those that were in no segment: retention overtook sealing */
    int64_t caller_rows;
};

/** Of an archive opened for editing or writing. Free pages stay in the file. */
tide_status tide_archive_retain_in(struct tide_archive *archive,
                                   const struct tide_archive_retention *retention,
                                   struct tide_archive_retained *ret_retained,
                                   struct tide_error *err);

/**
 * The latest cutoff up to `cutoff_ts` by which segments of about `bytes_max` bytes go, so that much
 * can be forgotten bit by bit; at least one where any goes. Any handle.
 */
tide_status tide_archive_retain_step(struct tide_archive *archive, int64_t source, tide_str series,
                                     int64_t cutoff_ts, int64_t bytes_max, int64_t *ret_cutoff_ts,
                                     struct tide_error *err);
