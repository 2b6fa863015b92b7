/* Conformance: the request lane (J, K). */
#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

static const tide_str tables_ab[] = {{"a", 1}, {"b", 1}};
static const tide_str tables_ba[] = {{"b", 1}, {"a", 1}};

static uint64_t ask(struct kit *kit, unsigned i, const tide_str *tables, size_t count)
{
    uint64_t id = 0;
    assert_int_equal(kit->ops->request(kit->stream, kit->lanes[i], tables, count, &id, &kit->err),
                     TIDE_OK);
    assert_int_not_equal(id, 0);
    return id;
}

static void expect_request(struct kit *kit, uint64_t id, unsigned i, size_t table_count)
{
    struct tide_request *request = NULL;
    assert_int_equal(kit->ops->receive_request(kit->stream, tide_clock_deadline_us(KIT_SOON_US),
                                               &request, &kit->err),
                     TIDE_OK);
    assert_int_equal(request->id, id);
    assert_int_equal(request->lane, kit->lanes[i]);
    assert_int_equal(request->table_count, table_count);
    tide_request_free(request);
}

static void expect_no_request(struct kit *kit, tide_status want)
{
    struct tide_request *request = NULL;
    assert_int_equal(kit->ops->receive_request(kit->stream, tide_clock_deadline_us(KIT_SHORT_US),
                                               &request, &kit->err),
                     want);
    assert_null(request);
}

static tide_status acknowledge(struct kit *kit, uint64_t id)
{
    return kit->ops->acknowledge_request(kit->stream, id, &kit->err);
}

static void request_that_waits_is_merged_by_lane_and_tables(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t first = ask(&kit, 0, tables_ab, 2);
    assert_int_equal(ask(&kit, 0, tables_ba, 2), first);
    uint64_t other_lane = ask(&kit, 1, tables_ab, 2);
    uint64_t other_tables = ask(&kit, 0, tables_ab, 1);
    assert_int_not_equal(other_lane, first);
    assert_int_not_equal(other_tables, first);
    assert_int_not_equal(other_tables, other_lane);
    expect_request(&kit, first, 0, 2);
    expect_request(&kit, other_lane, 1, 2);
    expect_request(&kit, other_tables, 0, 1);
    expect_no_request(&kit, TIDE_TIMEOUT);
    uint64_t again = ask(&kit, 0, tables_ab, 2); /* the first is under way: too late to join */
    assert_int_not_equal(again, first);
    expect_request(&kit, again, 0, 2);
    kit_close(&kit);
}

static void request_lane_never_fills(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 1, 1, 1);
    char names[500];
    uint64_t last = 0;
    for (unsigned i = 0; i < 500; i++) {
        names[i] = (char)('a' + i % 26);
        const tide_str table = tide_str_of(names, i + 1);
        uint64_t id = ask(&kit, 0, &table, 1);
        assert_true(id > last);
        last = id;
    }
    kit_close(&kit);
}

/* J: ingest dies before, in the middle of and after what a request asks for. */
static void request_comes_again_until_acknowledged(void **state)
{
    (void)state;
    for (unsigned crash = 0; crash < 5; crash++) {
        struct kit kit;
        kit_open(&kit, 0, 0, 1);
        uint64_t id = ask(&kit, 0, tables_ab, 2);
        for (unsigned step = 1; step <= crash; step++) {
            if (step == 1) {
                expect_request(&kit, id, 0, 2);
            } else if (step == 2) {
                kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 1), 0));
            } else if (step == 3) {
                (void)kit_publish_marker(&kit, kit_set(&kit, 1), id);
            } else {
                assert_int_equal(acknowledge(&kit, id), TIDE_OK);
            }
        }
        kit.ops->attach_requests(kit.stream);
        if (crash < 4) {
            expect_request(&kit, id, 0, 2);
            assert_int_equal(acknowledge(&kit, id), TIDE_OK);
        }
        expect_no_request(&kit, TIDE_TIMEOUT);
        kit.ops->attach_requests(kit.stream);
        expect_no_request(&kit, TIDE_TIMEOUT);
        kit_close(&kit);
    }
}

static void acknowledge_request_twice_or_too_early_is_stale(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    uint64_t first = ask(&kit, 0, tables_ab, 2);
    uint64_t second = ask(&kit, 0, tables_ab, 1);
    assert_int_equal(acknowledge(&kit, first), TIDE_STALE);
    expect_request(&kit, first, 0, 2);
    expect_request(&kit, second, 0, 1);
    assert_int_equal(acknowledge(&kit, first), TIDE_OK);
    assert_int_equal(acknowledge(&kit, first), TIDE_STALE);
    assert_int_equal(acknowledge(&kit, second + 1000), TIDE_STALE);
    kit.ops->attach_requests(kit.stream);
    assert_int_equal(acknowledge(&kit, second), TIDE_STALE); /* it waits again */
    expect_request(&kit, second, 0, 1);
    assert_int_equal(acknowledge(&kit, second), TIDE_OK);
    kit_close(&kit);
}

