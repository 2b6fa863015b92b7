#include "engine/sink_engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>

#define GOOD_RUN_US ((int64_t)60000000)

/* How a part of the work ended. */
enum outcome {
    OUTCOME_GO_ON,
    OUTCOME_ERROR,   /* try again later */
    OUTCOME_FAILED,  /* for good */
    OUTCOME_ENDED,   /* nothing more will come */
    OUTCOME_STOPPED, /* asked for */
    OUTCOME_PAUSED,  /* asked for */
};

struct tide_sink_engine {
    struct tide_sink_engine_options options;
    char *name;
    pthread_t thread;
    bool is_started;
    bool was_opened;        /* once: what is there is ours */
    struct tide_place held; /* what the sink held when it was opened; unknown: cannot tell */
    struct tide_lane_consumer end;
    struct tide_delivery *group; /* written since the last flush; options.group_items places */
    size_t group_count;
    size_t group_done; /* the first so many of them are acknowledged */
    size_t group_bytes;
    atomic_bool is_stopping;
    atomic_bool is_paused;
    atomic_bool is_hurried;          /* the wait for the restart is over */
    struct tide_waker wake;          /* ends a wait for the restart, or a pause */
    pthread_mutex_t mutex;           /* of what follows */
    struct tide_sink *sink;          /* NULL: closed. Changed by its thread only */
    struct tide_sink_counts past;    /* of the openings before this one */
    struct tide_sink_counts flushed; /* of this one, as of its last flush; its thread's */
    struct tide_sink_engine_status status;
};

static void set_defaults(struct tide_sink_engine_options *options)
{
    options->group_items = options->group_items == 0 ? TIDE_SINK_GROUP_ITEMS : options->group_items;
    options->group_bytes = options->group_bytes == 0 ? TIDE_SINK_GROUP_BYTES : options->group_bytes;
    options->wait_first_us =
        options->wait_first_us == 0 ? TIDE_RETRY_FIRST_US : options->wait_first_us;
    options->wait_max_us = options->wait_max_us == 0 ? TIDE_RETRY_MAX_US : options->wait_max_us;
    options->good_run_us = options->good_run_us == 0 ? GOOD_RUN_US : options->good_run_us;
}

struct tide_sink_engine *tide_sink_engine_new(const struct tide_sink_engine_options *options)
{
    struct tide_sink_engine *engine = tide_alloc(1, sizeof(*engine));
    engine->options = *options;
    set_defaults(&engine->options);
    engine->name = tide_strndup(options->name.ptr, options->name.len);
    engine->options.name.ptr = engine->name;
    engine->group = tide_alloc(engine->options.group_items, sizeof(*engine->group));
    tide_waker_init(&engine->wake);
    TIDE_ASSERT(pthread_mutex_init(&engine->mutex, NULL) == 0);
    return engine;
}

void tide_sink_engine_free(struct tide_sink_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    if (engine->is_started) {
        tide_sink_engine_stop(engine);
        tide_sink_engine_join(engine);
    }
    engine->options.ops->close(engine->sink); /* prepared, never started */
    (void)pthread_mutex_destroy(&engine->mutex);
    tide_waker_done(&engine->wake);
    free(engine->group);
    free(engine->name);
    free(engine);
}

/* Once opened, the target holds what we acknowledged: it is gone on with, never replaced. */
static tide_status open_sink(struct tide_sink_engine *engine, struct tide_error *err)
{
    struct tide_sink_options options = engine->options.sink;
    if (engine->was_opened) {
        options.is_resumed = true;
    }
    struct tide_sink *sink = NULL;
    TIDE_TRY(engine->options.ops->open(&options, &sink, err));
    engine->was_opened = true;
    struct tide_sink_held held = {0};
    engine->options.ops->held(sink, &held);
    engine->held = held.is_known ? held.place : (struct tide_place){0};
    tide_mutex_lock(&engine->mutex);
    engine->sink = sink;
    tide_mutex_unlock(&engine->mutex);
    return TIDE_OK;
}

static void close_sink(struct tide_sink_engine *engine)
{
    struct tide_sink *sink = engine->sink;
    if (sink == NULL) {
        return;
    }
    struct tide_sink_counts counts = {0};
    tide_mutex_lock(&engine->mutex);
    engine->options.ops->counts(sink, &counts);
    tide_sink_counts_take_held(&engine->past, &engine->flushed, &counts);
    engine->flushed = (struct tide_sink_counts){0};
    engine->sink = NULL;
    tide_mutex_unlock(&engine->mutex);
    engine->options.ops->close(sink);
}

tide_status tide_sink_engine_prepare(struct tide_sink_engine *engine, struct tide_error *err)
{
    TIDE_ASSERT(!engine->is_started && engine->sink == NULL);
    return open_sink(engine, err);
}

