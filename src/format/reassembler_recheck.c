/*
 * Comparing what came twice. A round takes the next seqs that came more than once, up to a limit,
 * as a sorted table; while all frames go by again, the first record of each leaves its hash there
 * and every further one is compared with it.
 */
#include "base/alloc.h"
#include "format/reassembler.h"
#include "format/reassembler_state.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define RECHECK_SEQS_MAX ((size_t)1 << 20)
#define RANGES_AT_ONCE   256

struct twice {
    uint64_t seq;
    bool has_hash;
    XXH128_hash_t hash;
};

struct tide_recheck {
    struct twice *table;
    size_t count;
    size_t cap;
    /* where the next round starts */
    size_t next_snapshot;
    size_t next_attempt;
    uint64_t next_seq;
};

void tide_recheck_free(struct tide_recheck *recheck)
{
    if (recheck != NULL) {
        free(recheck->table);
        free(recheck);
    }
}

static void add_seqs(struct tide_recheck *recheck, struct tide_interval range)
{
    for (uint64_t seq = range.first;; seq++) {
        recheck->table[recheck->count++] = (struct twice){.seq = seq};
        recheck->next_seq = seq + 1;
        if (seq == range.last || recheck->count == recheck->cap) {
            return;
        }
    }
}

/* The attempt's seqs from next_seq on; false when the table is full before they are all in. */
static bool add_attempt(struct tide_recheck *recheck, const struct tide_snapshot_attempt *attempt)
{
    struct tide_interval ranges[RANGES_AT_ONCE];
    for (;;) {
        size_t count = tide_interval_set_present(&attempt->again, recheck->next_seq, UINT64_MAX,
                                                 ranges, RANGES_AT_ONCE);
        for (size_t i = 0; i < count; i++) {
            add_seqs(recheck, ranges[i]);
            if (recheck->count == recheck->cap) {
                return false;
            }
        }
        if (count < RANGES_AT_ONCE) {
            return true;
        }
    }
}

static bool add_snapshot(struct tide_recheck *recheck, const struct tide_snapshot *snapshot,
                         uint64_t round)
{
    while (recheck->next_attempt < snapshot->attempt_count) {
        struct tide_snapshot_attempt *attempt = snapshot->attempts[recheck->next_attempt];
        attempt->recheck_round = round;
        attempt->recheck_first = recheck->count;
        bool is_done = attempt->again.count == 0 || add_attempt(recheck, attempt);
        attempt->recheck_count = recheck->count - attempt->recheck_first;
        if (!is_done) {
            return false;
        }
        recheck->next_attempt++;
        recheck->next_seq = 0;
    }
    return true;
}

static void mark_compared(struct tide_reassembler *reassembler)
{
    for (size_t i = 0; i < reassembler->count; i++) {
        reassembler->snapshots[i]->is_compared = true;
    }
}

/* With room for all that came twice, up to the limit, and one more so that it is never just full.
 */
static struct tide_recheck *new_recheck(const struct tide_reassembler *reassembler)
{
    uint64_t count = 1;
    for (size_t i = 0; i < reassembler->count; i++) {
        const struct tide_snapshot *snapshot = reassembler->snapshots[i];
        for (size_t k = 0; k < snapshot->attempt_count; k++) {
            count += snapshot->attempts[k]->again.count;
        }
    }
    struct tide_recheck *recheck = tide_alloc(1, sizeof(*recheck));
    recheck->cap = count < RECHECK_SEQS_MAX ? (size_t)count : RECHECK_SEQS_MAX;
    recheck->table = tide_alloc(recheck->cap, sizeof(struct twice));
    return recheck;
}

bool tide_reassembler_recheck_next(struct tide_reassembler *reassembler)
{
    if (reassembler->recheck == NULL) {
        reassembler->recheck = new_recheck(reassembler);
    }
    struct tide_recheck *recheck = reassembler->recheck;
    recheck->count = 0;
    reassembler->recheck_round++;
    while (recheck->next_snapshot < reassembler->count &&
           add_snapshot(recheck, reassembler->snapshots[recheck->next_snapshot],
                        reassembler->recheck_round)) {
        recheck->next_snapshot++;
        recheck->next_attempt = 0;
    }
    if (recheck->count > 0) {
        return true;
    }
    tide_recheck_free(recheck);
    reassembler->recheck = NULL;
    mark_compared(reassembler);
    return false;
}

/* The attempt whose rows this round compares, or NULL. */
static struct tide_snapshot_attempt *find_attempt(struct tide_reassembler *reassembler,
                                                  const struct tide_frame *frame)
{
    struct tide_snapshot *snapshot = reassembler->latest;
    if (snapshot == NULL || !tide_str_equal(snapshot->id, frame->snapshot_id)) {
        union tide_map_value *value = tide_map_get(&reassembler->by_id, frame->snapshot_id);
        if (value == NULL) {
            return NULL;
        }
        snapshot = reassembler->latest = value->ptr;
    }
    struct tide_snapshot_attempt *attempt = tide_snapshot_find_attempt(snapshot, frame->attempt);
    bool is_in = attempt != NULL && attempt->recheck_round == reassembler->recheck_round;
    return is_in ? attempt : NULL;
}

static struct twice *find_seq(const struct tide_recheck *recheck,
                              const struct tide_snapshot_attempt *attempt, uint64_t seq)
{
    struct twice *table = &recheck->table[attempt->recheck_first];
    size_t low = 0;
    size_t high = attempt->recheck_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].seq < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < attempt->recheck_count && table[low].seq == seq ? &table[low] : NULL;
}

/* Of a stub what stands for the record is its size and key. */
static XXH128_hash_t hash_of(const struct tide_frame *frame)
{
    if (frame->kind == TIDE_FRAME_ROW) {
        return XXH3_128bits(frame->record.ptr, frame->record.len);
    }
    tide_str key = frame->row_key.ptr != NULL ? frame->row_key : TIDE_STR("");
    return XXH3_128bits_withSeed(key.ptr, key.len, frame->bytes);
}

void tide_reassembler_recheck(struct tide_reassembler *reassembler, const struct tide_frame *frame)
{
    const struct tide_recheck *recheck = reassembler->recheck;
    TIDE_ASSERT(recheck != NULL);
    if (frame->kind != TIDE_FRAME_ROW && frame->kind != TIDE_FRAME_OVERSIZE) {
        return;
    }
    struct tide_snapshot_attempt *attempt = find_attempt(reassembler, frame);
    struct twice *twice = attempt != NULL ? find_seq(recheck, attempt, frame->seq) : NULL;
    if (twice == NULL) {
        return;
    }
    XXH128_hash_t hash = hash_of(frame);
    if (!twice->has_hash) {
        twice->has_hash = true;
        twice->hash = hash;
    } else if (!XXH128_isEqual(twice->hash, hash)) {
        (void)tide_interval_set_insert(&attempt->different, frame->seq);
    }
}
