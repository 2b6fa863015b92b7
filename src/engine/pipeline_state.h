/* What the files of the pipeline share. Nobody else includes this. */
#pragma once

#include "engine/dead_letters.h"
#include "engine/pipeline.h"
#include "engine/state.h"

#include <pthread.h>

struct tide_pipeline_end {
    struct tide_sink_engine *engine;
    char *name;
    char *place;
    unsigned lane;
};

struct tide_pipeline {
    struct tide_pipeline_options options; /* strings: see arena */
    struct tide_arena arena;
    enum tide_pipeline_found found;
    char *name;
    char *identity;
    struct tide_state *state;
    struct tide_source *source;
    struct tide_stream *stream;
    struct tide_dead_letter_file *dead_letters;
    struct tide_ingest *ingest;
    struct tide_pipeline_end *ends;
    size_t end_count;
    tide_str *tables; /* store names */
    size_t table_count;
    uint64_t estimated_rows;

    struct tide_waker *waker;
    pthread_t thread;
    bool is_running; /* the ingest thread was started and not joined */
    atomic_bool has_ended;
    struct tide_error ended; /* valid once has_ended */
};

/* The checkpoint keeper of the pipeline's ingest; `context` is the pipeline. */
tide_status tide_pipeline_save(void *context, tide_str json, enum tide_checkpoint_phase phase,
                               struct tide_error *err);
