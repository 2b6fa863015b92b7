#include "archive/change_history.h"

#include "archive/change_position.h"
#include "base/alloc.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/map.h"
#include "format/interval_set.h"

#include <inttypes.h>
#include <stdlib.h>

/* The seqs of one attempt. */
struct attempt {
    uint32_t number;
    struct tide_interval_set seqs;
};

struct entry {
    struct tide_buf starts; /* uint64_t */
    struct attempt *attempts;
    size_t attempt_count;
};

struct tide_change_history {
    const struct tide_position_kind *kind;
    struct tide_change_snapshot *snapshots;
    struct entry *entries; /* one a snapshot */
    size_t count;
    size_t cap;
    size_t newest;        /* that a row was of */
    uint32_t incarnation; /* the newest */
    size_t *unplaced;     /* numbers of those that wait for a change, which gives them a place */
    size_t unplaced_count;
    struct tide_map by_id; /* their numbers */
};

int tide_change_place_compare(struct tide_change_place a, struct tide_change_place b)
{
    if (a.incarnation != b.incarnation) {
        return a.incarnation < b.incarnation ? -1 : 1;
    }
    return tide_place_compare(a.place, b.place);
}

struct tide_change_history *tide_change_history_new(const struct tide_position_kind *kind)
{
    struct tide_change_history *history = tide_alloc(1, sizeof(*history));
    history->kind = kind;
    return history;
}

static void entry_done(struct entry *entry)
{
    for (size_t i = 0; i < entry->attempt_count; i++) {
        tide_interval_set_done(&entry->attempts[i].seqs);
    }
    free(entry->attempts);
    tide_buf_done(&entry->starts);
}

void tide_change_history_free(struct tide_change_history *history)
{
    if (history == NULL) {
        return;
    }
    for (size_t i = 0; i < history->count; i++) {
        entry_done(&history->entries[i]);
    }
    free(history->unplaced);
    free(history->snapshots);
    free(history->entries);
    tide_map_done(&history->by_id);
    free(history);
}

void tide_change_history_free_ptr(struct tide_change_history **history)
{
    tide_change_history_free(*history);
    *history = NULL;
}

static void grow(struct tide_change_history *history)
{
    if (history->count == history->cap) {
        history->cap = history->cap == 0 ? 8 : history->cap * 2;
        history->snapshots =
            tide_realloc(history->snapshots, history->cap, sizeof(*history->snapshots));
        history->entries = tide_realloc(history->entries, history->cap, sizeof(*history->entries));
    }
}

static size_t place_of(struct tide_change_history *history, const char *id, int64_t ts)
{
    bool is_new = false;
    if (history->count > 0 && strcmp(history->snapshots[history->newest].id, id) == 0) {
        return history->newest;
    }
    union tide_map_value *number = tide_map_put(&history->by_id, tide_str_from(id), &is_new);
    if (is_new) {
        grow(history);
        number->number = history->count;
        history->entries[history->count] = (struct entry){0};
        history->snapshots[history->count] = (struct tide_change_snapshot){.begin_ts = ts};
        memcpy(history->snapshots[history->count].id, id, TIDE_UUID_LEN + 1);
        history->count++;
    }
    history->newest = (size_t)number->number;
    return history->newest;
}

static struct tide_interval_set *seqs_of(struct entry *entry, uint32_t attempt)
{
    for (size_t i = entry->attempt_count; i > 0; i--) {
        if (entry->attempts[i - 1].number == attempt) {
            return &entry->attempts[i - 1].seqs;
        }
    }
    entry->attempts =
        tide_realloc(entry->attempts, entry->attempt_count + 1, sizeof(*entry->attempts));
    entry->attempts[entry->attempt_count] = (struct attempt){.number = attempt};
    return &entry->attempts[entry->attempt_count++].seqs;
}

static const uint64_t *starts_of(const struct entry *entry)
{
    return (const uint64_t *)(const void *)entry->starts.ptr;
}

static const struct tide_interval_set *find_seqs(const struct entry *entry, uint32_t attempt)
{
    static const struct tide_interval_set none;
    for (size_t i = 0; i < entry->attempt_count; i++) {
        if (entry->attempts[i].number == attempt) {
            return &entry->attempts[i].seqs;
        }
    }
    return &none;
}