static void request_that_waits_again_is_merged_again(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    uint64_t id = ask(&kit, 0, tables_ab, 2);
    expect_request(&kit, id, 0, 2);
    kit.ops->attach_requests(kit.stream);
    assert_int_equal(ask(&kit, 0, tables_ab, 2), id);
    kit_close(&kit);
}

static void requests_of_a_dropped_lane_go_with_it(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    uint64_t received = ask(&kit, 0, tables_ab, 2);
    expect_request(&kit, received, 0, 2);
    (void)ask(&kit, 0, tables_ab, 1);
    uint64_t other = ask(&kit, 1, tables_ab, 1);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("n"), &kit.lanes[0], &kit.err),
                     TIDE_OK);
    expect_request(&kit, other, 1, 1);
    expect_no_request(&kit, TIDE_TIMEOUT);
    assert_int_equal(acknowledge(&kit, received), TIDE_OK); /* was under way: can be ended */
    assert_int_equal(acknowledge(&kit, other), TIDE_OK);
    received = ask(&kit, 0, tables_ab, 2);
    expect_request(&kit, received, 0, 2);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], &kit.err), TIDE_OK);
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("m"), &kit.lanes[0], &kit.err),
                     TIDE_OK);
    kit.ops->attach_requests(kit.stream);
    expect_no_request(&kit, TIDE_TIMEOUT); /* not for the lane that has the number now */
    kit_close(&kit);
}

static void requests_that_wait_at_close_are_drained(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    uint64_t id = ask(&kit, 0, tables_ab, 2);
    kit.ops->close(kit.stream);
    expect_request(&kit, id, 0, 2);
    expect_no_request(&kit, TIDE_CLOSED);
    assert_int_equal(acknowledge(&kit, id), TIDE_OK);
    kit_close(&kit);
}

struct waiter {
    struct kit *kit;
    struct tide_request *request;
    tide_status status;
    struct tide_error err;
};

static void *run_receive(void *arg)
{
    struct waiter *waiter = arg;
    waiter->status = waiter->kit->ops->receive_request(waiter->kit->stream, TIDE_NO_DEADLINE,
                                                       &waiter->request, &waiter->err);
    return NULL;
}

static void receive_request_blocked_is_ended(void **state)
{
    (void)state;
    const tide_status wants[] = {TIDE_OK, TIDE_CLOSED, TIDE_CANCELLED};
    for (unsigned i = 0; i < 3; i++) {
        struct kit kit;
        kit_open(&kit, 0, 0, 1);
        struct waiter waiter = {.kit = &kit};
        pthread_t thread;
        tide_thread_start(&thread, run_receive, &waiter);
        kit_sleep_us(10000);
        if (i == 0) {
            (void)ask(&kit, 0, tables_ab, 2);
        } else if (i == 1) {
            kit.ops->close(kit.stream);
        } else {
            kit.ops->cancel(kit.stream);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(waiter.status, wants[i]);
        assert_int_equal(waiter.request != NULL, i == 0);
        tide_request_free(waiter.request);
        kit_close(&kit);
    }
}

/* K: a marker of an earlier run or request never ends another one: no two ids are the same, also
 * after the stream was made anew, and the marker brings the id that it was given. */
static void request_ids_are_never_used_again(void **state)
{
    (void)state;
    uint64_t ids[8];
    for (unsigned i = 0; i < 8; i += 2) {
        struct kit kit;
        kit_open(&kit, 0, 0, 1);
        for (unsigned j = 0; j < 2; j++) {
            ids[i + j] = ask(&kit, 0, tables_ab, 2);
            expect_request(&kit, ids[i + j], 0, 2);
            uint64_t stale = kit_publish_marker(&kit, kit_set(&kit, 1), ids[0]);
            uint64_t own = kit_publish_marker(&kit, kit_set(&kit, 1), ids[i + j]);
            struct tide_delivery first = kit_expect(&kit, 0, stale);
            struct tide_delivery second = kit_expect(&kit, 0, own);
            assert_int_equal(first.item.marker->request_id == ids[i + j], i + j == 0);
            assert_int_equal(second.item.marker->request_id, ids[i + j]);
            assert_int_equal(acknowledge(&kit, ids[i + j]), TIDE_OK);
        }
        kit_close(&kit);
    }
    for (unsigned i = 1; i < 8; i++) {
        assert_true(ids[i] > ids[i - 1]);
    }
}

int stream_conformance_requests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_that_waits_is_merged_by_lane_and_tables),
        cmocka_unit_test(request_lane_never_fills),
        cmocka_unit_test(request_comes_again_until_acknowledged),
        cmocka_unit_test(acknowledge_request_twice_or_too_early_is_stale),
        cmocka_unit_test(request_that_waits_again_is_merged_again),
        cmocka_unit_test(requests_of_a_dropped_lane_go_with_it),
        cmocka_unit_test(requests_that_wait_at_close_are_drained),
        cmocka_unit_test(receive_request_blocked_is_ended),
        cmocka_unit_test(request_ids_are_never_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
