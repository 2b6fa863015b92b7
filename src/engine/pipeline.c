#include "engine/pipeline.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/pipeline_state.h"

#include <stdlib.h>

#define INCARNATION_BEGIN_US INT64_C(1577836800000000) /* 2020-01-01 */

static tide_str keep_str(struct tide_pipeline *pipeline, tide_str s)
{
    return tide_str_from(tide_arena_cstr(&pipeline->arena, s));
}

static struct tide_refused_policy copy_policy(struct tide_pipeline *pipeline,
                                              const struct tide_refused_policy *policy)
{
    struct tide_refused_policy own = *policy;
    struct tide_refused_rule *rules =
        tide_arena_alloc(&pipeline->arena, policy->rule_count, sizeof(*rules));
    for (size_t i = 0; i < policy->rule_count; i++) {
        rules[i] = policy->rules[i];
        rules[i].glob = keep_str(pipeline, policy->rules[i].glob);
    }
    own.rules = rules;
    return own;
}

static void copy_options(struct tide_pipeline *pipeline,
                         const struct tide_pipeline_options *options)
{
    struct tide_pipeline_options *own = &pipeline->options;
    *own = *options;
    own->source_place = keep_str(pipeline, options->source_place);
    own->source_shown = keep_str(pipeline, options->source_shown);
    own->connection = keep_str(pipeline, options->connection);
    own->name = keep_str(pipeline, options->name);
    own->retry_max_us = own->retry_max_us > 0 ? own->retry_max_us : TIDE_RETRY_MAX_US;
    own->state_dir = keep_str(pipeline, tide_str_from(options->state_dir)).ptr;
    tide_str *globs = tide_arena_alloc(&pipeline->arena, options->glob_count, sizeof(*globs));
    for (size_t i = 0; i < options->glob_count; i++) {
        globs[i] = keep_str(pipeline, options->globs[i]);
    }
    own->globs = globs;
    struct tide_pipeline_sink *sinks =
        tide_arena_alloc(&pipeline->arena, options->sink_count, sizeof(*sinks));
    for (size_t i = 0; i < options->sink_count; i++) {
        sinks[i] = options->sinks[i];
        sinks[i].name = keep_str(pipeline, options->sinks[i].name);
        sinks[i].place = keep_str(pipeline, options->sinks[i].place);
        sinks[i].refused = copy_policy(pipeline, &options->sinks[i].refused);
    }
    own->sinks = sinks;
}

/* The name given and eight random digits: unique among all that share a source. */
static void make_name(struct tide_pipeline *pipeline)
{
    unsigned char random[4];
    struct tide_buf name TIDE_CLEANUP(tide_buf_done) = {0};
    tide_random_bytes(random, sizeof(random));
    tide_buf_append_str(&name, pipeline->options.name);
    tide_buf_printf(&name, "-%02x%02x%02x%02x", random[0], random[1], random[2], random[3]);
    pipeline->name = tide_strndup(name.ptr, name.len);
}

static tide_status load(struct tide_pipeline *pipeline, struct tide_checkpoint *ret_checkpoint,
                        bool *ret_found, struct tide_buf *notes, struct tide_error *err)
{
    tide_str json;
    enum tide_checkpoint_phase phase;
    TIDE_TRY(
        tide_state_load(pipeline->state, &pipeline->arena, ret_found, &json, &phase, notes, err));
    if (!*ret_found) {
        return TIDE_OK;
    }
    if (tide_checkpoint_decode(json, pipeline->options.source_ops->position_kind, &pipeline->arena,
                               ret_checkpoint, err) != TIDE_OK) {
        return tide_fail_context(err, "checkpoint in %s", pipeline->options.state_dir);
    }
    return TIDE_OK;
}

/* What the checkpoint makes of this run, and under which name. */
static void adopt(struct tide_pipeline *pipeline, const struct tide_checkpoint *checkpoint,
                  bool was_found)
{
    bool goes_on = was_found && (!checkpoint->is_closed || checkpoint->is_creating);
    pipeline->found = !goes_on                  ? TIDE_PIPELINE_NEW
                      : checkpoint->is_closed   ? TIDE_PIPELINE_LEFTOVER
                      : checkpoint->is_creating ? TIDE_PIPELINE_NEW
                                                : TIDE_PIPELINE_RESUMED;
    if (goes_on && checkpoint->pipeline.len > 0) {
        pipeline->name = tide_strndup(checkpoint->pipeline.ptr, checkpoint->pipeline.len);
    } else {
        make_name(pipeline);
    }
}

