#include "stream/channel.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "stream/channel_state.h"

#include <stdlib.h>

void tide_channel_notify(struct tide_channel *channel, tide_lane_set room)
{
    if ((channel->publisher_awaits & room) != 0) {
        tide_waker_wake(&channel->room);
    }
    if (channel->waker != NULL) {
        tide_waker_wake(channel->waker);
    }
}

tide_status tide_channel_check(const struct tide_channel *channel, struct tide_error *err)
{
    return channel->is_cancelled ? tide_fail(err, TIDE_CANCELLED, "the stream was cancelled")
                                 : TIDE_OK;
}

tide_status tide_channel_unknown_lane(unsigned lane, struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID, "there is no lane %u", lane);
}

static void channel_free(struct tide_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    struct tide_channel *channel = tide_channel_of(stream);
    for (unsigned i = 0; i < TIDE_LANES_MAX; i++) {
        tide_lane_free(channel->lanes[i]);
    }
    while (channel->dropped != NULL) {
        struct tide_lane *lane = channel->dropped;
        channel->dropped = lane->next_dropped;
        tide_lane_free(lane);
    }
    tide_requests_done(&channel->requests);
    tide_waker_done(&channel->room);
    (void)pthread_cond_destroy(&channel->request_placed);
    (void)pthread_mutex_destroy(&channel->mutex);
    free(channel);
}

static bool find_name(const struct tide_channel *channel, tide_str name, unsigned *ret_lane)
{
    for (tide_lane_set rest = channel->present; rest != 0; rest &= rest - 1) {
        unsigned number = (unsigned)__builtin_ctzll(rest);
        const struct tide_lane *lane = channel->lanes[number];
        if (tide_str_equal(tide_str_of(lane->name, lane->name_len), name)) {
            *ret_lane = number;
            return true;
        }
    }
    return false;
}

static tide_status add_lane_locked(struct tide_channel *channel, tide_str name, unsigned *ret_lane,
                                   struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    if (channel->is_closed) {
        return tide_fail(err, TIDE_CLOSED, "the stream is closed, no lane can be added");
    }
    unsigned number = 0;
    if (find_name(channel, name, &number)) {
        return tide_fail(err, TIDE_INVALID, "there is a lane \"%.*s\" already", TIDE_STR_ARG(name));
    }
    if (~channel->present == 0) {
        return tide_fail(err, TIDE_INVALID, "a stream has %d lanes at most", TIDE_LANES_MAX);
    }
    number = (unsigned)__builtin_ctzll(~channel->present);
    channel->lanes[number] = tide_lane_new(name, ++channel->generation, channel->build);
    channel->present |= (tide_lane_set)1 << number;
    channel->ever |= (tide_lane_set)1 << number;
    *ret_lane = number;
    return TIDE_OK;
}

