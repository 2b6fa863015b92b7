/*
 * Which snapshots a series holds, which of them are whole, and from which of them the table can be
 * rebuilt as of a moment. Fed with all rows of the series, in time order. Pure; for one thread at a
 * time. Memory is about one bit a row, and nearly none while rows come in order.
 */
#pragma once

#include "archive/change_row.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place of a source's log that may have started over. */
struct tide_change_place {
    uint32_t incarnation;
    struct tide_place place;
};

/** <0, 0, >0: first by incarnation. */
int tide_change_place_compare(struct tide_change_place a, struct tide_change_place b);

/* The state as of: all that was committed by a time, or up to a position. */
struct tide_change_moment {
    bool is_position;
    int64_t utc_us;                 /* by time */
    struct tide_change_place place; /* by position; its index is not looked at */
};

/* A snapshot as far as its rows have come. */
struct tide_change_snapshot {
    char id[TIDE_UUID_LEN + 1];
    bool has_begin;        /* or a resume from the first row */
    bool has_end;          /* and no frame of a later attempt came */
    bool is_complete;      /* begin, end and each seq between */
    bool has_stub;         /* a row was too long for it: its values are not known by it */
    bool has_keyless_stub; /* so a row of the table is not known at all */
    int64_t begin_ts;      /* of the archive's rows; of the first there is */
    int64_t end_ts;
    int64_t snapshot_us; /* snapshot_at; of a begin or resume */
    int64_t completed_us;
    struct tide_change_place changes_from;
    struct tide_change_place changes_to;
    struct tide_change_place newest_row; /* no row or stub is of a later place */
    /* Of a copy that nothing else gives a place (it has no rows, and no change had come): the first
     * change of its log that came later. */
    struct tide_change_place first_change;
    uint32_t attempt;       /* the highest */
    uint64_t row_count;     /* of the end */
    const uint64_t *starts; /* `attempt` elements, when the end or a resume told */
};

struct tide_change_history;

/** Without rows. `kind` is for messages and may be NULL. */
struct tide_change_history *tide_change_history_new(const struct tide_position_kind *kind);

/** NULL is fine. */
void tide_change_history_free(struct tide_change_history *history);

/** For TIDE_CLEANUP. */
void tide_change_history_free_ptr(struct tide_change_history **history);

/** Takes a row and the archive's time of it. Of changes only the place may count. */
void tide_change_history_add(struct tide_change_history *history, int64_t ts,
                             const struct tide_change_row *row);

/** All snapshots, in the order of their begins. Valid until the next row. */
const struct tide_change_snapshot *
tide_change_history_snapshots(const struct tide_change_history *history, size_t *ret_count);

/* Rows of a snapshot that should be there and are not. */
struct tide_change_lack {
    uint64_t rows;
    uint64_t first_seq; /* of them */
};

/**
 * What snapshot `number` (of the array) lacks: seqs up to its end; where that is not there, up to
 * the newest that came, or to before `next_seq` if that is later. Of one whose begin is not there,
 * what is before the first row that is may have been forgotten as old, and does not count.
 */
struct tide_change_lack tide_change_history_lack(const struct tide_change_history *history,
                                                 size_t number, uint64_t next_seq);

/** Appends a place as users name it: with its incarnation, unless that is the newest of all rows.
 */
void tide_change_history_name_place(const struct tide_change_history *history,
                                    struct tide_change_place place, struct tide_buf *buf);

/** Whether a row of a snapshot is void: a later attempt began at or before its seq. */
bool tide_change_snapshot_voids(const struct tide_change_snapshot *snapshot,
                                const struct tide_change_row *row);

/** Whether all of a snapshot is known to be of the moment or before it. */
bool tide_change_snapshot_is_by(const struct tide_change_snapshot *snapshot,
                                const struct tide_change_moment *moment);

/**
 * The newest complete snapshot by the moment: the table can be rebuilt from the rows since its
 * begin_ts. Valid until the next row.
 *
 * Errors: TIDE_INVALID when there is none, saying from when on it is possible.
 */
tide_status tide_change_history_base(const struct tide_change_history *history,
                                     const struct tide_change_moment *moment,
                                     const struct tide_change_snapshot **ret_snapshot,
                                     struct tide_error *err);

/**
 * What retention must keep of a series to a cutoff (a time of the archive's rows): all rows since
 * the begin of this newest complete snapshot that ended before it; the history's. NULL when there
 * is no such snapshot: then all must be kept.
 */
const struct tide_change_snapshot *
tide_change_history_floor(const struct tide_change_history *history, int64_t cutoff_ts);
