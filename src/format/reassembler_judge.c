/* Judging: what the frames of a snapshot add up to. */
#include "base/alloc.h"
#include "format/reassembler.h"
#include "format/reassembler_state.h"

#include <stdlib.h>

/* The start of an attempt as far as known; false: nothing tells, and no row of it came. */
static bool start_of(const struct tide_snapshot *snapshot, uint32_t number,
                     const struct tide_snapshot_attempt *seen, uint64_t *ret_start)
{
    if (number == 0) {
        *ret_start = 0;
    } else if (number <= snapshot->starts_count) {
        *ret_start = snapshot->starts[number - 1];
    } else if (seen != NULL) {
        *ret_start = seen->seen.min;
    } else {
        return false;
    }
    return true;
}

/*
 * A seq belongs to the highest attempt that starts at or before it. So from the highest attempt
 * down each takes what lies below the starts of those above it, and attempt 0, which starts at 0,
 * the rest.
 */
struct tide_snapshot_segment *tide_snapshot_segments(const struct tide_snapshot *snapshot,
                                                     size_t *ret_count)
{
    uint32_t high = snapshot->attempt_high;
    struct tide_snapshot_segment *segments = tide_alloc((size_t)high + 1, sizeof(*segments));
    size_t used = 0;
    uint64_t bound = UINT64_MAX;
    for (uint32_t i = 0; i <= high; i++) {
        uint32_t number = high - i;
        const struct tide_snapshot_attempt *seen = tide_snapshot_find_attempt(snapshot, number);
        uint64_t start = 0;
        if (!start_of(snapshot, number, seen, &start) || start >= bound) {
            continue;
        }
        segments[used++] = (struct tide_snapshot_segment){number, seen, start, bound,
                                                          number > snapshot->starts_count};
        bound = start;
    }
    for (size_t i = 0; i < used / 2; i++) {
        struct tide_snapshot_segment swap = segments[i];
        segments[i] = segments[used - 1 - i];
        segments[used - 1 - i] = swap;
    }
    *ret_count = used;
    return segments;
}

/* Numbers of the set from `first` on, below `bound`; UINT64_MAX is no bound. */
static uint64_t count_within(const struct tide_interval_set *set, uint64_t first, uint64_t bound)
{
    if (set->count == 0 || bound <= first) {
        return 0;
    }
    uint64_t below = bound == UINT64_MAX ? set->count : tide_interval_set_count_below(set, bound);
    return first == 0 ? below : below - tide_interval_set_count_below(set, first);
}

static void conflict(struct tide_snapshot_report *report, enum tide_snapshot_conflict what,
                     uint64_t seq)
{
    if (report->conflict == TIDE_CONFLICT_NONE) {
        report->conflict = what;
        report->conflict_seq = seq;
    }
}

/* A conflict over a seq, when the set has one within the segment. */
static void conflict_within(struct tide_snapshot_report *report, enum tide_snapshot_conflict what,
                            const struct tide_interval_set *set, uint64_t first, uint64_t bound)
{
    struct tide_interval range;
    if (set->count == 0 || report->conflict != TIDE_CONFLICT_NONE) {
        return;
    }
    if (tide_interval_set_present(set, first, bound, &range, 1) == 1) {
        conflict(report, what, range.first);
    } else if (bound == UINT64_MAX && set->max == UINT64_MAX) {
        conflict(report, what, UINT64_MAX);
    }
}

static void add_missing_range(struct tide_snapshot_report *report, struct tide_interval range)
{
    size_t count = report->missing_range_count;
    if (count > 0 && report->missing_ranges[count - 1].last + 1 == range.first) {
        report->missing_ranges[count - 1].last = range.last;
    } else if (count < TIDE_SNAPSHOT_RANGES_MAX) {
        report->missing_ranges[count] = range;
        report->missing_range_count++;
    }
}

