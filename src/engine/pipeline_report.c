/* What a pipeline is doing, as one JSON object. */
#include "base/clock.h"
#include "base/limits.h"
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"
#include "format/json_writer.h"

#include <inttypes.h>

#define REPORT_WAIT_US 2000000

/* What one report is made from. */
struct picture {
    struct tide_pipeline *pipeline;
    struct tide_buf *buf;
    const struct tide_ingest_report *ingest;
    bool is_fresh;
    int64_t stalled_us;     /* 0: it is not */
    struct tide_buf reason; /* why */
};

static void append_text(struct tide_buf *buf, const char *key, tide_str text)
{
    tide_json_append_key(buf, tide_str_from(key));
    tide_json_append_string(buf, text);
    tide_buf_append_char(buf, ',');
}

static void append_text_or_null(struct tide_buf *buf, const char *key, tide_str text)
{
    if (text.len > 0) {
        append_text(buf, key, text);
    } else {
        tide_buf_printf(buf, "\"%s\":null,", key);
    }
}

/* JSON as it is; none when no report was ever drawn. */
static void append_raw(struct tide_buf *buf, const char *key, tide_str json)
{
    tide_buf_printf(buf, "\"%s\":", key);
    tide_buf_append_str(buf, json.len > 0 ? json : TIDE_STR("null"));
    tide_buf_append_char(buf, ',');
}

static void append_seconds(struct tide_buf *buf, const char *key, int64_t us)
{
    tide_buf_printf(buf, "\"%s\":%" PRId64 ".%03" PRId64 ",", key, us / 1000000,
                    us % 1000000 / 1000);
}

static void append_number(struct tide_buf *buf, const char *key, uint64_t number)
{
    tide_buf_printf(buf, "\"%s\":%" PRIu64 ",", key, number);
}

static void append_bool(struct tide_buf *buf, const char *key, bool value)
{
    tide_buf_printf(buf, "\"%s\":%s,", key, value ? "true" : "false");
}

/* Instead of the comma behind the last member. */
static void end_list(struct tide_buf *buf, char end)
{
    if (buf->ptr[buf->len - 1] == ',') {
        buf->ptr[buf->len - 1] = end;
    } else {
        tide_buf_append_char(buf, end);
    }
}

static const struct tide_report_sink *find_sink(const struct tide_ingest_report *report,
                                                tide_str name)
{
    for (size_t i = 0; i < report->sink_count; i++) {
        if (tide_str_equal(report->sinks[i].name, name)) {
            return &report->sinks[i];
        }
    }
    return NULL;
}

/* Stalled. */

static void note_stall(struct picture *picture, int64_t us, const char *what, tide_str name,
                       const char *why)
{
    const struct tide_pipeline_options *options = &picture->pipeline->options;
    int64_t limit_us =
        options->stalled_after_us > 0 ? options->stalled_after_us : TIDE_STALLED_AFTER_US;
    if (us < limit_us) {
        return;
    }
    picture->stalled_us = us > picture->stalled_us ? us : picture->stalled_us;
    tide_buf_printf(&picture->reason, "%s%s%s%.*s%s%s", picture->reason.len > 0 ? "; " : "", what,
                    name.len > 0 ? " " : "", TIDE_STR_ARG(name), why[0] != '\0' ? ": " : "", why);
}

static void judge_sinks(struct picture *picture)
{
    for (size_t i = 0; i < picture->pipeline->end_count; i++) {
        const struct tide_pipeline_end *end = &picture->pipeline->ends[i];
        const struct tide_report_sink *sink = find_sink(picture->ingest, end->sink->name);
        struct tide_sink_engine_status status;
        tide_sink_engine_status(end->engine, &status);
        if (sink != NULL && !sink->is_paused) {
            const char *why = status.state == TIDE_SINK_WAITING || status.state == TIDE_SINK_FAILED
                                  ? status.error.message
                                  : "it has not said for a while that anything is held";
            note_stall(picture, sink->unmoved_us, "sink", sink->name, why);
        }
    }
}

/* A paused sink takes nothing off its lane: the likely reason why nothing moves. */
static void append_paused(const struct picture *picture, struct tide_buf *why)
{
    const struct tide_pipeline *pipeline = picture->pipeline;
    for (size_t i = 0; i < pipeline->end_count; i++) {
        size_t items = 0;
        size_t bytes = 0;
        const struct tide_pipeline_end *end = &pipeline->ends[i];
        pipeline->stream->ops->lane_load(pipeline->stream, end->lane, &items, &bytes);
        if (end->is_paused && items > 0) {
            tide_buf_printf(why, "; sink %.*s is paused, and its lane fills",
                            TIDE_STR_ARG(end->sink->name));
        }
    }
}

