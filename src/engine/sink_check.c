#include "engine/sink_check.h"

#include "base/fsio.h"
#include "engine/state.h"
#include "format/checkpoint.h"

#include <unistd.h>

/* The state as far as sinks have to do with it. */
struct found_state {
    struct tide_arena arena;
    struct tide_checkpoint checkpoint; /* without sinks where the next run starts anew */
};

static void add_problem(struct tide_findings *findings, const struct tide_error *err)
{
    tide_findings_add(findings, true, tide_str_from(err->message), TIDE_STR(""));
}

static tide_status peek(const struct tide_pipeline_options *options, struct found_state *state,
                        struct tide_error *err)
{
    struct tide_state_checkpoint newest = {0};
    struct tide_buf warnings TIDE_CLEANUP(tide_buf_done) = {0};
    bool found = false;
    TIDE_TRY(tide_dir_may_make(options->state_dir, err));
    if (access(options->state_dir, F_OK) != 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_state_peek(options->state_dir, &state->arena, &found, &newest, &warnings, err));
    if (!found) {
        return TIDE_OK;
    }
    if (tide_checkpoint_decode(newest.json, options->source_ops->position_kind, &state->arena,
                               &state->checkpoint, err) != TIDE_OK) {
        return tide_fail_context(err, "checkpoint in %s", options->state_dir);
    }
    if (state->checkpoint.is_closed || state->checkpoint.is_creating) {
        state->checkpoint.sink_count = 0;
    }
    return TIDE_OK;
}

static bool is_resumed(const struct tide_checkpoint *checkpoint, tide_str sink)
{
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        if (tide_str_equal(checkpoint->sinks[i].name, sink)) {
            return true;
        }
    }
    return false;
}

/* Each finding says of which sink it is. */
static void take_findings(struct tide_findings *findings, tide_str sink,
                          const struct tide_findings *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct tide_buf what TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&what, "sink %.*s: %.*s", TIDE_STR_ARG(sink),
                        TIDE_STR_ARG(found->items[i].what));
        tide_findings_add(findings, found->items[i].is_problem, tide_buf_str(&what),
                          found->items[i].remedy);
    }
}

static tide_status check_sink(const struct tide_pipeline_options *options,
                              const struct tide_pipeline_sink *sink,
                              const struct found_state *state, struct tide_findings *findings,
                              struct tide_error *err)
{
    struct tide_findings found TIDE_CLEANUP(tide_findings_done) = {0};
    struct tide_sink_options sink_options = {
        .place = sink->place,
        .pipeline = state->checkpoint.pipeline,
        .identity = state->checkpoint.identity_json,
        .position_kind = options->source_ops->position_kind,
        .existing = sink->existing,
        .is_resumed = is_resumed(&state->checkpoint, sink->name),
    };
    TIDE_TRY(sink->ops->check(&sink_options, &found, err));
    take_findings(findings, sink->name, &found);
    return TIDE_OK;
}

static tide_status check_all(const struct tide_pipeline_options *options, struct found_state *state,
                             struct tide_findings *findings, struct tide_error *err)
{
    if (peek(options, state, err) != TIDE_OK) {
        add_problem(findings, err);
        return TIDE_OK; /* what a sink holds cannot be judged without */
    }
    for (size_t i = 0; i < options->sink_count; i++) {
        if (options->sinks[i].ops->check != NULL) {
            TIDE_TRY(check_sink(options, &options->sinks[i], state, findings, err));
        }
    }
    return TIDE_OK;
}

tide_status tide_pipeline_check_sinks(const struct tide_pipeline_options *options,
                                      struct tide_findings *findings, struct tide_error *err)
{
    struct found_state state = {0};
    tide_status status = check_all(options, &state, findings, err);
    tide_arena_done(&state.arena);
    return status;
}