/* Whether each seq from `start` to before `end` came in that attempt. */
static bool has_seqs(const struct entry *entry, uint32_t attempt, uint64_t start, uint64_t end)
{
    const struct tide_interval_set *seqs = find_seqs(entry, attempt);
    return tide_interval_set_count_below(seqs, end) - tide_interval_set_count_below(seqs, start) ==
           end - start;
}

/* The rows of each attempt count from its start to where a later one starts. */
static bool is_complete(const struct tide_change_snapshot *snapshot, const struct entry *entry)
{
    const uint64_t *starts = starts_of(entry);
    uint64_t end = snapshot->row_count;
    if (!snapshot->has_begin || !snapshot->has_end) {
        return false;
    }
    for (uint32_t attempt = snapshot->attempt + 1; attempt > 0 && end > 0; attempt--) {
        uint64_t start = attempt == 1 ? 0 : starts[attempt - 2];
        if (start < end && !has_seqs(entry, attempt - 1, start, end)) {
            return false;
        }
        end = start < end ? start : end;
    }
    return true;
}

static bool has_earlier(const struct entry *entry, uint32_t attempt)
{
    for (size_t i = 0; i < entry->attempt_count; i++) {
        if (entry->attempts[i].number < attempt && entry->attempts[i].seqs.count > 0) {
            return true;
        }
    }
    return false;
}

static void add_lack(struct tide_change_lack *lack, const struct tide_interval_set *seqs,
                     uint64_t start, uint64_t end)
{
    struct tide_interval missing = {0};
    if (start < end && tide_interval_set_missing(seqs, start, end, &missing, 1) > 0) {
        lack->rows += (end - start) - (tide_interval_set_count_below(seqs, end) -
                                       tide_interval_set_count_below(seqs, start));
        lack->first_seq = missing.first;
    }
}

/* From the newest attempt to the first, each up to where a later one starts. */
struct tide_change_lack tide_change_history_lack(const struct tide_change_history *history,
                                                 size_t number, uint64_t next_seq)
{
    const struct tide_change_snapshot *snapshot = &history->snapshots[number];
    const struct entry *entry = &history->entries[number];
    struct tide_change_lack lack = {0};
    bool is_open = !snapshot->has_end;
    uint64_t end = snapshot->row_count;
    uint32_t count = snapshot->starts == NULL ? 0 : snapshot->attempt;
    if (snapshot->starts == NULL && snapshot->attempt > 0) {
        return lack; /* nothing tells where its attempts start */
    }
    for (uint32_t attempt = count + 1; attempt > 0; attempt--) {
        const struct tide_interval_set *seqs = find_seqs(entry, attempt - 1);
        uint64_t start = attempt == 1 ? 0 : snapshot->starts[attempt - 2];
        uint64_t top = !is_open ? end : seqs->count > 0 ? seqs->max + 1 : start;
        top = is_open && next_seq > top ? next_seq : top;
        bool may_be_forgotten = !snapshot->has_begin && !has_earlier(entry, attempt - 1);
        uint64_t from = !may_be_forgotten ? start : seqs->count > 0 ? seqs->min : top;
        add_lack(&lack, seqs, from > start ? from : start, top);
        end = start < top ? start : top;
        is_open = false;
    }
    return lack;
}

/* A resume from the first row serves as a begin: a copy may be interrupted before it has sent any.
 */
static void take_opening(struct tide_change_snapshot *snapshot, const struct tide_change_row *row)
{
    bool is_begin =
        row->kind == TIDE_ROW_BEGIN || (row->attempt > 0 && row->starts[row->attempt - 1] == 0);
    if (!snapshot->has_begin) {
        snapshot->snapshot_us = row->commit_us;
        snapshot->changes_from = (struct tide_change_place){row->incarnation, row->place};
    }
    snapshot->has_begin = snapshot->has_begin || is_begin;
}

static void take_starts(struct tide_change_snapshot *snapshot, struct entry *entry,
                        const struct tide_change_row *row)
{
    if (row->attempt == snapshot->attempt) {
        tide_buf_reset(&entry->starts);
        tide_buf_append(&entry->starts, row->starts, row->attempt * sizeof(*row->starts));
        snapshot->starts = starts_of(entry);
    }
}

