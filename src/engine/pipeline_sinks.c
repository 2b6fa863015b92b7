#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"

#include <stdlib.h>

static const struct tide_checkpoint_sink *find_saved(const struct tide_pipeline *pipeline,
                                                     tide_str name)
{
    for (size_t i = 0; i < pipeline->checkpoint.sink_count; i++) {
        if (tide_str_equal(pipeline->checkpoint.sinks[i].name, name)) {
            return &pipeline->checkpoint.sinks[i];
        }
    }
    return NULL;
}

/* A sink that the checkpoint does not know is new to the pipeline, whatever else goes on: what is
 * at its place is not ours to continue. */
static bool is_resumed(const struct tide_pipeline *pipeline, const struct tide_pipeline_sink *sink)
{
    return pipeline->found == TIDE_PIPELINE_RESUMED && find_saved(pipeline, sink->name) != NULL;
}

/* What a sink detached in an earlier run holds does not matter: it is copied anew. */
static bool must_hold(const struct tide_pipeline *pipeline, const struct tide_pipeline_sink *sink)
{
    return is_resumed(pipeline, sink) && !find_saved(pipeline, sink->name)->is_detached;
}

/* In the sink's thread: it was not open when the pipeline began. */
static tide_status check_late(void *context, const struct tide_sink_held *held,
                              struct tide_error *err)
{
    struct tide_pipeline_end *end = context;
    if (atomic_load(&end->has_lost)) {
        return TIDE_OK; /* known: it is copied anew as soon as its lane is another one */
    }
    if (tide_pipeline_check_held(end->pipeline, end->sink, held, err) != TIDE_OK) {
        atomic_store(&end->has_lost, true);
        tide_waker_wake(end->pipeline->waker);
        err->retriable = true;
        return err->status;
    }
    return TIDE_OK;
}

static void say(tide_str name, const char *what)
{
    tide_log(TIDE_LOG_INFO, "sink %.*s: %s", TIDE_STR_ARG(name), what);
}

static void new_engine(struct tide_pipeline_end *end, bool is_resumed, bool is_checked)
{
    const struct tide_pipeline *pipeline = end->pipeline;
    const struct tide_pipeline_sink *sink = end->sink;
    size_t bytes_max = sink->record_bytes_max;
    struct tide_sink_engine_options options = {
        .name = sink->name,
        .ops = sink->ops,
        .sink =
            {
                .name = sink->name,
                .place = sink->place,
                .pipeline = tide_str_from(pipeline->name),
                .identity = tide_str_from(pipeline->identity),
                .location = tide_str_from(pipeline->location),
                .position_kind = pipeline->options.source_ops->position_kind,
                .existing = sink->existing,
                .is_resumed = is_resumed,
                .incarnation = pipeline->incarnation,
                .record_bytes_max = bytes_max > 0 ? bytes_max : pipeline->options.record_bytes_max,
                .refused = sink->refused,
                .segments = sink->segments,
                .say = say,
                .dead_letters = tide_dead_letter_file_target(pipeline->dead_letters),
            },
        .stream = pipeline->stream,
        .lane = end->lane,
        .waker = pipeline->waker,
        .group_bytes = tide_pipeline_group_bytes(pipeline),
        .wait_max_us = pipeline->options.retry_max_us,
        .keeps_trying = pipeline->options.is_service,
        .check = is_checked ? check_late : NULL,
        .check_context = end,
    };
    end->engine = tide_sink_engine_new(&options);
}

static tide_status add_end(struct tide_pipeline *pipeline, const struct tide_pipeline_sink *sink,
                           struct tide_error *err)
{
    struct tide_pipeline_end *end = &pipeline->ends[pipeline->end_count];
    end->pipeline = pipeline;
    end->sink = sink;
    TIDE_TRY(pipeline->stream->ops->add_lane(pipeline->stream, sink->name, &end->lane, err));
    new_engine(end, is_resumed(pipeline, sink), must_hold(pipeline, sink));
    pipeline->end_count++;
    return TIDE_OK;
}

/* A service copies anew what was lost. */
static tide_status check_held(struct tide_pipeline_end *end, struct tide_buf *notes,
                              struct tide_error *err)
{
    struct tide_pipeline *pipeline = end->pipeline;
    struct tide_sink_held held;
    if (!must_hold(pipeline, end->sink)) {
        return TIDE_OK;
    }
    tide_sink_engine_held(end->engine, &held);
    tide_status status = tide_pipeline_check_held(pipeline, end->sink, &held, err);
    if (status != TIDE_STALE || !pipeline->options.is_service) {
        return status;
    }
    end->must_begin_anew = true;
    tide_buf_printf(notes,
                    "sink %.*s holds less than the checkpoint in %s says: it is copied anew\n",
                    TIDE_STR_ARG(end->sink->name), pipeline->options.state_dir);
    return TIDE_OK;
}

