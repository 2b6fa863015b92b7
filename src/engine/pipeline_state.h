/* What the files of the pipeline share. Nobody else includes this. */
#pragma once

#include "engine/ingest_report.h"
#include "engine/pipeline.h"
#include "engine/state.h"

#include <pthread.h>

/* A sink of the pipeline; its lane and its engine are other ones after it was detached. */
struct tide_pipeline_end {
    struct tide_pipeline *pipeline;
    const struct tide_pipeline_sink *sink;
    struct tide_sink_engine *engine;
    unsigned lane;
    bool must_begin_anew; /* it has lost what the checkpoint counts as held */
    atomic_bool has_lost; /* the same, found when it was opened after the start */
    bool is_detaching;    /* its lane is gone, or will be as was posted */
    bool is_paused;
    struct tide_sink_counts past; /* of the engines before this one */
    uint64_t restarts;            /* of them */
    int64_t detached_at_us;       /* last time; 0: never */
    int64_t wait_us;              /* between being detached and taking part again */
};

struct tide_pipeline {
    struct tide_pipeline_options options; /* strings: see arena */
    struct tide_arena arena;
    enum tide_pipeline_found found;
    char *name;
    char *identity;
    char *location; /* empty: its identity alone names the source */
    struct tide_state *state;
    struct tide_checkpoint checkpoint; /* that it goes on from; in the arena */
    struct tide_source *source;
    struct tide_stream *stream;
    struct tide_budget *budget; /* outlives all that takes from it */
    struct tide_dead_letter_file *dead_letters;
    struct tide_ingest *ingest;
    struct tide_pipeline_end *ends;
    size_t end_count;
    tide_str *tables; /* store names */
    size_t table_count;
    size_t unfollowed_count; /* tables that were chosen and cannot be followed */
    uint64_t estimated_rows;
    int64_t started_us;   /* UTC */
    uint32_t incarnation; /* of the source's log, as the pipeline counts */

    struct tide_waker *waker;
    pthread_t thread;
    bool is_running; /* the ingest thread was started and not joined */
    atomic_bool has_ended;
    bool is_halted;
    struct tide_error ended; /* valid once has_ended */
};

/** How the source is opened. Borrows from the pipeline. */
struct tide_source_options tide_pipeline_source_options(const struct tide_pipeline *pipeline);

/* pipeline_sinks.c: the sinks as they come, are detached and come back. */

/** Adds a lane for each sink and opens it; one that a running service cannot open now is tried
 * again by its thread, with a note. */
tide_status tide_pipeline_open_sinks(struct tide_pipeline *pipeline, struct tide_buf *notes,
                                     struct tide_error *err);
/** After load: sinks that have lost something begin anew. */
void tide_pipeline_begin_anew(struct tide_pipeline *pipeline);
/** A sink that has failed for good gets another engine on its lane, which begins at once. */
void tide_pipeline_revive(struct tide_pipeline_end *end);
/** Attaches sinks again that were detached and can be written to. */
tide_status tide_pipeline_attach_again(struct tide_pipeline *pipeline, struct tide_error *err);

/* pipeline_behind.c */

/** False: its lane is gone, or about to be; every table is copied to it when it takes part again.
 * The thread that owns the pipeline. */
bool tide_pipeline_takes_part(struct tide_pipeline_end *end);

/* pipeline_memory.c: how the memory is shared out. */

/** Makes the budget, and bounds chunks by it. */
void tide_pipeline_make_budget(struct tide_pipeline *pipeline);
size_t tide_pipeline_batch_bytes(const struct tide_pipeline *pipeline);
size_t tide_pipeline_group_bytes(const struct tide_pipeline *pipeline);

/* pipeline_check.c: what must be true, and what the user must be told, before anything runs. */

/** TIDE_STALE when the sink has lost something that the checkpoint counts as held. Any thread. */
tide_status tide_pipeline_check_held(const struct tide_pipeline *pipeline,
                                     const struct tide_pipeline_sink *sink,
                                     const struct tide_sink_held *held, struct tide_error *err);

/** TIDE_UNSUPPORTED when the checkpoint is another program's, without what going on needs. */
tide_status tide_pipeline_check_checkpoint(const struct tide_pipeline_options *options,
                                           const struct tide_checkpoint *checkpoint,
                                           struct tide_error *err);

/** TIDE_STALE when the checkpoint is of another source than the one of this identity. */
tide_status tide_pipeline_check_identity(const struct tide_pipeline_options *options,
                                         const struct tide_checkpoint *checkpoint,
                                         tide_str identity, struct tide_error *err);

/** TIDE_INVALID when a table that was named, not chosen by a pattern, is not among `tables`. */
tide_status tide_pipeline_check_names(const struct tide_pipeline *pipeline,
                                      const struct tide_relation *const *tables,
                                      struct tide_error *err);

/** Rules of `refused` that are of no table: a mistyped name would go unnoticed. */
tide_status tide_pipeline_note_rules(const struct tide_pipeline *pipeline, struct tide_buf *notes,
                                     struct tide_error *err);

/** What `check` finds wrong: tables that cannot be copied, which are counted too. `notes` NULL:
 * only that. */
tide_status tide_pipeline_note_problems(struct tide_pipeline *pipeline, struct tide_buf *notes,
                                        struct tide_error *err);

/* The checkpoint keeper of the pipeline's ingest; `context` is the pipeline. */
tide_status tide_pipeline_save(void *context, tide_str json, enum tide_checkpoint_phase phase,
                               struct tide_error *err);
