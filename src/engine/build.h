/*
 * Builds the live batches: changes as they come, cut by size, with the position of the last
 * transaction that ended in them. Keeps the place of each store's last change, as published, as
 * committed and as held, so that every change can say which one came before it.
 */
#pragma once

#include "base/map.h"
#include "model/batch.h"
#include "model/change.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Places of the last change of a store. */
struct tide_store {
    tide_str name; /* the map's copy */
    struct tide_place published;
    struct tide_place committed; /* as of the last transaction that ended */
    struct tide_place held;      /* as of the watermark */
    bool is_touched;             /* `published` moved since the last commit */
    bool is_changed;             /* `committed` moved since the last positioned batch */
    bool is_followed;            /* its changes come, in this run */
    bool is_anew;                /* a new copy was told of in the transaction under way */
};

struct tide_build_mark; /* a published position and the stores' places as of it; private */

struct tide_build {
    size_t changes_max;
    size_t bytes_max;
    struct tide_batch *batch; /* open; NULL: nothing in it yet */
    size_t change_cap;
    struct tide_budget *budget; /* may be NULL */
    bool in_transaction;
    struct tide_position reached; /* last transaction's end */
    bool has_new_position;        /* reached moved since the last positioned batch */
    struct tide_map stores;       /* name -> struct tide_store */
    struct tide_store **list;
    size_t store_count;
    size_t store_cap;
    const struct tide_relation *last_relation; /* and its store: changes come in runs */
    struct tide_store *last_store;
    struct tide_build_mark *oldest_mark;
    struct tide_build_mark *newest_mark;
};

/** Sizes at which a batch is closed, and the position that the stream starts from. */
void tide_build_init(struct tide_build *build, size_t changes_max, size_t bytes_max,
                     struct tide_position start);
void tide_build_done(struct tide_build *build);

/** The store's places; made when it is new. */
struct tide_store *tide_build_store(struct tide_build *build, tide_str name);

/** Where the next change's values go: the open batch's arena. */
struct tide_arena *tide_build_arena(struct tide_build *build);

/** Adds the change (its pointers are in the arena above), sets its `prev`; returns it as kept. */
const struct tide_change *tide_build_add(struct tide_build *build,
                                         const struct tide_change *change);

/**
 * Changes of the store may be missing up to a position, at or past that of its last change. Instead
 * of that one a place where no change is counts as its last, behind all of the position's
 * transaction: whoever has all that was published learns from the next `prev` or copy that he may
 * lack something. Held at once, since a source need not tell of it again.
 */
void tide_build_break(struct tide_store *store, struct tide_position position);

/** The transaction has ended: everything up to `position` has been added. */
void tide_build_commit(struct tide_build *build, struct tide_position position);

/** Counts what the open batch has grown by; call it after each event. */
void tide_build_count(struct tide_build *build);

/** The open batch is full; a small one is while little of the budget is left. */
bool tide_build_is_full(const struct tide_build *build);

/** The open batch, to be published by the caller who owns it then; NULL: nothing to publish. */
struct tide_batch *tide_build_take(struct tide_build *build);

/** The batch just taken was published with this number. */
void tide_build_published(struct tide_build *build, const struct tide_batch *batch,
                          uint64_t build_number);

/**
 * The stream was lost: the transaction under way comes again from its beginning. What is open has
 * been published.
 */
void tide_build_abandon(struct tide_build *build);

/** The watermark has passed `build_number`: the stores' held places follow. */
void tide_build_held(struct tide_build *build, uint64_t build_number);
