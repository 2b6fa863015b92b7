#include "cmocka_prelude.h"

#include "sink_engine_kit.h"

#include "base/alloc.h"
#include "stream/channel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct tide_sink {
    struct script *script;
    atomic_uint_fast64_t changes;
};

void rig_sleep_us(int64_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&time, NULL);
}

static bool fails(int *failures)
{
    return *failures > 0 && (*failures)-- > 0;
}

static tide_status fail_as_scripted(const struct script *script, struct tide_error *err)
{
    return script->is_retriable ? tide_fail_retriable(err, script->status, "as the script says")
                                : tide_fail(err, script->status, "as the script says");
}

static void note_wait(struct script *script)
{
    if (script->engine != NULL) {
        struct tide_sink_engine_status status;
        tide_sink_engine_status(script->engine, &status);
        tide_buf_printf(&script->waits, "%lld ", (long long)status.wait_us);
    }
}

static tide_status double_open(const struct tide_sink_options *options, struct tide_sink **ret_sink,
                               struct tide_error *err)
{
    struct script *script = options->dead_letters.context;
    tide_mutex_lock(&script->mutex);
    note_wait(script);
    bool is_failing = fails(&script->open_failures);
    TIDE_ASSERT(options->existing == TIDE_EXISTING_OVERWRITE); /* as it was given */
    tide_buf_printf(&script->log, "%s%s ", options->is_resumed ? "r" : "o", is_failing ? "!" : "");
    tide_mutex_unlock(&script->mutex);
    if (is_failing) {
        return fail_as_scripted(script, err);
    }
    *ret_sink = tide_alloc(1, sizeof(**ret_sink));
    (*ret_sink)->script = script;
    return TIDE_OK;
}

static void double_close(struct tide_sink *sink)
{
    if (sink == NULL) {
        return;
    }
    tide_mutex_lock(&sink->script->mutex);
    tide_buf_append_str(&sink->script->log, TIDE_STR("c "));
    tide_mutex_unlock(&sink->script->mutex);
    free(sink);
}

static void double_held(struct tide_sink *sink, struct tide_sink_held *ret_held)
{
    *ret_held =
        (struct tide_sink_held){.is_known = sink->script->held.known, .place = sink->script->held};
}

static tide_status double_write(struct tide_sink *sink, const struct tide_batch *batch,
                                size_t first_change, struct tide_error *err)
{
    struct script *script = sink->script;
    rig_sleep_us(script->write_us);
    tide_mutex_lock(&script->mutex);
    bool is_failing = !fails(&script->write_failures_skip) && fails(&script->write_failures);
    tide_buf_printf(&script->log, "w%llu:%zu%s ", (unsigned long long)batch->position.lo,
                    first_change, is_failing ? "!" : "");
    tide_mutex_unlock(&script->mutex);
    sink->changes += batch->change_count - first_change;
    return is_failing ? fail_as_scripted(script, err) : TIDE_OK;
}

static tide_status double_flush(struct tide_sink *sink, bool is_caught_up, struct tide_error *err)
{
    struct script *script = sink->script;
    uint64_t floor = script->stream->ops->held(script->stream, script->lane);
    tide_mutex_lock(&script->mutex);
    bool is_failing = fails(&script->flush_failures);
    tide_buf_printf(&script->log, "f%d@%llu%s ", is_caught_up, (unsigned long long)floor,
                    is_failing ? "!" : "");
    tide_mutex_unlock(&script->mutex);
    return is_failing ? fail_as_scripted(script, err) : TIDE_OK;
}

static tide_status double_finish(struct tide_sink *sink, struct tide_error *err)
{
    struct script *script = sink->script;
    tide_mutex_lock(&script->mutex);
    bool is_failing = fails(&script->finish_failures);
    tide_buf_printf(&script->log, "e%s ", is_failing ? "!" : "");
    tide_mutex_unlock(&script->mutex);
    return is_failing ? fail_as_scripted(script, err) : TIDE_OK;
}

static void double_counts(const struct tide_sink *sink, struct tide_sink_counts *ret_counts)
{
    *ret_counts = (struct tide_sink_counts){.changes = sink->changes};
}

static const struct tide_sink_ops double_ops = {
    .scheme = "double",
    .open = double_open,
    .close = double_close,
    .held = double_held,
    .write_batch = double_write,
    .flush = double_flush,
    .counts = double_counts,
};

