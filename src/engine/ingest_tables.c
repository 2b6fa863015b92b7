/* Tables that change, come and go while they are followed, and the copies that this makes. */
#include "base/log.h"
#include "engine/ingest_state.h"

#include <stdlib.h>

static bool is_unfinished(const struct tide_copy *copy)
{
    return copy->state == TIDE_COPY_QUEUED || copy->state == TIDE_COPY_RUNNING;
}

void tide_ingest_remove_copy(struct tide_ingest *ingest, struct tide_copy *copy)
{
    struct tide_ingest_copy **link = &ingest->copies;
    while ((*link)->copy != copy) {
        link = &(*link)->next;
    }
    struct tide_ingest_copy *item = *link;
    *link = item->next;
    if (ingest->current == copy) {
        ingest->current = NULL;
    }
    if (is_unfinished(copy)) {
        atomic_fetch_sub(&ingest->stats.copies_total, 1);
    }
    tide_copy_free(copy);
    free(item);
}

/* The same shares, from the beginning, under another snapshot. What was published stays without an
 * end. */
static void begin_anew(struct tide_ingest *ingest, struct tide_copy *copy,
                       const struct tide_relation *relation)
{
    struct tide_copy *anew = tide_ingest_add_copy(ingest, relation);
    for (size_t i = 0; i < copy->share_count; i++) {
        tide_copy_add_share(anew, copy->shares[i].lane, copy->shares[i].request_id);
    }
    tide_ingest_remove_copy(ingest, copy);
}

tide_status tide_ingest_begin_fresh(struct tide_ingest *ingest, struct tide_copy *copy,
                                    bool *ret_has_begun, struct tide_error *err)
{
    const struct tide_relation *relation = NULL;
    TIDE_TRY(tide_ingest_find_table(ingest, copy->relation->store, &relation, err));
    *ret_has_begun = relation != NULL && !tide_relation_same_shape(relation, copy->relation);
    if (*ret_has_begun) {
        tide_log(TIDE_LOG_INFO, "table %.*s has other columns now; it is copied anew",
                 TIDE_STR_ARG(relation->store));
        begin_anew(ingest, copy, relation);
        ingest->must_save = true;
    }
    return TIDE_OK;
}

/* Nobody waits for a table that is gone. */
static void fail_requested(struct tide_ingest *ingest, tide_str store)
{
    for (struct tide_ingest_request *r = ingest->requests; r != NULL; r = r->next) {
        for (size_t i = 0; i < r->table_count; i++) {
            bool is_it = tide_str_equal(r->tables[i], store);
            r->is_table_failed[i] = r->is_table_failed[i] || is_it;
            r->is_table_done[i] = r->is_table_done[i] && !is_it;
        }
    }
}

/* Of a table that is gone no copy stays; of one that is there those under way begin anew, behind
 * all others. */
static void end_copies(struct tide_ingest *ingest, const struct tide_event *event)
{
    const struct tide_ingest_copy *last = ingest->copies;
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    for (struct tide_ingest_copy *item = ingest->copies, *next; item != NULL; item = next) {
        next = item == last ? NULL : item->next;
        struct tide_copy *copy = item->copy;
        if (!tide_str_equal(copy->relation->store, event->store)) {
            continue;
        }
        if (event->relation == NULL) {
            tide_ingest_remove_copy(ingest, copy);
        } else if (is_unfinished(copy)) {
            begin_anew(ingest, copy, event->relation);
        }
    }
}

static bool is_copy_queued(const struct tide_ingest *ingest, tide_str store, unsigned lane)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->state == TIDE_COPY_QUEUED &&
            tide_str_equal(item->copy->relation->store, store) &&
            (tide_copy_lanes(item->copy) & (tide_lane_set)1 << lane) != 0) {
            return true;
        }
    }
    return false;
}

tide_status tide_ingest_ask(struct tide_ingest *ingest, tide_str store, unsigned lane,
                            struct tide_error *err)
{
    struct tide_ingest_request *request =
        tide_ingest_add_request(ingest, ingest->next_request_id, 0, lane, &store, 1);
    ingest->must_save = true;
    return tide_ingest_queue_copies(ingest, request, err);
}

static struct tide_position later(struct tide_position a, struct tide_position b)
{
    return tide_position_compare(a, b) >= 0 ? a : b;
}

