/*
 * What ingest says of itself to other threads: a picture that it draws when one is asked for.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "engine/copy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_ingest;

struct tide_report_sink {
    tide_str name;
    bool is_attached;
    bool is_seeded;
    bool is_detached;
    bool is_paused;
    int64_t unmoved_us; /* its lane is not empty, and nothing of it was acknowledged for so long; 0:
                           it goes on, or has nothing to do */
};

struct tide_report_copy {
    tide_str store;
    const tide_str *sinks;
    size_t sink_count;
    enum tide_copy_state state;
    char snapshot_id[TIDE_UUID_LEN + 1]; /* empty: not begun */
    uint32_t attempt;
    uint64_t rows; /* published, those of earlier runs included */
    tide_str failure;
};

/* Everything lives in the arena. */
struct tide_ingest_report {
    struct tide_arena arena;
    int64_t drawn_at_us; /* monotonic */
    tide_str position;   /* reached; JSON, as the two below */
    tide_str held;
    tide_str confirmed;
    uint64_t lag_bytes;
    int64_t lag_us;     /* age of the oldest change that is not held by every sink */
    int64_t unmoved_us; /* there is work, and nothing moved for so long; 0: it goes on */
    tide_str reason;    /* what it waits for; empty: nothing in particular */
    uint64_t sequence;  /* of the newest checkpoint */
    int64_t saved_ago_us;
    struct tide_report_sink *sinks;
    size_t sink_count;
    struct tide_report_copy *copies;
    size_t copy_count;
};

/* What a picture is for; it lives for the call, which must not call ingest. */
typedef void tide_report_use(void *context, const struct tide_ingest_report *report, bool is_new);

/**
 * Has a picture drawn and calls `use` with it; after `deadline_us` with the last one that there is,
 * which may be none (all zero). Any thread but ingest's.
 */
void tide_ingest_report(struct tide_ingest *ingest, int64_t deadline_us, tide_report_use *use,
                        void *context);

/** As that, once the thread of ingest has ended: the caller's draws it. */
void tide_ingest_report_ended(struct tide_ingest *ingest, tide_report_use *use, void *context);
