/* A table of an archive as it was at a moment that a user names. */
#pragma once

#include "app/archive/archive_moment.h"
#include "archive/change_series.h"

struct tide_archive_state {
    struct tide_change_history *history;
    struct tide_change_fold *fold; /* its rows come next */
    /* Its columns; of an empty table those that it has by now. NULL: nothing tells them. */
    const struct tide_change_schema *schema;
    struct tide_arena arena;
    struct tide_change_schema newest;
};

/**
 * Rebuilds it. `ret_state` is empty before, and to be freed after any outcome.
 * Errors: TIDE_END there is no complete copy of that moment, `err` says from when on, or it is a
 * position that the archive has not come to, or its rows are matched by no key; TIDE_INVALID a
 * position of another kind; those of reading.
 */
tide_status tide_archive_state_fold(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    const struct tide_archive_moment *as_of,
                                    struct tide_archive_state *ret_state, struct tide_error *err);

/** Says on standard error when a time, or a place in PostgreSQL's log, is later than the newest
 * that the archive holds of a source: what was committed after that is not there. */
tide_status tide_archive_state_note_late(struct tide_archive *archive, int64_t source,
                                         const struct tide_archive_moment *as_of,
                                         struct tide_error *err);

/** For TIDE_CLEANUP. */
void tide_archive_state_done(struct tide_archive_state *state);

/** Says on standard error what of the state is in doubt; `stale` rows were too long. True when
 * nothing is. Its rows have all been taken. */
bool tide_archive_state_warn(struct tide_archive_state *state,
                             const struct tide_archive_series_info *series, uint64_t stale);
