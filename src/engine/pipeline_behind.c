/* Which sinks take part, and which end without all that was published. */
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"

/* By name, since another sink may have the number of its lane by now. */
bool tide_pipeline_takes_part(struct tide_pipeline_end *end)
{
    struct tide_error ignored;
    struct tide_stream *stream = end->pipeline->stream;
    unsigned lane = 0;
    return !end->is_detaching && !atomic_load(&end->has_lost) &&
           stream->ops->find_lane(stream, end->sink->name, &lane, &ignored) == TIDE_OK;
}

/* Nothing when it has taken all. */
static void append_load(struct tide_buf *buf, const struct tide_pipeline *pipeline,
                        const struct tide_pipeline_end *end)
{
    size_t items = 0;
    size_t bytes = 0;
    pipeline->stream->ops->lane_load(pipeline->stream, end->lane, &items, &bytes);
    if (items > 0) {
        tide_buf_printf(buf, " and has not taken %zu %s (%zu bytes), which the next run brings",
                        items, items == 1 ? "batch" : "batches", bytes);
    }
}

static void note_end(const struct tide_pipeline *pipeline, struct tide_pipeline_end *end,
                     struct tide_buf *notes)
{
    struct tide_buf load TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_sink_engine_status status;
    tide_str name = end->sink->name;
    tide_sink_engine_status(end->engine, &status);
    append_load(&load, pipeline, end);
    if (!tide_pipeline_takes_part(end)) {
        tide_buf_printf(notes, "sink %.*s is detached: the next run copies it anew\n",
                        TIDE_STR_ARG(name));
    } else if (status.state == TIDE_SINK_WAITING || status.state == TIDE_SINK_FAILED) {
        tide_buf_printf(notes, "sink %.*s could not be written to%s: %s\n", TIDE_STR_ARG(name),
                        tide_buf_cstr(&load), status.error.message);
    } else if (end->is_paused || load.len > 0) {
        tide_buf_printf(notes, "sink %.*s is %s%s\n", TIDE_STR_ARG(name),
                        end->is_paused ? "paused" : "behind", tide_buf_cstr(&load));
    }
}

void tide_pipeline_note_behind(struct tide_pipeline *pipeline, struct tide_buf *notes)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        note_end(pipeline, &pipeline->ends[i], notes);
    }
}
