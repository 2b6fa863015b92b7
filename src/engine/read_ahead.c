#include "engine/read_ahead.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdlib.h>

enum state {
    IDLE,
    ASKED,
    ANSWERED,
    STOPPING
};

struct tide_read_ahead {
    const struct tide_source_ops *ops;
    struct tide_source *source;
    struct tide_waker *waker;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    enum state state;
    struct tide_chunk_reader *reader; /* set and cleared under the mutex */
    /* of the request; the thread's while ASKED, else ingest's */
    struct tide_arena arena;
    struct tide_chunk_request request;
    bool needs_horizon;
    /* the answer; the thread's while ASKED, else ingest's */
    tide_status status;
    struct tide_chunk chunk;
    struct tide_error error;
};

static tide_status open_reader(struct tide_read_ahead *ahead)
{
    struct tide_chunk_reader *reader = NULL;
    TIDE_TRY(ahead->ops->reader_open(ahead->source, &reader, &ahead->error));
    tide_mutex_lock(&ahead->mutex);
    ahead->reader = reader;
    tide_mutex_unlock(&ahead->mutex);
    return TIDE_OK;
}

static tide_status read_chunk(struct tide_read_ahead *ahead)
{
    if (ahead->reader == NULL) {
        TIDE_TRY(open_reader(ahead));
    }
    if (ahead->needs_horizon) {
        TIDE_TRY(
            ahead->ops->reader_remember(ahead->reader, ahead->request.relation, &ahead->error));
        ahead->needs_horizon = false;
    }
    return ahead->ops->reader_read(ahead->reader, &ahead->request, &ahead->chunk, &ahead->error);
}

static void *run(void *arg)
{
    struct tide_read_ahead *ahead = arg;
    tide_mutex_lock(&ahead->mutex);
    while (ahead->state != STOPPING) {
        if (ahead->state != ASKED) {
            (void)tide_cond_wait_until(&ahead->cond, &ahead->mutex, TIDE_NO_DEADLINE);
            continue;
        }
        tide_mutex_unlock(&ahead->mutex);
        tide_status status = read_chunk(ahead);
        tide_mutex_lock(&ahead->mutex);
        ahead->status = status;
        if (ahead->state == ASKED) {
            ahead->state = ANSWERED;
        }
        tide_waker_wake(ahead->waker);
    }
    tide_mutex_unlock(&ahead->mutex);
    return NULL;
}

struct tide_read_ahead *tide_read_ahead_new(const struct tide_source_ops *ops,
                                            struct tide_source *source, struct tide_waker *waker)
{
    struct tide_read_ahead *ahead = tide_alloc(1, sizeof(*ahead));
    ahead->ops = ops;
    ahead->source = source;
    ahead->waker = waker;
    int rc = pthread_mutex_init(&ahead->mutex, NULL);
    TIDE_ASSERT(rc == 0);
    tide_cond_init(&ahead->cond);
    tide_thread_start(&ahead->thread, run, ahead);
    return ahead;
}

static void forget_request(struct tide_read_ahead *ahead)
{
    tide_relation_unref(ahead->request.relation);
    ahead->request = (struct tide_chunk_request){0};
    tide_arena_reset(&ahead->arena);
}

void tide_read_ahead_free(struct tide_read_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    tide_mutex_lock(&ahead->mutex);
    ahead->state = STOPPING;
    if (ahead->reader != NULL) {
        ahead->ops->reader_cancel(ahead->reader);
    }
    (void)pthread_cond_signal(&ahead->cond);
    tide_mutex_unlock(&ahead->mutex);
    (void)pthread_join(ahead->thread, NULL);
    if (ahead->reader != NULL) {
        ahead->ops->reader_close(ahead->reader);
    }
    forget_request(ahead);
    tide_chunk_done(&ahead->chunk);
    tide_arena_done(&ahead->arena);
    (void)pthread_cond_destroy(&ahead->cond);
    (void)pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

bool tide_read_ahead_is_idle(struct tide_read_ahead *ahead)
{
    tide_mutex_lock(&ahead->mutex);
    bool is_idle = ahead->state == IDLE;
    tide_mutex_unlock(&ahead->mutex);
    return is_idle;
}

/* The request's keys are ingest's and may change while the thread reads. */
static void copy_request(struct tide_read_ahead *ahead, const struct tide_chunk_request *request)
{
    size_t key_count = request->relation->key_count;
    ahead->request = *request;
    (void)tide_relation_ref(request->relation);
    if (request->after_key != NULL) {
        ahead->request.after_key = tide_values_copy(&ahead->arena, request->after_key, key_count);
    }
    const struct tide_value **again =
        tide_arena_alloc(&ahead->arena, request->again_count, sizeof(*again));
    for (size_t i = 0; i < request->again_count; i++) {
        again[i] = tide_values_copy(&ahead->arena, request->again[i], key_count);
    }
    ahead->request.again = again;
}

void tide_read_ahead_ask(struct tide_read_ahead *ahead, const struct tide_chunk_request *request,
                         bool needs_horizon)
{
    tide_mutex_lock(&ahead->mutex);
    TIDE_ASSERT(ahead->state == IDLE);
    forget_request(ahead);
    copy_request(ahead, request);
    ahead->needs_horizon = ahead->needs_horizon || needs_horizon;
    ahead->state = ASKED;
    (void)pthread_cond_signal(&ahead->cond);
    tide_mutex_unlock(&ahead->mutex);
}

bool tide_read_ahead_answer(struct tide_read_ahead *ahead, tide_status *ret_status,
                            struct tide_chunk *ret_chunk, struct tide_error *err)
{
    tide_mutex_lock(&ahead->mutex);
    bool is_answered = ahead->state == ANSWERED;
    if (is_answered) {
        *ret_status = ahead->status;
        *ret_chunk = ahead->chunk;
        *err = ahead->error;
        ahead->chunk = (struct tide_chunk){0};
        ahead->state = IDLE;
    }
    tide_mutex_unlock(&ahead->mutex);
    return is_answered;
}
