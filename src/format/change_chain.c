#include "format/change_chain.h"

#include "base/alloc.h"

#include <stdlib.h>

void tide_change_chain_done(struct tide_change_chain *chain)
{
    free(chain->stretches);
    *chain = (struct tide_change_chain){0};
}

/* `a` is at or before `b`. */
static bool reaches(const struct tide_ordered_place *a, const struct tide_ordered_place *b)
{
    enum tide_place_order order = tide_ordered_place_compare(a, b);
    return order == TIDE_PLACE_BEFORE || order == TIDE_PLACE_SAME;
}

static bool is_opaque(const struct tide_change_stretch *stretch)
{
    return stretch->to.form == TIDE_PLACE_OPAQUE;
}

/*
 * By the group that can be compared (incarnation, form, family of `to`), then by `from`, null
 * first, then by `to`.
 */
static int compare_stretches(const void *a, const void *b)
{
    const struct tide_change_stretch *left = a;
    const struct tide_change_stretch *right = b;
    struct tide_ordered_place left_group = left->to;
    struct tide_ordered_place right_group = right->to;
    left_group.hi = left_group.lo = left_group.index = 0;
    right_group.hi = right_group.lo = right_group.index = 0;
    int order = tide_ordered_place_sort(&left_group, &right_group);
    order = order != 0 ? order : tide_ordered_place_sort(&left->from, &right->from);
    return order != 0 ? order : tide_ordered_place_sort(&left->to, &right->to);
}

/* Grows `into` by `next`, which is sorted after it, when they touch. */
static bool merge(struct tide_change_stretch *into, const struct tide_change_stretch *next)
{
    if (is_opaque(into) || is_opaque(next)) {
        return compare_stretches(into, next) == 0;
    }
    enum tide_place_order ends = tide_ordered_place_compare(&next->to, &into->to);
    if (ends == TIDE_PLACE_UNORDERED || !reaches(&next->from, &into->to)) {
        return false;
    }
    if (ends == TIDE_PLACE_AFTER) {
        into->to = next->to;
    }
    return true;
}

static void tidy(struct tide_change_chain *chain)
{
    if (chain->is_tidy || chain->count == 0) {
        return;
    }
    struct tide_change_stretch *stretches = chain->stretches;
    qsort(stretches, chain->count, sizeof(*stretches), compare_stretches);
    size_t last = 0;
    for (size_t i = 1; i < chain->count; i++) {
        if (!merge(&stretches[last], &stretches[i])) {
            stretches[++last] = stretches[i];
        }
    }
    chain->count = last + 1;
    chain->latest = chain->count;
    chain->is_tidy = true;
}

/*
 * Room for one more stretch: tidying first, more memory when that does not gain half of it. Once
 * tidying gains too little at full size there is no more room ever, or every change would sort.
 */
static bool make_room(struct tide_change_chain *chain)
{
    if (chain->count < chain->cap || chain->overflowed) {
        return !chain->overflowed;
    }
    tidy(chain);
    bool may_grow = chain->cap < TIDE_CHANGE_STRETCHES_MAX;
    if (chain->cap == 0 || (chain->count > chain->cap / 2 && may_grow)) {
        chain->cap = chain->cap == 0 ? 8 : chain->cap * 2;
        chain->stretches = tide_realloc(chain->stretches, chain->cap, sizeof(*chain->stretches));
    } else if (chain->count > chain->cap - chain->cap / 16) {
        chain->overflowed = true;
    }
    return !chain->overflowed;
}

/* The usual case: the change follows on, or repeats, what the latest one was part of. */
static bool extend_latest(struct tide_change_chain *chain, const struct tide_change_stretch *link)
{
    if (chain->latest >= chain->count) {
        return false;
    }
    struct tide_change_stretch *latest = &chain->stretches[chain->latest];
    if (is_opaque(latest) || !reaches(&latest->from, &link->from) ||
        !reaches(&link->from, &latest->to)) {
        return false;
    }
    enum tide_place_order order = tide_ordered_place_compare(&link->to, &latest->to);
    if (order == TIDE_PLACE_AFTER) {
        latest->to = link->to;
        chain->is_tidy = false; /* it may now touch the next one */
    }
    return order != TIDE_PLACE_UNORDERED;
}

void tide_change_chain_add(struct tide_change_chain *chain, const struct tide_ordered_place *prev,
                           const struct tide_ordered_place *place)
{
    struct tide_change_stretch link = {*prev, *place};
    chain->seen++;
    enum tide_place_order order = tide_ordered_place_compare(prev, place);
    if (order == TIDE_PLACE_SAME || order == TIDE_PLACE_AFTER || extend_latest(chain, &link)) {
        return;
    }
    if (!make_room(chain)) {
        return;
    }
    chain->latest = chain->count;
    chain->stretches[chain->count++] = link;
    chain->is_tidy = chain->count == 1;
}

/* The stretches are sorted, and merged where they touch: one pass from the left. */
static void cover_ordered(const struct tide_change_chain *chain, struct tide_change_proof *proof)
{
    for (size_t i = 0; i < chain->count; i++) {
        const struct tide_change_stretch *stretch = &chain->stretches[i];
        if (is_opaque(stretch)) {
            continue;
        }
        if (reaches(&stretch->from, &proof->covered)) {
            bool is_more =
                tide_ordered_place_compare(&stretch->to, &proof->covered) == TIDE_PLACE_AFTER;
            proof->covered = is_more ? stretch->to : proof->covered;
        } else if (reaches(&stretch->from, &proof->hole_to)) {
            proof->hole_to = stretch->from;
        }
    }
}

/* Where places are equal or not, and nothing else: link by link from `covered` to `to`. */
static void follow_opaque(const struct tide_change_chain *chain, struct tide_change_proof *proof,
                          const struct tide_ordered_place *to)
{
    for (size_t steps = 0; steps < chain->count; steps++) {
        if (tide_ordered_place_compare(&proof->covered, to) == TIDE_PLACE_SAME) {
            return;
        }
        struct tide_change_stretch wanted = {proof->covered, *to};
        wanted.to.hi = wanted.to.lo = wanted.to.index = 0;
        size_t low = 0;
        size_t high = chain->count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (compare_stretches(&chain->stretches[middle], &wanted) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if (low == chain->count || tide_ordered_place_compare(&chain->stretches[low].from,
                                                              &proof->covered) != TIDE_PLACE_SAME) {
            return;
        }
        proof->covered = chain->stretches[low].to;
    }
}

struct tide_change_proof tide_change_chain_prove(struct tide_change_chain *chain,
                                                 const struct tide_ordered_place *from,
                                                 const struct tide_ordered_place *to)
{
    struct tide_change_proof proof = {.covered = *from, .hole_to = *to};
    if (!reaches(to, from)) {
        tidy(chain);
        if (to->form == TIDE_PLACE_OPAQUE) {
            follow_opaque(chain, &proof, to);
        } else {
            cover_ordered(chain, &proof);
        }
    }
    proof.is_whole = reaches(to, &proof.covered);
    return proof;
}
