/* Groups that are committed beside the thread that receives, which goes on meanwhile. */
#include "base/thread.h"
#include "replication/subscriber_state.h"

static void *run(void *context)
{
    struct tide_subscriber_commit *self = context;
    self->status = tide_archive_group_commit(self->writer, &self->err);
    atomic_store(&self->is_done, true);
    return NULL;
}

static void begin(struct tide_subscriber *subscriber)
{
    struct tide_subscriber_commit *self = &subscriber->commit;
    self->writer = subscriber->writer;
    atomic_store(&self->is_done, false);
    self->is_pending = true;
    tide_thread_start(&self->thread, run, self);
}

/* Where the publisher's segments do not come, the tails are sealed here. */
static tide_status seal_touched(struct tide_subscriber *subscriber, struct tide_error *err)
{
    size_t count = subscriber->has_said_hello ? 0 : subscriber->touched_count;
    subscriber->touched_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct tide_archive_series *series = subscriber->touched[i];
        struct tide_archive_seal_counts counts = {.segments = 1};
        struct tide_archive_series_state state;
        tide_archive_series_state(series, &state);
        while (counts.segments > 0 &&
               tide_archive_series_is_due(series, &subscriber->policy, state.newest_ts)) {
            TIDE_TRY(tide_archive_sealed_here_note(series, err));
            TIDE_TRY(tide_archive_seal(subscriber->writer, &series, 1, &subscriber->policy, &counts,
                                       err));
            subscriber->counts.sealed += (uint64_t)counts.segments;
        }
    }
    return TIDE_OK;
}

/* What is to be done between two groups. */
static tide_status tend(struct tide_subscriber *subscriber, struct tide_error *err)
{
    int64_t next_us = 0;
    subscriber->open_bytes = 0;
    TIDE_TRY(tide_subscriber_set_filling(subscriber, err));
    TIDE_TRY(seal_touched(subscriber, err));
    return tide_archive_tend(subscriber->writer, &next_us, err);
}

tide_status tide_subscriber_commit_end(struct tide_subscriber *subscriber, struct tide_error *err)
{
    struct tide_subscriber_commit *self = &subscriber->commit;
    if (!self->is_pending) {
        return TIDE_OK;
    }
    TIDE_ASSERT(pthread_join(self->thread, NULL) == 0);
    self->is_pending = false;
    if (self->status != TIDE_OK) {
        *err = self->err;
        return self->status;
    }
    return tend(subscriber, err);
}

tide_status tide_subscriber_commit_begin_if_due(struct tide_subscriber *subscriber,
                                                struct tide_error *err)
{
    if (subscriber->open_bytes < subscriber->options.group_bytes) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_place_check(&subscriber->place, err));
    begin(subscriber);
    return TIDE_OK;
}

bool tide_subscriber_may_wait(const struct tide_subscriber *subscriber)
{
    const struct tide_wire_decoder *decoder = &subscriber->decoder;
    size_t group = subscriber->options.group_bytes;
    return subscriber->commit.is_pending && !atomic_load(&subscriber->commit.is_done) &&
           decoder->buf.len - decoder->pos < group + group / 2;
}

tide_status tide_subscriber_sync(struct tide_subscriber *subscriber, struct tide_error *err)
{
    TIDE_TRY(tide_subscriber_settle(subscriber, err));
    TIDE_TRY(tide_archive_place_check(&subscriber->place, err));
    TIDE_TRY(tide_archive_group_commit(subscriber->writer, err));
    return tend(subscriber, err);
}