static void judge_ingest(struct picture *picture)
{
    const struct tide_ingest_report *ingest = picture->ingest;
    struct tide_buf why TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_append_str(&why, ingest->reason.len > 0 ? ingest->reason : TIDE_STR("nothing moves"));
    append_paused(picture, &why);
    note_stall(picture, ingest->unmoved_us, tide_buf_cstr(&why), TIDE_STR(""), "");
}

static void judge(struct picture *picture)
{
    int64_t drawn_at_us = picture->ingest->drawn_at_us; /* 0: never yet */
    int64_t ago_us = drawn_at_us == 0 ? REPORT_WAIT_US : tide_clock_monotonic_us() - drawn_at_us;
    judge_sinks(picture);
    note_stall(picture, picture->is_fresh ? 0 : ago_us,
               "the thread that reads the source does not answer", TIDE_STR(""), "");
    judge_ingest(picture);
}

static const char *state_of(const struct picture *picture)
{
    if (picture->pipeline->is_halted) {
        return "draining";
    }
    if (picture->stalled_us > 0) {
        return "stalled";
    }
    for (size_t i = 0; i < picture->ingest->copy_count; i++) {
        enum tide_copy_state state = picture->ingest->copies[i].state;
        if (state == TIDE_COPY_QUEUED || state == TIDE_COPY_RUNNING) {
            return "copying";
        }
    }
    return "following";
}

/* The parts of the object. */