void tide_sink_engine_held(struct tide_sink_engine *engine, struct tide_sink_held *ret_held)
{
    TIDE_ASSERT(!engine->is_started && engine->sink != NULL);
    engine->options.ops->held(engine->sink, ret_held);
}

static bool is_stopping(const struct tide_sink_engine *engine)
{
    return atomic_load_explicit(&engine->is_stopping, memory_order_acquire);
}

/* A reader that went away does not come back to the same pipe. */
static enum outcome sink_error(const struct tide_sink_engine *engine, const struct tide_error *err)
{
    bool is_lasting = err->status == TIDE_INVALID || err->status == TIDE_STALE ||
                      err->status == TIDE_CORRUPT || err->status == TIDE_UNSUPPORTED ||
                      err->status == TIDE_CLOSED || err->status == TIDE_IO;
    bool keeps_trying =
        engine->options.keeps_trying && !err->is_final && err->status != TIDE_CLOSED;
    return is_lasting && !err->retriable && !keeps_trying ? OUTCOME_FAILED : OUTCOME_ERROR;
}

static enum outcome stream_outcome(const struct tide_sink_engine *engine, tide_status status,
                                   const struct tide_error *err)
{
    switch (status) {
    case TIDE_OK:
    case TIDE_TIMEOUT:
        return OUTCOME_GO_ON;
    case TIDE_CANCELLED:
        return OUTCOME_STOPPED;
    case TIDE_END:
    case TIDE_CLOSED:
        return OUTCOME_ENDED;
    case TIDE_INVALID:
    case TIDE_CORRUPT:
    case TIDE_UNSUPPORTED:
    case TIDE_IO:
    case TIDE_REMOTE:
    case TIDE_STALE:
        break;
    }
    return sink_error(engine, err);
}

/* What was asked for meanwhile, if anything. */
static enum outcome asked_for(const struct tide_sink_engine *engine)
{
    if (is_stopping(engine)) {
        return OUTCOME_STOPPED;
    }
    return atomic_load_explicit(&engine->is_paused, memory_order_acquire) ? OUTCOME_PAUSED
                                                                          : OUTCOME_GO_ON;
}

/* The item may leave the lane while it is written (the lane is dropped): hence the reference. */
static tide_status write_item(struct tide_sink_engine *engine, struct tide_item item,
                              struct tide_error *err)
{
    if (item.kind != TIDE_ITEM_BATCH) {
        return TIDE_OK;
    }
    struct tide_batch *batch = tide_batch_ref(item.batch);
    engine->group_bytes += batch->size;
    tide_status status = engine->options.ops->write_batch(
        engine->sink, batch, tide_batch_count_until(batch, engine->held), err);
    tide_batch_unref(batch);
    return status;
}

static bool is_group_full(const struct tide_sink_engine *engine)
{
    return engine->group_count == engine->options.group_items ||
           engine->group_bytes >= engine->options.group_bytes;
}

/* Waits for an item, then writes all that is at hand. OUTCOME_GO_ON with an empty group: woken. */
static enum outcome write_group(struct tide_sink_engine *engine, struct tide_error *err)
{
    const struct tide_stream_ops *lanes = engine->options.stream->ops;
    engine->group_count = 0;
    engine->group_done = 0;
    engine->group_bytes = 0;
    while (!is_group_full(engine)) {
        enum outcome asked = asked_for(engine);
        if (asked != OUTCOME_GO_ON) {
            return asked;
        }
        struct tide_delivery *delivery = &engine->group[engine->group_count];
        int64_t deadline_us = engine->group_count == 0 ? TIDE_NO_DEADLINE : 0;
        tide_status status = lanes->receive(&engine->end, deadline_us, delivery, err);
        if (status != TIDE_OK) {
            /* what is written is flushed first; then the stream says the same again */
            return engine->group_count > 0 ? OUTCOME_GO_ON : stream_outcome(engine, status, err);
        }
        engine->group_count++;
        if (write_item(engine, delivery->item, err) != TIDE_OK) {
            return sink_error(engine, err);
        }
    }
    return OUTCOME_GO_ON;
}

static enum outcome acknowledge_group(struct tide_sink_engine *engine, struct tide_error *err)
{
    const struct tide_stream_ops *lanes = engine->options.stream->ops;
    enum outcome outcome = OUTCOME_GO_ON;
    while (engine->group_done < engine->group_count && outcome == OUTCOME_GO_ON) {
        tide_status status =
            lanes->acknowledge(&engine->end, &engine->group[engine->group_done], err);
        outcome = stream_outcome(engine, status, err);
        engine->group_done += outcome == OUTCOME_GO_ON;
    }
    tide_mutex_lock(&engine->mutex);
    engine->status.acknowledged += engine->group_done;
    tide_mutex_unlock(&engine->mutex);
    return outcome;
}