static void take_row(struct tide_change_snapshot *snapshot, struct entry *entry,
                     const struct tide_change_row *row)
{
    struct tide_change_place place = {row->incarnation, row->place};
    (void)tide_interval_set_insert(seqs_of(entry, row->attempt), row->seq);
    if (tide_change_place_compare(place, snapshot->newest_row) > 0) {
        snapshot->newest_row = place;
    }
    snapshot->has_stub = snapshot->has_stub || row->kind == TIDE_ROW_STUB;
    if (row->kind == TIDE_ROW_STUB && row->key == NULL) {
        snapshot->has_keyless_stub = true;
    }
}

static void take_end(struct tide_change_snapshot *snapshot, int64_t ts,
                     const struct tide_change_row *row)
{
    if (row->attempt == snapshot->attempt && !snapshot->has_end) {
        snapshot->has_end = true;
        snapshot->end_ts = ts;
        snapshot->completed_us = row->commit_us;
        snapshot->row_count = row->seq;
        snapshot->changes_to = (struct tide_change_place){row->incarnation, row->place};
    }
}

/* Whether its rows or the changes around it say where in the log it stands. */
static bool has_place(const struct tide_change_snapshot *snapshot)
{
    return snapshot->newest_row.place.known || snapshot->changes_from.place.known ||
           snapshot->changes_to.place.known;
}

/* A copy of an empty table has ended: what comes behind it is later than what it saw. */
static void await_change(struct tide_change_history *history, size_t number)
{
    history->unplaced =
        tide_realloc(history->unplaced, history->unplaced_count + 1, sizeof(*history->unplaced));
    history->unplaced[history->unplaced_count++] = number;
}

static void take_change(struct tide_change_history *history, const struct tide_change_row *row)
{
    for (; history->unplaced_count > 0; history->unplaced_count--) {
        struct tide_change_snapshot *snapshot =
            &history->snapshots[history->unplaced[history->unplaced_count - 1]];
        if (row->incarnation == snapshot->changes_from.incarnation) {
            snapshot->first_change = (struct tide_change_place){row->incarnation, row->place};
        }
    }
}

void tide_change_history_add(struct tide_change_history *history, int64_t ts,
                             const struct tide_change_row *row)
{
    if (row->incarnation > history->incarnation) {
        history->incarnation = row->incarnation;
    }
    if (row->kind == TIDE_ROW_CHANGE) {
        take_change(history, row);
        return;
    }
    size_t at = place_of(history, row->snapshot_id, ts);
    struct tide_change_snapshot *snapshot = &history->snapshots[at];
    struct entry *entry = &history->entries[at];
    if (row->attempt > snapshot->attempt) {
        snapshot->attempt = row->attempt;
        snapshot->starts = NULL;
        snapshot->has_end = snapshot->is_complete = false;
    }
    if (row->kind == TIDE_ROW_BEGIN || row->kind == TIDE_ROW_RESUME) {
        take_opening(snapshot, row);
    } else if (row->kind != TIDE_ROW_END) {
        take_row(snapshot, entry, row);
    }
    if (row->kind == TIDE_ROW_RESUME || row->kind == TIDE_ROW_END) {
        take_starts(snapshot, entry, row);
    }
    if (row->kind == TIDE_ROW_END) {
        take_end(snapshot, ts, row);
        snapshot->is_complete = is_complete(snapshot, entry);
        if (snapshot->has_end && !has_place(snapshot)) {
            await_change(history, at);
        }
    }
}

const struct tide_change_snapshot *
tide_change_history_snapshots(const struct tide_change_history *history, size_t *ret_count)
{
    *ret_count = history->count;
    return history->snapshots;
}

void tide_change_history_name_place(const struct tide_change_history *history,
                                    struct tide_change_place place, struct tide_buf *buf)
{
    if (place.incarnation != history->incarnation) {
        tide_buf_printf(buf, "%" PRIu32 ":", place.incarnation);
    }
    tide_change_position_show(buf, history->kind, place.place.position);
}

bool tide_change_snapshot_voids(const struct tide_change_snapshot *snapshot,
                                const struct tide_change_row *row)
{
    if (snapshot->starts == NULL) {
        return false;
    }
    for (uint32_t later = row->attempt; later < snapshot->attempt; later++) {
        if (snapshot->starts[later] <= row->seq) {
            return true;
        }
    }
    return false;
}

/* Changes to that have no place had not begun: the rows alone say how late it was; without rows, of
 * an empty table, that it was before any change. */
