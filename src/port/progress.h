/*
 * How far a copy has come, as a sink that remembers tells it: the place up to which all changes
 * are there, and the snapshots that are open. Pure.
 */
#pragma once

#include "port/sink.h"

#include <stddef.h>

/* Ended snapshots that are remembered, so that one that is missing can be told from one that has
 * ended: more than a lane can have under way. */
#define TIDE_PROGRESS_ENDED_MAX 1024
#define TIDE_PROGRESS_OPEN_MAX  64

struct tide_progress {
    struct tide_place place;
    struct tide_held_snapshot
        *snapshots; /* the latest TIDE_PROGRESS_OPEN_MAX open and TIDE_PROGRESS_ENDED_MAX ended */
    size_t snapshot_count;
    size_t snapshot_cap;
};

/** Frees the array; `{0}` is no progress. */
void tide_progress_done(struct tide_progress *progress);

/** Takes in what writing `batch` (whole) brings. Neither the place nor an attempt of a snapshot
 * goes back. */
void tide_progress_apply(struct tide_progress *progress, const struct tide_batch *batch);

/** Ended snapshots that are remembered. */
size_t tide_progress_ended_count(const struct tide_progress *progress);

/** What a sink that remembers answers of it; borrows until it changes. */
void tide_progress_held(const struct tide_progress *progress, struct tide_sink_held *ret_held);

/** Adds a snapshot. */
void tide_progress_add(struct tide_progress *progress, const struct tide_held_snapshot *snapshot);

/** Makes `into` equal to `from`. */
void tide_progress_copy(struct tide_progress *into, const struct tide_progress *from);

/** Same place, same snapshots. */
bool tide_progress_equal(const struct tide_progress *a, const struct tide_progress *b);
