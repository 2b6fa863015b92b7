/*
 * Putting the state of a table in place of the rows that led to it: a complete snapshot, made from
 * the archive itself, so that older copies and changes need not be kept.
 */
#pragma once

#include "archive/catalogue.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* What was done, or would be. */
struct tide_change_base {
    const char *why_not; /* NULL: done. Else a clause that says why nothing is */
    bool is_doubtful; /* with why_not: rows could have gone, but the state is not known exactly */
    int64_t segments; /* that have gone, and the rows in them */
    int64_t rows_before;
    int64_t rows;     /* of the table, in the snapshot */
    int64_t state_us; /* states can be rebuilt from this time on */
};

/**
 * Replaces the segments that end before the cutoff, as far as that cuts neither a copy nor a
 * transaction in two, by a snapshot of the table as the rows in them make it. It has an id of its
 * own, each row the place that it had, and times among those of the rows that go; the last one
 * stays, and so do caller rows. Every state from `state_us` on stays what it was; earlier ones are
 * gone. One transaction, for an archive opened for editing, whose free pages stay in it; `is_dry`
 * writes nothing, and does with one opened for reading. Memory is that of the state
 * (change_fold.h).
 *
 * Errors: TIDE_INVALID no copy of the table was complete by then; TIDE_UNSUPPORTED it has no key,
 * or another one since the copy. Nothing has been changed then, as with all other errors.
 */
tide_status tide_change_base_write(struct tide_archive *archive,
                                   const struct tide_archive_series_info *series, int64_t cutoff_ts,
                                   bool is_dry, struct tide_change_base *ret_base,
                                   struct tide_error *err);