static bool appends(const struct tide_pipeline_options *options)
{
    for (size_t i = 0; i < options->sink_count; i++) {
        if (options->sinks[i].existing == TIDE_EXISTING_APPEND) {
            return true;
        }
    }
    return false;
}

/*
 * Behind what a sink has already, or an earlier pipeline of this state has written, the source's
 * log starts over, and its positions may run lower: then places count as later all the same. The
 * clock gives a number higher than any before, whoever wrote that; where there was nothing, 0.
 */
static void count_incarnation(struct tide_pipeline *pipeline, bool was_found)
{
    uint32_t saved = pipeline->checkpoint.incarnation;
    if (pipeline->found == TIDE_PIPELINE_RESUMED) {
        pipeline->incarnation = saved;
    } else if (was_found || appends(&pipeline->options)) {
        uint32_t now = (uint32_t)((tide_clock_utc_us() - INCARNATION_BEGIN_US) / 1000000);
        pipeline->incarnation = now > saved ? now : saved + 1;
    }
}

static void say(const char *what)
{
    tide_log(TIDE_LOG_INFO, "%s", what);
}

struct tide_source_options tide_pipeline_source_options(const struct tide_pipeline *pipeline)
{
    const struct tide_pipeline_options *options = &pipeline->options;
    return (struct tide_source_options){
        .place = options->source_place,
        .connection = options->connection,
        .pipeline = tide_str_from(pipeline->name),
        .globs = options->globs,
        .glob_count = options->glob_count,
        .say = say,
        .waker = options->source_waker,
    };
}

static tide_status open_source(struct tide_pipeline *pipeline,
                               const struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    const struct tide_pipeline_options *options = &pipeline->options;
    struct tide_source_options source_options = tide_pipeline_source_options(pipeline);
    TIDE_TRY(options->source_ops->open(&source_options, &pipeline->source, err));
    struct tide_buf identity TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf location TIDE_CLEANUP(tide_buf_done) = {0};
    options->source_ops->identity(pipeline->source, &identity);
    pipeline->identity = tide_strndup(identity.ptr, identity.len);
    if (options->source_ops->location != NULL) {
        options->source_ops->location(pipeline->source, &location);
    }
    pipeline->location = tide_strndup(tide_buf_cstr(&location), location.len);
    return pipeline->found == TIDE_PIPELINE_RESUMED
               ? tide_pipeline_check_identity(options, checkpoint, tide_buf_str(&identity), err)
               : TIDE_OK;
}

static tide_status list_tables(struct tide_pipeline *pipeline, struct tide_error *err)
{
    const struct tide_relation *const *tables = NULL;
    TIDE_TRY(pipeline->options.source_ops->tables(pipeline->source, &tables, &pipeline->table_count,
                                                  err));
    pipeline->tables =
        tide_arena_alloc(&pipeline->arena, pipeline->table_count, sizeof(*pipeline->tables));
    for (size_t i = 0; i < pipeline->table_count; i++) {
        pipeline->tables[i] = keep_str(pipeline, tables[i]->store);
    }
    TIDE_TRY(tide_pipeline_check_names(pipeline, tables, err));
    if (pipeline->options.source_ops->estimate_rows != NULL) {
        pipeline->estimated_rows = pipeline->options.source_ops->estimate_rows(pipeline->source);
    }
    return TIDE_OK;
}

static void make_ingest(struct tide_pipeline *pipeline)
{
    struct tide_ingest_options options = {
        .source_ops = pipeline->options.source_ops,
        .source = pipeline->source,
        .stream = pipeline->stream,
        .keeper = {.save = tide_pipeline_save, .context = pipeline},
        .copy = pipeline->options.copy,
        .batch_changes_max = TIDE_BATCH_CHANGES_MAX,
        .batch_bytes_max = tide_pipeline_batch_bytes(pipeline),
        .checkpoint_interval_us = TIDE_CHECKPOINT_INTERVAL_US,
        .retry_max_us = pipeline->options.retry_max_us,
        .max_retained_bytes = pipeline->options.max_retained_bytes,
        .pipeline = tide_str_from(pipeline->name),
        .incarnation = pipeline->incarnation,
    };
    pipeline->ingest = tide_ingest_new(&options);
    for (size_t i = 0; i < pipeline->end_count; i++) {
        tide_ingest_add_sink(pipeline->ingest, pipeline->options.sinks[i].name,
                             pipeline->ends[i].lane);
        if (pipeline->options.sinks[i].may_detach) {
            tide_ingest_let_detach(pipeline->ingest, pipeline->ends[i].lane);
        }
    }
}

