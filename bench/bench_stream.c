/*
 * Throughput of the channel: one publisher, a consumer thread a lane, batches without content, so
 * that what is measured is the lane alone. With and without a waker, as ingest sets one.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "stream/channel.h"

#include <stdio.h>

struct bench {
    struct tide_stream *stream;
    unsigned lanes[TIDE_LANES_MAX];
    unsigned lane_count;
    uint64_t items;
};

struct consumer {
    struct bench *bench;
    unsigned lane;
};

static void must(tide_status status)
{
    TIDE_ASSERT(status == TIDE_OK);
}

static void *consume(void *arg)
{
    const struct consumer *self = arg;
    const struct tide_stream_ops *ops = self->bench->stream->ops;
    struct tide_error err;
    struct tide_lane_consumer end;
    struct tide_delivery delivery;
    must(ops->attach(self->bench->stream, self->lane, &end, &err));
    while (ops->receive(&end, TIDE_NO_DEADLINE, &delivery, &err) == TIDE_OK) {
        must(ops->acknowledge(&end, &delivery, &err));
    }
    return NULL;
}

static void publish_all(struct bench *bench)
{
    struct tide_error err;
    tide_lane_set set = 0;
    for (unsigned i = 0; i < bench->lane_count; i++) {
        set |= (tide_lane_set)1 << bench->lanes[i];
    }
    for (uint64_t i = 1; i <= bench->items; i++) {
        struct tide_publication publication = {.item.batch = tide_batch_new(), .pending = set};
        publication.item.batch->size = 4096;
        publication.item.batch->has_position = true;
        publication.item.batch->position.lo = i;
        must(
            bench->stream->ops->publish(bench->stream, &publication, NULL, TIDE_NO_DEADLINE, &err));
        tide_item_unref(publication.item);
    }
    bench->stream->ops->close(bench->stream);
}

static int64_t run(struct bench *bench)
{
    struct tide_error err;
    struct consumer consumers[TIDE_LANES_MAX];
    pthread_t threads[TIDE_LANES_MAX];
    for (unsigned i = 0; i < bench->lane_count; i++) {
        char name = (char)('0' + i);
        must(bench->stream->ops->add_lane(bench->stream, tide_str_of(&name, 1), &bench->lanes[i],
                                          &err));
    }
    int64_t from_us = tide_clock_monotonic_us();
    for (unsigned i = 0; i < bench->lane_count; i++) {
        consumers[i] = (struct consumer){.bench = bench, .lane = bench->lanes[i]};
        tide_thread_start(&threads[i], consume, &consumers[i]);
    }
    publish_all(bench);
    for (unsigned i = 0; i < bench->lane_count; i++) {
        TIDE_ASSERT(pthread_join(threads[i], NULL) == 0);
    }
    return tide_clock_monotonic_us() - from_us;
}

static void measure(unsigned lane_count, uint64_t items, bool has_waker)
{
    struct tide_error err;
    struct bench bench = {.lane_count = lane_count, .items = items};
    struct tide_waker waker;
    tide_waker_init(&waker);
    must(tide_channel_new(NULL, &bench.stream, &err));
    if (has_waker) {
        bench.stream->ops->set_waker(bench.stream, &waker);
    }
    int64_t took_us = run(&bench);
    double seconds = (double)took_us / 1e6;
    printf("stream channel lanes=%u waker=%s items=%llu seconds=%.3f items_per_s=%.0f "
           "deliveries_per_s=%.0f\n",
           lane_count, has_waker ? "yes" : "no", (unsigned long long)items, seconds,
           (double)items / seconds, (double)items * lane_count / seconds);
    bench.stream->ops->set_waker(bench.stream, NULL);
    bench.stream->ops->free(bench.stream);
    tide_waker_done(&waker);
}

int main(void)
{
    const struct {
        unsigned lanes;
        uint64_t items;
    } cases[] = {{1, 1000000}, {8, 200000}, {64, 20000}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        measure(cases[i].lanes, cases[i].items, false);
        measure(cases[i].lanes, cases[i].items, true);
    }
    return 0;
}