/* What is not acknowledged waits on the lane again, so that dropping the lane lets go of it even
 * while this sink stays closed. A stream that refuses has it already. */
static void give_back_group(struct tide_sink_engine *engine)
{
    struct tide_error ignored;
    if (engine->group_done < engine->group_count) {
        (void)engine->options.stream->ops->give_back(&engine->end,
                                                     &engine->group[engine->group_done], &ignored);
    }
    engine->group_count = 0;
    engine->group_done = 0;
}

static enum outcome run_group(struct tide_sink_engine *engine, struct tide_error *err)
{
    enum outcome outcome = write_group(engine, err);
    if (outcome != OUTCOME_GO_ON || engine->group_count == 0) {
        return outcome;
    }
    bool is_caught_up = engine->options.stream->ops->is_empty(&engine->end);
    if (engine->options.ops->flush(engine->sink, is_caught_up, err) != TIDE_OK) {
        return sink_error(engine, err);
    }
    engine->options.ops->counts(engine->sink, &engine->flushed);
    return acknowledge_group(engine, err);
}

static enum outcome attach(struct tide_sink_engine *engine, struct tide_error *err)
{
    struct tide_stream *stream = engine->options.stream;
    tide_status status = stream->ops->attach(stream, engine->options.lane, &engine->end, err);
    if (status == TIDE_INVALID) {
        return OUTCOME_ENDED; /* the lane was dropped while the sink was closed */
    }
    return stream_outcome(engine, status, err);
}

static tide_status open_checked(struct tide_sink_engine *engine, struct tide_error *err)
{
    TIDE_TRY(open_sink(engine, err));
    if (engine->options.check == NULL) {
        return TIDE_OK;
    }
    struct tide_sink_held held = {0};
    engine->options.ops->held(engine->sink, &held);
    tide_status status = engine->options.check(engine->options.check_context, &held, err);
    if (status != TIDE_OK) {
        close_sink(engine);
    }
    return status;
}

/* The lane has been drained, not dropped: what the sink has is what it was to get. */
static void finish_sink(struct tide_sink_engine *engine)
{
    const struct tide_stream_ops *lanes = engine->options.stream->ops;
    struct tide_error err = {0};
    unsigned lane = 0;
    if (engine->options.ops->finish == NULL || engine->sink == NULL ||
        lanes->find_lane(engine->options.stream, engine->options.name, &lane, &err) != TIDE_OK ||
        lane != engine->options.lane) {
        return;
    }
    if (engine->options.ops->finish(engine->sink, &err) != TIDE_OK) {
        tide_log(TIDE_LOG_WARN, "sink %s: at its end: %s%s", engine->name, err.message,
                 err.status == TIDE_CORRUPT ? "" : "; all is held there nevertheless");
    }
    engine->options.ops->counts(engine->sink, &engine->flushed);
}

/* From opening the sink to closing it. */
static enum outcome run_once(struct tide_sink_engine *engine, struct tide_error *err)
{
    bool is_restart = engine->status.restarts > 0; /* written by this thread alone */
    if (engine->sink == NULL && open_checked(engine, err) != TIDE_OK) {
        return sink_error(engine, err);
    }
    enum outcome outcome = attach(engine, err);
    if (outcome == OUTCOME_GO_ON && is_restart) {
        tide_log(TIDE_LOG_INFO, "sink %s is open again", engine->name);
    }
    while (outcome == OUTCOME_GO_ON) {
        outcome = run_group(engine, err);
    }
    give_back_group(engine);
    if (outcome == OUTCOME_ENDED) {
        finish_sink(engine);
    }
    close_sink(engine);
    return outcome;
}

static void set_state(struct tide_sink_engine *engine, enum tide_sink_engine_state state,
                      const struct tide_error *error)
{
    tide_mutex_lock(&engine->mutex);
    engine->status.state = state;
    if (error != NULL) {
        engine->status.error = *error;
    }
    tide_mutex_unlock(&engine->mutex);
}

static void wait_for_restart(struct tide_sink_engine *engine, int64_t wait_us,
                             const struct tide_error *error)
{
    tide_log(TIDE_LOG_WARN, "sink %s: %s; opened again in %lld ms", engine->name, error->message,
             (long long)(wait_us / 1000));
    int64_t deadline_us = tide_clock_deadline_us(wait_us);
    tide_mutex_lock(&engine->mutex);
    engine->status.wait_us = wait_us;
    engine->status.wait_until_us = deadline_us;
    engine->status.restarts++;
    tide_mutex_unlock(&engine->mutex);
    set_state(engine, TIDE_SINK_WAITING, error);
    while (asked_for(engine) == OUTCOME_GO_ON && !atomic_exchange(&engine->is_hurried, false) &&
           tide_waker_wait(&engine->wake, deadline_us)) {
    }
}