tide_status tide_pipeline_save(void *context, tide_str json, enum tide_checkpoint_phase phase,
                               struct tide_error *err)
{
    struct tide_pipeline *pipeline = context;
    return tide_state_save(pipeline->state, json, phase, err);
}

static tide_status open_dead_letters(struct tide_pipeline *pipeline, struct tide_error *err)
{
    struct tide_dead_letter_limits limits = pipeline->options.dead_letters;
    if (limits.files == 0) {
        limits = tide_dead_letter_limits_default();
    }
    return tide_dead_letter_file_open(pipeline->options.state_dir, &limits,
                                      pipeline->options.source_ops->position_kind,
                                      &pipeline->dead_letters, err);
}

static tide_status load_ingest(struct tide_pipeline *pipeline,
                               const struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    TIDE_TRY(tide_ingest_load(pipeline->ingest, checkpoint, err));
    tide_pipeline_begin_anew(pipeline);
    return TIDE_OK;
}

static tide_status open_parts(struct tide_pipeline *pipeline, struct tide_buf *notes,
                              struct tide_error *err)
{
    struct tide_checkpoint *checkpoint = &pipeline->checkpoint;
    bool was_found = false;
    TIDE_TRY(tide_state_open(pipeline->options.state_dir, &pipeline->state, err));
    TIDE_TRY(load(pipeline, checkpoint, &was_found, notes, err));
    if (was_found) {
        TIDE_TRY(tide_pipeline_check_checkpoint(&pipeline->options, checkpoint, err));
    }
    adopt(pipeline, checkpoint, was_found);
    count_incarnation(pipeline, was_found && !checkpoint->is_creating);
    TIDE_TRY(open_source(pipeline, checkpoint, err));
    if (pipeline->found != TIDE_PIPELINE_LEFTOVER) {
        TIDE_TRY(list_tables(pipeline, err));
        TIDE_TRY(tide_pipeline_note_rules(pipeline, notes, err));
        TIDE_TRY(open_dead_letters(pipeline, err));
        if (tide_pipeline_open_sinks(pipeline, notes, err) != TIDE_OK) {
            return was_found && checkpoint->is_closed
                       ? tide_fail_context(err,
                                           "the copy before with this state has ended (complete, "
                                           "or detached), so this one starts anew")
                       : err->status;
        }
    }
    bool is_new = pipeline->found == TIDE_PIPELINE_NEW;
    if (is_new || (pipeline->found == TIDE_PIPELINE_RESUMED && pipeline->options.is_one_shot)) {
        /* they were said when it began */
        TIDE_TRY(tide_pipeline_note_problems(pipeline, is_new ? notes : NULL, err));
    }
    make_ingest(pipeline);
    return was_found ? load_ingest(pipeline, checkpoint, err) : TIDE_OK;
}

tide_status tide_pipeline_open(const struct tide_pipeline_options *options,
                               struct tide_waker *waker, struct tide_pipeline **ret_pipeline,
                               struct tide_buf *ret_notes, struct tide_error *err)
{
    struct tide_pipeline *pipeline = tide_alloc(1, sizeof(*pipeline));
    copy_options(pipeline, options);
    pipeline->stream = options->stream;
    pipeline->waker = waker;
    tide_pipeline_make_budget(pipeline);
    tide_status status = open_parts(pipeline, ret_notes, err);
    if (status != TIDE_OK) {
        tide_pipeline_free(pipeline);
        return status;
    }
    *ret_pipeline = pipeline;
    return TIDE_OK;
}

enum tide_pipeline_found tide_pipeline_found(const struct tide_pipeline *pipeline)
{
    return pipeline->found;
}

const char *tide_pipeline_name(const struct tide_pipeline *pipeline)
{
    return pipeline->name;
}

size_t tide_pipeline_table_count(const struct tide_pipeline *pipeline)
{
    return pipeline->table_count;
}

uint64_t tide_pipeline_estimated_rows(const struct tide_pipeline *pipeline)
{
    return pipeline->estimated_rows;
}

size_t tide_pipeline_unfollowed_count(const struct tide_pipeline *pipeline)
{
    return pipeline->unfollowed_count;
}
