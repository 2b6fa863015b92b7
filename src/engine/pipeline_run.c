#include "base/clock.h"
#include "engine/ingest_loop.h"
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"
#include "port/ways_on.h"

#include <stdlib.h>

static void join_ingest(struct tide_pipeline *pipeline)
{
    if (pipeline->is_running) {
        tide_ingest_stop(pipeline->ingest);
        int rc = pthread_join(pipeline->thread, NULL);
        TIDE_ASSERT(rc == 0);
        pipeline->is_running = false;
    }
}

void tide_pipeline_free(struct tide_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    join_ingest(pipeline);
    for (size_t i = 0; i < pipeline->end_count; i++) {
        tide_sink_engine_free(pipeline->ends[i].engine);
    }
    free(pipeline->ends);
    tide_ingest_free(pipeline->ingest);
    pipeline->stream->ops->free(pipeline->stream);
    tide_budget_free(pipeline->budget);
    tide_dead_letter_file_close(pipeline->dead_letters);
    pipeline->options.source_ops->close(pipeline->source);
    tide_state_close(pipeline->state);
    free(pipeline->name);
    free(pipeline->identity);
    free(pipeline->location);
    tide_arena_done(&pipeline->arena);
    free(pipeline);
}

/* A sink that was never seeded asks for all tables, unless the checkpoint has its request already.
 */
static tide_status ask_for_backfills(struct tide_pipeline *pipeline, struct tide_error *err)
{
    struct tide_stream *stream = pipeline->stream;
    for (size_t i = 0; i < pipeline->end_count; i++) {
        unsigned lane = pipeline->ends[i].lane;
        uint64_t id = 0;
        if (tide_ingest_needs_backfill(pipeline->ingest, lane)) {
            TIDE_TRY(stream->ops->request(stream, lane, pipeline->tables, pipeline->table_count,
                                          &id, err));
        }
    }
    return TIDE_OK;
}

static void *run_ingest(void *arg)
{
    struct tide_pipeline *pipeline = arg;
    struct tide_error err = {0};
    err.status = tide_ingest_run(pipeline->ingest, pipeline->options.source_ops, pipeline->source,
                                 pipeline->options.is_one_shot, &err);
    pipeline->ended = err;
    atomic_store(&pipeline->has_ended, true);
    tide_waker_wake(pipeline->waker);
    return NULL;
}

tide_status tide_pipeline_start(struct tide_pipeline *pipeline, struct tide_error *err)
{
    TIDE_TRY(tide_ingest_start(pipeline->ingest, err));
    TIDE_TRY(ask_for_backfills(pipeline, err));
    for (size_t i = 0; i < pipeline->end_count; i++) {
        tide_sink_engine_start(pipeline->ends[i].engine);
    }
    pipeline->started_us = tide_clock_utc_us();
    pipeline->is_running = true;
    tide_thread_start(&pipeline->thread, run_ingest, pipeline);
    return TIDE_OK;
}

/* The source has told that it is gone. */
static bool is_gone(struct tide_pipeline *pipeline, tide_str store)
{
    const struct tide_source_ops *ops = pipeline->options.source_ops;
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    struct tide_error err;
    if (ops->tables(pipeline->source, &tables, &count, &err) != TIDE_OK) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(tables[i]->store, store)) {
            return false;
        }
    }
    return true;
}

/* Nobody may be told that a copy is complete when a table was never copied. */
static tide_status check_all_copied(struct tide_pipeline *pipeline, struct tide_error *err)
{
    for (size_t i = 0; i < pipeline->table_count * pipeline->end_count; i++) {
        tide_str store = pipeline->tables[i % pipeline->table_count];
        unsigned lane = pipeline->ends[i / pipeline->table_count].lane;
        if (!tide_ingest_is_copy_over(pipeline->ingest, store, lane) && !is_gone(pipeline, store)) {
            return tide_fail(err, TIDE_CORRUPT,
                             "the copy has ended without table %.*s; " TIDE_ANEW_STATE
                             ", and report this",
                             TIDE_STR_ARG(store));
        }
    }
    return TIDE_END;
}

/* Whether the message begins with the sink's name itself. */
static bool names_sink(const struct tide_error *err, tide_str name)
{
    tide_str lead = TIDE_STR("sink ");
    tide_str message = tide_str_from(err->message);
    if (!tide_str_starts_with(message, lead)) {
        return false;
    }
    message = tide_str_of(message.ptr + lead.len, message.len - lead.len);
    return tide_str_starts_with(message, name) && message.ptr[name.len] == ' ';
}

