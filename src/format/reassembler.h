/*
 * Tells complete snapshots from truncated ones. Fed frames in any order and more than once, it
 * answers by snapshot_id whether everything that the snapshot's `end` counts was seen, and whether
 * the changes between its begin and end were. docs/envelope.md has the rules.
 *
 * Memory is about a bit a seq and attempt, and grows with what was seen, not with what frames
 * claim. Records are not kept: that a seq came twice is noted, and whether both were the same is
 * found out by feeding all frames again (see the recheck functions). Pure; one thread.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"
#include "format/frame.h"
#include "format/interval_set.h"
#include "format/place_order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_reassembler;

enum tide_snapshot_status {
    TIDE_SNAPSHOT_UNKNOWN,     /* no frame seen */
    TIDE_SNAPSHOT_OPEN,        /* no end yet */
    TIDE_SNAPSHOT_COMPLETE,    /* everything is there */
    TIDE_SNAPSHOT_TRUNCATED,   /* an end, and something is missing */
    TIDE_SNAPSHOT_CONFLICTING, /* frames contradict each other */
};

enum tide_snapshot_conflict {
    TIDE_CONFLICT_NONE,
    TIDE_CONFLICT_TWO_STORES,
    TIDE_CONFLICT_TWO_COUNTS,   /* two ends of one attempt; conflict_seq: the other count */
    TIDE_CONFLICT_TWO_STARTS,   /* two lists of starts of one attempt */
    TIDE_CONFLICT_TOTAL,        /* begin's total is not the row count; conflict_seq: the total */
    TIDE_CONFLICT_ROW_AND_STUB, /* of one seq, in one attempt */
    TIDE_CONFLICT_TWO_RECORDS,  /* of one seq, in one attempt */
    TIDE_CONFLICT_PAST_THE_END, /* a seq at or past the row count */
    TIDE_CONFLICT_BEFORE_START, /* a seq before the start of its own attempt */
};

#define TIDE_SNAPSHOT_RANGES_MAX 8

/* Text borrows from the reassembler until the snapshot is forgotten. */
struct tide_snapshot_report {
    enum tide_snapshot_status status;
    enum tide_snapshot_conflict conflict;
    uint64_t conflict_seq;
    tide_str snapshot_id;
    tide_str store;        /* escapes resolved */
    tide_str snapshot_at;  /* as written */
    tide_str completed_at; /* of the end; ptr NULL without */
    int64_t at_us;         /* snapshot_at; 0 when it cannot be read */
    uint64_t rows;         /* that count: not void, each once */
    uint64_t stubs;
    bool has_end;
    uint64_t expected;                                             /* the end's row count */
    uint64_t missing;                                              /* how many seqs */
    struct tide_interval missing_ranges[TIDE_SNAPSHOT_RANGES_MAX]; /* the first ones */
    size_t missing_range_count;
    uint64_t attempts;   /* seen or known of: 1 when it was never interrupted */
    uint64_t duplicates; /* seqs that came more than once and count */
    bool is_compared;    /* their records were compared */
    bool is_in_doubt;    /* see tide_reassembler_doubt */
    /* changes: only of a snapshot whose end says changes_to */
    bool has_changes;
    bool begin_is_lost; /* so nothing says which change came before it */
    bool changes_are_whole;
    struct tide_ordered_place changes_from;
    struct tide_ordered_place changes_to;
    struct tide_ordered_place covered; /* unless whole: a change is lost after this place, ... */
    struct tide_ordered_place hole_to; /* ... at the latest at this one */
    uint64_t changes_seen;             /* change frames of the store */
    bool is_emptied;                   /* no end, but a truncate after all of it stands for one */
    struct tide_ordered_place emptied_at;
    uint64_t last_mark;   /* what was fed with its latest frame */
    uint64_t received_ms; /* the latest _timestamp_received, 0 without */
};

/** An empty one. */
struct tide_reassembler *tide_reassembler_new(void);

/** NULL is fine. */
void tide_reassembler_free(struct tide_reassembler *reassembler);

/** Takes one frame in, which is not kept. `mark` is the caller's: see last_mark. */
void tide_reassembler_feed(struct tide_reassembler *reassembler, const struct tide_frame *frame,
                           uint64_t mark);

/**
 * Says that frames fed with `mark`, the latest one, may not be all that there were, or not true:
 * every snapshot whose latest frame has it is in doubt from now on. Returns how many these are.
 */
size_t tide_reassembler_doubt(struct tide_reassembler *reassembler, uint64_t mark);

/** How many snapshots are known, and the id of one of them, in order of their first frame. */
size_t tide_reassembler_count(const struct tide_reassembler *reassembler);
tide_str tide_reassembler_id(const struct tide_reassembler *reassembler, size_t index);

/** What is known of the snapshot; status UNKNOWN, and nothing else, when no frame was seen. */
struct tide_snapshot_report tide_reassembler_judge(struct tide_reassembler *reassembler,
                                                   tide_str snapshot_id);

/** Forgets the snapshot; false when it was not known. Its store's changes stay known. */
bool tide_reassembler_forget(struct tide_reassembler *reassembler, tide_str snapshot_id);

/**
 * Comparing what came twice: `while (tide_reassembler_recheck_next(r)) { recheck every frame }`
 * over the same frames as were fed. Each round compares up to 2^20 seqs by a 128-bit hash of their
 * record (of a stub: size and key), in at most 40 MiB. Afterwards reports have is_compared.
 */
bool tide_reassembler_recheck_next(struct tide_reassembler *reassembler);
void tide_reassembler_recheck(struct tide_reassembler *reassembler, const struct tide_frame *frame);
