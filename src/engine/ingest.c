#include "engine/ingest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/ingest_state.h"

#include <stdio.h>
#include <stdlib.h>

struct tide_ingest *tide_ingest_new(const struct tide_ingest_options *options)
{
    struct tide_ingest *ingest = tide_alloc(1, sizeof(*ingest));
    ingest->options = *options;
    ingest->options.copy.incarnation = options->incarnation;
    ingest->pipeline = tide_strndup(options->pipeline.ptr, options->pipeline.len);
    ingest->next_request_id = 1;
    tide_waker_init(&ingest->waker);
    tide_ingest_reporting_init(&ingest->reporting);
    int rc = pthread_mutex_init(&ingest->posts.mutex, NULL);
    TIDE_ASSERT(rc == 0);
    tide_build_init(&ingest->build, options->batch_changes_max, options->batch_bytes_max,
                    (struct tide_position){0});
    ingest->build.budget = options->copy.budget;
    ingest->reading =
        (struct tide_charge){.budget = options->copy.budget, .user = TIDE_BUDGET_CHUNKS};
    tide_budget_set_waker(options->copy.budget, &ingest->waker);
    return ingest;
}

void tide_ingest_free(struct tide_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    tide_budget_set_waker(ingest->options.copy.budget, NULL);
    tide_charge_done(&ingest->reading);
    tide_ingest_free_requests(ingest);
    while (ingest->copies != NULL) {
        struct tide_ingest_copy *next = ingest->copies->next;
        tide_copy_free(ingest->copies->copy);
        free(ingest->copies);
        ingest->copies = next;
    }
    for (size_t i = 0; i < ingest->sink_count; i++) {
        free(ingest->sinks[i].name);
    }
    free(ingest->sinks);
    tide_ingest_free_posts(ingest);
    tide_ingest_reporting_done(&ingest->reporting);
    (void)pthread_mutex_destroy(&ingest->posts.mutex);
    tide_build_done(&ingest->build);
    tide_buf_done(&ingest->state_json);
    tide_buf_done(&ingest->encoded);
    tide_waker_done(&ingest->waker);
    free(ingest->pipeline);
    free(ingest);
}

bool tide_ingest_needs_backfill(const struct tide_ingest *ingest, unsigned lane)
{
    for (struct tide_ingest_request *r = ingest->requests; r != NULL; r = r->next) {
        if (r->lane == lane) {
            return false;
        }
    }
    return !tide_ingest_sink_of(ingest, lane)->is_seeded;
}

tide_status tide_ingest_start(struct tide_ingest *ingest, struct tide_error *err)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    struct tide_source *source = ingest->options.source;
    tide_str state = tide_buf_str(&ingest->state_json);
    ingest->options.stream->ops->set_waker(ingest->options.stream, &ingest->waker);
    if (!ingest->is_loaded) {
        ingest->is_creating = true;
        TIDE_TRY(tide_ingest_save(ingest, false, err));
        ingest->is_creating = false;
    }
    TIDE_TRY(ops->prepare(source, ingest->is_loaded ? &state : NULL, ingest->start, &ingest->start,
                          err));
    ingest->is_prepared = true;
    ingest->build.reached = ingest->start;
    TIDE_TRY(tide_ingest_note_tables(ingest, err));
    /* Said to every lane, so that a sink that was added to an idle source knows where it stands. */
    ingest->build.has_new_position = true;
    ingest->held = ingest->start;
    TIDE_TRY(tide_ingest_save(ingest, false, err));
    ingest->is_started = true;
    ingest->is_behind = ingest->is_loaded;
    return ops->stream(source, ingest->start, err);
}

/* Copies begun in an earlier run that wait for their turn: a partial move may concern them. */
static void tell_waiting_copies(struct tide_ingest *ingest, const struct tide_change *change)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy != ingest->current &&
            tide_str_equal(item->copy->relation->store, change->relation->store)) {
            tide_copy_remember(item->copy, change);
        }
    }
}

/* Rows and changes of other columns cannot be put together. */
static tide_status check_shape(struct tide_ingest *ingest, const struct tide_relation *relation,
                               struct tide_error *err)
{
    bool has_begun = false;
    if (ingest->current == NULL ||
        tide_relation_same_columns(ingest->current->relation, relation)) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_ingest_begin_fresh(ingest, ingest->current, &has_begun, err));
    if (!has_begun) {
        tide_ingest_fail_current(ingest,
                                 "its columns were changed while it was copied; copy it again");
    }
    return TIDE_OK;
}

static tide_status handle_change(struct tide_ingest *ingest, const struct tide_change *change,
                                 struct tide_error *err)
{
    const struct tide_change *kept = tide_build_add(&ingest->build, change);
    if (ingest->build.last_store == ingest->current_store) {
        TIDE_TRY(check_shape(ingest, kept->relation, err));
    }
    if (ingest->current != NULL && ingest->build.last_store == ingest->current_store) {
        tide_copy_remember(ingest->current, kept);
    }
    if (kept->is_partial) {
        tell_waiting_copies(ingest, kept);
    }
    return TIDE_OK;
}

