/*
 * The ingest engine: follows a source, copies tables between its changes, publishes both on the
 * lanes, keeps checkpoints and confirms the source. A state machine driven by one thread (see
 * ingest_loop.h), or step by step by a test.
 *
 * What must be durable before what, always:
 *     sinks hold it → checkpoint saved → source confirmed (up to the older of the two kept)
 *     checkpoint saved → begin or resume published
 *     request in a checkpoint → copy started;   marker held by its lane → request out of it
 */
#pragma once

#include "engine/build.h"
#include "engine/copy.h"
#include "format/checkpoint.h"
#include "port/source.h"
#include "port/stream.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where checkpoints go. `save` returns once the bytes are durable. */
struct tide_checkpoint_keeper {
    tide_status (*save)(void *context, tide_str compact_json, enum tide_checkpoint_phase phase,
                        struct tide_error *err);
    void *context;
};

struct tide_ingest_options {
    const struct tide_source_ops *source_ops;
    struct tide_source *source;
    struct tide_stream *stream;
    struct tide_checkpoint_keeper keeper;
    struct tide_copy_options copy; /* its budget is the engine's too */
    size_t batch_changes_max;
    size_t batch_bytes_max;
    int64_t checkpoint_interval_us; /* while following; copies save with every held chunk */
    int64_t retry_max_us;           /* the longest wait before a lost source is tried again */
    uint64_t max_retained_bytes; /* of the source's log, past which full lanes may be detached; 0:
                                    none */
    tide_str pipeline;           /* copied */
    uint32_t incarnation;        /* of the source's log, when no checkpoint says it */
};

struct tide_ingest;

/* What another thread may look at while ingest runs. */
struct tide_ingest_stats {
    _Atomic uint64_t changes_published;
    _Atomic uint64_t rows_published; /* those that an earlier run had held included */
    _Atomic uint64_t rows_withheld;
    _Atomic uint64_t chunks_read;
    _Atomic uint64_t copies_done;
    _Atomic uint64_t copies_failed;
    _Atomic uint64_t copies_total;
    _Atomic uint64_t checkpoints_saved;
    _Atomic uint64_t posts_done;     /* and durable; they are done in the order they were given */
    _Atomic uint64_t requests_saved; /* the stream's number of the newest that is in a checkpoint */
    _Atomic uint64_t detached;       /* lanes dropped so far */
};

enum tide_ingest_post_kind {
    TIDE_POST_ATTACH, /* a lane was added for the sink, which was detached or is new */
    TIDE_POST_DETACH, /* its lane is dropped: it has lost something */
    TIDE_POST_PAUSE,  /* to be remembered */
    TIDE_POST_RESUME,
};

/* Something that another thread wants of ingest. */
struct tide_ingest_post {
    struct tide_ingest_post *newer; /* private */
    enum tide_ingest_post_kind kind;
    tide_str name; /* of the sink; copied */
    unsigned lane; /* of ATTACH */
};

/** An engine for an opened source; nothing is read or published yet. Options are copied. */
struct tide_ingest *tide_ingest_new(const struct tide_ingest_options *options);
void tide_ingest_free(struct tide_ingest *ingest); /* NULL is fine */

/** Names a lane as a sink that takes part. A sink whose name the loaded checkpoint has as seeded
 * stays so. Once it runs: by a post. */
void tide_ingest_add_sink(struct tide_ingest *ingest, tide_str name, unsigned lane);
/** The sink's lane may be dropped when it is full and the source keeps too much log. */
void tide_ingest_let_detach(struct tide_ingest *ingest, unsigned lane);
/** After load: the sink has lost what the checkpoint says it holds; it needs a backfill. */
void tide_ingest_start_anew(struct tide_ingest *ingest, unsigned lane);

/** Leaves a wish; any thread. It is done, and durable, once stats.posts_done has come to the
 * number that is returned. */
uint64_t tide_ingest_post(struct tide_ingest *ingest, const struct tide_ingest_post *post);

/** The sink was never seeded and no request of it is open. After load. */
bool tide_ingest_needs_backfill(const struct tide_ingest *ingest, unsigned lane);

/**
 * Takes over from a checkpoint: before start, after the sinks were added. Copies of tables that are
 * gone are let go of, those whose key is another one begin anew. Errors: TIDE_CORRUPT.
 */
