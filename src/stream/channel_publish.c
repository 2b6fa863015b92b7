/* The publishing end of the channel's lanes. */
#include "stream/channel_state.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>

enum wake {
    WAKE_ROOM,
    WAKE_CALLER, /* its waker was woken; not taken yet */
    WAKE_DEADLINE
};

static tide_status check_publication(const struct tide_channel *channel,
                                     const struct tide_publication *publication,
                                     struct tide_error *err)
{
    TIDE_TRY(tide_channel_check(channel, err));
    if (channel->is_closed) {
        return tide_fail(err, TIDE_CLOSED, "the stream is closed, nothing more is published");
    }
    tide_lane_set unknown = publication->pending & ~channel->ever;
    if (unknown != 0) {
        return tide_channel_unknown_lane((unsigned)__builtin_ctzll(unknown), err);
    }
    return TIDE_OK;
}

/* A lane that came after the publication began has the number of one that was dropped. */
static bool is_for(const struct tide_lane *lane, const struct tide_publication *publication)
{
    return lane != NULL && lane->build_born < publication->build;
}

/* Publishes to every pending lane that has room. */
static tide_status push_where_room(struct tide_channel *channel,
                                   struct tide_publication *publication, struct tide_error *err)
{
    size_t size = tide_item_size(&publication->item);
    for (tide_lane_set rest = publication->pending; rest != 0; rest &= rest - 1) {
        unsigned number = (unsigned)__builtin_ctzll(rest);
        struct tide_lane *lane = channel->lanes[number];
        if (is_for(lane, publication)) {
            if (lane->build_last >= publication->build) {
                return tide_fail(err, TIDE_INVALID,
                                 "item %llu comes after item %llu on lane %u, publish in order",
                                 (unsigned long long)publication->build,
                                 (unsigned long long)lane->build_last, number);
            }
            if (!tide_lane_has_room(lane, size, channel->items_max, channel->bytes_max)) {
                continue;
            }
            tide_lane_push(lane, &publication->item, publication->build, size);
            channel->items++;
            if (lane->waiters > 0) {
                (void)pthread_cond_signal(&lane->readable);
            }
        }
        publication->pending &= ~((tide_lane_set)1 << number);
    }
    return TIDE_OK;
}

/* Sleeps without the mutex until a lane gets room, the waker is woken or the deadline passes. */
static enum wake sleep_until(struct tide_channel *channel, const struct tide_waker *waker,
                             int64_t deadline_us)
{
    struct pollfd fds[2] = {{.fd = channel->room.fd, .events = POLLIN},
                            {.fd = waker == NULL ? -1 : waker->fd, .events = POLLIN}};
    for (;;) {
        int64_t left_us = deadline_us - tide_clock_monotonic_us();
        left_us = left_us < 0 ? 0 : left_us;
        struct timespec left = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};
        int rc = ppoll(fds, 2, deadline_us == TIDE_NO_DEADLINE ? NULL : &left, NULL);
        TIDE_ASSERT(rc >= 0 || errno == EINTR);
        if (rc > 0) {
            return (fds[0].revents & POLLIN) != 0 ? WAKE_ROOM : WAKE_CALLER;
        }
        if (rc == 0) {
            return WAKE_DEADLINE;
        }
    }
}

static enum wake wait_for_room(struct tide_channel *channel, tide_lane_set lanes,
                               const struct tide_waker *waker, int64_t deadline_us)
{
    TIDE_ASSERT(channel->publisher_awaits == 0); /* one publisher at a time */
    channel->publisher_awaits = lanes;
    tide_mutex_unlock(&channel->mutex);
    enum wake wake = sleep_until(channel, waker, deadline_us);
    tide_mutex_lock(&channel->mutex);
    channel->publisher_awaits = 0;
    (void)tide_waker_wait(&channel->room, 0); /* what it knew of is looked at next */
    return wake;
}

static tide_status publish_locked(struct tide_channel *channel,
                                  struct tide_publication *publication, struct tide_waker *waker,
                                  int64_t deadline_us, struct tide_error *err)
{
    enum wake wake = WAKE_ROOM;
    for (;;) {
        TIDE_TRY(check_publication(channel, publication, err));
        if (publication->build == 0) {
            publication->build = ++channel->build;
        }
        TIDE_TRY(push_where_room(channel, publication, err));
        if (publication->pending == 0) {
            return TIDE_OK;
        }
        if (wake != WAKE_ROOM) {
            break;
        }
        wake = wait_for_room(channel, publication->pending, waker, deadline_us);
    }
    if (wake == WAKE_CALLER) {
        (void)tide_waker_wait(waker, 0);
    }
    return tide_fail_retriable(err, TIDE_TIMEOUT, "lane %u is full",
                               (unsigned)__builtin_ctzll(publication->pending));
}

tide_status tide_channel_publish(struct tide_stream *stream, struct tide_publication *publication,
                                 struct tide_waker *waker, int64_t deadline_us,
                                 struct tide_error *err)
{
    struct tide_channel *channel = tide_channel_of(stream);
    tide_mutex_lock(&channel->mutex);
    tide_status status = publish_locked(channel, publication, waker, deadline_us, err);
    tide_mutex_unlock(&channel->mutex);
    return status;
}
