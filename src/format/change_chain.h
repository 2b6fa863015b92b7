/*
 * Which changes of one store were seen, so that a lost one shows. Every change says which one was
 * published before it, so it proves a stretch of the store's log: nothing lies between the two
 * that it does not stand for. Stretches that touch or overlap become one, in whatever order and
 * however often changes come; a gap stays where one was lost. Memory is a stretch a gap.
 */
#pragma once

#include "format/place_order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stretches kept at most: 20 MiB. A change that would need one more is taken for lost. */
#define TIDE_CHANGE_STRETCHES_MAX ((size_t)1 << 18)

/* Everything after `from` up to and with `to` was seen. */
struct tide_change_stretch {
    struct tide_ordered_place from;
    struct tide_ordered_place to;
};

struct tide_change_chain {
    struct tide_change_stretch *stretches;
    size_t count;
    size_t cap;
    size_t latest;   /* the stretch that the latest change is in; count: none */
    bool is_tidy;    /* sorted and merged */
    bool overflowed; /* a change had to be dropped */
    uint64_t seen;   /* changes added, repeated ones too */
};

/* What the chain says about a stretch of the log. */
struct tide_change_proof {
    bool is_whole;
    struct tide_ordered_place covered; /* everything up to here was seen */
    struct tide_ordered_place hole_to; /* unless whole: what is lost lies after `covered`, up to
                                          and with this */
};

/** Frees the memory. `{0}` is an empty chain. For TIDE_CLEANUP too. */
void tide_change_chain_done(struct tide_change_chain *chain);

/** Adds the change at `place`; the store's change published before it is at `prev`. */
void tide_change_chain_add(struct tide_change_chain *chain, const struct tide_ordered_place *prev,
                           const struct tide_ordered_place *place);

/** Whether every change after `from`, up to and with `to`, was seen. */
struct tide_change_proof tide_change_chain_prove(struct tide_change_chain *chain,
                                                 const struct tide_ordered_place *from,
                                                 const struct tide_ordered_place *to);