/* What sinks may hold of the store past the checkpoint that this run goes on from is older than
 * where the log ended, and must not look as if it led on to what comes. */
static void break_store(struct tide_ingest *ingest, struct tide_store *store,
                        struct tide_position position)
{
    struct tide_position at = later(position, ingest->build.reached);
    if (store->published.known) {
        at = later(at, store->published.position);
    }
    if (ingest->is_behind && ingest->has_log_end) {
        at = later(at, ingest->log_end);
    }
    tide_build_break(store, at);
}

void tide_ingest_note_left(struct tide_ingest *ingest)
{
    for (size_t i = 0; i < ingest->build.store_count; i++) {
        if (!ingest->build.list[i]->is_followed) {
            break_store(ingest, ingest->build.list[i], ingest->build.reached);
        }
    }
}

tide_status tide_ingest_note_tables(struct tide_ingest *ingest, struct tide_error *err)
{
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    TIDE_TRY(ingest->options.source_ops->tables(ingest->options.source, &tables, &count, err));
    for (size_t i = 0; i < count; i++) {
        tide_build_store(&ingest->build, tables[i]->store)->is_followed = true;
    }
    tide_ingest_note_left(ingest);
    return TIDE_OK;
}

/*
 * While it is followed, a table is told to be another one when it has become so, and what that
 * misses its copy brings at once. But of one that became so while nobody followed, or that was left
 * for a while, changes are missing.
 */
static void note_gap(struct tide_ingest *ingest, const struct tide_event *event)
{
    struct tide_store *store = tide_build_store(&ingest->build, event->store);
    bool is_there = event->relation != NULL;
    bool was_followed = store->is_followed && !event->was_unfollowed;
    if (ingest->is_behind || (is_there && !was_followed)) {
        break_store(ingest, store, event->position);
    }
    store->is_followed = is_there;
    store->is_anew = is_there && tide_position_compare(event->position, ingest->build.reached) > 0;
}

tide_status tide_ingest_table_changed(struct tide_ingest *ingest, const struct tide_event *event,
                                      struct tide_error *err)
{
    tide_log(TIDE_LOG_INFO, "table %.*s: %.*s%s", TIDE_STR_ARG(event->store),
             TIDE_STR_ARG(event->reason), event->relation != NULL ? "; it is copied anew" : "");
    note_gap(ingest, event);
    end_copies(ingest, event);
    ingest->must_save = true;
    if (event->relation == NULL) {
        fail_requested(ingest, event->store);
        return TIDE_OK;
    }
    for (size_t i = 0; i < ingest->sink_count; i++) {
        const struct tide_ingest_sink *sink = &ingest->sinks[i];
        if (sink->is_attached && !is_copy_queued(ingest, event->store, sink->lane)) {
            TIDE_TRY(tide_ingest_ask(ingest, event->store, sink->lane, err));
        }
    }
    return TIDE_OK;
}

/* A request that is open looks at its copies when it goes on after a restart. */
static bool is_request_open(const struct tide_ingest *ingest, uint64_t id)
{
    for (struct tide_ingest_request *r = ingest->requests; r != NULL; r = r->next) {
        if (r->id == id) {
            return true;
        }
    }
    return false;
}

static void drop_shares(const struct tide_ingest *ingest, struct tide_copy *copy,
                        tide_lane_set lanes)
{
    for (size_t i = copy->share_count; i > 0; i--) {
        const struct tide_copy_share *share = &copy->shares[i - 1];
        if ((lanes & (tide_lane_set)1 << share->lane) != 0 &&
            !is_request_open(ingest, share->request_id)) {
            tide_copy_remove_lane(copy, share->lane);
        }
    }
}

void tide_ingest_drop_replaced(struct tide_ingest *ingest, const struct tide_copy *done)
{
    tide_lane_set lanes = tide_copy_lanes(done);
    for (struct tide_ingest_copy *item = ingest->copies, *next; item->copy != done; item = next) {
        struct tide_copy *copy = item->copy;
        next = item->next;
        if (is_unfinished(copy) || copy->state == TIDE_COPY_ENDED ||
            !tide_str_equal(copy->relation->store, done->relation->store)) {
            continue;
        }
        drop_shares(ingest, copy, lanes);
        if (copy->share_count == 0) {
            tide_ingest_remove_copy(ingest, copy);
        }
    }
}
