/*
 * Runs one sink on its lane, in a thread of its own:
 *
 *     open ─▶ attach ─▶ receive, write ×n ─▶ one flush ─▶ acknowledge in order ─┐
 *      ▲                  ▲                                                      │
 *      │                  └──────────────────────────────────────────────────────┘
 *      └─ wait ◀── close ◀── error
 *
 * Nothing is acknowledged before a flush after it succeeded. Changes at or before the one that the
 * sink says it holds when it is opened are passed over; snapshot parts never are.
 *
 * An error stops this sink alone. It is closed, its lane keeps what it had not acknowledged, and
 * after a while it is opened again and all of that is delivered again, in order. The wait doubles
 * from one error to the next, and starts over after a run without an error of `good_run_us`.
 * A not retriable error TIDE_INVALID, TIDE_STALE, TIDE_CORRUPT or TIDE_UNSUPPORTED would come
 * again: the sink has failed for good, and its lane is left as it is. With `keeps_trying` it waits
 * like after any other, since people may mend it meanwhile; but for an error that is final.
 *
 * Paused, the sink is closed and its lane is left as it is, until it is resumed.
 *
 * Drop a lane only with its engine stopped, or stop the engine before a lane is added again: lane
 * numbers are used anew, and a restart would attach to the other's.
 *
 * Life: new → (prepare → held)? → start → … → stop or the closed stream is drained → join → free.
 * Threads: new, prepare, held, start, join and free belong to the thread that owns the engine;
 * stop, pause, resume, status and counts are for any thread between new and free.
 */
#pragma once

#include "engine/sink_counts.h"
#include "port/sink.h"
#include "port/stream.h"

struct tide_sink_engine;

struct tide_sink_engine_options {
    tide_str name; /* the sink's, for messages; copied */
    const struct tide_sink_ops *ops;
    /* Copied, but for what it points to, which outlives the engine. From the second opening on the
     * target is opened as resumed: what is there is ours. */
    struct tide_sink_options sink;
    struct tide_stream *stream; /* outlives the engine */
    unsigned lane;              /* nobody else attaches to it */
    struct tide_waker *waker; /* woken when the engine has failed, ended or stopped; may be NULL */
    size_t group_items;       /* items written before a flush; 0: TIDE_SINK_GROUP_ITEMS */
    size_t group_bytes;       /* bytes written before a flush; 0: TIDE_SINK_GROUP_BYTES */
    int64_t wait_first_us;    /* before the first restart; 0: 1 s */
    int64_t wait_max_us;      /* 0: 60 s */
    int64_t good_run_us;      /* 0: 60 s */
    bool keeps_trying;
    /* Looks at what the sink holds whenever its thread has opened it; an error closes it again. May
     * be NULL. Not called by prepare. */
    tide_status (*check)(void *context, const struct tide_sink_held *held, struct tide_error *err);
    void *check_context;
};

enum tide_sink_engine_state {
    TIDE_SINK_NEW,     /* not started */
    TIDE_SINK_RUNNING, /* the sink is being opened or is open */
    TIDE_SINK_WAITING, /* for the next restart after `error` */
    TIDE_SINK_PAUSED,
    TIDE_SINK_FAILED,  /* for good, with `error` */
    TIDE_SINK_ENDED,   /* the stream was closed and everything is held, or the lane was dropped */
    TIDE_SINK_STOPPED, /* by stop, or the stream was cancelled */
};

struct tide_sink_engine_status {
    enum tide_sink_engine_state state;
    uint64_t restarts;
    uint64_t acknowledged;   /* items */
    int64_t wait_us;         /* the last wait before a restart */
    int64_t wait_until_us;   /* its end, monotonic */
    struct tide_error error; /* the last one; status TIDE_OK: none yet */
};

/** Never fails. `options` is copied. */
struct tide_sink_engine *tide_sink_engine_new(const struct tide_sink_engine_options *options);

/**
 * Opens the sink in the caller's thread, so that its error is known before the source is touched.
 * May be called again after an error. Without it the thread opens the sink, and waits on errors.
 */
tide_status tide_sink_engine_prepare(struct tide_sink_engine *engine, struct tide_error *err);

/** What the prepared sink holds; valid until start or free. */
void tide_sink_engine_held(struct tide_sink_engine *engine, struct tide_sink_held *ret_held);

/** Starts the thread; once. */
void tide_sink_engine_start(struct tide_sink_engine *engine);

/**
 * Asks the thread to end at once: what is not acknowledged stays on the lane, a call of the sink
 * that is under way is waited for by join. To have everything held instead, close the stream.
 */
void tide_sink_engine_stop(struct tide_sink_engine *engine);

/** Closes the sink soon, giving back what is not acknowledged; also before start. Any thread. */
void tide_sink_engine_pause(struct tide_sink_engine *engine);

/** Opens it again, at once: after a pause, and instead of waiting longer after an error. Any
 * thread. */
void tide_sink_engine_resume(struct tide_sink_engine *engine);

/** Waits until the thread has ended; the sink is closed then. Nothing when it was not started. */
void tide_sink_engine_join(struct tide_sink_engine *engine);

/** What it is doing now, copied out under its lock. Any thread. */
void tide_sink_engine_status(struct tide_sink_engine *engine,
                             struct tide_sink_engine_status *ret_status);

/** What was written: of the openings before this one, what of it was flushed too. */
void tide_sink_engine_counts(struct tide_sink_engine *engine, struct tide_sink_counts *ret_counts);

/** Stops, joins, closes the sink. NULL is fine. */
void tide_sink_engine_free(struct tide_sink_engine *engine);
