#include "base/glob.h"
#include "engine/pipeline.h"
#include "engine/pipeline_state.h"
#include "port/refusals.h"
#include "port/ways_on.h"

static const struct tide_held_snapshot *find_snapshot(const struct tide_sink_held *held,
                                                      const char *id)
{
    for (size_t i = 0; i < held->snapshot_count; i++) {
        if (strcmp(held->snapshots[i].id, id) == 0) {
            return &held->snapshots[i];
        }
    }
    return NULL;
}

/* The sink holds the copy as far as the checkpoint says: its end when it is done, else every row
 * before next_seq. Long after its end a sink may have forgotten it. */
static bool holds_copy(const struct tide_sink_held *held, const struct tide_checkpoint_copy *copy)
{
    const struct tide_held_snapshot *snapshot = find_snapshot(held, copy->snapshot_id);
    uint64_t needed = copy->is_done ? TIDE_SEQ_ENDED : copy->next_seq;
    if (snapshot == NULL) {
        return needed == 0 || !held->lists_all;
    }
    return snapshot->next_seq >= needed;
}

static bool is_of_sink(const struct tide_checkpoint_copy *copy, tide_str sink)
{
    for (size_t i = 0; i < copy->sink_count; i++) {
        if (tide_str_equal(copy->sinks[i], sink)) {
            return true;
        }
    }
    return false;
}

static bool is_seeded(const struct tide_checkpoint *checkpoint, tide_str sink)
{
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        if (tide_str_equal(checkpoint->sinks[i].name, sink)) {
            return checkpoint->sinks[i].is_seeded;
        }
    }
    return false;
}

static bool holds_all(const struct tide_sink_held *held, const struct tide_checkpoint *checkpoint,
                      tide_str sink, struct tide_position position)
{
    struct tide_place saved = {.position = position, .known = true};
    /* a sink that was never seeded may not have got any change yet */
    bool must_know = is_seeded(checkpoint, sink) && checkpoint->store_count > 0;
    if (held->place.known ? tide_place_compare(held->place, saved) < 0 : must_know) {
        return false;
    }
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *copy = &checkpoint->copies[i];
        if (copy->is_begun && is_of_sink(copy, sink) && !holds_copy(held, copy)) {
            return false;
        }
    }
    return true;
}

tide_status tide_pipeline_check_held(const struct tide_pipeline *pipeline,
                                     const struct tide_pipeline_sink *sink,
                                     const struct tide_sink_held *held, struct tide_error *err)
{
    const struct tide_checkpoint *checkpoint = &pipeline->checkpoint;
    struct tide_position position;
    if (!held->is_known || checkpoint->is_creating) {
        return TIDE_OK;
    }
    TIDE_TRY(pipeline->options.source_ops->position_kind->parse(checkpoint->position_json,
                                                                &position, err));
    if (!holds_all(held, checkpoint, sink->name, position)) {
        return tide_fail(err, TIDE_STALE,
                         "sink %.*s holds less than the checkpoint in %s says; put back what it "
                         "held, or " TIDE_ANEW,
                         TIDE_STR_ARG(sink->name), pipeline->options.state_dir);
    }
    return TIDE_OK;
}

tide_status tide_pipeline_check_checkpoint(const struct tide_pipeline_options *options,
                                           const struct tide_checkpoint *checkpoint,
                                           struct tide_error *err)
{
    if (checkpoint->has_tidemark) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_UNSUPPORTED,
                     "the checkpoint in %s is another program's: it does not say what this one "
                     "needs to go on; " TIDE_ANEW_STATE,
                     options->state_dir);
}

tide_status tide_pipeline_check_identity(const struct tide_pipeline_options *options,
                                         const struct tide_checkpoint *checkpoint,
                                         tide_str identity, struct tide_error *err)
{
    if (tide_str_equal(identity, checkpoint->identity_json)) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_STALE,
                     "%.*s is not the source that the state in %s belongs to, or it was detached "
                     "since; name the right source, or " TIDE_ANEW,
                     TIDE_STR_ARG(options->source_shown), options->state_dir);
}

/* `table`, or `schema.table`. */
static bool is_named(const struct tide_relation *table, tide_str name)
{
    if (tide_str_equal(table->name, name)) {
        return true;
    }
    tide_str schema = table->schema;
    return schema.len > 0 && name.len == schema.len + 1 + table->name.len &&
           tide_str_starts_with(name, schema) && name.ptr[schema.len] == '.' &&
           tide_str_ends_with(name, table->name);
}

