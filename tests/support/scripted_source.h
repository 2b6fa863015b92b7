/*
 * A database that a test steps through, with what makes a real one hard: a transaction is in the
 * log (and so in the stream) before other sessions can see it, for any length of time; a snapshot
 * is xmin, xmax and the ids in between, xmax being the highest finished id plus one; an update may
 * leave a column unsent; keys change; a truncate locks the table until it is visible.
 *
 * One table "t" (k, small, big), key k, SCRIPTED_KEYS possible keys. It is a source like any other
 * through `scripted_source_ops`; the object given to the ops is the struct itself.
 */
#pragma once

#include "port/source.h"

#define SCRIPTED_KEYS 7

/* What the source gets wrong on purpose. */
enum scripted_fault {
    SCRIPTED_RIGHT,
    SCRIPTED_ALWAYS_TRUSTED,
    SCRIPTED_HORIZON_FROM_XMAX, /* not from a newly assigned id */
    SCRIPTED_NO_POSITION,       /* chunks say that they may go out at once */
    SCRIPTED_WATERMARKS,        /* sees = was streamed before the read */
    SCRIPTED_PARTIAL_AS_WHOLE,  /* changes without all columns are not marked as such */
    SCRIPTED_MOVE_AS_WHOLE,     /* the same, of key changes alone */
    SCRIPTED_TABLE_UNSAID,      /* nothing says that a table must be copied anew */
};

struct scripted_row {
    bool exists;
    uint32_t small; /* xid * 64 + number of the change in its transaction; 0: older than the log */
    uint32_t big;
};

struct scripted_change {
    enum tide_op op; /* UPDATE: an upsert */
    unsigned key;
    int moved_from; /* -1: not moved */
    bool is_partial;
    uint32_t small;
    uint32_t big;
};

#define SCRIPTED_CHANGES_MAX 64

struct scripted_transaction {
    uint64_t xid;
    struct scripted_change changes[SCRIPTED_CHANGES_MAX];
    size_t count;
    bool has_truncated;
    bool is_silent; /* the log has only that the table must be copied anew */
};

#define SCRIPTED_LOG_MAX     256
#define SCRIPTED_RUNNING_MAX 16

struct scripted_source {
    uint64_t random; /* state */
    enum scripted_fault fault;
    bool moves_often; /* most changes are moves that leave a column unsent */
    uint64_t next_xid;
    uint64_t finished; /* highest finished xid */
    struct scripted_transaction log[SCRIPTED_LOG_MAX];
    size_t log_count;
    struct scripted_transaction running[SCRIPTED_RUNNING_MAX];
    size_t running_count;
    size_t hidden[SCRIPTED_LOG_MAX]; /* indexes into log: committed, not visible yet */
    size_t hidden_count;
    struct scripted_row rows[SCRIPTED_KEYS];      /* as the log has it */
    struct scripted_row seen_rows[SCRIPTED_KEYS]; /* as a new session sees it */
    uint64_t locked[SCRIPTED_KEYS];               /* xid; 0: free */
    /* of the session that follows and copies */
    const struct tide_relation *relation;
    size_t stream_at;     /* next entry of the log */
    size_t stream_change; /* next change in it */
    uint64_t horizon;
    uint64_t confirmed;
    uint64_t retained; /* what it says to keep */
};

void scripted_init(struct scripted_source *source, uint64_t seed);
void scripted_done(struct scripted_source *source);
uint64_t scripted_random(struct scripted_source *source, uint64_t below);

/* The steps. Each does nothing when it cannot. */
void scripted_begin(struct scripted_source *source);
void scripted_write(struct scripted_source *source);
void scripted_commit_record(struct scripted_source *source);
void scripted_become_visible(struct scripted_source *source);
/* As a default that is added with a column: a row changes, and the log has no change for it. */
void scripted_change_silently(struct scripted_source *source);

/* As a table that is changed while nobody follows: rows vanish, what the log has of it comes no
 * more, and it must be copied anew. Between two streams. */
void scripted_make_anew(struct scripted_source *source);

/* Where the transaction that last wrote this row stands in the log, from 1; 0: before the log. */
size_t scripted_order_of(const struct scripted_source *source, uint32_t small);

extern const struct tide_source_ops scripted_source_ops;
