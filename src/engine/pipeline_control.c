/* What is asked of a pipeline while it runs. */
#include "base/clock.h"
#include "base/glob.h"
#include "base/limits.h"
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"

#include <unistd.h>

#define LOOK_US         5000
#define REPORT_WAIT_US  2000000
#define SHOWN_BYTES_MAX 300 /* of lists in messages */

/* Waits until the counter has come to `number`. */
static tide_status wait_for(struct tide_pipeline *pipeline, const _Atomic uint64_t *counter,
                            uint64_t number, struct tide_error *err)
{
    int64_t deadline_us = tide_clock_deadline_us(TIDE_CONTROL_WAIT_US);
    while (atomic_load(counter) < number) {
        if (atomic_load(&pipeline->has_ended)) {
            return tide_fail(err, TIDE_CLOSED, "the pipeline has stopped: %s",
                             pipeline->ended.message);
        }
        if (tide_clock_monotonic_us() >= deadline_us) {
            return tide_fail(err, TIDE_TIMEOUT,
                             "no checkpoint has been saved within %d s; it is done as soon as one "
                             "is, unless the pipeline is stopped before: `tidemark status` tells",
                             (int)(TIDE_CONTROL_WAIT_US / 1000000));
        }
        (void)usleep(LOOK_US);
    }
    return TIDE_OK;
}

static struct tide_pipeline_end *find_end(struct tide_pipeline *pipeline, tide_str name)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        if (tide_str_equal(pipeline->ends[i].sink->name, name)) {
            return &pipeline->ends[i];
        }
    }
    return NULL;
}

static tide_status no_such_sink(const struct tide_pipeline *pipeline, tide_str name,
                                struct tide_error *err)
{
    struct tide_buf names TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t i = 0; i < pipeline->end_count; i++) {
        tide_buf_printf(&names, "%s%.*s", i == 0 ? "" : ", ",
                        TIDE_STR_ARG(pipeline->ends[i].sink->name));
    }
    if (name.len == 0) {
        return tide_fail(err, TIDE_INVALID, "say which sink: %s", tide_buf_cstr(&names));
    }
    return tide_fail(err, TIDE_INVALID, "there is no sink %.*s; there is %s", TIDE_STR_ARG(name),
                     tide_buf_cstr(&names));
}

static tide_status post(struct tide_pipeline *pipeline, enum tide_ingest_post_kind kind,
                        tide_str sink, struct tide_error *err)
{
    const struct tide_ingest_post wish = {.kind = kind, .name = sink};
    uint64_t number = tide_ingest_post(pipeline->ingest, &wish);
    return wait_for(pipeline, &tide_ingest_stats(pipeline->ingest)->posts_done, number, err);
}

tide_status tide_pipeline_pause(struct tide_pipeline *pipeline, tide_str sink,
                                struct tide_error *err)
{
    struct tide_pipeline_end *end = find_end(pipeline, sink);
    if (end == NULL) {
        return no_such_sink(pipeline, sink, err);
    }
    end->is_paused = true;
    tide_sink_engine_pause(end->engine);
    return post(pipeline, TIDE_POST_PAUSE, sink, err);
}

tide_status tide_pipeline_resume(struct tide_pipeline *pipeline, tide_str sink,
                                 struct tide_error *err)
{
    struct tide_pipeline_end *end = find_end(pipeline, sink);
    if (end == NULL) {
        return no_such_sink(pipeline, sink, err);
    }
    end->is_paused = false;
    end->wait_us = 0; /* one that was detached takes part again at once */
    tide_pipeline_revive(end);
    tide_sink_engine_resume(end->engine);
    tide_waker_wake(pipeline->waker);
    return post(pipeline, TIDE_POST_RESUME, sink, err);
}

/* Backfills. */

struct choice {
    const tide_str *globs;
    size_t glob_count;
    bool is_new; /* chosen from tables as they are now */
    struct tide_arena arena;
    tide_str *stores;
    size_t count;
    struct tide_buf known; /* names for a message, as many as fit */
};

static bool is_in(const tide_str *names, size_t count, tide_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(names[i], name)) {
            return true;
        }
    }
    return false;
}

/* A table may have several copies, old and new. */
static bool is_first(const struct tide_ingest_report *report, size_t index)
{
    size_t i = 0;
    while (!tide_str_equal(report->copies[i].store, report->copies[index].store)) {
        i++;
    }
    return i == index;
}

static void note_known(struct choice *choice, tide_str store)
{
    struct tide_buf *known = &choice->known;
    if (known->len < SHOWN_BYTES_MAX) {
        tide_buf_printf(known, "%s%.*s", known->len == 0 ? "" : ", ", TIDE_STR_ARG(store));
    } else if (!tide_str_ends_with(tide_buf_str(known), TIDE_STR("…"))) {
        tide_buf_append_str(known, TIDE_STR(", …"));
    }
}

static void choose_store(struct choice *choice, tide_str store)
{
    bool is_chosen = choice->glob_count == 0;
    for (size_t i = 0; i < choice->glob_count; i++) {
        is_chosen = is_chosen || tide_glob_matches_store(choice->globs[i], store);
    }
    if (is_chosen && !is_in(choice->stores, choice->count, store)) {
        choice->stores[choice->count++] = tide_arena_str(&choice->arena, store);
    }
}

