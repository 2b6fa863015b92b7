#include "engine/ingest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/ingest_state.h"

#include <stdio.h>
#include <stdlib.h>

#define UNTRUSTED_WAIT_US   20000
#define LOST_READER_WAIT_US 500000
#define SAY_UNTRUSTED_US    10000000
/* Copies that end fast are named so many at a time, in one checkpoint, and start within so long. */
#define NAMES_MAX     256u
#define NAMES_FAST_US 1000000
#define NAMES_OLD_US  5000000

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

static void fail_current(struct tide_ingest *ingest, const char *why)
{
    tide_copy_fail(ingest->current, why); /* this table alone */
    atomic_fetch_add(&ingest->stats.copies_failed, 1);
    ingest->must_save = true;
    ingest->current = NULL;
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
        fail_current(ingest, "its columns were changed while it was copied; copy it again");
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

/* All that was committed before this run has been published, or will never be. */
static void note_caught_up(struct tide_ingest *ingest)
{
    if (ingest->is_behind && !ingest->build.in_transaction) {
        ingest->is_behind = false;
        ingest->caught_up =
            (struct tide_place){ingest->build.reached, TIDE_INDEX_LAST, .known = true};
    }
}

/* Looks whether the stream has come to where the log ended. */
static tide_status look_behind(struct tide_ingest *ingest, struct tide_error *err)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    if (!ingest->is_behind || ops->log_end == NULL) {
        return TIDE_OK; /* a source without says it by having nothing at hand */
    }
    if (!ingest->has_log_end) {
        TIDE_TRY(ops->log_end(ingest->options.source, &ingest->log_end, err));
        ingest->has_log_end = true;
    }
    if (tide_ingest_has_reached(ingest, ingest->log_end)) {
        note_caught_up(ingest);
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
        TIDE_TRY(tide_ingest_publish_open(ingest, err)); /* a lone change never waits */
        if (ops->log_end == NULL) {
            note_caught_up(ingest);
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

/*
 * Sinks may hold changes past the checkpoint from which a run goes on. Those of a table that is
 * another one by now do not come again, so a copy that began before them would let stand what they
 * made: it begins behind them. One of which every sink holds rows, and so its begin, goes on at
 * once.
 */
static struct tide_copy *next_queued(struct tide_ingest *ingest)
{
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        if (item->copy->state == TIDE_COPY_QUEUED &&
            (!ingest->is_behind || item->copy->held_seq > 0)) {
            return item->copy;
        }
    }
    return NULL;
}

/* Names the next copies, and makes that durable: twice as many as before when those took no time,
 * so that a thousand small tables do not take a checkpoint each. */
static tide_status name_copies(struct tide_ingest *ingest, struct tide_error *err)
{
    int64_t now_us = tide_clock_monotonic_us();
    bool was_fast = ingest->names > 0 && now_us - ingest->named_us < NAMES_FAST_US;
    unsigned count = was_fast ? ingest->names * 2 : 1;
    count = count > NAMES_MAX ? NAMES_MAX : count;
    ingest->names = 0;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL && ingest->names < count;
         item = item->next) {
        if (item->copy->state == TIDE_COPY_QUEUED) {
            tide_copy_name(item->copy, tide_clock_utc_us());
            ingest->names++;
        }
    }
    ingest->named_us = now_us;
    return tide_ingest_save(ingest, false, err);
}

/* Remembering starts only at the end of a transaction; its checkpoint comes before the opening. */
static tide_status start_next_copy(struct tide_ingest *ingest, struct tide_error *err)
{
    if (ingest->current != NULL || ingest->build.in_transaction) {
        return TIDE_OK;
    }
    TIDE_TRY(look_behind(ingest, err));
    struct tide_copy *copy = next_queued(ingest);
    if (copy == NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_ingest_publish_open(ingest, err)); /* meanwhile a request may have joined it */
    bool is_old = tide_clock_monotonic_us() - ingest->named_us > NAMES_OLD_US;
    if (!copy->is_named || is_old) {
        TIDE_TRY(name_copies(ingest, err));
    }
    tide_copy_start(copy, tide_clock_utc_us());
    ingest->current = copy;
    ingest->current_store = tide_build_store(&ingest->build, copy->relation->store);
    struct tide_place from = ingest->current_store->published;
    if (copy->held_seq == 0 && tide_place_compare(from, ingest->caught_up) < 0) {
        from = ingest->caught_up;
    }
    uint64_t build = 0;
    return tide_ingest_publish_batch(ingest, tide_copy_opening(copy, from), tide_copy_lanes(copy),
                                     &build, err);
}

static tide_status emit_chunk(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_copy *copy = ingest->current;
    TIDE_TRY(tide_ingest_publish_open(ingest, err));
    struct tide_place to = ingest->current_store->published;
    size_t read = copy->waiting[0].chunk.row_count;
    struct tide_batch *batch = tide_copy_emit(copy, ingest->build.reached, to, tide_clock_utc_us());
    size_t published = batch->snapshot->row_count;
    uint64_t build = 0;
    TIDE_TRY(tide_ingest_publish_batch(ingest, batch, tide_copy_lanes(copy), &build, err));
    tide_copy_published(copy, build);
    atomic_fetch_add(&ingest->stats.rows_published, published);
    atomic_fetch_add(&ingest->stats.rows_withheld, read - published);
    return TIDE_OK;
}

static void leave_current(struct tide_ingest *ingest)
{
    if (ingest->current != NULL && ingest->current->state != TIDE_COPY_RUNNING) {
        ingest->current = NULL;
    }
}

static tide_status emit_ready(struct tide_ingest *ingest, struct tide_error *err)
{
    while (!ingest->build.in_transaction && ingest->current != NULL &&
           tide_copy_is_ready(ingest->current, ingest->build.reached)) {
        TIDE_TRY(emit_chunk(ingest, err));
        leave_current(ingest);
    }
    return TIDE_OK;
}

tide_status tide_ingest_work(struct tide_ingest *ingest, struct tide_error *err)
{
    tide_ingest_forget_dropped(ingest);
    TIDE_TRY(tide_ingest_serve(ingest, err));
    TIDE_TRY(tide_ingest_receive_requests(ingest, err));
    TIDE_TRY(emit_ready(ingest, err));
    TIDE_TRY(start_next_copy(ingest, err));
    TIDE_TRY(tide_ingest_keep(ingest, err));
    return tide_ingest_finish_requests(ingest, err);
}

/* Room for the chunk that will be read. The first is always read, more of them ahead only while
 * there is plenty: what is read ahead is the first thing to do without. */
static bool reserve_chunk(struct tide_ingest *ingest)
{
    size_t bytes = ingest->options.copy.chunk_bytes_max;
    if (ingest->current->waiting_count == 0) {
        tide_charge_set(&ingest->reading, bytes);
        return true;
    }
    return tide_charge_try_ahead(&ingest->reading, bytes);
}

bool tide_ingest_wants_chunk(struct tide_ingest *ingest, struct tide_chunk_request *ret_request,
                             bool *ret_needs_horizon)
{
    if (ingest->current == NULL || (ingest->read_not_before_us != 0 &&
                                    tide_clock_monotonic_us() < ingest->read_not_before_us)) {
        return false;
    }
    ingest->read_not_before_us = 0;
    if (!tide_copy_has_work(ingest->current) || !reserve_chunk(ingest)) {
        return false;
    }
    return tide_copy_wants(ingest->current, ret_request, ret_needs_horizon);
}

/* A transaction that nobody ends would keep a table waiting in silence. */
static void say_untrusted(struct tide_ingest *ingest, uint64_t oldest)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (ingest->say_untrusted_us == 0) {
        ingest->say_untrusted_us = now_us + SAY_UNTRUSTED_US;
    }
    if (now_us >= ingest->say_untrusted_us) {
        ingest->say_untrusted_us = now_us + SAY_UNTRUSTED_US;
        (void)snprintf(ingest->reporting.reason, sizeof(ingest->reporting.reason),
                       "table %.*s waits to be copied until transaction %llu and all that began "
                       "before the copy have ended",
                       TIDE_STR_ARG(ingest->current->relation->store), (unsigned long long)oldest);
        tide_log(TIDE_LOG_WARN, "%s", ingest->reporting.reason);
    }
}

