/*
 * What a running pipeline reports of itself, read from its JSON. Pure. Numbers with a fraction stay
 * the digits that came; what the report does not have is empty, or 0.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_status_sink {
    tide_str name;
    tide_str
        state; /* "starting", "running", "waiting", "failed", "paused", "detached", "ended", … */
    bool is_seeded;
    uint64_t lane_items;
    uint64_t lane_bytes;
    uint64_t rows;
    uint64_t stubs;
    uint64_t changes;
    uint64_t bytes;
    uint64_t dead_letters;
    uint64_t skipped;
    uint64_t max_record_bytes;
    uint64_t restarts;
    tide_str error;         /* the last one; empty: none */
    tide_str retry_seconds; /* until it is tried again */
};

struct tide_status_snapshot {
    tide_str store;
    const tide_str *sinks;
    size_t sink_count;
    tide_str state; /* "queued", "running", "ended", "done", "failed" */
    tide_str snapshot_id;
    uint64_t attempt;
    uint64_t rows;
    tide_str reason; /* of a failure */
};

struct tide_status_report {
    tide_str pipeline;
    tide_str source;
    tide_str state; /* "copying", "following", "stalled", "draining" */
    tide_str started_at;
    tide_str position; /* positions as the source writes them: JSON */
    tide_str held;
    tide_str confirmed;
    bool has_lag_bytes;
    uint64_t lag_bytes;
    tide_str lag_seconds;
    tide_str stalled_seconds;
    tide_str reason; /* of a stall */
    uint64_t changes;
    uint64_t rows;
    uint64_t dead_letters;
    uint64_t checkpoint_sequence;
    tide_str checkpoint_seconds_ago;
    bool has_memory;
    uint64_t memory_used;
    uint64_t memory_limit;
    struct tide_status_sink *sinks;
    size_t sink_count;
    struct tide_status_snapshot *snapshots;
    size_t snapshot_count;
};

/** What is read lives in `json` or in `arena`. Errors: TIDE_CORRUPT with the byte offset. */
tide_status tide_status_report_read(tide_str json, struct tide_arena *arena,
                                    struct tide_status_report *ret_report, struct tide_error *err);

/** Whether nobody need look: nothing stands still, every sink works or was paused, and no table's
 * newest copy has failed. */
bool tide_status_report_is_fine(const struct tide_status_report *report);