/* The error before the pause is kept for who asks. */
static void wait_while_paused(struct tide_sink_engine *engine)
{
    set_state(engine, TIDE_SINK_PAUSED, NULL);
    close_sink(engine); /* prepared, and paused before it began */
    while (asked_for(engine) == OUTCOME_PAUSED) {
        (void)tide_waker_wait(&engine->wake, TIDE_NO_DEADLINE);
    }
}

static int64_t next_wait_us(const struct tide_sink_engine_options *options, int64_t wait_us)
{
    if (wait_us == 0) {
        return options->wait_first_us;
    }
    return wait_us > options->wait_max_us / 2 ? options->wait_max_us : wait_us * 2;
}

static void finish(struct tide_sink_engine *engine, enum outcome outcome,
                   const struct tide_error *error)
{
    if (outcome == OUTCOME_FAILED) {
        tide_log(TIDE_LOG_ERROR, "sink %s has failed: %s", engine->name, error->message);
        set_state(engine, TIDE_SINK_FAILED, error);
    } else {
        set_state(engine, outcome == OUTCOME_ENDED ? TIDE_SINK_ENDED : TIDE_SINK_STOPPED, NULL);
    }
    if (engine->options.waker != NULL) {
        tide_waker_wake(engine->options.waker);
    }
}

static void *run(void *arg)
{
    struct tide_sink_engine *engine = arg;
    struct tide_error err = {0};
    enum outcome outcome = OUTCOME_STOPPED;
    int64_t wait_us = 0;
    while (!is_stopping(engine)) {
        if (asked_for(engine) == OUTCOME_PAUSED) {
            wait_while_paused(engine);
            wait_us = 0;
            continue;
        }
        set_state(engine, TIDE_SINK_RUNNING, NULL);
        atomic_store(&engine->is_hurried, false);
        int64_t from_us = tide_clock_monotonic_us();
        outcome = run_once(engine, &err);
        if (outcome != OUTCOME_ERROR && outcome != OUTCOME_PAUSED) {
            break;
        }
        if (outcome == OUTCOME_PAUSED) {
            outcome = OUTCOME_STOPPED;
            continue;
        }
        bool was_good = tide_clock_monotonic_us() - from_us >= engine->options.good_run_us;
        wait_us = next_wait_us(&engine->options, was_good ? 0 : wait_us);
        wait_for_restart(engine, wait_us, &err);
        outcome = OUTCOME_STOPPED;
    }
    close_sink(engine);
    finish(engine, outcome, &err);
    return NULL;
}

void tide_sink_engine_start(struct tide_sink_engine *engine)
{
    TIDE_ASSERT(!engine->is_started);
    engine->is_started = true;
    set_state(engine, TIDE_SINK_RUNNING, NULL);
    tide_thread_start(&engine->thread, run, engine);
}

void tide_sink_engine_stop(struct tide_sink_engine *engine)
{
    atomic_store_explicit(&engine->is_stopping, true, memory_order_release);
    tide_waker_wake(&engine->wake);
    engine->options.stream->ops->interrupt(engine->options.stream, engine->options.lane);
}

void tide_sink_engine_pause(struct tide_sink_engine *engine)
{
    atomic_store_explicit(&engine->is_paused, true, memory_order_release);
    tide_waker_wake(&engine->wake);
    engine->options.stream->ops->interrupt(engine->options.stream, engine->options.lane);
}

void tide_sink_engine_resume(struct tide_sink_engine *engine)
{
    atomic_store(&engine->is_hurried, true);
    atomic_store_explicit(&engine->is_paused, false, memory_order_release);
    tide_waker_wake(&engine->wake);
}

void tide_sink_engine_join(struct tide_sink_engine *engine)
{
    if (engine->is_started) {
        TIDE_ASSERT(pthread_join(engine->thread, NULL) == 0);
        engine->is_started = false;
    }
}

void tide_sink_engine_status(struct tide_sink_engine *engine,
                             struct tide_sink_engine_status *ret_status)
{
    tide_mutex_lock(&engine->mutex);
    *ret_status = engine->status;
    tide_mutex_unlock(&engine->mutex);
}

void tide_sink_engine_counts(struct tide_sink_engine *engine, struct tide_sink_counts *ret_counts)
{
    struct tide_sink_counts counts = {0};
    tide_mutex_lock(&engine->mutex);
    if (engine->sink != NULL) {
        engine->options.ops->counts(engine->sink, &counts);
    }
    tide_sink_counts_add(&counts, &engine->past);
    tide_mutex_unlock(&engine->mutex);
    *ret_counts = counts;
}
