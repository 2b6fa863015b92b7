/* When the live tails of an archive sink's tables are sealed. One sink thread uses it. */
#pragma once

#include "archive/seal_policy.h"
#include "sink/archive/archive_rows.h"

struct tide_archive_sealer {
    struct tide_archive_seal_policy policy;
    int64_t wait_until_us; /* sealing did not go through: not before then again; monotonic */
};

/** `segments` are the user's wishes; 0 stands for what is usual. */
void tide_archive_sealer_init(struct tide_archive_sealer *sealer,
                              const struct tide_sink_segments *segments);

/**
 * Seals what is due of the tables that were written to; with `is_all` all of every table.
 * Errors: what cannot pass by itself. What may is tried again later: its rows stay in the live
 * tail, and are held as well there.
 */
tide_status tide_archive_seal_tables(struct tide_archive_sealer *sealer,
                                     struct tide_archive_rows *rows, bool is_all,
                                     struct tide_error *err);
