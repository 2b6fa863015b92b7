/* What a reassembler keeps. Private to its three files: feeding, judging, rechecking. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "format/change_chain.h"
#include "format/interval_set.h"
#include "format/reassembler.h"

struct tide_snapshot_attempt {
    uint32_t number;
    struct tide_interval_set seen;      /* rows and stubs */
    struct tide_interval_set stubs;     /* of them */
    struct tide_interval_set again;     /* came more than once */
    struct tide_interval_set both;      /* came as row and as stub */
    struct tide_interval_set different; /* came with different records */
    /* its part of the table of a round of comparing */
    uint64_t recheck_round;
    size_t recheck_first;
    size_t recheck_count;
};

/* The end of the highest attempt that has one. */
struct tide_snapshot_end {
    bool is_given;
    uint32_t attempt;
    uint64_t row_count;
    bool has_other_count;
    uint64_t other_count;
    struct tide_ordered_place changes_to;
    bool has_changes;
    char *completed_at;
};

/* The begin or resume that says where the changes start: the first of the newest incarnation. */
struct tide_snapshot_opening {
    bool is_given;
    uint32_t attempt;
    struct tide_ordered_place changes_from;
};

struct tide_snapshot {
    tide_str id;
    tide_str store;
    tide_str snapshot_at;
    tide_str other_store; /* ptr NULL: every frame was of `store` */
    int64_t at_us;
    uint32_t incarnation;                    /* the highest seen */
    uint32_t attempt_high;                   /* the highest seen */
    struct tide_snapshot_attempt **attempts; /* ascending */
    size_t attempt_count;
    size_t attempt_cap;
    struct tide_snapshot_attempt *latest; /* of the latest row */
    uint64_t *starts;                     /* of attempts 1..starts_count; NULL when 0 */
    uint32_t starts_count;
    bool starts_differ;
    bool has_total;
    uint64_t total_min; /* of all begins and resumes */
    uint64_t total_max;
    bool begin_was_seen;
    struct tide_snapshot_end end;
    struct tide_snapshot_opening opening;
    struct tide_ordered_place latest_place; /* of its rows and openings; NONE without */
    struct tide_buf latest_position;        /* that it was read from; of a row */
    uint32_t latest_incarnation;
    bool is_unordered; /* two of these places could not be compared */
    uint64_t last_mark;
    uint64_t received_ms;
    bool is_compared;
    bool is_in_doubt;
};

struct tide_store_changes {
    tide_str store;
    struct tide_change_chain chain;
    bool has_truncate;
    struct tide_ordered_place truncate; /* the last one seen */
};

struct tide_recheck; /* a round of comparing */

struct tide_reassembler {
    struct tide_map by_id;    /* to struct tide_snapshot */
    struct tide_map by_store; /* to struct tide_store_changes */
    struct tide_snapshot **snapshots;
    size_t count;
    size_t cap;
    struct tide_snapshot *latest;
    struct tide_store_changes *latest_changes;
    struct tide_arena scratch;
    struct tide_recheck *recheck;
    uint64_t recheck_round; /* never repeats */
};

/* Seqs from `first` on, below `bound`, are of this attempt; a bound of UINT64_MAX has no end. */
struct tide_snapshot_segment {
    uint32_t attempt;
    const struct tide_snapshot_attempt *seen; /* NULL: no row of it came */
    uint64_t first;
    uint64_t bound;
    bool is_guess; /* its start is not known: the lowest seq that came */
};

/** The attempt's entry, or NULL. */
struct tide_snapshot_attempt *tide_snapshot_find_attempt(const struct tide_snapshot *snapshot,
                                                         uint32_t number);

/**
 * Which attempt each seq belongs to: segments that follow on each other from 0 on, ascending. To be
 * freed by the caller.
 */
struct tide_snapshot_segment *tide_snapshot_segments(const struct tide_snapshot *snapshot,
                                                     size_t *ret_count);

/** Frees a round of comparing; NULL is fine. */
void tide_recheck_free(struct tide_recheck *recheck);
