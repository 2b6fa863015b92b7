#include "app/pipeline/run_pipeline.h"

#include "app/control/control.h"
#include "app/pipeline/apart.h"
#include "app/pipeline/progress.h"
#include "app/signals.h"
#include "base/clock.h"

#define DRAIN_US         30000000
#define LOOK_US          500000
#define DRAIN_UNHEARD_US 1000000 /* a longer wait is explained */

struct run {
    struct tide_pipeline *pipeline;
    struct tide_signals signals;
    struct tide_signals_relay relay;
    struct tide_waker waker;
    struct tide_waker calling_off; /* woken by a stop signal: for what the start waits for */
    struct tide_progress_view view;
    struct tide_control control;
    struct tide_copy_report *report;
};

/* What a longer wait is for, once: the sign of a full disk or of a reader that does not read. */
static void explain_drain(struct run *run, bool *was_explained)
{
    if (*was_explained) {
        return;
    }
    *was_explained = true;
    tide_progress_view_clear(&run->view);
    (void)fputs("waiting for the sink to take what was published; again to stop at once\n", stderr);
}

/* Waits for what was published to be held; a second signal cuts it short. */
static void drain(struct run *run)
{
    int64_t started_us = tide_clock_monotonic_us();
    int64_t deadline_us = tide_clock_deadline_us(DRAIN_US);
    bool was_explained = false;
    int signal = 0;
    tide_control_set_phase(&run->control, TIDE_CONTROL_STOPPING);
    tide_pipeline_halt(run->pipeline);
    tide_control_set_phase(&run->control, TIDE_CONTROL_DRAINING);
    while (!tide_pipeline_is_drained(run->pipeline) && tide_clock_monotonic_us() < deadline_us) {
        if (tide_clock_monotonic_us() - started_us >= DRAIN_UNHEARD_US) {
            explain_drain(run, &was_explained);
        }
        if (tide_signals_wait(&run->signals, &run->waker, tide_clock_deadline_us(100000),
                              &signal)) {
            return;
        }
        tide_control_serve(&run->control);
    }
}

/* Sinks that come back are looked for, also while nothing is shown. */
static int64_t watch_deadline(const struct run *run)
{
    int64_t look_us = tide_clock_deadline_us(LOOK_US);
    int64_t show_us = tide_progress_view_deadline(&run->view);
    return show_us < look_us ? show_us : look_us;
}

/* TIDE_OK: stopped by a signal; TIDE_END: complete. */
static tide_status watch(struct run *run, struct tide_error *err)
{
    int signal = 0;
    for (;;) {
        TIDE_TRY(tide_pipeline_poll(run->pipeline, err));
        tide_progress_view_show(&run->view, run->pipeline);
        if (tide_signals_wait(&run->signals, &run->waker, watch_deadline(run), &signal)) {
            return TIDE_OK;
        }
        tide_control_serve(&run->control);
    }
}

/* Tables made while the copy ran are not in it. A source that is gone has said so already. */
static void note_new_tables(struct run *run)
{
    struct tide_error ignored;
    struct tide_buf notes TIDE_CLEANUP(tide_buf_done) = {0};
    tide_status status = tide_pipeline_note_new_tables(run->pipeline, &notes, &ignored);
    if (status == TIDE_OK) {
        tide_copy_report_notes(run->report, tide_buf_str(&notes));
    }
}

/* Stopped, it may have left out a sink all the time; of a copy that has ended all is held. */
static void note_behind(struct run *run)
{
    struct tide_buf notes TIDE_CLEANUP(tide_buf_done) = {0};
    tide_pipeline_note_behind(run->pipeline, &notes);
    tide_copy_report_notes(run->report, tide_buf_str(&notes));
}

