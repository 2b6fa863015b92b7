/*
 * One pipeline: a source, its sinks and what lies between, started and stopped in the right order.
 *
 *     open:  state directory and its lock → newest checkpoint → source, is it the one → sinks,
 *            what they hold → ingest takes over from the checkpoint
 *     start: the source is prepared (a checkpoint "creating" before) → requests of sinks that were
 *            never seeded → ingest and sinks run, each in its thread
 *     stop:  ingest stops → lanes drain, at most drain_us → last checkpoint, last confirm
 *
 * Belongs to one thread (main); `state` and `counts` are snapshots it takes.
 */
#pragma once

#include "engine/dead_letters.h"
#include "engine/ingest.h"
#include "engine/sink_engine.h"
#include "port/sink.h"
#include "port/source.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_pipeline_sink {
    tide_str name; /* unique in the pipeline */
    const struct tide_sink_ops *ops;
    tide_str place;
    enum tide_sink_existing existing;
    size_t record_bytes_max; /* 0: the pipeline's */
    bool may_detach;         /* rather than hold up the source past max_retained_bytes */
    struct tide_refused_policy refused;
    struct tide_sink_segments segments;
};

/* Everything is copied. */
struct tide_pipeline_options {
    const struct tide_source_ops *source_ops;
    tide_str source_place;
    tide_str source_shown;           /* how messages name it: without a password */
    struct tide_waker *source_waker; /* ends what open and start wait for; may be NULL */
    tide_str connection;
    const tide_str *globs;
    size_t glob_count;
    const struct tide_pipeline_sink *sinks;
    size_t sink_count;
    struct tide_stream *stream; /* without lanes yet */
    const char *state_dir;
    tide_str name; /* used for a new pipeline, made unique; an old one keeps the name it has */
    struct tide_copy_options copy; /* chunk_bytes_max and budget are set from memory_bytes */
    size_t memory_bytes;           /* all that it holds; 0: TIDE_MEMORY_BYTES_DEFAULT */
    size_t record_bytes_max;
    struct tide_dead_letter_limits dead_letters; /* all 0: the defaults */
    bool is_one_shot; /* ends when all tables are copied and all changes until then are held */
    bool is_service;  /* a sink that fails is tried for ever, while others go on */
    uint64_t max_retained_bytes; /* of the source's log, before full lanes are detached; 0: any */
    int64_t stalled_after_us;    /* with work and without progress; 0: the default */
    int64_t retry_max_us;        /* the longest wait between attempts; 0: TIDE_RETRY_MAX_US */
};

/* What opening found in the state directory. */
enum tide_pipeline_found {
    TIDE_PIPELINE_NEW,
    TIDE_PIPELINE_RESUMED,
    TIDE_PIPELINE_LEFTOVER, /* a copy that had ended, killed while it removed its things */
};

struct tide_pipeline;

/**
 * Nothing is changed in the source yet. `waker` is woken whenever something ends or fails.
 * `ret_notes` gets lines for the user, also on failure. Takes over `options->stream`, in any case.
 */
tide_status tide_pipeline_open(const struct tide_pipeline_options *options,
                               struct tide_waker *waker, struct tide_pipeline **ret_pipeline,
                               struct tide_buf *ret_notes, struct tide_error *err);
/** Stops what runs, at once, and frees. NULL is fine. */
void tide_pipeline_free(struct tide_pipeline *pipeline);

/** What open found in the state directory. */
enum tide_pipeline_found tide_pipeline_found(const struct tide_pipeline *pipeline);
/** The name under which its things in the source are kept. */
const char *tide_pipeline_name(const struct tide_pipeline *pipeline);
size_t tide_pipeline_table_count(const struct tide_pipeline *pipeline);

/** After finish: names chosen tables that were made since open and so are not in the copies. */
tide_status tide_pipeline_note_new_tables(const struct tide_pipeline *pipeline,
                                          struct tide_buf *notes, struct tide_error *err);

