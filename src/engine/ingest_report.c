#include "engine/ingest_report.h"

#include "base/clock.h"
#include "engine/ingest_state.h"

#include <stdlib.h>

#define LOOK_US 100000 /* between two looks at the lanes */

void tide_ingest_reporting_init(struct tide_ingest_reporting *reporting)
{
    int rc = pthread_mutex_init(&reporting->mutex, NULL);
    TIDE_ASSERT(rc == 0);
    tide_cond_init(&reporting->drawn);
    reporting->moved_at_us = tide_clock_monotonic_us();
}

void tide_ingest_reporting_done(struct tide_ingest_reporting *reporting)
{
    tide_arena_done(&reporting->report.arena);
    (void)pthread_cond_destroy(&reporting->drawn);
    (void)pthread_mutex_destroy(&reporting->mutex);
}

/* Where the source was when: for the age of what is not held. */

static int64_t committed_us(const struct tide_batch *batch)
{
    int64_t commit_us =
        batch->change_count > 0 ? batch->changes[batch->change_count - 1].commit_us : 0;
    return commit_us != 0 ? commit_us : tide_clock_utc_us();
}

/* Every second one goes. */
static void thin_marks(struct tide_ingest_reporting *reporting)
{
    for (size_t i = 0; i < TIDE_REPORT_MARKS / 2; i++) {
        reporting->marks[i] = reporting->marks[2 * i];
    }
    reporting->mark_count = TIDE_REPORT_MARKS / 2;
}

void tide_ingest_note_published(struct tide_ingest *ingest, const struct tide_batch *batch)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    if (!batch->has_position) { /* a part of a transaction */
        reporting->open_at_us =
            reporting->open_at_us != 0 ? reporting->open_at_us : committed_us(batch);
        return;
    }
    if (reporting->mark_count == TIDE_REPORT_MARKS) {
        thin_marks(reporting);
    }
    reporting->marks[reporting->mark_count++] = (struct tide_report_mark){
        .position = batch->position,
        .at_us = reporting->open_at_us != 0 ? reporting->open_at_us : committed_us(batch),
    };
    reporting->open_at_us = 0;
}

static void forget_held_marks(struct tide_ingest *ingest)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    size_t held = 0;
    while (held < reporting->mark_count &&
           tide_position_compare(reporting->marks[held].position, ingest->held) <= 0) {
        held++;
    }
    reporting->mark_count -= held;
    memmove(reporting->marks, reporting->marks + held,
            reporting->mark_count * sizeof(reporting->marks[0]));
}

static int64_t lag_us(const struct tide_ingest_reporting *reporting)
{
    int64_t at_us = reporting->mark_count > 0 ? reporting->marks[0].at_us : reporting->open_at_us;
    int64_t lag = at_us == 0 ? 0 : tide_clock_utc_us() - at_us;
    return lag > 0 ? lag : 0;
}

/* Whether things move. */

static bool has_work(const struct tide_ingest *ingest)
{
    if (ingest->requests != NULL || ingest->lost.status != TIDE_OK ||
        !ingest->options.stream->ops->is_idle(ingest->options.stream)) {
        return true;
    }
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->state == TIDE_COPY_QUEUED || item->copy->state == TIDE_COPY_RUNNING) {
            return true;
        }
    }
    return false;
}

static void look_at_lane(struct tide_ingest *ingest, struct tide_ingest_sink *sink, int64_t now_us)
{
    struct tide_stream *stream = ingest->options.stream;
    size_t items = 0;
    size_t bytes = 0;
    uint64_t floor = stream->ops->held(stream, sink->lane);
    stream->ops->lane_load(stream, sink->lane, &items, &bytes);
    bool is_new = sink->floor_moved_us == 0;
    if (items == 0 || floor != sink->floor || sink->is_paused || is_new) {
        sink->floor = floor;
        sink->floor_moved_us = now_us;
    }
}

void tide_ingest_look(struct tide_ingest *ingest)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    int64_t now_us = tide_clock_monotonic_us();
    if (reporting->has_moved) {
        reporting->moved_at_us = now_us;
        reporting->has_moved = false;
    }
    if (now_us - reporting->looked_at_us < LOOK_US) {
        return;
    }
    reporting->looked_at_us = now_us;
    for (size_t i = 0; i < ingest->sink_count; i++) {
        if (ingest->sinks[i].is_attached) {
            look_at_lane(ingest, &ingest->sinks[i], now_us);
        }
    }
}

/* The picture. */

static tide_str position_in(struct tide_arena *arena, const struct tide_ingest *ingest,
                            struct tide_position position)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    ingest->options.source_ops->position_kind->write(position, &text);
    return tide_arena_str(arena, tide_buf_str(&text));
}

