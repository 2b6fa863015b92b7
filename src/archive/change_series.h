/*
 * A table's series as a whole: what it holds, and the state of the table as of a moment. All of one
 * call is of one moment of the archive; begin a snapshot around several calls.
 */
#pragma once

#include "archive/catalogue.h"
#include "archive/change_fold.h"
#include "archive/change_history.h"
#include "archive/change_scan.h"
#include "base/status.h"

/* What a series holds. */
struct tide_change_summary {
    int64_t rows; /* of copies, stubs too */
    int64_t changes;
    int64_t marks;    /* begin, resume and end of copies */
    int64_t first_ts; /* with rows of any kind */
    int64_t last_ts;
    size_t snapshots;
    size_t complete;
    bool has_state;                                 /* the table can be rebuilt, */
    int64_t state_from_us;                          /* from this time on */
    int64_t newest_state_us;                        /* when its newest complete copy ended */
    uint32_t incarnation;                           /* the newest there is */
    struct tide_change_place newest;                /* of changes and rows of copies */
    const struct tide_position_kind *position_kind; /* NULL: without rows, or not known */
};

/** Reads every row. The history (NULL: not wanted) is the caller's to free. */
tide_status tide_change_series_look(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    struct tide_change_summary *ret_summary,
                                    struct tide_change_history **ret_history,
                                    struct tide_error *err);

/**
 * The state of the table as of a moment, ready for tide_change_fold_next. `history` has seen all
 * rows and must stay.
 * Errors: of tide_change_fold_new (TIDE_INVALID: no copy was complete then) and of reading.
 */
tide_status tide_change_series_fold(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    const struct tide_change_history *history,
                                    const struct tide_change_moment *moment,
                                    struct tide_change_fold **ret_fold, struct tide_error *err);