tide_status tide_ingest_pull(struct tide_ingest *ingest, struct tide_waker *waker,
                             int64_t deadline_us, struct tide_error *err)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    struct tide_arena *arena = tide_build_arena(&ingest->build);
    struct tide_event event;
    if (ingest->lost.status != TIDE_OK) {
        *err = ingest->lost;
        return err->status;
    }
    tide_status status = ops->next(ingest->options.source, arena, waker, 0, &event, err);
    if (status == TIDE_TIMEOUT) {
        bool is_kept_out = err->retriable;               /* more may be at hand */
        TIDE_TRY(tide_ingest_publish_open(ingest, err)); /* a lone change never waits */
        if (ops->log_end == NULL && !is_kept_out) {
            tide_ingest_note_caught_up(ingest);
        }
        if (deadline_us == 0) {
            return TIDE_TIMEOUT;
        }
        arena = tide_build_arena(&ingest->build);
        status = ops->next(ingest->options.source, arena, waker, deadline_us, &event, err);
    }
    TIDE_TRY(status);
    ingest->reporting.has_moved = true;
    switch (event.kind) {
    case TIDE_EVENT_CHANGE:
        TIDE_TRY(handle_change(ingest, &event.change, err));
        break;
    case TIDE_EVENT_COMMIT:
    case TIDE_EVENT_REACHED:
        tide_build_commit(&ingest->build, event.position);
        break;
    case TIDE_EVENT_TABLE:
        TIDE_TRY(tide_ingest_table_changed(ingest, &event, err));
        break;
    }
    tide_build_count(&ingest->build);
    return tide_build_is_full(&ingest->build) ? tide_ingest_publish_open(ingest, err) : TIDE_OK;
}

tide_status tide_ingest_work(struct tide_ingest *ingest, struct tide_error *err)
{
    tide_ingest_forget_dropped(ingest);
    TIDE_TRY(tide_ingest_serve(ingest, err));
    TIDE_TRY(tide_ingest_receive_requests(ingest, err));
    TIDE_TRY(tide_ingest_advance_copies(ingest, err));
    TIDE_TRY(tide_ingest_keep(ingest, err));
    return tide_ingest_finish_requests(ingest, err);
}

tide_status tide_ingest_reconnect(struct tide_ingest *ingest, struct tide_error *err)
{
    ingest->lost = (struct tide_error){0};
    TIDE_TRY(tide_ingest_publish_open(ingest, err));
    tide_build_abandon(&ingest->build);
    if (ingest->current != NULL) {
        tide_copy_restart_remembering(ingest->current);
    }
    return ingest->options.source_ops->stream(ingest->options.source, ingest->build.reached, err);
}

bool tide_ingest_is_seeded_all(const struct tide_ingest *ingest)
{
    if (ingest->requests != NULL) {
        return false;
    }
    for (size_t i = 0; i < ingest->sink_count; i++) {
        if (!ingest->sinks[i].is_seeded) {
            return false; /* its request has not even been received */
        }
    }
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->state == TIDE_COPY_QUEUED || item->copy->state == TIDE_COPY_RUNNING) {
            return false; /* it failed in an earlier run, which ended its request */
        }
    }
    return true;
}

bool tide_ingest_has_reached(const struct tide_ingest *ingest, struct tide_position position)
{
    return !ingest->build.in_transaction &&
           tide_position_compare(ingest->build.reached, position) >= 0;
}

bool tide_ingest_is_settled(const struct tide_ingest *ingest)
{
    return tide_ingest_is_seeded_all(ingest) && ingest->current == NULL &&
           !ingest->build.has_new_position &&
           tide_position_compare(ingest->held, ingest->build.reached) == 0;
}

int64_t tide_ingest_retry_max_us(const struct tide_ingest *ingest)
{
    return ingest->options.retry_max_us;
}

void tide_ingest_set_reason(struct tide_ingest *ingest, const char *reason)
{
    (void)snprintf(ingest->reporting.reason, sizeof(ingest->reporting.reason), "%s", reason);
}

void tide_ingest_stop(struct tide_ingest *ingest)
{
    atomic_store(&ingest->is_stopping, true);
    tide_waker_wake(&ingest->waker);
}

bool tide_ingest_is_stopping(const struct tide_ingest *ingest)
{
    return atomic_load(&ingest->is_stopping);
}

struct tide_waker *tide_ingest_waker(struct tide_ingest *ingest)
{
    return &ingest->waker;
}

const struct tide_ingest_stats *tide_ingest_stats(const struct tide_ingest *ingest)
{
    return &ingest->stats;
}

void tide_ingest_each_failure(const struct tide_ingest *ingest,
                              void (*each)(void *context, tide_str store, const char *why),
                              void *context)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->state == TIDE_COPY_FAILED) {
            each(context, item->copy->relation->store, item->copy->failure);
        }
    }
}

bool tide_ingest_is_copy_over(const struct tide_ingest *ingest, tide_str store, unsigned lane)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        const struct tide_copy *copy = item->copy;
        bool is_over = copy->state == TIDE_COPY_ENDED || copy->state == TIDE_COPY_DONE ||
                       copy->state == TIDE_COPY_FAILED;
        if (is_over && tide_str_equal(copy->relation->store, store) &&
            (tide_copy_lanes(copy) & (tide_lane_set)1 << lane) != 0) {
            return true;
        }
    }
    return false;
}