static tide_status channel_add_lane(struct tide_stream *stream, tide_str name, unsigned *ret_lane,
                                    struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = add_lane_locked(channel, name, ret_lane, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

/* What the consumer has in hand, or a thread that waits on the lane, keeps the lane for a while. */
static void retire(struct tide_channel *channel, struct tide_lane *lane)
{
    channel->items -= tide_lane_items(lane);
    tide_lane_cut(lane);
    (void)pthread_cond_broadcast(&lane->readable);
    if (tide_lane_items(lane) == 0 && lane->waiters == 0) {
        tide_lane_free(lane);
        return;
    }
    lane->next_dropped = channel->dropped;
    channel->dropped = lane;
}

static tide_status drop_lane_locked(struct tide_channel *channel, unsigned number,
                                    struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    struct tide_lane *lane = tide_channel_lane(channel, number);
    if (lane == NULL) {
        return tide_channel_unknown_lane(number, err);
    }
    channel->lanes[number] = NULL;
    channel->present &= ~((tide_lane_set)1 << number);
    retire(channel, lane);
    tide_requests_drop_lane(&channel->requests, number);
    (void)tide_watermark_update(&channel->watermark, channel->lanes, channel->present);
    tide_channel_notify(channel, (tide_lane_set)1 << number);
    return TIDE_OK;
}

static tide_status channel_drop_lane(struct tide_stream *stream, unsigned lane,
                                     struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = drop_lane_locked(channel, lane, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static tide_status find_lane_locked(struct tide_channel *channel, tide_str name, unsigned *ret_lane,
                                    struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    return find_name(channel, name, ret_lane)
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID, "there is no lane \"%.*s\"", TIDE_STR_ARG(name));
}

static tide_status channel_find_lane(struct tide_stream *stream, tide_str name, unsigned *ret_lane,
                                     struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = find_lane_locked(channel, name, ret_lane, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static tide_status request_locked(struct tide_channel *channel, unsigned lane,
                                  const tide_str *tables, size_t table_count, uint64_t *ret_id,
                                  struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    if (channel->is_closed) {
        return tide_fail(err, TIDE_CLOSED, "the stream is closed, no backfill can be asked for");
    }
    if (tide_channel_lane(channel, lane) == NULL) {
        return tide_channel_unknown_lane(lane, err);
    }
    *ret_id = tide_requests_add(&channel->requests, lane, tables, table_count);
    (void)pthread_cond_signal(&channel->request_placed);
    tide_channel_notify(channel, 0);
    return TIDE_OK;
}

static tide_status channel_request(struct tide_stream *stream, unsigned lane,
                                   const tide_str *tables, size_t table_count, uint64_t *ret_id,
                                   struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = request_locked(channel, lane, tables, table_count, ret_id, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static tide_status receive_request_locked(struct tide_channel *channel, int64_t deadline_us,
                                          struct tide_request **ret_request, struct tide_error *err)
{
    for (bool is_over = deadline_us <= 0;;) {
        TIDE_TRY(tide_channel_check(channel, err));
        struct tide_request *request = tide_requests_take(&channel->requests);
        if (request != NULL) {
            *ret_request = request;
            return TIDE_OK;
        }
        if (channel->is_closed) {
            return tide_fail(err, TIDE_CLOSED, "the stream is closed and no request waits");
        }
        if (is_over) {
            return tide_fail_retriable(err, TIDE_TIMEOUT, "no request has come");
        }
        is_over = !tide_cond_wait_until(&channel->request_placed, &channel->mutex, deadline_us);
    }
}

static tide_status channel_receive_request(struct tide_stream *stream, int64_t deadline_us,
                                           struct tide_request **ret_request,
                                           struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = receive_request_locked(channel, deadline_us, ret_request, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static tide_status acknowledge_request_locked(struct tide_channel *channel, uint64_t id,
                                              struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    return tide_requests_acknowledge(&channel->requests, id)
               ? TIDE_OK
               : tide_fail(err, TIDE_STALE, "request %llu is done or was not received",
                           (unsigned long long)id);
}

static tide_status channel_acknowledge_request(struct tide_stream *stream, uint64_t id,
                                               struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = acknowledge_request_locked(channel, id, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}

static void channel_attach_requests(struct tide_stream *stream)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_requests_rewind(&channel->requests);
    (void)pthread_cond_broadcast(&channel->request_placed);
    tide_mutex_unlock(&channel->mutex);
}

static uint64_t channel_held(struct tide_stream *stream, unsigned number)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    const struct tide_lane *lane = tide_channel_lane(channel, number);
    uint64_t build = lane == NULL ? 0 : lane->build_floor;
    tide_mutex_unlock(&channel->mutex);
    return build;
}

static bool channel_watermark(struct tide_stream *stream, struct tide_position *ret_position,
                              uint64_t *ret_build)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    struct tide_watermark watermark = channel->watermark;
    tide_mutex_unlock(&channel->mutex);
    if (watermark.build == 0) {
        return false;
    }
    *ret_position = watermark.position;
    *ret_build = watermark.build;
    return true;
}

static bool channel_is_idle(struct tide_stream *stream)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    bool is_idle = channel->items == 0 && channel->publisher_awaits == 0;
    tide_mutex_unlock(&channel->mutex);
    return is_idle;
}

static void channel_lane_load(struct tide_stream *stream, unsigned number, size_t *ret_items,
                              size_t *ret_bytes)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    const struct tide_lane *lane = tide_channel_lane(channel, number);
    *ret_items = lane == NULL ? 0 : tide_lane_items(lane);
    *ret_bytes = lane == NULL ? 0 : lane->bytes;
    tide_mutex_unlock(&channel->mutex);
}

static void channel_set_waker(struct tide_stream *stream, struct tide_waker *waker)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    channel->waker = waker;
    tide_mutex_unlock(&channel->mutex);
}

static void wake_all(struct tide_channel *channel)
{
    for (tide_lane_set rest = channel->present; rest != 0; rest &= rest - 1) {
        (void)pthread_cond_broadcast(&channel->lanes[__builtin_ctzll(rest)]->readable);
    }
    (void)pthread_cond_broadcast(&channel->request_placed);
    tide_channel_notify(channel, ~(tide_lane_set)0);
}

static void channel_close(struct tide_stream *stream)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    channel->is_closed = true;
    wake_all(channel);
    tide_mutex_unlock(&channel->mutex);
}

static void channel_cancel(struct tide_stream *stream)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    channel->is_cancelled = true;
    wake_all(channel);
    tide_mutex_unlock(&channel->mutex);
}

static const struct tide_stream_ops channel_ops = {
    .name = "channel",
    .free = channel_free,
    .add_lane = channel_add_lane,
    .drop_lane = channel_drop_lane,
    .find_lane = channel_find_lane,
    .publish = tide_channel_publish,
    .attach = tide_channel_attach,
    .receive = tide_channel_receive,
    .acknowledge = tide_channel_acknowledge,
    .give_back = tide_channel_give_back,
    .interrupt = tide_channel_interrupt,
    .is_empty = tide_channel_is_empty,
    .request = channel_request,
    .receive_request = channel_receive_request,
    .acknowledge_request = channel_acknowledge_request,
    .attach_requests = channel_attach_requests,
    .held = channel_held,
    .watermark = channel_watermark,
    .is_idle = channel_is_idle,
    .lane_load = channel_lane_load,
    .set_waker = channel_set_waker,
    .close = channel_close,
    .cancel = channel_cancel,
};

static void init(struct tide_channel *channel, const struct tide_channel_options *options)
{
    channel->base.ops = &channel_ops;
    channel->items_max = options->lane_items == 0 ? TIDE_LANE_ITEMS_DEFAULT : options->lane_items;
    channel->bytes_max = options->lane_bytes == 0 ? TIDE_LANE_BYTES_DEFAULT : options->lane_bytes;
    channel->requests.next_id =
        options->first_request_id == 0 ? (uint64_t)tide_clock_utc_us() : options->first_request_id;
    TIDE_ASSERT(pthread_mutex_init(&channel->mutex, NULL) == 0);
    tide_cond_init(&channel->request_placed);
    tide_waker_init(&channel->room);
}

tide_status tide_channel_new(const struct tide_channel_options *options,
                             struct tide_stream **ret_stream, struct tide_error *err)
{
    static const struct tide_channel_options defaults;
    options = options == NULL ? &defaults : options;
    if (options->lane_items > TIDE_LANE_ITEMS_MAX) {
        return tide_fail(err, TIDE_INVALID, "a lane of %zu items is too large, %zu is the most",
                         options->lane_items, TIDE_LANE_ITEMS_MAX);
    }
    struct tide_channel *channel = tide_alloc(1, sizeof(*channel));
    init(channel, options);
    *ret_stream = &channel->base;
    return TIDE_OK;
}
