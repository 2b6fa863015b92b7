/*
 * One row of an archive's series of a table: a change, a row of a snapshot, or what begins and ends
 * a snapshot; and its bytes as the live tail keeps them. Pure.
 *
 *     u8 version 1, u8 kind, u8 op, u8 which optional parts follow, commit_us;
 *     unless a change: the snapshot's id (36 bytes), seq, attempt, starts of a RESUME or an END;
 *     then those of place, prev, tx, bytes, key, moved_from, values, incarnation that are there
 *
 * Numbers are LEB128 (signed ones zigzag, none longer than need be), texts and values have their
 * length before them, a value its kind (model/value.h) before that. One row has one form, so bytes
 * are equal exactly when rows are.
 *
 * The table's columns are not in the row: they are a caller row of the series (change_schema.h),
 * the newest at or before the row's time.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/uuid.h"
#include "model/change.h"
#include "model/position.h"
#include "model/value.h"

enum tide_change_row_kind {
    TIDE_ROW_CHANGE, /* op says which */
    TIDE_ROW_SNAPSHOT,
    TIDE_ROW_STUB, /* a snapshot's row that was too long; `bytes` and maybe the key are known */
    TIDE_ROW_BEGIN,
    TIDE_ROW_RESUME,
    TIDE_ROW_END,
};

/* Arrays and texts are borrowed, or in the arena that decoding was given. */
struct tide_change_row {
    enum tide_change_row_kind kind;
    enum tide_op op;         /* CHANGE */
    struct tide_place place; /* CHANGE: its own; SNAPSHOT, STUB: (row position, after all);
                                BEGIN, RESUME: changes_from; END: changes_to (may be unknown) */
    struct tide_place prev;  /* CHANGE */
    tide_str tx;             /* CHANGE; empty: none */
    int64_t commit_us;       /* CHANGE: commit time; BEGIN, RESUME: snapshot_at; END: completed_at;
                                SNAPSHOT, STUB: 0 */
    char snapshot_id[TIDE_UUID_LEN + 1]; /* empty for CHANGE */
    uint32_t attempt;
    uint32_t incarnation;   /* places of an older one are before those of a newer one */
    uint64_t seq;           /* SNAPSHOT, STUB: its own; RESUME: first of the attempt; END: count */
    const uint64_t *starts; /* RESUME, END: `attempt` elements */
    uint64_t bytes;         /* of a record that was too long: STUB, and CHANGE (then no values) */
    const struct tide_value *key; /* key_count values of the schema; CHANGE but truncate, STUB
                                     where it is known; NULL: none */
    const struct tide_value *moved_from; /* key_count values or NULL */
    const struct tide_value *values; /* column_count values, UNCHANGED where unsent; SNAPSHOT, and
                                        CHANGE insert and update unless too long; else NULL */
};

/** Whether rows of that kind have starts, be they none. */
static inline bool tide_change_row_has_starts(enum tide_change_row_kind kind)
{
    return kind == TIDE_ROW_RESUME || kind == TIDE_ROW_END;
}

/**
 * What every row keeps to, beyond what the struct says: texts are such (`tx` UTF-8, `snapshot_id`
 * of printable ASCII), changes, rows and stubs have a place, and there is just what belongs to the
 * kind. Asked by decode, and asserted by
 * encode. NULL, or what is wrong with it.
 */
const char *tide_change_row_mistake(const struct tide_change_row *row, size_t key_count);

/** The same of what a row says before its values: kind, place, snapshot, seq and attempt. */
const char *tide_change_row_head_mistake(const struct tide_change_row *row);

/** Appends the bytes. Rows of a table of so many columns, so many of them in its key. */
void tide_change_row_encode(const struct tide_change_row *row, size_t column_count,
                            size_t key_count, struct tide_buf *buf);

/**
 * Reads what encode wrote; all of `bytes`. Slices borrow from `bytes`, arrays live in `arena`.
 * Errors: TIDE_CORRUPT, also where the table has other numbers of columns than the row.
 */
tide_status tide_change_row_decode(tide_str bytes, size_t column_count, size_t key_count,
                                   struct tide_arena *arena, struct tide_change_row *ret_row,
                                   struct tide_error *err);