tide_status tide_ingest_load(struct tide_ingest *ingest, const struct tide_checkpoint *checkpoint,
                             struct tide_error *err);

/**
 * Prepares the source (anew, or as the loaded checkpoint says), saves the first checkpoint of the
 * run and opens the stream.
 */
tide_status tide_ingest_start(struct tide_ingest *ingest, struct tide_error *err);

/* The steps. None of them blocks but for full lanes, checkpoints and, in `pull`, the source. */

/**
 * Takes the next event from the source and publishes what is full, or what is open when nothing
 * is at hand. TIDE_TIMEOUT: nothing came before the deadline.
 */
tide_status tide_ingest_pull(struct tide_ingest *ingest, struct tide_waker *waker,
                             int64_t deadline_us, struct tide_error *err);

/**
 * After a retriable error of `pull` or `work`: publishes what is open, forgets the transaction
 * under way and what was read ahead, and opens the stream again behind the last transaction's end.
 * Errors: as the source's `stream`.
 */
tide_status tide_ingest_reconnect(struct tide_ingest *ingest, struct tide_error *err);

/** Requests, held parts, watermark, checkpoint, confirm; starts the next copy; sends ready chunks
 * out. */
tide_status tide_ingest_work(struct tide_ingest *ingest, struct tide_error *err);

/** True when a chunk should be read; it must then be answered by one of the two below. */
bool tide_ingest_wants_chunk(struct tide_ingest *ingest, struct tide_chunk_request *ret_request,
                             bool *ret_needs_horizon);
/** The chunk that was wanted; its content is taken. */
void tide_ingest_take_chunk(struct tide_ingest *ingest, struct tide_chunk *chunk);
/** It could not be read: retriable errors are asked for again, TIDE_UNSUPPORTED fails the copy,
 * others all. */
tide_status tide_ingest_chunk_failed(struct tide_ingest *ingest, struct tide_error *err);

/** Whether every transaction at or before `position` has been pulled, and none half way. */
bool tide_ingest_has_reached(const struct tide_ingest *ingest, struct tide_position position);

/** Every request is done and every lane holds all that was pulled; saves a checkpoint if needed. */
bool tide_ingest_is_settled(const struct tide_ingest *ingest);

/** Every sink has got what it asked for: all markers are held, and no copy waits or runs. */
bool tide_ingest_is_seeded_all(const struct tide_ingest *ingest);

/** Saves a checkpoint now. `is_closed`: a one-shot copy that has ended and left nothing in the
 * source. */
tide_status tide_ingest_save(struct tide_ingest *ingest, bool is_closed, struct tide_error *err);

/** As that, but what is in the source may be half removed: "closed" and "creating". */
tide_status tide_ingest_save_closing(struct tide_ingest *ingest, struct tide_error *err);

/** After the last step: takes in what is held, saves if anything moved, and confirms. */
tide_status tide_ingest_finish(struct tide_ingest *ingest, struct tide_error *err);

/** Does what other threads wish: draws a report (ingest_report.h), takes posts in. The engine's own
 * steps do it too; for whoever waits between them. */
tide_status tide_ingest_serve(struct tide_ingest *ingest, struct tide_error *err);

/** The longest wait before a lost source is tried again, as the options say. */
int64_t tide_ingest_retry_max_us(const struct tide_ingest *ingest);

/** Says in reports what ingest waits for; "": nothing. */
void tide_ingest_set_reason(struct tide_ingest *ingest, const char *reason);

/** What a waiting publish looks at to give up: set from any thread, together with a wake. */
void tide_ingest_stop(struct tide_ingest *ingest);
bool tide_ingest_is_stopping(const struct tide_ingest *ingest);

/** The waker that stop, and whoever has something for ingest, wakes. */
struct tide_waker *tide_ingest_waker(struct tide_ingest *ingest);

/** Counters that ingest keeps up to date; any thread may read them until ingest is freed. */
const struct tide_ingest_stats *tide_ingest_stats(const struct tide_ingest *ingest);

/** The store's copy for the lane was published to its end, or has failed. */
bool tide_ingest_is_copy_over(const struct tide_ingest *ingest, tide_str store, unsigned lane);

/** Copies that failed: calls `each` with store and reason. */
void tide_ingest_each_failure(const struct tide_ingest *ingest,
                              void (*each)(void *context, tide_str store, const char *why),
                              void *context);
