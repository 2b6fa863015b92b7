#include "base/log.h"
#include "engine/ingest_state.h"

static bool find_sink(const struct tide_ingest *ingest, tide_str name, unsigned *ret_lane)
{
    const struct tide_ingest_sink *sink = tide_ingest_sink_named(ingest, name);
    if (sink != NULL) {
        *ret_lane = sink->lane;
    }
    return sink != NULL;
}

static void load_stores(struct tide_ingest *ingest, const struct tide_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->store_count; i++) {
        struct tide_store *store = tide_build_store(&ingest->build, checkpoint->stores[i].store);
        store->published = checkpoint->stores[i].place;
        store->committed = store->published;
        store->held = store->published;
    }
}

static void load_sinks(struct tide_ingest *ingest, const struct tide_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        struct tide_ingest_sink *sink = tide_ingest_sink_named(ingest, checkpoint->sinks[i].name);
        if (sink != NULL) {
            sink->is_seeded = checkpoint->sinks[i].is_seeded;
            sink->is_paused = checkpoint->sinks[i].is_paused;
        }
    }
}

static bool has_same_key(const struct tide_relation *relation,
                         const struct tide_checkpoint_copy *entry)
{
    if (relation->key_count != entry->key_column_count) {
        return false;
    }
    for (size_t i = 0; i < relation->key_count; i++) {
        if (!tide_str_equal(relation->columns[relation->key_columns[i]].name,
                            entry->key_columns[i])) {
            return false;
        }
    }
    return true;
}

/* The copy that another sink's entry has already made. */
static struct tide_copy *find_joined(const struct tide_ingest *ingest,
                                     const struct tide_checkpoint_copy *entry)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        const struct tide_copy *copy = item->copy;
        bool is_same = entry->is_begun
                           ? copy->is_begun && strcmp(copy->head.id, entry->snapshot_id) == 0
                           : !copy->is_begun && tide_str_equal(copy->relation->store, entry->store);
        if (is_same) {
            return item->copy;
        }
    }
    return NULL;
}

/* `*ret_copy` stays NULL where the table is gone, or chosen no more. */
static tide_status make_copy(struct tide_ingest *ingest, const struct tide_checkpoint_copy *entry,
                             struct tide_copy **ret_copy, struct tide_error *err)
{
    const struct tide_relation *relation = NULL;
    TIDE_TRY(tide_ingest_find_table(ingest, entry->store, &relation, err));
    if (relation == NULL) {
        tide_log(TIDE_LOG_WARN,
                 "table %.*s of the checkpoint is not among the tables to copy any more",
                 TIDE_STR_ARG(entry->store));
        (void)tide_build_store(&ingest->build, entry->store); /* which will be noted as left */
        ingest->must_save = true;
        return TIDE_OK;
    }
    struct tide_copy *copy = tide_ingest_add_copy(ingest, relation);
    *ret_copy = copy;
    if (!entry->is_begun || !has_same_key(relation, entry)) {
        return TIDE_OK; /* queued, from the beginning */
    }
    if (entry->last_pk.count != 0 && entry->last_pk.count != relation->key_count) {
        return tide_fail(err, TIDE_CORRUPT, "checkpoint: last key of table %.*s has %zu values",
                         TIDE_STR_ARG(entry->store), entry->last_pk.count);
    }
    tide_copy_restore(copy, &(struct tide_copy_held){
                                .snapshot_id = entry->snapshot_id,
                                .snapshot_at_us = entry->snapshot_at_us,
                                .attempt = entry->attempt,
                                .starts = entry->starts,
                                .next_seq = entry->next_seq,
                                .last_key = entry->last_pk.values,
                                .is_done = entry->is_done,
                            });
    atomic_fetch_add(&ingest->stats.rows_published, entry->next_seq);
    atomic_fetch_add(&ingest->stats.copies_done, entry->is_done);
    for (size_t i = 0; i < entry->read_again_count; i++) {
        if (entry->read_again[i].count != relation->key_count) {
            return tide_fail(err, TIDE_CORRUPT, "checkpoint: a key of table %.*s has %zu values",
                             TIDE_STR_ARG(entry->store), entry->read_again[i].count);
        }
        tide_again_add(&copy->again, entry->read_again[i].values, relation->key_count);
    }
    return TIDE_OK;
}

static tide_status load_copies(struct tide_ingest *ingest, const struct tide_checkpoint *checkpoint,
                               struct tide_error *err)
{
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *entry = &checkpoint->copies[i];
        unsigned lane = 0;
        tide_ingest_use_request_id(ingest, entry->request_id); /* no id is ever given twice */
        if (entry->sink_count != 1 || !find_sink(ingest, entry->sinks[0], &lane)) {
            continue; /* its sink is gone */
        }
        struct tide_copy *copy = find_joined(ingest, entry);
        if (copy == NULL) {
            TIDE_TRY(make_copy(ingest, entry, &copy, err));
        }
        if (copy == NULL) {
            continue;
        }
        tide_copy_add_share(copy, lane, entry->request_id);
    }
    return TIDE_OK;
}

static tide_status load_requests(struct tide_ingest *ingest,
                                 const struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *entry = &checkpoint->requests[i];
        unsigned lane = 0;
        if (find_sink(ingest, entry->sink, &lane)) {
            struct tide_ingest_request *request = tide_ingest_add_request(
                ingest, entry->id, 0, lane, entry->tables, entry->table_count);
            TIDE_TRY(tide_ingest_queue_copies(ingest, request, err));
        }
    }
    return TIDE_OK;
}

tide_status tide_ingest_load(struct tide_ingest *ingest, const struct tide_checkpoint *checkpoint,
                             struct tide_error *err)
{
    ingest->sequence = checkpoint->sequence;
    if (checkpoint->is_creating || checkpoint->is_closed) {
        return TIDE_OK; /* half made, or ended and taken out of the source: all is made anew */
    }
    TIDE_TRY(ingest->options.source_ops->position_kind->parse(checkpoint->position_json,
                                                              &ingest->start, err));
    ingest->is_loaded = true;
    ingest->options.copy.incarnation = checkpoint->incarnation;
    ingest->held = ingest->start;
    ingest->saved[0] = ingest->start;
    ingest->saved_count = 1;
    tide_buf_reset(&ingest->state_json);
    tide_buf_append_str(&ingest->state_json, checkpoint->source_state_json);
    load_stores(ingest, checkpoint);
    load_sinks(ingest, checkpoint);
    TIDE_TRY(load_copies(ingest, checkpoint, err));
    return load_requests(ingest, checkpoint, err);
}
