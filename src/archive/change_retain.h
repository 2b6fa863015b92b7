/*
 * Forgetting rows of one table: a retention (retain.h) of its series alone, which keeps the columns
 * of the oldest row that stays.
 */
#pragma once

#include "archive/caller_rows.h"
#include "archive/catalogue.h"
#include "archive/retain.h"

struct tide_change_retention {
    struct tide_archive_retention retention; /* borrows from this struct, which must not move */
    tide_str series;
    struct tide_archive_caller_row *callers;
    size_t caller_count;
    struct tide_arena arena;
};

/** Prepares to forget what is before `keep_from_ts`. `ret_retention` is empty before, and to be
 * freed after any outcome; the series' name must stay. Any handle. */
tide_status tide_change_retention_init(struct tide_archive *archive,
                                       const struct tide_archive_series_info *series,
                                       int64_t keep_from_ts,
                                       struct tide_change_retention *ret_retention,
                                       struct tide_error *err);

/**
 * Forgets what is before `keep_from_ts`, bit by bit: each transaction is a whole one, and whoever
 * writes has its turn in between. An archive opened for editing, also beside a writer.
 */
tide_status tide_change_forget(struct tide_archive *archive,
                               const struct tide_archive_series_info *series, int64_t keep_from_ts,
                               struct tide_archive_retained *ret_retained, struct tide_error *err);

/** For TIDE_CLEANUP too. */
void tide_change_retention_done(struct tide_change_retention *retention);
