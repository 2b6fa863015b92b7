#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

/* A: order */

static void receive_after_publish_keeps_the_order(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t builds[10];
    for (unsigned i = 0; i < 10; i++) {
        builds[i] = kit_publish(&kit, kit_set(&kit, 2), i + 1);
        assert_int_equal(builds[i], i + 1);
    }
    for (unsigned i = 0; i < 10; i++) {
        struct tide_delivery first = kit_expect(&kit, 0, builds[i]);
        struct tide_delivery second = kit_expect(&kit, 1, builds[i]);
        assert_int_equal(first.item.kind, TIDE_ITEM_BATCH);
        assert_int_equal(first.item.batch->position.lo, i + 1);
        assert_int_equal(second.item.batch->position.lo, i + 1);
        assert_false(first.is_redelivered);
    }
    kit_expect_none(&kit, 0, TIDE_TIMEOUT);
    kit_close(&kit);
}

static void publish_to_one_lane_leaves_the_others_alone(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    (void)kit_publish(&kit, kit_set(&kit, 1), 0);
    uint64_t both = kit_publish(&kit, kit_set(&kit, 2), 1);
    kit_pass(&kit, 1, both);
    kit_expect_none(&kit, 1, TIDE_TIMEOUT);
    kit_close(&kit);
}

static void marker_arrives_behind_its_batches(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    uint64_t part = kit_publish(&kit, kit_set(&kit, 1), 0);
    uint64_t marker = kit_publish_marker(&kit, kit_set(&kit, 1), 42);
    kit_pass(&kit, 0, part);
    struct tide_delivery delivery = kit_expect(&kit, 0, marker);
    assert_int_equal(delivery.item.kind, TIDE_ITEM_SNAPSHOT_COMPLETE);
    assert_int_equal(delivery.item.marker->request_id, 42);
    assert_int_equal(delivery.item.marker->table_count, 1);
    assert_true(tide_str_equal(delivery.item.marker->tables[0], TIDE_STR("t")));
    assert_int_equal(delivery.item.marker->failed_count, 0);
    kit_close(&kit);
}

/* C: the minimum, including none */

static void watermark_before_every_lane_acknowledged_is_none(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 3);
    kit_expect_watermark(&kit, 0);
    uint64_t build = kit_publish(&kit, kit_set(&kit, 3), 10);
    kit_pass(&kit, 0, build);
    kit_pass(&kit, 2, build);
    kit_expect_watermark(&kit, 0);
    kit_pass(&kit, 1, build);
    kit_expect_watermark(&kit, 10);
    kit_close(&kit);
}

static void watermark_is_the_minimum_over_lanes(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t builds[5];
    for (unsigned i = 0; i < 5; i++) {
        builds[i] = kit_publish(&kit, kit_set(&kit, 2), 10 * (i + 1));
    }
    for (unsigned i = 0; i < 5; i++) {
        kit_pass(&kit, 0, builds[i]);
    }
    kit_expect_watermark(&kit, 0);
    for (unsigned i = 0; i < 5; i++) {
        kit_pass(&kit, 1, builds[i]);
        kit_expect_watermark(&kit, 10 * (i + 1));
        assert_int_equal(kit.ops->held(kit.stream, kit.lanes[1]), builds[i]);
    }
    kit_close(&kit);
}

static void acknowledge_out_of_order_opens_no_hole(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    for (unsigned i = 1; i <= 3; i++) {
        (void)kit_publish(&kit, kit_set(&kit, 1), 10 * i);
    }
    struct tide_delivery first = kit_expect(&kit, 0, 1);
    struct tide_delivery second = kit_expect(&kit, 0, 2);
    struct tide_delivery third = kit_expect(&kit, 0, 3);
    kit_acknowledge(&kit, 0, &third);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 0);
    kit_expect_watermark(&kit, 0);
    kit_acknowledge(&kit, 0, &first);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 1);
    kit_expect_watermark(&kit, 10);
    kit_acknowledge(&kit, 0, &second);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 3);
    kit_expect_watermark(&kit, 30);
    kit_close(&kit);
}

/* Positions are not compared: the order of publishing decides. */
static void watermark_follows_publishing_not_the_size_of_positions(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 1), 100));
    kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 1), 7));
    kit_expect_watermark(&kit, 7);
    kit_close(&kit);
}

/* D: empty and positionless */

static void empty_batch_carries_the_watermark(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t build = kit_publish(&kit, kit_set(&kit, 2), 5);
    struct tide_delivery delivery = kit_expect(&kit, 0, build);
    assert_int_equal(delivery.item.batch->change_count, 0);
    kit_acknowledge(&kit, 0, &delivery);
    kit_pass(&kit, 1, build);
    kit_expect_watermark(&kit, 5);
    kit_close(&kit);
}

static void positionless_item_moves_held_but_not_the_watermark(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t part = kit_publish(&kit, kit_set(&kit, 2), 0);
    kit_pass(&kit, 0, part);
    kit_pass(&kit, 1, part);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), part);
    kit_expect_watermark(&kit, 0);
    uint64_t last = kit_publish(&kit, kit_set(&kit, 2), 9);
    kit_pass(&kit, 0, last);
    kit_pass(&kit, 1, last);
    kit_expect_watermark(&kit, 9);
    uint64_t marker = kit_publish_marker(&kit, kit_set(&kit, 1), 1);
    kit_pass(&kit, 0, marker);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), marker);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[1]), last);
    kit_expect_watermark(&kit, 9);
    kit_close(&kit);
}