const struct tide_sink_ops rig_finishing_ops = {
    .scheme = "finishing",
    .open = double_open,
    .close = double_close,
    .held = double_held,
    .write_batch = double_write,
    .flush = double_flush,
    .finish = double_finish,
    .counts = double_counts,
};

struct tide_error rig_err;

void rig_engine(struct rig *rig)
{
    rig->engine = tide_sink_engine_new(&rig->options);
}

void rig_stream(struct rig *rig)
{
    *rig = (struct rig){.script = {.status = TIDE_IO, .is_retriable = true}};
    assert_int_equal(pthread_mutex_init(&rig->script.mutex, NULL), 0);
    assert_int_equal(tide_channel_new(NULL, &rig->stream, &rig_err), TIDE_OK);
    assert_int_equal(rig->stream->ops->add_lane(rig->stream, TIDE_STR("x"), &rig->lane, &rig_err),
                     TIDE_OK);
    tide_waker_init(&rig->done);
    rig->script.stream = rig->stream;
    rig->script.lane = rig->lane;
    rig->options = (struct tide_sink_engine_options){
        .name = TIDE_STR("x"),
        .ops = &double_ops,
        .sink = {.existing = TIDE_EXISTING_OVERWRITE, .dead_letters.context = &rig->script},
        .stream = rig->stream,
        .lane = rig->lane,
        .waker = &rig->done,
        .wait_first_us = 1000,
        .wait_max_us = 4000,
    };
}

void rig_open(struct rig *rig)
{
    rig_stream(rig);
    rig_engine(rig);
}

void rig_close(struct rig *rig)
{
    tide_sink_engine_free(rig->engine);
    rig->stream->ops->free(rig->stream);
    tide_waker_done(&rig->done);
    tide_buf_done(&rig->script.log);
    tide_buf_done(&rig->script.waits);
    (void)pthread_mutex_destroy(&rig->script.mutex);
}

void rig_publish_item(struct rig *rig, struct tide_item item)
{
    struct tide_publication publication = {.item = item, .pending = (tide_lane_set)1 << rig->lane};
    assert_int_equal(
        rig->stream->ops->publish(rig->stream, &publication, NULL, TIDE_NO_DEADLINE, &rig_err),
        TIDE_OK);
    tide_item_unref(item);
}

struct tide_batch *rig_batch(uint64_t position, size_t change_count)
{
    struct tide_batch *batch = tide_batch_new();
    batch->size = 1000;
    batch->has_position = true;
    batch->position.lo = position;
    batch->changes = tide_alloc(change_count, sizeof(*batch->changes));
    batch->change_count = change_count;
    for (size_t i = 0; i < change_count; i++) {
        batch->changes[i].place =
            (struct tide_place){.position.lo = position, .index = i, .known = true};
    }
    return batch;
}

void rig_publish(struct rig *rig, uint64_t position)
{
    rig_publish_item(rig, (struct tide_item){.batch = rig_batch(position, 1)});
}

void rig_publish_some(struct rig *rig, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        rig_publish(rig, i);
    }
}

struct tide_sink_engine_status rig_status(struct rig *rig)
{
    struct tide_sink_engine_status status;
    tide_sink_engine_status(rig->engine, &status);
    return status;
}

void rig_await_floor(struct rig *rig, uint64_t build)
{
    int64_t deadline_us = tide_clock_deadline_us(10000000);
    while (rig->stream->ops->held(rig->stream, rig->lane) < build) {
        assert_true(tide_clock_monotonic_us() < deadline_us);
        rig_sleep_us(500);
    }
}

void rig_await_state(struct rig *rig, enum tide_sink_engine_state state)
{
    int64_t deadline_us = tide_clock_deadline_us(10000000);
    while (rig_status(rig).state != state) {
        assert_true(tide_clock_monotonic_us() < deadline_us);
        rig_sleep_us(500);
    }
}

void rig_expect_log(struct rig *rig, const char *want)
{
    tide_mutex_lock(&rig->script.mutex);
    char *got = tide_strndup(rig->script.log.ptr, rig->script.log.len);
    tide_mutex_unlock(&rig->script.mutex);
    assert_string_equal(got, want);
    free(got);
}

void rig_close_and_join(struct rig *rig)
{
    rig->stream->ops->close(rig->stream);
    tide_sink_engine_join(rig->engine);
    assert_int_equal(rig_status(rig).state, TIDE_SINK_ENDED);
}

void script_set_failure(struct script *script, int where, int count)
{
    int *const places[] = {&script->open_failures, &script->write_failures,
                           &script->flush_failures};
    *places[where] = count;
}
