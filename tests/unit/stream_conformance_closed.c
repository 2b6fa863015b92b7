/* Conformance: lanes that are not there, streams that are closed, as many lanes as can be (I, L).
 */
#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

/* I: unknown, closed, drained */

static void unknown_lane_is_invalid(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    const unsigned unknown[] = {kit.lanes[0] + 1, 63, 64, 1000};
    const tide_str table = TIDE_STR("t");
    uint64_t id = 7;
    struct tide_lane_consumer end = {0};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        size_t items = 9;
        size_t bytes = 9;
        unsigned lane = unknown[i];
        assert_int_equal(kit.ops->attach(kit.stream, lane, &end, &kit.err), TIDE_INVALID);
        assert_int_equal(kit.ops->drop_lane(kit.stream, lane, &kit.err), TIDE_INVALID);
        assert_int_equal(kit.ops->request(kit.stream, lane, &table, 1, &id, &kit.err),
                         TIDE_INVALID);
        assert_int_equal(kit.ops->held(kit.stream, lane), 0);
        kit.ops->lane_load(kit.stream, lane, &items, &bytes);
        assert_int_equal(items + bytes, 0);
        kit.ops->interrupt(kit.stream, lane);
    }
    assert_int_equal(id, 7);
    assert_null(end.stream);
    struct tide_publication publication = {.item.batch = kit_batch(1, 1),
                                           .pending = (tide_lane_set)1 << 63};
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, 0), TIDE_INVALID);
    tide_item_unref(publication.item);
    unsigned lane = 77;
    assert_int_equal(kit.ops->find_lane(kit.stream, TIDE_STR("no"), &lane, &kit.err), TIDE_INVALID);
    assert_int_equal(lane, 77);
    assert_int_equal(kit.ops->find_lane(kit.stream, TIDE_STR("sink 0"), &lane, &kit.err), TIDE_OK);
    assert_int_equal(lane, kit.lanes[0]);
    kit_close(&kit);
}

static void closed_stream_drains_then_ends(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 2);
    struct tide_delivery first = kit_expect(&kit, 0, 1);
    kit.ops->close(kit.stream);
    struct tide_publication publication = {.item.batch = kit_batch(3, 1),
                                           .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, KIT_SOON_US), TIDE_CLOSED);
    tide_item_unref(publication.item);
    unsigned lane = 0;
    uint64_t id = 0;
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("new"), &lane, &kit.err), TIDE_CLOSED);
    assert_int_equal(kit.ops->request(kit.stream, kit.lanes[0], NULL, 0, &id, &kit.err),
                     TIDE_CLOSED);
    kit_give_back(&kit, 0, &first);
    kit_pass(&kit, 0, 1);
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &kit.ends[0], &kit.err), TIDE_OK);
    kit_pass(&kit, 0, 2);
    kit_expect_none(&kit, 0, TIDE_CLOSED);
    kit_expect_watermark(&kit, 2);
    assert_true(kit.ops->is_idle(kit.stream));
    kit_close(&kit);
}

static void cancelled_stream_refuses_every_call(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 2);
    struct tide_delivery delivery = kit_expect(&kit, 0, 1);
    kit.ops->cancel(kit.stream);
    kit_expect_none(&kit, 0, TIDE_CANCELLED);
    struct tide_publication publication = {.item.batch = kit_batch(3, 1),
                                           .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, KIT_SOON_US), TIDE_CANCELLED);
    tide_item_unref(publication.item);
    unsigned lane = 0;
    uint64_t id = 0;
    struct tide_request *request = NULL;
    struct tide_lane_consumer end;
    struct tide_error *err = &kit.err;
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &delivery, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->give_back(&kit.ends[0], &delivery, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &end, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("n"), &lane, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->find_lane(kit.stream, TIDE_STR("n"), &lane, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->request(kit.stream, kit.lanes[0], NULL, 0, &id, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->receive_request(kit.stream, TIDE_NO_DEADLINE, &request, err),
                     TIDE_CANCELLED);
    assert_int_equal(kit.ops->acknowledge_request(kit.stream, 1, err), TIDE_CANCELLED);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], err), TIDE_CANCELLED);
    kit_close(&kit);
}

static void dropped_lane_closes_its_end_even_when_the_number_is_used_again(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    (void)kit_publish(&kit, kit_set(&kit, 2), 1);
    struct tide_delivery delivery = kit_expect(&kit, 0, 1);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], &kit.err), TIDE_OK);
    assert_int_equal(delivery.item.batch->position.lo, 1); /* in hand: stays valid for now */
    unsigned lane = 0;
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("next"), &lane, &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->acknowledge(&kit.ends[0], &delivery, &kit.err), TIDE_CLOSED);
    assert_int_equal(kit.ops->give_back(&kit.ends[0], &delivery, &kit.err), TIDE_CLOSED);
    kit_expect_none(&kit, 0, TIDE_CLOSED);
    kit_pass(&kit, 1, 1);
    assert_true(kit.ops->is_idle(kit.stream));
    kit_close(&kit);
}

/* A publication that had begun does not reach a lane that came under the number of a dropped one.
 */
static void publication_under_way_misses_a_lane_added_later(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 1, 0, 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    struct tide_publication publication = {.item.batch = kit_batch(2, 1),
                                           .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, 0), TIDE_TIMEOUT);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("n"), &kit.lanes[0], &kit.err),
                     TIDE_OK);
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &kit.ends[0], &kit.err), TIDE_OK);
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, KIT_SOON_US), TIDE_OK);
    assert_true(publication.pending == 0);
    kit_expect_none(&kit, 0, TIDE_TIMEOUT);
    kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 1), 3));
    tide_item_unref(publication.item);
    kit_close(&kit);
}

/* L: as many lanes as there can be, each of the smallest capacity */

static void stream_with_every_lane_delivers_to_all(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 1, 1, TIDE_LANES_MAX);
    unsigned lane = 0;
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("more"), &lane, &kit.err),
                     TIDE_INVALID);
    for (unsigned round = 1; round <= 3; round++) {
        uint64_t build = kit_publish(&kit, ~(tide_lane_set)0, round);
        for (unsigned i = 0; i < TIDE_LANES_MAX; i++) {
            kit_expect_watermark(&kit, round - 1);
            kit_pass(&kit, TIDE_LANES_MAX - 1 - i, build);
        }
        kit_expect_watermark(&kit, round);
    }
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[7], &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("sink 8"), &lane, &kit.err),
                     TIDE_INVALID); /* the name is taken */
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("sink 7"), &lane, &kit.err), TIDE_OK);
    kit_close(&kit);
}

int stream_conformance_closed(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_lane_is_invalid),
        cmocka_unit_test(closed_stream_drains_then_ends),
        cmocka_unit_test(cancelled_stream_refuses_every_call),
        cmocka_unit_test(dropped_lane_closes_its_end_even_when_the_number_is_used_again),
        cmocka_unit_test(publication_under_way_misses_a_lane_added_later),
        cmocka_unit_test(stream_with_every_lane_delivers_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
