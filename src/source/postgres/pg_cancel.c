#include "source/postgres/pg_cancel.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

/* Owned by the connection and by the thread of the request under way; the last one frees it. */
struct tide_pg_canceller {
    pthread_mutex_t mutex;
    pthread_cond_t settled;
    PGcancel *cancel; /* immutable */
    bool is_asking;
    bool is_let_go; /* by the connection */
};

struct tide_pg_canceller *tide_pg_canceller_new(PGconn *pg)
{
    PGcancel *cancel = PQgetCancel(pg);
    if (cancel == NULL) {
        return NULL;
    }
    struct tide_pg_canceller *canceller = tide_alloc(1, sizeof(*canceller));
    TIDE_ASSERT(pthread_mutex_init(&canceller->mutex, NULL) == 0);
    tide_cond_init(&canceller->settled);
    canceller->cancel = cancel;
    return canceller;
}

static void destroy(struct tide_pg_canceller *canceller)
{
    PQfreeCancel(canceller->cancel);
    TIDE_ASSERT(pthread_cond_destroy(&canceller->settled) == 0);
    TIDE_ASSERT(pthread_mutex_destroy(&canceller->mutex) == 0);
    free(canceller);
}

void tide_pg_canceller_free(struct tide_pg_canceller *canceller)
{
    if (canceller == NULL) {
        return;
    }
    tide_mutex_lock(&canceller->mutex);
    canceller->is_let_go = true;
    bool is_last = !canceller->is_asking;
    tide_mutex_unlock(&canceller->mutex);
    if (is_last) {
        destroy(canceller);
    }
}

static void *ask(void *arg)
{
    struct tide_pg_canceller *canceller = arg;
    char why[256];
    (void)PQcancel(canceller->cancel, why, sizeof(why)); /* what runs then ends by its deadline */
    tide_mutex_lock(&canceller->mutex);
    canceller->is_asking = false;
    bool is_last = canceller->is_let_go;
    TIDE_ASSERT(pthread_cond_broadcast(&canceller->settled) == 0);
    tide_mutex_unlock(&canceller->mutex);
    if (is_last) {
        destroy(canceller);
    }
    return NULL;
}

void tide_pg_canceller_ask(struct tide_pg_canceller *canceller)
{
    tide_mutex_lock(&canceller->mutex);
    bool is_free = !canceller->is_asking;
    canceller->is_asking = true;
    if (is_free) {
        pthread_t thread;
        tide_thread_start(&thread, ask, canceller);
        TIDE_ASSERT(pthread_detach(thread) == 0);
    }
    tide_mutex_unlock(&canceller->mutex);
}

bool tide_pg_canceller_settle(struct tide_pg_canceller *canceller, int64_t deadline_us)
{
    tide_mutex_lock(&canceller->mutex);
    bool is_in_time = true;
    while (canceller->is_asking && is_in_time) {
        is_in_time = tide_cond_wait_until(&canceller->settled, &canceller->mutex, deadline_us);
    }
    bool is_settled = !canceller->is_asking;
    tide_mutex_unlock(&canceller->mutex);
    return is_settled;
}
