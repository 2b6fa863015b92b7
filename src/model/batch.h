/*
 * What ingest publishes: many changes, or a part of one table's snapshot. A batch owns an arena;
 * all that it points to lives there (or in relations that it counts). It is filled by one thread,
 * immutable once published, and counted, so that N lanes cost N pointers.
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/uuid.h"
#include "model/change.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* One dump of one table: the same on every frame of it, but for `attempt` and `starts`. */
struct tide_snapshot_head {
    char id[TIDE_UUID_LEN + 1]; /* UUIDv7 of at_us */
    int64_t at_us;              /* UTC */
    uint32_t attempt;           /* 0: never interrupted */
    const uint64_t *starts;     /* first seq of attempts 1..attempt: `attempt` elements */
    uint32_t incarnation;       /* 0: the source's log never started over */
};

enum tide_snapshot_opening {
    TIDE_OPENING_NONE,
    TIDE_OPENING_BEGIN,
    TIDE_OPENING_RESUME
};

/* An optional begin or resume, then rows, then an optional end. */
struct tide_snapshot_part {
    const struct tide_relation *relation;
    struct tide_snapshot_head head;
    uint64_t request_id;
    enum tide_snapshot_opening opening;
    struct tide_place changes_from;       /* for the opening */
    uint64_t first_seq;                   /* of rows[0]; for a resume also its seq */
    const struct tide_value *const *rows; /* each relation->column_count values */
    size_t row_count;
    struct tide_position row_position; /* every row is as of after this transaction */
    bool is_end;                       /* row count of the end is first_seq + row_count */
    int64_t completed_us;              /* UTC, never before head.at_us */
    struct tide_place changes_to;      /* for the end */
};

struct tide_batch {
    _Atomic uint32_t refs;
    struct tide_arena arena;
    size_t size;               /* bytes it holds in memory: what lanes count */
    struct tide_charge charge; /* for them; given back with the last reference */
    /* the last change it covers; has_position false: a snapshot part, or not the end of a
     * transaction */
    bool has_position;
    struct tide_position position;
    /* changes, in log order; none in a snapshot part, maybe none at all */
    struct tide_change *changes;
    size_t change_count;
    const struct tide_snapshot_part *snapshot; /* NULL: live */
    const struct tide_relation **relations;    /* counted by the batch; private */
    size_t relation_count;
    size_t relation_cap;
};

/** An empty batch with one reference. */
struct tide_batch *tide_batch_new(void);

/** One more reference; returns its argument. */
struct tide_batch *tide_batch_ref(struct tide_batch *batch);

/** Frees the batch with its last reference. NULL is fine. Any thread. */
void tide_batch_unref(struct tide_batch *batch);

/** Keeps `relation` alive as long as the batch; once for each is enough. Before publishing only. */
void tide_batch_use_relation(struct tide_batch *batch, const struct tide_relation *relation);

/** How many of its changes are at or before a place; they are in log order. None for an unknown
 * one.
 */
size_t tide_batch_count_until(const struct tide_batch *batch, struct tide_place place);
