#include "engine/sink_check.h"

#include "base/fsio.h"
#include "engine/pipeline_state.h"
#include "engine/state.h"
#include "format/checkpoint.h"

#include <unistd.h>

/* A run that saves and confirms meanwhile makes the checkpoint that was looked at an old one. */
#define LOOKS_MAX 5

/* What the next run goes on from. */
struct found_state {
    struct tide_arena arena;
    struct tide_checkpoint checkpoint; /* without sinks where the next run starts anew */
    uint64_t sequence;
    bool goes_on;
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
    TIDE_TRY(tide_pipeline_check_checkpoint(options, &state->checkpoint, err));
    state->sequence = newest.sequence;
    state->goes_on = !state->checkpoint.is_closed && !state->checkpoint.is_creating;
    if (!state->goes_on) {
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

static tide_status compare_source(const struct tide_pipeline_options *options,
                                  const struct tide_checkpoint *checkpoint,
                                  struct tide_source *source, struct tide_error *err)
{
    const struct tide_source_ops *ops = options->source_ops;
    struct tide_position position;
    struct tide_buf identity TIDE_CLEANUP(tide_buf_done) = {0};
    ops->identity(source, &identity);
    TIDE_TRY(tide_pipeline_check_identity(options, checkpoint, tide_buf_str(&identity), err));
    TIDE_TRY(ops->position_kind->parse(checkpoint->position_json, &position, err));
    return ops->check_saved(source, checkpoint->source_state_json, position, err);
}

static tide_status open_and_compare(const struct tide_pipeline_options *options,
                                    const struct tide_checkpoint *checkpoint,
                                    struct tide_error *err)
{
    struct tide_source *source = NULL;
    struct tide_error ignored;
    struct tide_source_options source_options = {
        .place = options->source_place,
        .connection = options->connection,
        .pipeline = checkpoint->pipeline,
        .globs = options->globs,
        .glob_count = options->glob_count,
    };
    if (options->source_ops->open(&source_options, &source, &ignored) != TIDE_OK) {
        return TIDE_OK;
    }
    tide_status status = compare_source(options, checkpoint, source, err);
    options->source_ops->close(source);
    return status;
}

/* `*sequence`: of the checkpoint that was looked at before, then of this one. */
static tide_status look_at_source(const struct tide_pipeline_options *options, uint64_t *sequence,
                                  bool *ret_is_same, struct tide_error *err)
{
    struct found_state state = {0};
    struct tide_error ignored; /* said with the sinks */
    tide_status status = TIDE_OK;
    if (peek(options, &state, &ignored) == TIDE_OK && state.goes_on) {
        *ret_is_same = state.sequence == *sequence;
        *sequence = state.sequence;
        status = *ret_is_same ? TIDE_OK : open_and_compare(options, &state.checkpoint, err);
    }
    tide_arena_done(&state.arena);
    return status;
}

tide_status tide_pipeline_check_source(const struct tide_pipeline_options *options,
                                       struct tide_findings *findings, struct tide_error *err)
{
    uint64_t sequence = 0;
    bool is_same = false;
    tide_status status = look_at_source(options, &sequence, &is_same, err);
    for (int i = 1; status == TIDE_STALE && i < LOOKS_MAX; i++) {
        struct tide_error again = {0};
        tide_status now = look_at_source(options, &sequence, &is_same, &again);
        if (is_same) {
            break;
        }
        status = now;
        *err = again;
    }
    if (status == TIDE_STALE) {
        add_problem(findings, err);
        return TIDE_OK;
    }
    return status;
}
