/*
 * Joining small segments that lie next to each other into larger ones. To find and join a run takes
 * long and changes nothing, so a handle that reads may do it beside a writer; to put it in place
 * takes one short transaction.
 */
#pragma once

#include "archive/container.h"
#include "archive/encoder.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which segments become one. */
struct tide_archive_merge_policy {
    int64_t rows_max;       /* of the one */
    int64_t bytes_max;      /* of all those that become it */
    int64_t small_rows_max; /* one with more rows or bytes is left as it is */
    int64_t small_bytes_max;
    size_t count_min; /* fewer are left as they are; at least 2 */
};

/* A run of adjacent segments of one form, and what they become. */
struct tide_archive_merge {
    int64_t first_seq;
    int64_t last_seq;
    size_t count;
    struct tide_archive_draft draft; /* all of their rows */
};

/** Frees what it holds, for TIDE_CLEANUP too. */
void tide_archive_merge_done(struct tide_archive_merge *merge);

/**
 * The next run from number `*from` on, joined; `*from` is where to look on. TIDE_END when there is
 * none. `ret_merge` is empty before. Any handle; changes nothing.
 * Errors: TIDE_INVALID the encoder cannot join, or made something else of a run; TIDE_UNSUPPORTED
 * the rows are of another version of it; what it fails with.
 */
tide_status tide_archive_merge_next(struct tide_archive *archive,
                                    const struct tide_archive_encoder *encoder,
                                    const struct tide_archive_merge_policy *policy, int64_t source,
                                    tide_str series, int64_t *from,
                                    struct tide_archive_merge *ret_merge, struct tide_error *err);

/**
 * Puts the joined segment in place of its run, in one transaction, under the first one's number.
 * `ret_is_put` false: they are not all there any more, and nothing has been done. An archive opened
 * for editing or writing.
 */
tide_status tide_archive_merge_put(struct tide_archive *archive, int64_t source, tide_str series,
                                   const struct tide_archive_merge *merge, bool *ret_is_put,
                                   struct tide_error *err);

/**
 * Joins whatever fits into segments of `rows_target` rows, run by run. Free pages stay in the file.
 * `ret_merged`: how many segments have become part of another. An archive opened for editing.
 * Errors: those of the two; runs that were joined before stay so.
 */
tide_status tide_archive_compact(struct tide_archive *archive,
                                 const struct tide_archive_encoder *encoder, int64_t source,
                                 tide_str series, int64_t rows_target, int64_t *ret_merged,
                                 struct tide_error *err);
