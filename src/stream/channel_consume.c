/* The consuming end of the channel's lanes. */
#include "stream/channel_state.h"

#include "base/clock.h"

/* Lets go of what was kept of a dropped lane for the end that now knows of it. */
static void forget_dropped(struct tide_channel *channel, uint64_t generation)
{
    for (struct tide_lane **link = &channel->dropped; *link != NULL;
         link = &(*link)->next_dropped) {
        struct tide_lane *lane = *link;
        if (lane->generation == generation && lane->waiters == 0) {
            *link = lane->next_dropped;
            tide_lane_free(lane);
            return;
        }
    }
}

/* The lane of an end that still owns it. */
static tide_status owned_lane(struct tide_channel *channel,
                              const struct tide_lane_consumer *consumer,
                              struct tide_lane **ret_lane, struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    struct tide_lane *lane = tide_channel_lane(channel, consumer->lane);
    if (lane == NULL || consumer->generation <= lane->born) {
        forget_dropped(channel, consumer->generation);
        return tide_fail(err, TIDE_CLOSED, "lane %u was dropped", consumer->lane);
    }
    if (consumer->generation != lane->generation) {
        return tide_fail(err, TIDE_STALE, "another consumer has attached to lane %u",
                         consumer->lane);
    }
    *ret_lane = lane;
    return TIDE_OK;
}

static tide_status attach_locked(struct tide_channel *channel, unsigned number,
                                 struct tide_lane_consumer *ret_consumer, struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    struct tide_lane *lane = tide_channel_lane(channel, number);
    if (lane == NULL) {
        return tide_channel_unknown_lane(number, err);
    }
    lane->generation = ++channel->generation;
    tide_lane_rewind(lane);
    (void)pthread_cond_broadcast(&lane->readable); /* the former owner learns of it */
    *ret_consumer = (struct tide_lane_consumer){
        .stream = &channel->base, .lane = number, .generation = lane->generation};
    return TIDE_OK;
}

tide_status tide_channel_attach(struct tide_stream *stream, unsigned lane,
                                struct tide_lane_consumer *ret_consumer, struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = attach_locked(channel, lane, ret_consumer, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

/* Waits once. The lane may be dropped meanwhile, but not freed. */
static bool wait_readable(struct tide_channel *channel, struct tide_lane *lane, int64_t deadline_us)
{
    if (deadline_us <= 0) {
        return false;
    }
    lane->waiters++;
    bool is_signalled = tide_cond_wait_until(&lane->readable, &channel->mutex, deadline_us);
    lane->waiters--;
    return is_signalled;
}

static tide_status receive_locked(struct tide_channel *channel,
                                  const struct tide_lane_consumer *consumer, int64_t deadline_us,
                                  struct tide_delivery *ret_delivery, struct tide_error *err)
{
    for (bool is_over = false;;) {
        struct tide_lane *lane = NULL;
        TIDE_TRY(owned_lane(channel, consumer, &lane, err));
        struct tide_lane_entry *entry = tide_lane_take(lane);
        if (entry != NULL) {
            *ret_delivery = (struct tide_delivery){.item = entry->item,
                                                   .build = entry->build,
                                                   .generation = consumer->generation,
                                                   .is_redelivered = entry->was_delivered};
            entry->was_delivered = true;
            return TIDE_OK;
        }
        if (channel->is_closed) {
            return tide_fail(err, TIDE_CLOSED, "the stream is closed and lane %u is drained",
                             consumer->lane);
        }
        if (lane->is_interrupted || is_over) {
            lane->is_interrupted = false;
            return tide_fail_retriable(err, TIDE_TIMEOUT, "nothing has come on lane %u",
                                       consumer->lane);
        }
        is_over = !wait_readable(channel, lane, deadline_us);
    }
}

tide_status tide_channel_receive(struct tide_lane_consumer *consumer, int64_t deadline_us,
                                 struct tide_delivery *ret_delivery, struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(consumer->stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = receive_locked(channel, consumer, deadline_us, ret_delivery, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static tide_status stale(const struct tide_delivery *delivery, unsigned lane,
                         struct tide_error *err)
{
    return tide_fail(err, TIDE_STALE,
                     "item %llu of lane %u is not in this consumer's hands any more",
                     (unsigned long long)delivery->build, lane);
}

static tide_status acknowledge_locked(struct tide_channel *channel,
                                      const struct tide_lane_consumer *consumer,
                                      const struct tide_delivery *delivery,
                                      struct tide_release *release, struct tide_error *err)
{
    struct tide_lane *lane = NULL;
    TIDE_TRY(owned_lane(channel, consumer, &lane, err));
    if (delivery->generation != consumer->generation ||
        !tide_lane_acknowledge(lane, delivery->build)) {
        return stale(delivery, consumer->lane, err);
    }
    size_t before = tide_lane_items(lane);
    if (tide_lane_advance(lane, release)) {
        channel->items -= before - tide_lane_items(lane);
        (void)tide_watermark_update(&channel->watermark, channel->lanes, channel->present);
        tide_channel_notify(channel, (tide_lane_set)1 << consumer->lane);
    }
    return TIDE_OK;
}

tide_status tide_channel_acknowledge(struct tide_lane_consumer *consumer,
                                     const struct tide_delivery *delivery, struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(consumer->stream);
    struct tide_release release;
    release.count = 0;
    tide_mutex_lock(&channel->mutex);
    tide_status status = acknowledge_locked(channel, consumer, delivery, &release, err);
    tide_mutex_unlock(&channel->mutex);
    tide_release_done(&release);
    return status;
}

static tide_status give_back_locked(struct tide_channel *channel,
                                    const struct tide_lane_consumer *consumer,
                                    const struct tide_delivery *delivery, struct tide_error *err)
{
    struct tide_lane *lane = NULL;
    TIDE_TRY(owned_lane(channel, consumer, &lane, err));
    if (delivery->generation != consumer->generation ||
        !tide_lane_give_back(lane, delivery->build)) {
        return stale(delivery, consumer->lane, err);
    }
    (void)pthread_cond_signal(&lane->readable);
    return TIDE_OK;
}

tide_status tide_channel_give_back(struct tide_lane_consumer *consumer,
                                   const struct tide_delivery *delivery, struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(consumer->stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = give_back_locked(channel, consumer, delivery, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

void tide_channel_interrupt(struct tide_stream *stream, unsigned number)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    struct tide_lane *lane = tide_channel_lane(channel, number);
    if (lane != NULL) {
        lane->is_interrupted = true;
        (void)pthread_cond_broadcast(&lane->readable);
    }
    tide_mutex_unlock(&channel->mutex);
}

bool tide_channel_is_empty(struct tide_lane_consumer *consumer)
{
    struct tide_channel *channel = tide_channel_of(consumer->stream);
    tide_mutex_lock(&channel->mutex);
    const struct tide_lane *lane = tide_channel_lane(channel, consumer->lane);
    bool is_empty =
        lane != NULL && lane->generation == consumer->generation && lane->next == lane->tail;
    tide_mutex_unlock(&channel->mutex);
    return is_empty;
}