tide_status tide_pipeline_check_names(const struct tide_pipeline *pipeline,
                                      const struct tide_relation *const *tables,
                                      struct tide_error *err)
{
    for (size_t g = 0; g < pipeline->options.glob_count; g++) {
        tide_str glob = pipeline->options.globs[g];
        bool is_there = tide_glob_is_pattern(glob);
        for (size_t i = 0; i < pipeline->table_count && !is_there; i++) {
            is_there = is_named(tables[i], glob);
        }
        if (!is_there) {
            return tide_fail(err, TIDE_INVALID,
                             "table %.*s is not there, or cannot be copied; `tidemark check %.*s` "
                             "says why",
                             TIDE_STR_ARG(glob), TIDE_STR_ARG(pipeline->options.source_shown));
        }
    }
    return TIDE_OK;
}

static bool rule_matches(const struct tide_refused_rule *rule,
                         const struct tide_relation *const *tables, size_t count)
{
    const struct tide_refused_policy alone = {.rules = rule, .rule_count = 1};
    for (size_t i = 0; i < count; i++) {
        if (tide_refused_rule_of(&alone, tables[i]) != NULL) {
            return true;
        }
    }
    return false;
}

tide_status tide_pipeline_note_rules(const struct tide_pipeline *pipeline, struct tide_buf *notes,
                                     struct tide_error *err)
{
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    TIDE_TRY(pipeline->options.source_ops->tables(pipeline->source, &tables, &count, err));
    for (size_t i = 0; i < pipeline->options.sink_count; i++) {
        const struct tide_pipeline_sink *sink = &pipeline->options.sinks[i];
        for (size_t r = 0; r < sink->refused.rule_count; r++) {
            if (!rule_matches(&sink->refused.rules[r], tables, count)) {
                tide_buf_printf(notes, "note: refused of sink %.*s: no table matches %.*s\n",
                                TIDE_STR_ARG(sink->name),
                                TIDE_STR_ARG(sink->refused.rules[r].glob));
            }
        }
    }
    return TIDE_OK;
}

tide_status tide_pipeline_note_problems(struct tide_pipeline *pipeline, struct tide_buf *notes,
                                        struct tide_error *err)
{
    struct tide_findings findings = {0};
    tide_status status = pipeline->options.source_ops->check(pipeline->source, &findings, err);
    for (size_t i = 0; status == TIDE_OK && i < findings.count; i++) {
        pipeline->unfollowed_count += findings.items[i].is_left_out;
        if (notes != NULL && (findings.items[i].is_problem || findings.items[i].is_left_out)) {
            tide_buf_printf(notes, "note: %.*s\n", TIDE_STR_ARG(findings.items[i].what));
        }
    }
    tide_findings_done(&findings);
    return status;
}

static bool is_known(const struct tide_pipeline *pipeline, tide_str store)
{
    for (size_t i = 0; i < pipeline->table_count; i++) {
        if (tide_str_equal(pipeline->tables[i], store)) {
            return true;
        }
    }
    return false;
}

/* Tables that came meanwhile are copied too, when the source tells of them. */
static bool was_copied(const struct tide_pipeline *pipeline, tide_str store)
{
    for (size_t i = 0; i < pipeline->end_count; i++) {
        if (!tide_ingest_is_copy_over(pipeline->ingest, store, pipeline->ends[i].lane)) {
            return false;
        }
    }
    return true;
}

/* The pipeline's own source knows the tables as they were when it was prepared. */
tide_status tide_pipeline_note_new_tables(const struct tide_pipeline *pipeline,
                                          struct tide_buf *notes, struct tide_error *err)
{
    const struct tide_source_ops *ops = pipeline->options.source_ops;
    struct tide_source_options options = tide_pipeline_source_options(pipeline);
    struct tide_source *source = NULL;
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    TIDE_TRY(ops->open(&options, &source, err));
    tide_status status = ops->tables(source, &tables, &count, err);
    for (size_t i = 0; status == TIDE_OK && i < count; i++) {
        if (!is_known(pipeline, tables[i]->store) && !was_copied(pipeline, tables[i]->store)) {
            tide_buf_printf(notes, "table %.*s was made meanwhile and is not in this copy\n",
                            TIDE_STR_ARG(tables[i]->store));
        }
    }
    ops->close(source);
    return status;
}