static tide_status fail_as_sink(const struct tide_pipeline *pipeline,
                                const struct tide_pipeline_end *end, struct tide_error *err)
{
    struct tide_sink_engine_status status;
    tide_sink_engine_status(end->engine, &status);
    *err = status.error;
    return pipeline->end_count == 1 || names_sink(err, end->sink->name)
               ? err->status
               : tide_fail_context(err, "sink %.*s", TIDE_STR_ARG(end->sink->name));
}

/* One of those that have failed for good; NULL: none. */
static const struct tide_pipeline_end *find_failed(const struct tide_pipeline *pipeline,
                                                   size_t *ret_count)
{
    const struct tide_pipeline_end *failed = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_sink_engine_status status;
        tide_sink_engine_status(pipeline->ends[i].engine, &status);
        if (status.state == TIDE_SINK_FAILED) {
            failed = &pipeline->ends[i];
            (*ret_count)++;
        }
    }
    return failed;
}

tide_status tide_pipeline_failed_sink(const struct tide_pipeline *pipeline, struct tide_error *err)
{
    size_t count = 0;
    const struct tide_pipeline_end *failed = find_failed(pipeline, &count);
    return failed == NULL ? TIDE_OK : fail_as_sink(pipeline, failed, err);
}

/* In a service the others go on without the one that has failed. */
static tide_status check_going(const struct tide_pipeline *pipeline, struct tide_error *err)
{
    size_t count = 0;
    const struct tide_pipeline_end *failed = find_failed(pipeline, &count);
    bool goes_on = pipeline->options.is_service && count < pipeline->end_count;
    return failed == NULL || goes_on ? TIDE_OK : fail_as_sink(pipeline, failed, err);
}

tide_status tide_pipeline_poll(struct tide_pipeline *pipeline, struct tide_error *err)
{
    if (atomic_load(&pipeline->has_ended)) {
        *err = pipeline->ended;
        return err->status == TIDE_END ? check_all_copied(pipeline, err) : err->status;
    }
    TIDE_TRY(tide_pipeline_attach_again(pipeline, err));
    return check_going(pipeline, err);
}

void tide_pipeline_halt(struct tide_pipeline *pipeline)
{
    join_ingest(pipeline);
    pipeline->is_halted = true;
    pipeline->stream->ops->close(pipeline->stream);
}

bool tide_pipeline_is_drained(struct tide_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_sink_engine_status status;
        tide_sink_engine_status(pipeline->ends[i].engine, &status);
        bool may_come = status.state == TIDE_SINK_WAITING && !pipeline->options.is_service;
        if (status.state == TIDE_SINK_RUNNING || may_come) {
            return false;
        }
    }
    return true;
}

tide_status tide_pipeline_finish(struct tide_pipeline *pipeline, struct tide_error *err)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        tide_sink_engine_stop(pipeline->ends[i].engine);
        tide_sink_engine_join(pipeline->ends[i].engine);
    }
    return tide_ingest_finish(pipeline->ingest, err);
}

tide_status tide_pipeline_detach(struct tide_pipeline *pipeline, struct tide_findings *findings,
                                 struct tide_error *err)
{
    TIDE_TRY(tide_ingest_save_closing(pipeline->ingest, err));
    TIDE_TRY(pipeline->options.source_ops->detach(pipeline->source, findings, err));
    return tide_ingest_save(pipeline->ingest, true, err);
}

const struct tide_ingest_stats *tide_pipeline_stats(const struct tide_pipeline *pipeline)
{
    return tide_ingest_stats(pipeline->ingest);
}

void tide_pipeline_counts(struct tide_pipeline *pipeline, struct tide_sink_counts *ret_counts)
{
    *ret_counts = (struct tide_sink_counts){0};
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_sink_counts one;
        tide_sink_engine_counts(pipeline->ends[i].engine, &one);
        tide_sink_counts_add(ret_counts, &one);
        tide_sink_counts_add(ret_counts, &pipeline->ends[i].past);
    }
}

void tide_pipeline_each_failure(const struct tide_pipeline *pipeline,
                                void (*each)(void *context, tide_str store, const char *why),
                                void *context)
{
    tide_ingest_each_failure(pipeline->ingest, each, context);
}