static void judge_missing(struct tide_snapshot_report *report,
                          const struct tide_snapshot_segment *segment)
{
    static const struct tide_interval_set nothing = {0};
    const struct tide_interval_set *set = segment->seen != NULL ? &segment->seen->seen : &nothing;
    uint64_t bound = segment->bound < report->expected ? segment->bound : report->expected;
    if (bound <= segment->first) {
        return;
    }
    uint64_t span = bound - segment->first;
    uint64_t seen = tide_interval_set_count_below(set, bound) -
                    tide_interval_set_count_below(set, segment->first);
    if (seen == span) {
        return;
    }
    report->missing += span - seen;
    struct tide_interval ranges[TIDE_SNAPSHOT_RANGES_MAX];
    size_t count =
        tide_interval_set_missing(set, segment->first, bound, ranges, TIDE_SNAPSHOT_RANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        add_missing_range(report, ranges[i]);
    }
}

static void judge_segment(struct tide_snapshot_report *report,
                          const struct tide_snapshot_segment *segment)
{
    const struct tide_snapshot_attempt *seen = segment->seen;
    if (report->has_end) {
        judge_missing(report, segment);
    }
    if (seen == NULL) {
        return;
    }
    uint64_t first = segment->first;
    uint64_t bound = segment->bound;
    uint64_t stubs = count_within(&seen->stubs, first, bound);
    report->stubs += stubs;
    report->rows += count_within(&seen->seen, first, bound) - stubs;
    report->duplicates += count_within(&seen->again, first, bound);
    conflict_within(report, TIDE_CONFLICT_ROW_AND_STUB, &seen->both, first, bound);
    conflict_within(report, TIDE_CONFLICT_TWO_RECORDS, &seen->different, first, bound);
    if (report->has_end && bound >= report->expected) {
        conflict_within(report, TIDE_CONFLICT_PAST_THE_END, &seen->seen,
                        first > report->expected ? first : report->expected, bound);
    }
    if (seen->seen.count > 0 && seen->seen.min < first && !segment->is_guess) {
        conflict(report, TIDE_CONFLICT_BEFORE_START, seen->seen.min);
    }
}

static void judge_seqs(struct tide_snapshot_report *report, const struct tide_snapshot *snapshot)
{
    size_t count = 0;
    struct tide_snapshot_segment *segments = tide_snapshot_segments(snapshot, &count);
    for (size_t i = 0; i < count; i++) {
        judge_segment(report, &segments[i]);
    }
    free(segments);
}

/* An end counts when no frame of a higher attempt was seen. */
static void judge_end(struct tide_snapshot_report *report, const struct tide_snapshot *snapshot)
{
    const struct tide_snapshot_end *end = &snapshot->end;
    report->has_end = end->is_given && end->attempt == snapshot->attempt_high;
    if (snapshot->starts_differ && snapshot->starts_count == snapshot->attempt_high) {
        conflict(report, TIDE_CONFLICT_TWO_STARTS, 0);
    }
    if (!report->has_end) {
        return;
    }
    report->expected = end->row_count;
    if (end->completed_at != NULL) {
        report->completed_at = tide_str_from(end->completed_at);
    }
    if (end->has_other_count) {
        conflict(report, TIDE_CONFLICT_TWO_COUNTS, end->other_count);
    }
    if (snapshot->has_total &&
        (snapshot->total_min != end->row_count || snapshot->total_max != end->row_count)) {
        conflict(report, TIDE_CONFLICT_TOTAL,
                 snapshot->total_min != end->row_count ? snapshot->total_min : snapshot->total_max);
    }
}

/* The first attempt of which something counts: what came before one that starts at 0 is void. */
static uint32_t first_counting_attempt(const struct tide_snapshot *snapshot)
{
    for (uint32_t attempt = snapshot->starts_count; attempt > 0; attempt--) {
        if (snapshot->starts[attempt - 1] == 0) {
            return attempt;
        }
    }
    return 0;
}

/*
 * A truncate empties the table: what is in it later, changes after it bring. When it comes after
 * all that was seen of a snapshot without an end, as when the table was dropped, none will come.
 * How the snapshot began must be known, and at which places: else rows may have come after it.
 */