static tide_status run_to_end(struct run *run, bool is_quiet, struct tide_error *err)
{
    struct tide_copy_report *report = run->report;
    tide_progress_view_init(&run->view, run->pipeline, is_quiet);
    TIDE_TRY(tide_pipeline_start(run->pipeline, err));
    report->has_capture = true;
    tide_control_set_phase(&run->control, TIDE_CONTROL_RUNNING);
    tide_status status = watch(run, err);
    drain(run);
    tide_control_set_phase(&run->control, TIDE_CONTROL_STOPPING);
    tide_progress_view_clear(&run->view);
    if (status == TIDE_OK) { /* it went on without a sink that has failed */
        note_behind(run);
        status = tide_pipeline_failed_sink(run->pipeline, err);
    }
    struct tide_error late;
    tide_status finished = tide_pipeline_finish(run->pipeline, &late);
    report->duration_us = tide_clock_monotonic_us() - run->view.started_us;
    if (status == TIDE_OK || status == TIDE_END) {
        *err = late;
        TIDE_TRY(finished);
    }
    report->is_complete = status == TIDE_END;
    note_new_tables(run);
    bool has_failures = atomic_load(&tide_pipeline_stats(run->pipeline)->copies_failed) > 0;
    if (status == TIDE_END && !report->is_keeping && !has_failures) {
        TIDE_TRY(tide_pipeline_detach(run->pipeline, &report->removed, err));
        report->is_detached = true;
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status run_opened(struct run *run, const struct tide_pipeline_options *options,
                              bool is_quiet, struct tide_error *err)
{
    struct tide_copy_report *report = run->report;
    tide_copy_report_opened(report, run->pipeline);
    if (tide_pipeline_found(run->pipeline) == TIDE_PIPELINE_LEFTOVER) {
        return tide_pipeline_detach(run->pipeline, &report->removed, err);
    }
    tide_control_init(&run->control, run->pipeline, options, &run->waker);
    tide_status status = run_to_end(run, is_quiet, err);
    tide_control_done(&run->control);
    tide_copy_report_ended(report, run->pipeline);
    return status;
}

/* What waited when the stop signal came says for what; to stop there is no failure. */
static tide_status note_stop(struct tide_copy_report *report, tide_status status,
                             const struct tide_error *err)
{
    if (status != TIDE_CANCELLED) {
        return status;
    }
    struct tide_buf note TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&note, "stopped while it began: %s\n", err->message);
    tide_copy_report_notes(report, tide_buf_str(&note));
    return TIDE_OK;
}

static tide_status run_apart(const struct tide_pipeline_options *options, bool is_quiet,
                             struct tide_copy_report *report, struct tide_error *err)
{
    struct run run = {.report = report};
    struct tide_pipeline_options interruptible = *options;
    struct tide_buf notes TIDE_CLEANUP(tide_buf_done) = {0};
    tide_signals_init(&run.signals);
    tide_waker_init(&run.waker);
    tide_waker_init(&run.calling_off);
    tide_signals_relay_init(&run.relay, &run.signals, &run.calling_off);
    interruptible.source_waker = &run.calling_off;
    tide_status status = tide_pipeline_open(&interruptible, &run.waker, &run.pipeline, &notes, err);
    tide_copy_report_notes(report, tide_buf_str(&notes));
    if (status == TIDE_OK) {
        status = run_opened(&run, &interruptible, is_quiet, err);
        tide_pipeline_free(run.pipeline);
    }
    tide_signals_relay_done(&run.relay);
    tide_waker_done(&run.calling_off);
    tide_waker_done(&run.waker);
    tide_signals_done(&run.signals);
    return note_stop(report, status, err);
}

tide_status tide_run_pipeline(const struct tide_pipeline_options *options,
                              const char *configuration, bool is_quiet,
                              struct tide_copy_report *report, struct tide_error *err)
{
    tide_status status = tide_check_apart(options, configuration, err);
    if (status != TIDE_OK) {
        options->stream->ops->free(options->stream);
        return status;
    }
    return run_apart(options, is_quiet, report, err);
}
