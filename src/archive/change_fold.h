/*
 * Rebuilds a table as of a moment from the rows of its series, in time order, by the rules of
 * docs/envelope.md ("Rebuilding a table"). Memory is the state itself, deleted keys too.
 * Pure; for one thread at a time.
 *
 *     history of all rows -> fold_new -> the rows since fold_start, each after its schema -> next
 */
#pragma once

#include "archive/change_history.h"
#include "archive/change_row.h"
#include "archive/change_schema.h"
#include "base/status.h"

struct tide_change_fold;

/**
 * A fold as of the moment, on the newest complete snapshot by it. The history has seen all rows and
 * must stay.
 *
 * Errors: TIDE_INVALID no state of that moment can be rebuilt; the message says from when on.
 */
tide_status tide_change_fold_new(const struct tide_change_history *history,
                                 const struct tide_change_moment *moment,
                                 struct tide_change_fold **ret_fold, struct tide_error *err);

/** NULL is fine. */
void tide_change_fold_free(struct tide_change_fold *fold);

/** For TIDE_CLEANUP. */
void tide_change_fold_free_ptr(struct tide_change_fold **fold);

/** The time of the archive's rows from which on they are needed; earlier ones do no harm. */
int64_t tide_change_fold_start(const struct tide_change_fold *fold);

/**
 * The columns of the rows that follow, as change_schema.h has them: before the first row, and
 * whenever they may be others.
 *
 * Errors: TIDE_CORRUPT no schema; TIDE_UNSUPPORTED rows of the table are matched by no key.
 */
tide_status tide_change_fold_set_schema(struct tide_change_fold *fold, tide_str json,
                                        struct tide_error *err);

/**
 * Takes the next row; those after the moment are passed over.
 * Errors: TIDE_UNSUPPORTED the table's key has changed since the snapshot.
 */
tide_status tide_change_fold_add(struct tide_change_fold *fold, const struct tide_change_row *row,
                                 struct tide_error *err);

/* A row of the table. Values are those of tide_change_fold_schema: ABSENT where the row is from
 * before the column, UNCHANGED where its value never came. */
struct tide_change_state {
    const struct tide_value *key;
    const struct tide_value *values; /* NULL: it was too long each time, only the key is known */
    bool is_stale;                   /* a change of it was too long: the values are older */
    uint64_t bytes;                  /* of the record that was too long; else 0 */
    struct tide_change_place place;  /* of the newest change or snapshot that made it so */
};

/** The next row of the state, by the bytes of its encoded key; false after the last. The first call
 * ends the adding. Valid until the next call. */
bool tide_change_fold_next(struct tide_change_fold *fold, struct tide_change_state *ret_row);

/** Lets the rows come again from the first on. */
void tide_change_fold_rewind(struct tide_change_fold *fold);

/** The columns of the newest row that counted. NULL before the first. */
const struct tide_change_schema *tide_change_fold_schema(const struct tide_change_fold *fold);

/** What may be wrong with the state. */
struct tide_change_doubts {
    uint64_t gaps; /* places where changes are missing: a `prev` that never came */
    struct tide_change_place first_gap; /* with gaps: the change whose `prev` was the first such */
    /* Behind what the series has up to the moment changes are missing, or may be: those until a
     * copy that does not lead on from it, or until a change. By the moment some of them may have
     * come. */
    bool is_beyond;
    struct tide_change_place reach; /* with is_beyond: what the series has up to there, */
    int64_t reach_us;               /* and the time of that */
    bool has_keyless_stub;          /* a row that was too long is not known by its key */
};

/** Of all rows so far. */
struct tide_change_doubts tide_change_fold_doubts(const struct tide_change_fold *fold);