void tide_ingest_take_chunk(struct tide_ingest *ingest, struct tide_chunk *chunk)
{
    chunk->charge = ingest->reading;
    ingest->reading.bytes = 0;
    tide_charge_set(&chunk->charge, chunk->arena.size);
    if (ingest->current == NULL || !ingest->current->is_reading) {
        tide_chunk_done(chunk); /* remembering started anew meanwhile: it counts no more */
        return;
    }
    const struct tide_source_ops *ops = ingest->options.source_ops;
    if (ops->epoch != NULL && chunk->epoch != ops->epoch(ingest->options.source)) {
        tide_chunk_done(chunk); /* read from a server that the stream is not of */
        tide_copy_restart_remembering(ingest->current);
        return;
    }
    if (chunk->is_trusted) {
        atomic_fetch_add(&ingest->stats.chunks_read, 1);
        ingest->reporting.has_moved = true;
        ingest->reporting.reason[0] = '\0';
        ingest->say_untrusted_us = 0;
    } else {
        ingest->read_not_before_us = tide_clock_deadline_us(UNTRUSTED_WAIT_US);
        say_untrusted(ingest, chunk->visibility.xmin);
    }
    tide_copy_take(ingest->current, chunk);
}

/* The table may have got another shape a moment ago: then the copy begins anew with that. */
static tide_status take_doubt(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_copy *copy = ingest->current;
    char why[sizeof(err->message)];
    bool has_begun = false;
    if (!copy->is_doubted) {
        copy->is_doubted = true;
        tide_copy_read_failed(copy);
        ingest->read_not_before_us = tide_clock_deadline_us(LOST_READER_WAIT_US);
        return TIDE_OK;
    }
    (void)snprintf(why, sizeof(why), "%s", err->message);
    TIDE_TRY(tide_ingest_begin_fresh(ingest, copy, &has_begun, err));
    if (!has_begun) {
        fail_current(ingest, why);
    }
    return TIDE_OK;
}

tide_status tide_ingest_chunk_failed(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_copy *copy = ingest->current;
    tide_charge_done(&ingest->reading);
    if (copy == NULL || !copy->is_reading) {
        return TIDE_OK;
    }
    if (err->retriable && err->status == TIDE_IO) {
        tide_copy_restart_remembering(copy); /* the connection: nothing read before counts */
        ingest->read_not_before_us = tide_clock_deadline_us(LOST_READER_WAIT_US);
        return TIDE_OK;
    }
    if (err->retriable || err->status == TIDE_CANCELLED) {
        tide_copy_read_failed(copy);
        ingest->read_not_before_us = tide_clock_deadline_us(UNTRUSTED_WAIT_US);
        return TIDE_OK;
    }
    return err->status == TIDE_UNSUPPORTED ? take_doubt(ingest, err) : err->status;
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
