/* Which table is copied now, and what its chunks come to. */
#include "base/clock.h"
#include "base/log.h"
#include "engine/ingest_state.h"

#include <stdio.h>

#define UNTRUSTED_WAIT_US   20000
#define LOST_READER_WAIT_US 500000
#define SAY_UNTRUSTED_US    10000000
/* Copies that end fast are named so many at a time, in one checkpoint, and start within so long. */
#define NAMES_MAX     256u
#define NAMES_FAST_US 1000000
#define NAMES_OLD_US  5000000

void tide_ingest_fail_current(struct tide_ingest *ingest, const char *why)
{
    tide_copy_fail(ingest->current, why); /* this table alone */
    atomic_fetch_add(&ingest->stats.copies_failed, 1);
    ingest->must_save = true;
    ingest->current = NULL;
}

/* All that was committed before this run has been published, or will never be. */
void tide_ingest_note_caught_up(struct tide_ingest *ingest)
{
    if (ingest->is_behind && !ingest->build.in_transaction) {
        ingest->is_behind = false;
        ingest->caught_up =
            (struct tide_place){ingest->build.reached, TIDE_INDEX_LAST, .known = true};
        tide_ingest_note_left(ingest); /* also past what sinks held of them when it began */
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
        tide_ingest_note_caught_up(ingest);
    }
    return TIDE_OK;
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

tide_status tide_ingest_advance_copies(struct tide_ingest *ingest, struct tide_error *err)
{
    TIDE_TRY(emit_ready(ingest, err));
    return start_next_copy(ingest, err);
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
        tide_ingest_fail_current(ingest, why);
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
