#include "engine/ingest_loop.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/read_ahead.h"

#define IDLE_WAIT_US    100000
#define EVENTS_PER_TURN 512

static void free_read_ahead(struct tide_read_ahead **ahead)
{
    tide_read_ahead_free(*ahead);
}

static tide_status exchange_chunks(struct tide_ingest *ingest, struct tide_read_ahead *ahead,
                                   struct tide_error *err)
{
    tide_status status = TIDE_OK;
    struct tide_chunk chunk = {0};
    if (tide_read_ahead_answer(ahead, &status, &chunk, err)) {
        if (status == TIDE_OK) {
            tide_ingest_take_chunk(ingest, &chunk);
        } else {
            tide_chunk_done(&chunk);
            TIDE_TRY(tide_ingest_chunk_failed(ingest, err));
        }
    }
    struct tide_chunk_request request;
    bool needs_horizon = false;
    if (tide_read_ahead_is_idle(ahead) &&
        tide_ingest_wants_chunk(ingest, &request, &needs_horizon)) {
        tide_read_ahead_ask(ahead, &request, needs_horizon);
    }
    return TIDE_OK;
}

/* Events until nothing is at hand, at most so many that chunks and checkpoints get their turn. */
static tide_status pull_some(struct tide_ingest *ingest, int64_t deadline_us,
                             struct tide_error *err)
{
    for (int i = 0; i < EVENTS_PER_TURN; i++) {
        tide_status status =
            tide_ingest_pull(ingest, tide_ingest_waker(ingest), i == 0 ? deadline_us : 0, err);
        if (status != TIDE_OK) {
            return status;
        }
    }
    return TIDE_OK;
}

/* Everything that has been committed by now is pulled: it is the end of the copy. */
static tide_status pull_to_end(struct tide_ingest *ingest, const struct tide_source_ops *ops,
                               struct tide_source *source, struct tide_error *err)
{
    struct tide_position end = {0};
    if (ops->log_end != NULL) {
        TIDE_TRY(ops->log_end(source, &end, err));
    }
    for (;;) {
        bool is_there = tide_ingest_has_reached(ingest, end);
        int64_t deadline_us = is_there ? 0 : tide_clock_deadline_us(IDLE_WAIT_US);
        tide_status status = pull_some(ingest, deadline_us, err);
        if (status == TIDE_TIMEOUT && is_there && tide_ingest_has_reached(ingest, end)) {
            return TIDE_OK; /* and not half way through a transaction that came since */
        }
        if (status != TIDE_OK && status != TIDE_TIMEOUT) {
            return status;
        }
        if (tide_ingest_is_stopping(ingest)) {
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        }
        TIDE_TRY(tide_ingest_work(ingest, err));
    }
}

static tide_status settle(struct tide_ingest *ingest, const struct tide_source_ops *ops,
                          struct tide_source *source, struct tide_error *err)
{
    TIDE_TRY(pull_to_end(ingest, ops, source, err));
    if (!tide_ingest_is_seeded_all(ingest)) {
        return TIDE_OK; /* a table came or changed: it is to be copied first */
    }
    while (!tide_ingest_is_settled(ingest)) {
        if (tide_ingest_is_stopping(ingest)) {
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        }
        TIDE_TRY(tide_ingest_work(ingest, err));
        (void)tide_waker_wait(tide_ingest_waker(ingest), tide_clock_deadline_us(10000));
    }
    return TIDE_END;
}

/* Waits, then opens the stream again; the waits double while that fails. */
static tide_status reconnect(struct tide_ingest *ingest, struct tide_error *err)
{
    int64_t max_us = tide_ingest_retry_max_us(ingest);
    for (int64_t wait_us = TIDE_RETRY_FIRST_US;;
         wait_us = wait_us > max_us / 2 ? max_us : wait_us * 2) {
        tide_log(TIDE_LOG_WARN, "source: %s; trying again in %.1f s", err->message,
                 (double)wait_us / 1e6);
        tide_ingest_set_reason(ingest, err->message);
        int64_t until_us = tide_clock_deadline_us(wait_us);
        while (tide_clock_monotonic_us() < until_us && !tide_ingest_is_stopping(ingest)) {
            (void)tide_waker_wait(tide_ingest_waker(ingest), until_us);
            TIDE_TRY(tide_ingest_serve(ingest, err));
        }
        if (tide_ingest_is_stopping(ingest)) {
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        }
        tide_status status = tide_ingest_reconnect(ingest, err);
        if (status == TIDE_OK) {
            tide_log(TIDE_LOG_INFO, "source: following again");
            tide_ingest_set_reason(ingest, "");
        }
        if (status == TIDE_OK || !err->retriable) {
            return status;
        }
    }
}

static tide_status turn(struct tide_ingest *ingest, struct tide_read_ahead *ahead,
                        struct tide_error *err)
{
    TIDE_TRY(exchange_chunks(ingest, ahead, err));
    TIDE_TRY(tide_ingest_work(ingest, err));
    TIDE_TRY(exchange_chunks(ingest, ahead, err)); /* the next read starts at once */
    tide_status status = pull_some(ingest, tide_clock_deadline_us(IDLE_WAIT_US), err);
    return status == TIDE_TIMEOUT ? TIDE_OK : status;
}

tide_status tide_ingest_run(struct tide_ingest *ingest, const struct tide_source_ops *ops,
                            struct tide_source *source, bool is_one_shot, struct tide_error *err)
{
    struct tide_read_ahead *ahead TIDE_CLEANUP(free_read_ahead) =
        tide_read_ahead_new(ops, source, tide_ingest_waker(ingest));
    while (!tide_ingest_is_stopping(ingest)) {
        /* A turn comes first: it takes in the requests, without which all would look seeded. */
        tide_status status = turn(ingest, ahead, err);
        if (status == TIDE_OK && is_one_shot && tide_ingest_is_seeded_all(ingest)) {
            status = settle(ingest, ops, source, err);
        }
        if (status != TIDE_OK && status != TIDE_END && err->retriable) {
            status = reconnect(ingest, err);
        }
        TIDE_TRY(status);
    }
    return tide_fail(err, TIDE_CANCELLED, "stopped");
}
