/*
 * One table's copy: an interleaved snapshot for some lanes. A state machine without threads or
 * I/O: ingest feeds it changes and chunks and publishes the batches that it makes.
 *
 *     QUEUED ──start──▶ RUNNING ──last part published──▶ ENDED ──held by every lane──▶ DONE
 *                         │ table dropped, unreadable
 *                         └──────────▶ FAILED
 *
 * The rule (docs/snapshot.md): from the start on, changes to the table are remembered. A chunk's
 * rows go out, at the end of a transaction, once the stream has reached the chunk's position. A
 * row is withheld when an unseen change brings, deletes or moves it. What was published after the
 * last held part is done over by the next attempt.
 */
#pragma once

#include "base/limits.h"
#include "engine/again.h"
#include "engine/memory.h"
#include "model/batch.h"
#include "model/chunk.h"
#include "port/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tide_copy_state {
    TIDE_COPY_QUEUED,
    TIDE_COPY_RUNNING,
    TIDE_COPY_ENDED,
    TIDE_COPY_DONE,
    TIDE_COPY_FAILED,
};

struct tide_copy_options {
    size_t chunk_rows_max;
    size_t chunk_bytes_max;
    size_t memory_bytes_max; /* remembered changes; past it, or past the budget, remembering starts
                                anew. 0: the budget alone bounds them */
    struct tide_budget *budget; /* NULL: none; outlives the copies */
    uint32_t incarnation;       /* of the source's log */
};

/* A key that is kept and replaced, in one allocation. */
struct tide_kept_key {
    struct tide_value *values; /* NULL: none */
    size_t size;               /* bytes, with those that the values point to */
};

/* Why a lane is part of the copy. */
struct tide_copy_share {
    unsigned lane;
    uint64_t request_id;
};

/* A chunk on its way: read, or asked for. */
struct tide_copy_chunk {
    uint64_t number; /* 1, 2, 3 … of this copy in this run */
    struct tide_chunk chunk;
    const struct tide_value *const *again; /* in request_arena */
    size_t again_count;
    struct tide_arena request_arena;
};

struct tide_copy_part; /* published and not yet held; private */

struct tide_copy {
    enum tide_copy_state state;
    const struct tide_relation *relation;
    struct tide_copy_options options;
    struct tide_copy_share shares[TIDE_LANES_MAX];
    size_t share_count;
    char failure[256]; /* FAILED: why */
    bool is_doubted;   /* its table could not be read in its shape; once more before it fails */

    struct tide_snapshot_head head; /* starts: owned */
    bool is_begun;                  /* head is set: an opening was or may have been published */
    bool is_named;                  /* head is for the opening to come, which was not published */
    uint64_t next_seq;              /* of what is published */
    uint64_t rows_published;        /* in this run, for progress */

    struct tide_memory memory;
    struct tide_again again;
    bool needs_horizon;            /* the next read begins with reader_remember */
    bool is_reading;               /* `reading` has been asked for */
    bool range_is_read;            /* the last chunk of the range has been read */
    bool range_is_out;             /* and published */
    uint64_t chunk_numbers;        /* given so far */
    struct tide_kept_key read_key; /* last key read */
    struct tide_kept_key out_key;  /* last key published */
    struct tide_copy_chunk reading;
    struct tide_copy_chunk waiting[TIDE_CHUNKS_AHEAD];
    size_t waiting_count;

    struct tide_kept_key held_key; /* as of the last part that every lane holds */
    uint64_t held_seq;
    struct tide_copy_part *oldest_part;
    struct tide_copy_part *newest_part;
};

/** A queued copy; takes a reference to the relation. Owned by the caller. */
struct tide_copy *tide_copy_new(const struct tide_relation *relation,
                                const struct tide_copy_options *options);
void tide_copy_free(struct tide_copy *copy); /* NULL is fine */

/* What a checkpoint has of a copy that was begun. Borrowed for the call. */
struct tide_copy_held {
    const char *snapshot_id;
    int64_t snapshot_at_us;
    uint32_t attempt;
    const uint64_t *starts;
    uint64_t next_seq;
    const struct tide_value *last_key; /* NULL: none */
    bool is_done;
};

/** Puts a queued copy where a checkpoint says it was; its read-again keys are added by the caller.
 */
void tide_copy_restore(struct tide_copy *copy, const struct tide_copy_held *held);

/** Whether another lane may still be added: no checkpoint that counts says for whom it is. */
bool tide_copy_can_be_joined(const struct tide_copy *copy);

/** Adds a lane, before the start only. A new copy that was named must be named again. */
void tide_copy_add_share(struct tide_copy *copy, unsigned lane, uint64_t request_id);
/** Takes a lane out, whatever the state. What the others hold may become held by all. */
void tide_copy_remove_lane(struct tide_copy *copy, unsigned lane);
tide_lane_set tide_copy_lanes(const struct tide_copy *copy);

/**
 * Gives a queued copy the name that its opening will have: a snapshot id, or when it was begun in
 * an earlier run the number of the next attempt. A name that was not used yet is replaced. A
 * checkpoint with it must be durable before the opening is published.
 */
void tide_copy_name(struct tide_copy *copy, int64_t now_us);

/**
 * Starts, or starts over after a restart (when it was begun: next attempt from what is held).
 * Remembering starts here. One that was not named is named now.
 */
void tide_copy_start(struct tide_copy *copy, int64_t now_us);

/** The batch with the begin or resume frame. */
struct tide_batch *tide_copy_opening(struct tide_copy *copy, struct tide_place changes_from);

/**
 * A change of this table is being published. A RUNNING copy remembers it; one that was begun in an
 * earlier run and waits for its turn only lists the key when it must be read again.
 */
void tide_copy_remember(struct tide_copy *copy, const struct tide_change *change);

/** A chunk should be read now. */
bool tide_copy_has_work(const struct tide_copy *copy);

/** True and fills `ret_request` when a chunk should be read now; then it counts as being read. */
bool tide_copy_wants(struct tide_copy *copy, struct tide_chunk_request *ret_request,
                     bool *ret_needs_horizon);

/** The chunk asked for has come; its content is taken. An untrusted one is asked for again. */
void tide_copy_take(struct tide_copy *copy, struct tide_chunk *chunk);

/** The chunk asked for could not be read; it will be asked for again. */
void tide_copy_read_failed(struct tide_copy *copy);

/** The table cannot be copied. Sets FAILED; what was published stays without an end. */
void tide_copy_fail(struct tide_copy *copy, const char *why);

/** The oldest waiting chunk may go out: the stream has reached its position, at a transaction's
 * end. */
bool tide_copy_is_ready(const struct tide_copy *copy, struct tide_position reached);

/**
 * The batch with the oldest waiting chunk's rows, and the end when it is the last. Call
 * tide_copy_published with its build number next.
 */
struct tide_batch *tide_copy_emit(struct tide_copy *copy, struct tide_position reached,
                                  struct tide_place changes_to, int64_t now_us);
void tide_copy_published(struct tide_copy *copy, uint64_t build);

/** Every lane of the copy holds what was published up to `build`. True when something became held.
 */
bool tide_copy_held(struct tide_copy *copy, uint64_t build);

/** Throws away what was read and not published and all that is remembered; goes on from what is
 * out. */
void tide_copy_restart_remembering(struct tide_copy *copy);
