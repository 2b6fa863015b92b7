#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

#include <stdio.h>
#include <time.h>

const struct stream_factory *kit_factory;

void kit_open(struct kit *kit, size_t items, size_t bytes, unsigned lane_count)
{
    *kit = (struct kit){.stream = kit_factory->make(items, bytes), .lane_count = lane_count};
    kit->ops = kit->stream->ops;
    for (unsigned i = 0; i < lane_count; i++) {
        char name[32];
        int len = snprintf(name, sizeof(name), "sink %u", i);
        assert_int_equal(kit->ops->add_lane(kit->stream, tide_str_of(name, (size_t)len),
                                            &kit->lanes[i], &kit->err),
                         TIDE_OK);
        assert_int_equal(kit->ops->attach(kit->stream, kit->lanes[i], &kit->ends[i], &kit->err),
                         TIDE_OK);
    }
}

void kit_close(struct kit *kit)
{
    kit->ops->free(kit->stream);
    *kit = (struct kit){0};
}

tide_lane_set kit_set(const struct kit *kit, unsigned count)
{
    tide_lane_set set = 0;
    for (unsigned i = 0; i < count; i++) {
        set |= (tide_lane_set)1 << kit->lanes[i];
    }
    return set;
}

struct tide_batch *kit_batch(uint64_t position, size_t size)
{
    struct tide_batch *batch = tide_batch_new();
    batch->size = size;
    batch->has_position = position != 0;
    batch->position.lo = position;
    return batch;
}

tide_status kit_try_publish(struct kit *kit, struct tide_publication *publication,
                            struct tide_waker *waker, int64_t wait_us)
{
    return kit->ops->publish(kit->stream, publication, waker, tide_clock_deadline_us(wait_us),
                             &kit->err);
}

uint64_t kit_publish(struct kit *kit, tide_lane_set set, uint64_t position)
{
    struct tide_publication publication = {
        .item = {.kind = TIDE_ITEM_BATCH, .batch = kit_batch(position, KIT_ITEM_SIZE)},
        .pending = set};
    tide_status status = kit->ops->publish(kit->stream, &publication, NULL,
                                           tide_clock_deadline_us(KIT_SOON_US), &kit->err);
    tide_batch_unref(publication.item.batch);
    assert_int_equal(status, TIDE_OK);
    assert_true(publication.pending == 0);
    return publication.build;
}

uint64_t kit_publish_marker(struct kit *kit, tide_lane_set set, uint64_t request_id)
{
    const tide_str table = TIDE_STR("t");
    struct tide_publication publication = {
        .item = {.kind = TIDE_ITEM_SNAPSHOT_COMPLETE,
                 .marker = tide_marker_new(request_id, &table, 1, NULL, 0)},
        .pending = set};
    tide_status status = kit->ops->publish(kit->stream, &publication, NULL,
                                           tide_clock_deadline_us(KIT_SOON_US), &kit->err);
    tide_marker_unref(publication.item.marker);
    assert_int_equal(status, TIDE_OK);
    return publication.build;
}

struct tide_delivery kit_expect(struct kit *kit, unsigned i, uint64_t build)
{
    struct tide_delivery delivery = {0};
    assert_int_equal(
        kit->ops->receive(&kit->ends[i], tide_clock_deadline_us(KIT_SOON_US), &delivery, &kit->err),
        TIDE_OK);
    assert_int_equal(delivery.build, build);
    return delivery;
}

void kit_expect_none(struct kit *kit, unsigned i, tide_status want)
{
    struct tide_delivery delivery = {0};
    assert_int_equal(kit->ops->receive(&kit->ends[i], tide_clock_deadline_us(KIT_SHORT_US),
                                       &delivery, &kit->err),
                     want);
    assert_int_equal(kit->err.status, want);
    assert_int_equal(delivery.build, 0);
}

void kit_acknowledge(struct kit *kit, unsigned i, const struct tide_delivery *delivery)
{
    assert_int_equal(kit->ops->acknowledge(&kit->ends[i], delivery, &kit->err), TIDE_OK);
}

void kit_give_back(struct kit *kit, unsigned i, const struct tide_delivery *delivery)
{
    assert_int_equal(kit->ops->give_back(&kit->ends[i], delivery, &kit->err), TIDE_OK);
}

void kit_pass(struct kit *kit, unsigned i, uint64_t build)
{
    struct tide_delivery delivery = kit_expect(kit, i, build);
    kit_acknowledge(kit, i, &delivery);
}

void kit_expect_watermark(struct kit *kit, uint64_t position)
{
    struct tide_position got = {.hi = 77, .lo = 77};
    uint64_t build = 0;
    bool is_known = kit->ops->watermark(kit->stream, &got, &build);
    assert_int_equal(is_known, position != 0);
    if (is_known) {
        assert_int_equal(got.hi, 0);
        assert_int_equal(got.lo, position);
        assert_int_not_equal(build, 0);
    }
}

unsigned kit_random(uint64_t *seed, unsigned bound)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % bound;
}

void kit_sleep_us(int64_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&time, NULL);
}