/** Tables that the globs choose and that cannot be followed, so that none of the above counts them;
 * as open found them, of a new pipeline or a one-shot copy. */
size_t tide_pipeline_unfollowed_count(const struct tide_pipeline *pipeline);

/** Prepares the source and starts the threads. */
tide_status tide_pipeline_start(struct tide_pipeline *pipeline, struct tide_error *err);

/**
 * Looks how it goes. TIDE_OK: it runs. TIDE_END: a one-shot copy is complete. Others: ingest
 * ended with this error, or a sink failed for good (of a service: all of them).
 */
tide_status tide_pipeline_poll(struct tide_pipeline *pipeline, struct tide_error *err);

/** The error of a sink that has failed for good, while others went on. */
tide_status tide_pipeline_failed_sink(const struct tide_pipeline *pipeline, struct tide_error *err);

/**
 * Orderly end, in two steps so that a user can cut the second short: `halt` stops ingest and
 * closes the lanes; `is_drained` says whether all that was published is held (poll it on wakes);
 * `finish` takes in what is held, saves the last checkpoint and confirms.
 */
void tide_pipeline_halt(struct tide_pipeline *pipeline);
bool tide_pipeline_is_drained(struct tide_pipeline *pipeline);
/** Between the two: a line for each sink that is paused, detached, waits after an error or has not
 * taken all. */
void tide_pipeline_note_behind(struct tide_pipeline *pipeline, struct tide_buf *notes);
tide_status tide_pipeline_finish(struct tide_pipeline *pipeline, struct tide_error *err);

/**
 * After finish: takes out of the source what the pipeline put there and marks its state closed, so
 * that the next copy starts anew. Killed in between, the next open finds LEFTOVER.
 */
tide_status tide_pipeline_detach(struct tide_pipeline *pipeline, struct tide_findings *findings,
                                 struct tide_error *err);

/* Control while it runs. These wait until the wish is in a checkpoint, TIDE_CONTROL_WAIT_US at
 * most (TIDE_TIMEOUT: it may still be done). */

/** Appends one JSON object: what it is doing now (docs/operating.md has its keys). */
void tide_pipeline_report(struct tide_pipeline *pipeline, struct tide_buf *buf);

/**
 * Asks for new copies of the tables that the globs choose (none: all) for the sink (empty: every
 * one). `ret_tables` gets the stores' names, `ret_sinks` the sinks', a line each; of all sinks,
 * those that are detached are left out, since every table is copied to them anyway. Errors:
 * TIDE_INVALID no such sink or table, or the sink is detached; nothing was asked for then.
 */
tide_status tide_pipeline_backfill(struct tide_pipeline *pipeline, tide_str sink,
                                   const tide_str *globs, size_t glob_count,
                                   struct tide_buf *ret_tables, struct tide_buf *ret_sinks,
                                   struct tide_error *err);

/** Closes the sink and leaves its lane as it is, over restarts too. TIDE_INVALID: no such sink. */
tide_status tide_pipeline_pause(struct tide_pipeline *pipeline, tide_str sink,
                                struct tide_error *err);
/** Opens it again; one that waits after an error is opened at once. */
tide_status tide_pipeline_resume(struct tide_pipeline *pipeline, tide_str sink,
                                 struct tide_error *err);

/** Rows that the tables may have, by the source; 0: it cannot tell. */
uint64_t tide_pipeline_estimated_rows(const struct tide_pipeline *pipeline);

/** Counters of ingest, kept up to date, and of the sinks, as they are now. */
const struct tide_ingest_stats *tide_pipeline_stats(const struct tide_pipeline *pipeline);
void tide_pipeline_counts(struct tide_pipeline *pipeline, struct tide_sink_counts *ret_counts);
/** Calls `each` with the tables that could not be copied, and why. After halt. */
void tide_pipeline_each_failure(const struct tide_pipeline *pipeline,
                                void (*each)(void *context, tide_str store, const char *why),
                                void *context);