/* A snapshot for one lane alone does not keep that lane's position back, nor the other's. */
static void snapshot_of_one_lane_holds_the_watermark_only_until_acknowledged(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t part = kit_publish(&kit, kit_set(&kit, 1), 0);
    uint64_t live = kit_publish(&kit, kit_set(&kit, 2), 3);
    kit_pass(&kit, 1, live);
    struct tide_delivery first = kit_expect(&kit, 0, part);
    struct tide_delivery second = kit_expect(&kit, 0, live);
    kit_acknowledge(&kit, 0, &second);
    kit_expect_watermark(&kit, 0);
    kit_acknowledge(&kit, 0, &first);
    kit_expect_watermark(&kit, 3);
    kit_close(&kit);
}

/* E: return, abandon, fence */

static void give_back_redelivers_it_and_everything_after(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    for (unsigned i = 1; i <= 5; i++) {
        (void)kit_publish(&kit, kit_set(&kit, 1), i);
    }
    struct tide_delivery got[4];
    for (unsigned i = 0; i < 4; i++) {
        got[i] = kit_expect(&kit, 0, i + 1);
    }
    kit_acknowledge(&kit, 0, &got[3]); /* behind what is given back: must come again too */
    kit_give_back(&kit, 0, &got[1]);
    assert_false(kit.ops->is_empty(&kit.ends[0]));
    for (unsigned i = 1; i < 5; i++) {
        struct tide_delivery again = kit_expect(&kit, 0, i + 1);
        assert_int_equal(again.is_redelivered, i < 4);
    }
    kit_acknowledge(&kit, 0, &got[0]); /* before it: still in hand */
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 1);
    kit_close(&kit);
}

static void attach_redelivers_what_the_former_consumer_left(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    for (unsigned i = 1; i <= 4; i++) {
        (void)kit_publish(&kit, kit_set(&kit, 1), i);
    }
    kit_pass(&kit, 0, 1);
    struct tide_delivery second = kit_expect(&kit, 0, 2);
    struct tide_delivery third = kit_expect(&kit, 0, 3);
    kit_acknowledge(&kit, 0, &third);
    struct tide_lane_consumer former = kit.ends[0];
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &kit.ends[0], &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->acknowledge(&former, &second, &kit.err), TIDE_STALE);
    assert_int_equal(kit.ops->give_back(&former, &second, &kit.err), TIDE_STALE);
    struct tide_delivery delivery = {0};
    assert_int_equal(
        kit.ops->receive(&former, tide_clock_deadline_us(KIT_SHORT_US), &delivery, &kit.err),
        TIDE_STALE);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 1);
    for (uint64_t build = 2; build <= 4; build++) {
        assert_int_equal(kit_expect(&kit, 0, build).is_redelivered, build < 4);
    }
    /* the new consumer got item 2 itself, but not through the former's handle */
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &second, &kit.err), TIDE_STALE);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 1);
    kit_close(&kit);
}

/* H: stale acknowledgements */

static void acknowledge_stale_handle_changes_nothing(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    for (unsigned i = 1; i <= 3; i++) {
        (void)kit_publish(&kit, kit_set(&kit, 1), i);
    }
    struct tide_delivery first = kit_expect(&kit, 0, 1);
    struct tide_delivery second = kit_expect(&kit, 0, 2);
    kit_acknowledge(&kit, 0, &first);
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &first, &kit.err), TIDE_STALE);
    assert_int_equal(kit.ops->give_back(&kit.ends[0], &first, &kit.err), TIDE_STALE);
    kit_give_back(&kit, 0, &second);
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &second, &kit.err), TIDE_STALE);
    assert_int_equal(kit.ops->give_back(&kit.ends[0], &second, &kit.err), TIDE_STALE);
    struct tide_delivery never = second;
    never.build = 3;
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &never, &kit.err), TIDE_STALE);
    never.build = 99;
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &never, &kit.err), TIDE_STALE);
    assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), 1);
    kit_expect_watermark(&kit, 1);
    kit_close(&kit);
}

int stream_conformance_lanes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receive_after_publish_keeps_the_order),
        cmocka_unit_test(publish_to_one_lane_leaves_the_others_alone),
        cmocka_unit_test(marker_arrives_behind_its_batches),
        cmocka_unit_test(watermark_before_every_lane_acknowledged_is_none),
        cmocka_unit_test(watermark_is_the_minimum_over_lanes),
        cmocka_unit_test(acknowledge_out_of_order_opens_no_hole),
        cmocka_unit_test(watermark_follows_publishing_not_the_size_of_positions),
        cmocka_unit_test(empty_batch_carries_the_watermark),
        cmocka_unit_test(positionless_item_moves_held_but_not_the_watermark),
        cmocka_unit_test(snapshot_of_one_lane_holds_the_watermark_only_until_acknowledged),
        cmocka_unit_test(give_back_redelivers_it_and_everything_after),
        cmocka_unit_test(attach_redelivers_what_the_former_consumer_left),
        cmocka_unit_test(acknowledge_stale_handle_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int stream_conformance_run(const struct stream_factory *factory)
{
    kit_factory = factory;
    return stream_conformance_lanes() + stream_conformance_wait() + stream_conformance_closed() +
           stream_conformance_requests() + stream_conformance_model() +
           stream_conformance_threads();
}