static void append_head(struct picture *picture)
{
    struct tide_buf *buf = picture->buf;
    const struct tide_pipeline *pipeline = picture->pipeline;
    const struct tide_ingest_report *ingest = picture->ingest;
    char started[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(pipeline->started_us, started);
    append_text(buf, "pipeline", tide_str_from(pipeline->name));
    append_text(buf, "source", pipeline->options.source_shown);
    append_text(buf, "state", tide_str_from(state_of(picture)));
    append_text(buf, "started_at", tide_str_from(started));
    append_raw(buf, "position", ingest->position);
    append_raw(buf, "held", ingest->held);
    append_raw(buf, "confirmed", ingest->confirmed);
    append_number(buf, "lag_bytes", ingest->lag_bytes);
    append_seconds(buf, "lag_seconds", ingest->lag_us);
    if (picture->stalled_us > 0) {
        append_seconds(buf, "stalled_seconds", picture->stalled_us);
    } else {
        tide_buf_append_str(buf, TIDE_STR("\"stalled_seconds\":null,"));
    }
    append_text_or_null(buf, "reason",
                        picture->reason.len > 0 ? tide_buf_str(&picture->reason) : ingest->reason);
}

static void append_counts(struct picture *picture)
{
    struct tide_buf *buf = picture->buf;
    const struct tide_pipeline *pipeline = picture->pipeline;
    const struct tide_ingest_stats *stats = tide_ingest_stats(pipeline->ingest);
    append_number(buf, "changes", atomic_load(&stats->changes_published));
    append_number(buf, "rows", atomic_load(&stats->rows_published));
    append_number(buf, "detached", atomic_load(&stats->detached));
    append_number(buf, "dead_letters", tide_dead_letter_file_count(pipeline->dead_letters));
    tide_buf_append_str(buf, TIDE_STR("\"memory\":{"));
    append_number(buf, "used", tide_budget_used(pipeline->budget));
    append_number(buf, "limit", tide_budget_limit(pipeline->budget));
    end_list(buf, '}');
    tide_buf_append_str(buf, TIDE_STR(",\"checkpoint\":{"));
    append_number(buf, "sequence", picture->ingest->sequence);
    append_seconds(buf, "seconds_ago", picture->ingest->saved_ago_us);
    end_list(buf, '}');
    tide_buf_append_char(buf, ',');
}

static const char *sink_state(const struct tide_report_sink *sink,
                              const struct tide_sink_engine_status *status)
{
    static const char *const names[] = {
        [TIDE_SINK_NEW] = "starting",    [TIDE_SINK_RUNNING] = "running",
        [TIDE_SINK_WAITING] = "waiting", [TIDE_SINK_PAUSED] = "paused",
        [TIDE_SINK_FAILED] = "failed",   [TIDE_SINK_ENDED] = "ended",
        [TIDE_SINK_STOPPED] = "stopped",
    };
    return sink != NULL && sink->is_detached ? "detached" : names[status->state];
}

static void append_lane(struct tide_buf *buf, const struct tide_pipeline *pipeline,
                        const struct tide_pipeline_end *end)
{
    size_t items = 0;
    size_t bytes = 0;
    pipeline->stream->ops->lane_load(pipeline->stream, end->lane, &items, &bytes);
    append_number(buf, "lane_items", items);
    append_number(buf, "lane_bytes", bytes);
}

static void append_sink_counts(struct tide_buf *buf, struct tide_pipeline_end *end)
{
    struct tide_sink_counts counts;
    tide_sink_engine_counts(end->engine, &counts);
    tide_sink_counts_add(&counts, &end->past);
    append_number(buf, "rows", counts.rows);
    append_number(buf, "stubs", counts.stubs);
    append_number(buf, "changes", counts.changes);
    append_number(buf, "bytes", counts.bytes);
    append_number(buf, "dead_letters", counts.dead_letters);
    append_number(buf, "skipped", counts.skipped);
    append_number(buf, "unfilled", counts.unfilled);
}

static void append_sink(struct picture *picture, struct tide_pipeline_end *end)
{
    struct tide_buf *buf = picture->buf;
    const struct tide_report_sink *sink = find_sink(picture->ingest, end->sink->name);
    struct tide_sink_engine_status status;
    tide_sink_engine_status(end->engine, &status);
    bool is_waiting = status.state == TIDE_SINK_WAITING;
    bool has_error = is_waiting || status.state == TIDE_SINK_FAILED;
    tide_buf_append_char(buf, '{');
    append_text(buf, "name", end->sink->name);
    append_text(buf, "state", tide_str_from(sink_state(sink, &status)));
    append_bool(buf, "seeded", sink != NULL && sink->is_seeded);
    append_lane(buf, picture->pipeline, end);
    append_number(buf, "acknowledged", status.acknowledged);
    append_sink_counts(buf, end);
    append_number(buf, "max_record_bytes",
                  end->sink->record_bytes_max > 0 ? end->sink->record_bytes_max
                                                  : picture->pipeline->options.record_bytes_max);
    append_number(buf, "restarts", end->restarts + status.restarts);
    append_text_or_null(buf, "error",
                        has_error ? tide_str_from(status.error.message) : TIDE_STR(""));
    int64_t wait_us = status.wait_until_us - tide_clock_monotonic_us();
    if (is_waiting) {
        append_seconds(buf, "retry_seconds", wait_us > 0 ? wait_us : 0);
    } else {
        tide_buf_append_str(buf, TIDE_STR("\"retry_seconds\":null,"));
    }
    end_list(buf, '}');
    tide_buf_append_char(buf, ',');
}

static void append_copy(struct tide_buf *buf, const struct tide_report_copy *copy)
{
    static const char *const names[] = {
        [TIDE_COPY_QUEUED] = "queued", [TIDE_COPY_RUNNING] = "running", [TIDE_COPY_ENDED] = "ended",
        [TIDE_COPY_DONE] = "done",     [TIDE_COPY_FAILED] = "failed",
    };
    tide_buf_append_char(buf, '{');
    append_text(buf, "store", copy->store);
    tide_buf_append_str(buf, TIDE_STR("\"sinks\":["));
    for (size_t i = 0; i < copy->sink_count; i++) {
        tide_json_append_string(buf, copy->sinks[i]);
        tide_buf_append_char(buf, ',');
    }
    end_list(buf, ']');
    tide_buf_append_char(buf, ',');
    append_text(buf, "state", tide_str_from(names[copy->state]));
    append_text_or_null(buf, "snapshot_id", tide_str_from(copy->snapshot_id));
    append_number(buf, "attempt", copy->attempt);
    append_number(buf, "rows", copy->rows);
    append_text_or_null(buf, "reason", copy->failure);
    end_list(buf, '}');
    tide_buf_append_char(buf, ',');
}

static void append_all(void *context, const struct tide_ingest_report *report, bool is_new)
{
    struct picture *picture = context;
    struct tide_buf *buf = picture->buf;
    picture->ingest = report;
    picture->is_fresh = is_new;
    judge(picture);
    tide_buf_append_char(buf, '{');
    append_head(picture);
    append_counts(picture);
    tide_buf_append_str(buf, TIDE_STR("\"sinks\":["));
    for (size_t i = 0; i < picture->pipeline->end_count; i++) {
        append_sink(picture, &picture->pipeline->ends[i]);
    }
    end_list(buf, ']');
    tide_buf_append_str(buf, TIDE_STR(",\"snapshots\":["));
    for (size_t i = 0; i < picture->ingest->copy_count; i++) {
        append_copy(buf, &picture->ingest->copies[i]);
    }
    end_list(buf, ']');
    tide_buf_append_char(buf, '}');
    tide_buf_done(&picture->reason);
}

void tide_pipeline_report(struct tide_pipeline *pipeline, struct tide_buf *buf)
{
    struct picture picture = {.pipeline = pipeline, .buf = buf};
    if (pipeline->is_halted || atomic_load(&pipeline->has_ended)) {
        tide_ingest_report_ended(pipeline->ingest, append_all, &picture);
        return;
    }
    tide_ingest_report(pipeline->ingest, tide_clock_deadline_us(REPORT_WAIT_US), append_all,
                       &picture);
}