static void draw_sinks(const struct tide_ingest *ingest, struct tide_ingest_report *report)
{
    report->sinks = tide_arena_alloc(&report->arena, ingest->sink_count, sizeof(*report->sinks));
    report->sink_count = ingest->sink_count;
    for (size_t i = 0; i < ingest->sink_count; i++) {
        const struct tide_ingest_sink *sink = &ingest->sinks[i];
        int64_t unmoved_us = report->drawn_at_us - sink->floor_moved_us;
        report->sinks[i] = (struct tide_report_sink){
            .name = tide_arena_str(&report->arena, tide_str_from(sink->name)),
            .is_attached = sink->is_attached,
            .is_seeded = sink->is_seeded,
            .is_detached = sink->is_detached,
            .is_paused = sink->is_paused,
            .unmoved_us = sink->is_attached && unmoved_us > 2 * LOOK_US ? unmoved_us : 0,
        };
    }
}

static void draw_copy(const struct tide_ingest *ingest, const struct tide_copy *copy,
                      struct tide_arena *arena, struct tide_report_copy *ret_copy)
{
    tide_str *sinks = tide_arena_alloc(arena, copy->share_count, sizeof(*sinks));
    size_t sink_count = 0;
    for (size_t i = 0; i < copy->share_count; i++) {
        const struct tide_ingest_sink *sink = tide_ingest_sink_of(ingest, copy->shares[i].lane);
        if (sink != NULL) {
            sinks[sink_count++] = tide_arena_str(arena, tide_str_from(sink->name));
        }
    }
    bool was_started = copy->state != TIDE_COPY_QUEUED && copy->state != TIDE_COPY_DONE;
    *ret_copy = (struct tide_report_copy){
        .store = tide_arena_str(arena, copy->relation->store),
        .sinks = sinks,
        .sink_count = sink_count,
        .state = copy->state,
        .attempt = copy->head.attempt,
        .rows = was_started ? copy->next_seq : copy->held_seq,
        .failure = tide_arena_str(arena, tide_str_from(copy->failure)),
    };
    memcpy(ret_copy->snapshot_id, copy->head.id, sizeof(ret_copy->snapshot_id));
}

static void draw_copies(const struct tide_ingest *ingest, struct tide_ingest_report *report)
{
    size_t count = 0;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        count++;
    }
    report->copies = tide_arena_alloc(&report->arena, count, sizeof(*report->copies));
    report->copy_count = count;
    size_t at = 0;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        draw_copy(ingest, item->copy, &report->arena, &report->copies[at++]);
    }
}

static struct tide_ingest_report draw(const struct tide_ingest *ingest)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    struct tide_ingest_report report = {.drawn_at_us = tide_clock_monotonic_us()};
    report.position = position_in(&report.arena, ingest, ingest->build.reached);
    report.held = position_in(&report.arena, ingest, ingest->held);
    report.confirmed = position_in(&report.arena, ingest, ingest->confirmed);
    report.lag_bytes =
        ops->retained_bytes == NULL ? 0 : ops->retained_bytes(ingest->options.source);
    report.lag_us = lag_us(&ingest->reporting);
    report.unmoved_us = has_work(ingest) ? report.drawn_at_us - ingest->reporting.moved_at_us : 0;
    report.reason = tide_arena_str(&report.arena, tide_str_from(ingest->reporting.reason));
    report.sequence = ingest->sequence;
    report.saved_ago_us = report.drawn_at_us - ingest->saved_at_us;
    draw_sinks(ingest, &report);
    draw_copies(ingest, &report);
    return report;
}

void tide_ingest_serve_report(struct tide_ingest *ingest)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    if (!atomic_exchange(&reporting->is_wanted, false)) {
        return;
    }
    forget_held_marks(ingest);
    reporting->looked_at_us = 0; /* what became held while nothing else happened has moved */
    tide_ingest_look(ingest);
    struct tide_ingest_report report = draw(ingest);
    tide_mutex_lock(&reporting->mutex);
    struct tide_arena old = reporting->report.arena;
    reporting->report = report;
    reporting->number++;
    (void)pthread_cond_broadcast(&reporting->drawn);
    tide_mutex_unlock(&reporting->mutex);
    tide_arena_done(&old);
}

void tide_ingest_report(struct tide_ingest *ingest, int64_t deadline_us, tide_report_use *use,
                        void *context)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    tide_mutex_lock(&reporting->mutex);
    uint64_t before = reporting->number;
    atomic_store(&reporting->is_wanted, true);
    tide_waker_wake(&ingest->waker);
    bool is_in_time = true;
    while (reporting->number == before && is_in_time) {
        is_in_time = tide_cond_wait_until(&reporting->drawn, &reporting->mutex, deadline_us);
    }
    use(context, &reporting->report, reporting->number != before);
    tide_mutex_unlock(&reporting->mutex);
}

void tide_ingest_report_ended(struct tide_ingest *ingest, tide_report_use *use, void *context)
{
    struct tide_ingest_reporting *reporting = &ingest->reporting;
    atomic_store(&reporting->is_wanted, true);
    tide_ingest_serve_report(ingest);
    tide_mutex_lock(&reporting->mutex);
    use(context, &reporting->report, true);
    tide_mutex_unlock(&reporting->mutex);
}