static void judge_truncate(struct tide_snapshot_report *report,
                           const struct tide_snapshot *snapshot,
                           const struct tide_store_changes *changes)
{
    if (report->has_end || changes == NULL || !changes->has_truncate || snapshot->is_unordered ||
        !snapshot->opening.is_given) {
        return;
    }
    report->is_emptied =
        tide_ordered_place_compare(&changes->truncate, &snapshot->latest_place) == TIDE_PLACE_AFTER;
    report->emptied_at = changes->truncate;
}

/*
 * Changes are proven from the opening of the first attempt that counts, or an earlier one, on. With
 * only a later resume they may still be: by changes that lead on from the first of all, which null
 * stands for. A resume says what came before it, but not what came since the begin.
 */
static void judge_changes(struct tide_snapshot_report *report, struct tide_reassembler *reassembler,
                          const struct tide_snapshot *snapshot)
{
    union tide_map_value *value = tide_map_get(&reassembler->by_store, snapshot->store);
    struct tide_change_chain nothing = {0};
    struct tide_store_changes *changes = value != NULL ? value->ptr : NULL;
    struct tide_change_chain *chain = changes != NULL ? &changes->chain : &nothing;
    report->changes_seen = chain->seen;
    judge_truncate(report, snapshot, changes);
    report->has_changes = report->has_end && snapshot->end.has_changes;
    if (!report->has_changes) {
        return;
    }
    report->begin_is_lost =
        !snapshot->begin_was_seen && (!snapshot->opening.is_given ||
                                      snapshot->opening.attempt > first_counting_attempt(snapshot));
    report->changes_from = snapshot->opening.changes_from;
    if (report->begin_is_lost) {
        report->changes_from = (struct tide_ordered_place){0};
    }
    report->changes_from.incarnation = snapshot->incarnation;
    report->changes_to = snapshot->end.changes_to;
    report->changes_to.incarnation = snapshot->incarnation;
    struct tide_change_proof proof =
        tide_change_chain_prove(chain, &report->changes_from, &report->changes_to);
    report->changes_are_whole = proof.is_whole;
    report->covered = proof.covered;
    report->hole_to = proof.hole_to;
}

static enum tide_snapshot_status status_of(const struct tide_snapshot_report *report)
{
    if (report->conflict != TIDE_CONFLICT_NONE) {
        return TIDE_SNAPSHOT_CONFLICTING;
    }
    if (!report->has_end) {
        return report->is_emptied ? TIDE_SNAPSHOT_COMPLETE : TIDE_SNAPSHOT_OPEN;
    }
    bool is_whole = report->missing == 0 && (!report->has_changes || report->changes_are_whole);
    return is_whole ? TIDE_SNAPSHOT_COMPLETE : TIDE_SNAPSHOT_TRUNCATED;
}

struct tide_snapshot_report tide_reassembler_judge(struct tide_reassembler *reassembler,
                                                   tide_str snapshot_id)
{
    struct tide_snapshot_report report = {0};
    union tide_map_value *value = tide_map_get(&reassembler->by_id, snapshot_id);
    if (value == NULL) {
        return report;
    }
    const struct tide_snapshot *snapshot = value->ptr;
    report.snapshot_id = snapshot->id;
    report.store = snapshot->store;
    report.snapshot_at = snapshot->snapshot_at;
    report.at_us = snapshot->at_us;
    report.attempts = (uint64_t)snapshot->attempt_high + 1;
    report.last_mark = snapshot->last_mark;
    report.is_in_doubt = snapshot->is_in_doubt;
    report.received_ms = snapshot->received_ms;
    if (snapshot->other_store.ptr != NULL) {
        conflict(&report, TIDE_CONFLICT_TWO_STORES, 0);
    }
    judge_end(&report, snapshot);
    judge_seqs(&report, snapshot);
    judge_changes(&report, reassembler, snapshot);
    report.is_compared = report.duplicates == 0 || snapshot->is_compared;
    report.status = status_of(&report);
    return report;
}