bool tide_change_snapshot_is_by(const struct tide_change_snapshot *snapshot,
                                const struct tide_change_moment *moment)
{
    if (!snapshot->is_complete) {
        return false;
    }
    if (!moment->is_position) {
        return snapshot->completed_us <= moment->utc_us;
    }
    struct tide_change_place last = moment->place;
    last.place.known = true;
    last.place.index = TIDE_INDEX_AFTER_ALL;
    if (!has_place(snapshot)) {
        return snapshot->first_change.place.known &&
               tide_change_place_compare(snapshot->first_change, last) <= 0;
    }
    return tide_change_place_compare(snapshot->newest_row, last) <= 0 &&
           tide_change_place_compare(snapshot->changes_to, last) <= 0;
}

/* None is complete: what the newest that has ended lacks, else that one is still to end. */
static tide_status fail_incomplete(const struct tide_change_history *history,
                                   struct tide_error *err)
{
    for (size_t i = history->count; i > 0; i--) {
        const struct tide_change_snapshot *snapshot = &history->snapshots[i - 1];
        struct tide_change_lack lack = tide_change_history_lack(history, i - 1, 0);
        if (lack.rows > 0) {
            return tide_fail(err, TIDE_INVALID,
                             "rows of copy %s are missing in the archive (%" PRIu64 ", from "
                             "seq %" PRIu64 " on), and no other copy is complete, so no state of "
                             "the table can be rebuilt: copy it anew (tidemark backfill)",
                             snapshot->id, lack.rows, lack.first_seq);
        }
        if (snapshot->has_end && !snapshot->has_begin) {
            return tide_fail(err, TIDE_INVALID,
                             "the begin of copy %s is not in the archive, and no other copy is "
                             "complete, so no state of the table can be rebuilt: copy it anew "
                             "(tidemark backfill)",
                             snapshot->id);
        }
    }
    return tide_fail(err, TIDE_INVALID,
                     "no copy of the table is complete in the archive yet, so no state of it "
                     "can be rebuilt: wait for the end of one");
}

static tide_status fail_base(const struct tide_change_history *history,
                             const struct tide_change_snapshot *first,
                             const struct tide_change_moment *moment, struct tide_error *err)
{
    if (first == NULL) {
        return fail_incomplete(history, err);
    }
    struct tide_change_place from = has_place(first) ? first->newest_row : first->first_change;
    if (!moment->is_position || (!has_place(first) && !from.place.known)) {
        char text[TIDE_RFC3339_MS_LEN + 1];
        tide_rfc3339_ms(first->completed_us, text); /* given back, all of the millisecond */
        return tide_fail(err, TIDE_INVALID,
                         "the first complete copy of the table ended later: its state can be "
                         "rebuilt as of %s and after",
                         text);
    }
    if (tide_change_place_compare(first->changes_to, from) > 0) {
        from = first->changes_to;
    }
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    tide_change_history_name_place(history, from, &text);
    return tide_fail(err, TIDE_INVALID,
                     "the first complete copy of the table ended later: its state can be rebuilt "
                     "as of position %.*s and after",
                     TIDE_STR_ARG(tide_buf_str(&text)));
}

tide_status tide_change_history_base(const struct tide_change_history *history,
                                     const struct tide_change_moment *moment,
                                     const struct tide_change_snapshot **ret_snapshot,
                                     struct tide_error *err)
{
    const struct tide_change_snapshot *base = NULL;
    const struct tide_change_snapshot *first = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct tide_change_snapshot *snapshot = &history->snapshots[i];
        if (snapshot->is_complete && (first == NULL || snapshot->end_ts < first->end_ts)) {
            first = snapshot;
        }
        if (tide_change_snapshot_is_by(snapshot, moment) &&
            (base == NULL || snapshot->end_ts > base->end_ts)) {
            base = snapshot;
        }
    }
    if (base == NULL) {
        return fail_base(history, first, moment, err);
    }
    *ret_snapshot = base;
    return TIDE_OK;
}

const struct tide_change_snapshot *
tide_change_history_floor(const struct tide_change_history *history, int64_t cutoff_ts)
{
    const struct tide_change_snapshot *newest = NULL;
    for (size_t i = 0; i < history->count; i++) {
        const struct tide_change_snapshot *snapshot = &history->snapshots[i];
        if (snapshot->is_complete && snapshot->end_ts < cutoff_ts &&
            (newest == NULL || snapshot->end_ts > newest->end_ts)) {
            newest = snapshot;
        }
    }
    return newest;
}