/* `ret_is_late`: it cannot be opened now, which in a service that goes on concerns it alone. */
static tide_status open_end(struct tide_pipeline_end *end, struct tide_buf *notes,
                            bool *ret_is_late, struct tide_error *err)
{
    struct tide_pipeline *pipeline = end->pipeline;
    const struct tide_checkpoint_sink *saved = find_saved(pipeline, end->sink->name);
    bool goes_on = is_resumed(pipeline, end->sink);
    if (goes_on && saved->is_paused) {
        end->is_paused = true;
        tide_sink_engine_pause(end->engine);
        tide_buf_printf(notes, "sink %.*s is paused\n", TIDE_STR_ARG(end->sink->name));
        return TIDE_OK;
    }
    tide_status status = tide_sink_engine_prepare(end->engine, err);
    if (status == TIDE_OK) {
        return check_held(end, notes, err);
    }
    if (!goes_on || !pipeline->options.is_service) {
        return status;
    }
    *ret_is_late = true;
    return TIDE_OK;
}

tide_status tide_pipeline_open_sinks(struct tide_pipeline *pipeline, struct tide_buf *notes,
                                     struct tide_error *err)
{
    size_t count = pipeline->options.sink_count;
    size_t late_count = 0;
    pipeline->ends = tide_alloc(count, sizeof(*pipeline->ends));
    for (size_t i = 0; i < count; i++) {
        bool is_late = false;
        TIDE_TRY(add_end(pipeline, &pipeline->options.sinks[i], err));
        TIDE_TRY(open_end(&pipeline->ends[i], notes, &is_late, err));
        if (is_late) {
            late_count++;
            tide_buf_printf(notes, "sink %.*s cannot be opened now, and is tried again: %s\n",
                            TIDE_STR_ARG(pipeline->options.sinks[i].name), err->message);
        }
    }
    return late_count > 0 && late_count == count ? err->status : TIDE_OK;
}

void tide_pipeline_begin_anew(struct tide_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        if (pipeline->ends[i].must_begin_anew) {
            tide_ingest_start_anew(pipeline->ingest, pipeline->ends[i].lane);
        }
    }
}

static void keep_past(struct tide_pipeline_end *end)
{
    struct tide_sink_counts counts;
    struct tide_sink_engine_status status;
    tide_sink_engine_counts(end->engine, &counts);
    tide_sink_engine_status(end->engine, &status);
    tide_sink_counts_add(&end->past, &counts);
    end->restarts += status.restarts;
}

void tide_pipeline_revive(struct tide_pipeline_end *end)
{
    struct tide_sink_engine_status status;
    tide_sink_engine_status(end->engine, &status);
    if (status.state == TIDE_SINK_FAILED) {
        keep_past(end);
        tide_sink_engine_free(end->engine);
        new_engine(end, true, false);
        tide_sink_engine_start(end->engine);
    }
}

/* Twice in a short time waits longer. */
static void note_detached(struct tide_pipeline_end *end)
{
    int64_t max_us = end->pipeline->options.retry_max_us;
    int64_t now_us = tide_clock_monotonic_us();
    bool is_again =
        end->detached_at_us != 0 && now_us - end->detached_at_us < 2 * max_us && end->wait_us != 0;
    int64_t doubled_us = end->wait_us > max_us / 2 ? max_us : end->wait_us * 2;
    end->wait_us = is_again ? doubled_us : TIDE_RETRY_FIRST_US;
    end->detached_at_us = now_us;
}

/* A new lane under the old name, and a copy of everything. The post comes before the request. */
static tide_status attach_again(struct tide_pipeline_end *end, struct tide_error *err)
{
    struct tide_pipeline *pipeline = end->pipeline;
    struct tide_stream *stream = pipeline->stream;
    uint64_t id = 0;
    TIDE_TRY(stream->ops->add_lane(stream, end->sink->name, &end->lane, err));
    keep_past(end);
    tide_sink_engine_free(end->engine);
    new_engine(end, true, false);
    if (end->is_paused) {
        tide_sink_engine_pause(end->engine);
    }
    const struct tide_ingest_post post = {
        .kind = TIDE_POST_ATTACH, .name = end->sink->name, .lane = end->lane};
    (void)tide_ingest_post(pipeline->ingest, &post);
    TIDE_TRY(stream->ops->request(stream, end->lane, NULL, 0, &id, err));
    tide_sink_engine_start(end->engine);
    end->is_detaching = false;
    atomic_store(&end->has_lost, false);
    end->detached_at_us = tide_clock_monotonic_us();
    tide_log(TIDE_LOG_INFO, "sink %.*s takes part again and is copied anew",
             TIDE_STR_ARG(end->sink->name));
    return TIDE_OK;
}

/* An engine whose lane was dropped ends once its sink is open. */
static bool is_back(struct tide_pipeline_end *end)
{
    struct tide_sink_engine_status status;
    tide_sink_engine_status(end->engine, &status);
    if (status.state != TIDE_SINK_ENDED) {
        return false;
    }
    if (!end->is_detaching) {
        note_detached(end);
        end->is_detaching = true;
    }
    return tide_clock_monotonic_us() >= end->detached_at_us + end->wait_us;
}

tide_status tide_pipeline_attach_again(struct tide_pipeline *pipeline, struct tide_error *err)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_pipeline_end *end = &pipeline->ends[i];
        if (atomic_load(&end->has_lost) && !end->is_detaching) {
            const struct tide_ingest_post post = {.kind = TIDE_POST_DETACH,
                                                  .name = end->sink->name};
            (void)tide_ingest_post(pipeline->ingest, &post);
            note_detached(end);
            end->is_detaching = true;
        }
        if (is_back(end)) {
            TIDE_TRY(attach_again(end, err));
        }
    }
    return TIDE_OK;
}