/* Every table that is followed has a copy, in whatever state. */
static void choose(void *context, const struct tide_ingest_report *report, bool is_new)
{
    struct choice *choice = context;
    choice->is_new = is_new;
    choice->stores = tide_arena_alloc(&choice->arena, report->copy_count, sizeof(*choice->stores));
    for (size_t i = 0; i < report->copy_count; i++) {
        choose_store(choice, report->copies[i].store);
        if (is_first(report, i)) {
            note_known(choice, report->copies[i].store);
        }
    }
}

static tide_status check_choice(struct choice *choice, struct tide_error *err)
{
    if (!choice->is_new) {
        return tide_fail(err, TIDE_TIMEOUT,
                         "the thread that reads the source does not answer: try again");
    }
    for (size_t g = 0; g < choice->glob_count; g++) {
        bool is_there = false;
        for (size_t i = 0; i < choice->count; i++) {
            is_there = is_there || tide_glob_matches_store(choice->globs[g], choice->stores[i]);
        }
        if (!is_there) {
            return tide_fail(err, TIDE_INVALID, "no table matches %.*s; there are %s",
                             TIDE_STR_ARG(choice->globs[g]), tide_buf_cstr(&choice->known));
        }
    }
    return choice->count > 0 ? TIDE_OK : tide_fail(err, TIDE_INVALID, "no table is copied yet");
}

static tide_status fail_detached(tide_str sink, struct tide_error *err)
{
    if (sink.len == 0) {
        return tide_fail(err, TIDE_INVALID,
                         "every sink is detached: tables are copied anew without being asked for, "
                         "as soon as they take part again");
    }
    return tide_fail(err, TIDE_INVALID,
                     "sink %.*s is detached: every table is copied anew without being asked for, "
                     "as soon as it takes part again",
                     TIDE_STR_ARG(sink));
}

/* Before anything is asked for: is there a sink that can be asked? */
static tide_status check_sink(struct tide_pipeline *pipeline, tide_str sink, struct tide_error *err)
{
    if (sink.len > 0 && find_end(pipeline, sink) == NULL) {
        return no_such_sink(pipeline, sink, err);
    }
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_pipeline_end *end = &pipeline->ends[i];
        if ((sink.len == 0 || tide_str_equal(end->sink->name, sink)) &&
            tide_pipeline_takes_part(end)) {
            return TIDE_OK;
        }
    }
    return fail_detached(sink, err);
}

/* Ingest may have let the sink go since the look: then it is as if it had been before. */
static tide_status request(struct tide_pipeline *pipeline, struct tide_pipeline_end *end,
                           const struct choice *choice, struct tide_buf *sinks, uint64_t *newest,
                           struct tide_error *err)
{
    struct tide_stream *stream = pipeline->stream;
    uint64_t id = 0;
    if (!tide_pipeline_takes_part(end)) {
        return TIDE_OK;
    }
    tide_status status =
        stream->ops->request(stream, end->lane, choice->stores, choice->count, &id, err);
    if (status == TIDE_OK) {
        *newest = id > *newest ? id : *newest;
        tide_buf_printf(sinks, "%.*s\n", TIDE_STR_ARG(end->sink->name));
    }
    return status == TIDE_INVALID ? TIDE_OK : status;
}

static tide_status backfill(struct tide_pipeline *pipeline, tide_str sink,
                            const struct choice *choice, struct tide_buf *sinks,
                            struct tide_error *err)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < pipeline->end_count; i++) {
        struct tide_pipeline_end *end = &pipeline->ends[i];
        if (sink.len == 0 || tide_str_equal(end->sink->name, sink)) {
            TIDE_TRY(request(pipeline, end, choice, sinks, &newest, err));
        }
    }
    if (sinks->len == 0) {
        return fail_detached(sink, err);
    }
    return wait_for(pipeline, &tide_ingest_stats(pipeline->ingest)->requests_saved, newest, err);
}

tide_status tide_pipeline_backfill(struct tide_pipeline *pipeline, tide_str sink,
                                   const tide_str *globs, size_t glob_count,
                                   struct tide_buf *ret_tables, struct tide_buf *ret_sinks,
                                   struct tide_error *err)
{
    struct choice choice = {.globs = globs, .glob_count = glob_count};
    TIDE_TRY(check_sink(pipeline, sink, err));
    int64_t deadline_us = tide_clock_deadline_us(REPORT_WAIT_US);
    tide_ingest_report(pipeline->ingest, deadline_us, choose, &choice);
    tide_status status = check_choice(&choice, err);
    if (status == TIDE_OK) {
        status = backfill(pipeline, sink, &choice, ret_sinks, err);
    }
    for (size_t i = 0; status == TIDE_OK && i < choice.count; i++) {
        tide_buf_printf(ret_tables, "%.*s\n", TIDE_STR_ARG(choice.stores[i]));
    }
    tide_buf_done(&choice.known);
    tide_arena_done(&choice.arena);
    return status;
}
