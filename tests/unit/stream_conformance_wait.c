/* Conformance: who waits, and what ends the wait (B, F, M). */
#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

/* Not longer than this for a call to get into its wait. The result is the same when it has not. */
#define SETTLE_US ((int64_t)10000)

/* A call that waits, in a thread of its own. */
struct call {
    struct kit *kit;
    struct tide_publication publication;
    struct tide_lane_consumer end;
    struct tide_delivery delivery;
    struct tide_waker *waker;
    pthread_t thread;
    tide_status status;
    struct tide_error err;
};

static void *run_publish(void *arg)
{
    struct call *call = arg;
    call->status = call->kit->ops->publish(call->kit->stream, &call->publication, call->waker,
                                           TIDE_NO_DEADLINE, &call->err);
    return NULL;
}

static void *run_receive(void *arg)
{
    struct call *call = arg;
    call->status =
        call->kit->ops->receive(&call->end, TIDE_NO_DEADLINE, &call->delivery, &call->err);
    return NULL;
}

static void call_publish(struct call *call, struct kit *kit, tide_lane_set set,
                         struct tide_waker *waker)
{
    *call = (struct call){.kit = kit, .waker = waker};
    call->publication.item.batch = kit_batch(99, KIT_ITEM_SIZE);
    call->publication.pending = set;
    tide_thread_start(&call->thread, run_publish, call);
    kit_sleep_us(SETTLE_US);
}

static void call_receive(struct call *call, struct kit *kit, unsigned i)
{
    *call = (struct call){.kit = kit, .end = kit->ends[i]};
    tide_thread_start(&call->thread, run_receive, call);
    kit_sleep_us(SETTLE_US);
}

static tide_status call_end(struct call *call)
{
    assert_int_equal(pthread_join(call->thread, NULL), 0);
    tide_item_unref(call->publication.item);
    return call->status;
}

/* B: backpressure */

static void publish_full_lane_times_out_and_goes_on_where_it_was(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 2, 0, 2);
    (void)kit_publish(&kit, kit_set(&kit, 2), 1);
    (void)kit_publish(&kit, kit_set(&kit, 2), 2);
    kit_pass(&kit, 1, 1);
    struct tide_publication publication = {.item.batch = kit_batch(3, KIT_ITEM_SIZE),
                                           .pending = kit_set(&kit, 2)};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(kit_try_publish(&kit, &publication, NULL, 1000), TIDE_TIMEOUT);
        assert_int_equal(publication.build, 3);
        assert_true(publication.pending == kit_set(&kit, 1));
    }
    struct tide_delivery delivery = kit_expect(&kit, 0, 1);
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, 0), TIDE_TIMEOUT); /* in hand */
    kit_acknowledge(&kit, 0, &delivery);
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, KIT_SOON_US), TIDE_OK);
    assert_true(publication.pending == 0);
    for (unsigned i = 0; i < 2; i++) {
        kit_pass(&kit, i, 2);
        kit_pass(&kit, i, 3);
        kit_expect_none(&kit, i, TIDE_TIMEOUT); /* no lane got it twice */
    }
    tide_item_unref(publication.item);
    kit_close(&kit);
}

static void publish_waits_no_shorter_than_its_deadline(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 1, 0, 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    struct tide_publication publication = {.item.batch = kit_batch(2, KIT_ITEM_SIZE),
                                           .pending = kit_set(&kit, 1)};
    int64_t from_us = tide_clock_monotonic_us();
    assert_int_equal(kit_try_publish(&kit, &publication, NULL, 15000), TIDE_TIMEOUT);
    assert_true(tide_clock_monotonic_us() - from_us >= 15000);
    tide_item_unref(publication.item);
    kit_close(&kit);
}

static void publish_bytes_are_bounded_and_a_larger_item_enters_an_empty_lane(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 100, 2500, 1);
    struct tide_publication large = {.item.batch = kit_batch(1, 1000000),
                                     .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &large, NULL, KIT_SOON_US), TIDE_OK);
    struct tide_publication small = {.item.batch = kit_batch(2, 1000), .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &small, NULL, 0), TIDE_TIMEOUT);
    kit_pass(&kit, 0, 1);
    assert_int_equal(kit_try_publish(&kit, &small, NULL, KIT_SOON_US), TIDE_OK);
    (void)kit_publish(&kit, kit_set(&kit, 1), 3);
    size_t items = 0;
    size_t bytes = 0;
    kit.ops->lane_load(kit.stream, kit.lanes[0], &items, &bytes);
    assert_int_equal(items, 2);
    assert_int_equal(bytes, 2000);
    struct tide_publication third = {.item.batch = kit_batch(4, 501), .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &third, NULL, 0), TIDE_TIMEOUT);
    kit_pass(&kit, 0, 2);
    assert_int_equal(kit_try_publish(&kit, &third, NULL, KIT_SOON_US), TIDE_OK);
    tide_item_unref(large.item);
    tide_item_unref(small.item);
    tide_item_unref(third.item);
    kit_close(&kit);
}

static void publish_blocked_is_let_go_by_an_acknowledgement(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 1, 0, 2);
    (void)kit_publish(&kit, kit_set(&kit, 2), 1);
    struct call call;
    call_publish(&call, &kit, kit_set(&kit, 2), NULL);
    kit_pass(&kit, 0, 1);
    kit_pass(&kit, 0, 2); /* the free lane does not wait for the full one */
    kit_pass(&kit, 1, 1);
    assert_int_equal(call_end(&call), TIDE_OK);
    kit_pass(&kit, 1, 2);
    kit_close(&kit);
}

enum action {
    ACT_CANCEL,
    ACT_CLOSE,
    ACT_DROP,
    ACT_ATTACH,
    ACT_INTERRUPT,
    ACT_GIVE_BACK,
    ACT_PUBLISH
};

static void act(struct kit *kit, enum action action, const struct tide_delivery *delivery)
{
    struct tide_lane_consumer other;
    switch (action) {
    case ACT_CANCEL:
        kit->ops->cancel(kit->stream);
        break;
    case ACT_CLOSE:
        kit->ops->close(kit->stream);
        break;
    case ACT_DROP:
        assert_int_equal(kit->ops->drop_lane(kit->stream, kit->lanes[0], &kit->err), TIDE_OK);
        break;
    case ACT_ATTACH:
        assert_int_equal(kit->ops->attach(kit->stream, kit->lanes[0], &other, &kit->err), TIDE_OK);
        break;
    case ACT_INTERRUPT:
        kit->ops->interrupt(kit->stream, kit->lanes[0]);
        break;
    case ACT_GIVE_BACK:
        kit_give_back(kit, 0, delivery);
        break;
    case ACT_PUBLISH:
        (void)kit_publish(kit, kit_set(kit, 1), 2);
        break;
    }
}

static void publish_blocked_is_ended_by_close_cancel_and_drop(void **state)
{
    (void)state;

    const struct {
        enum action action;
        tide_status want;
    } cases[] = {{ACT_CANCEL, TIDE_CANCELLED}, {ACT_CLOSE, TIDE_CLOSED}, {ACT_DROP, TIDE_OK}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kit kit;
        kit_open(&kit, 1, 0, 1);
        (void)kit_publish(&kit, kit_set(&kit, 1), 1);
        struct call call;
        call_publish(&call, &kit, kit_set(&kit, 1), NULL);
        act(&kit, cases[i].action, NULL);
        assert_int_equal(call_end(&call), cases[i].want);
        assert_int_equal(call.publication.pending == 0, cases[i].action == ACT_DROP);
        kit_close(&kit);
    }
}

static void publish_blocked_is_interrupted_by_its_waker(void **state)
{
    (void)state;
    struct kit kit;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_open(&kit, 1, 0, 1);
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    struct call call;
    call_publish(&call, &kit, kit_set(&kit, 1), &waker);
    tide_waker_wake(&waker);
    assert_int_equal(call_end(&call), TIDE_TIMEOUT);
    assert_false(tide_waker_wait(&waker, 0)); /* taken */
    kit_close(&kit);
    tide_waker_done(&waker);
}

static void publish_with_room_leaves_a_wake_alone(void **state)
{
    (void)state;
    struct kit kit;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_open(&kit, 1, 0, 1);
    tide_waker_wake(&waker);
    struct tide_publication publication = {.item.batch = kit_batch(1, 1),
                                           .pending = kit_set(&kit, 1)};
    assert_int_equal(kit_try_publish(&kit, &publication, &waker, 0), TIDE_OK);
    assert_true(tide_waker_wait(&waker, 0));
    tide_item_unref(publication.item);
    kit_close(&kit);
    tide_waker_done(&waker);
}

/* F: what ends a receive that waits */

static void receive_blocked_is_ended(void **state)
{
    (void)state;

    const struct {
        enum action action;
        tide_status want;
        uint64_t build;
    } cases[] = {{ACT_GIVE_BACK, TIDE_OK, 1},     {ACT_PUBLISH, TIDE_OK, 2},
                 {ACT_CANCEL, TIDE_CANCELLED, 0}, {ACT_CLOSE, TIDE_CLOSED, 0},
                 {ACT_DROP, TIDE_CLOSED, 0},      {ACT_ATTACH, TIDE_STALE, 0},
                 {ACT_INTERRUPT, TIDE_TIMEOUT, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct kit kit;
        kit_open(&kit, 0, 0, 1);
        (void)kit_publish(&kit, kit_set(&kit, 1), 1);
        struct tide_delivery delivery = kit_expect(&kit, 0, 1);
        struct call call;
        call_receive(&call, &kit, 0);
        act(&kit, cases[i].action, &delivery);
        assert_int_equal(call_end(&call), cases[i].want);
        assert_int_equal(call.delivery.build, cases[i].build);
        kit_close(&kit);
    }
}

static void interrupt_before_receive_ends_the_next_wait_only(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    kit.ops->interrupt(kit.stream, kit.lanes[0]);
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &kit.ends[0], &kit.err), TIDE_OK);
    struct call call;
    call_receive(&call, &kit, 0);
    assert_int_equal(call_end(&call), TIDE_TIMEOUT);
    call_receive(&call, &kit, 0);
    kit.ops->interrupt(kit.stream, kit.lanes[1]); /* another's */
    (void)kit_publish(&kit, kit_set(&kit, 1), 1);
    assert_int_equal(call_end(&call), TIDE_OK);
    kit_close(&kit);
}

static void receive_waits_no_shorter_than_its_deadline(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    int64_t from_us = tide_clock_monotonic_us();
    kit_expect_none(&kit, 0, TIDE_TIMEOUT);
    assert_true(tide_clock_monotonic_us() - from_us >= KIT_SHORT_US);
    assert_true(kit.ops->is_empty(&kit.ends[0]));
    kit_close(&kit);
}

/* M: a full lane and a request at once */

static void request_reaches_ingest_while_a_lane_is_full(void **state)
{
    (void)state;
    struct kit kit;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_open(&kit, 1, 0, 2);
    kit.ops->set_waker(kit.stream, &waker);
    (void)kit_publish(&kit, kit_set(&kit, 2), 1);
    struct call call;
    call_publish(&call, &kit, kit_set(&kit, 2), &waker);
    const tide_str table = TIDE_STR("t");
    uint64_t id = 0;
    assert_int_equal(kit.ops->request(kit.stream, kit.lanes[1], &table, 1, &id, &kit.err), TIDE_OK);
    assert_int_equal(call_end(&call), TIDE_TIMEOUT);
    struct tide_request *request = NULL;
    assert_int_equal(kit.ops->receive_request(kit.stream, 0, &request, &kit.err), TIDE_OK);
    assert_int_equal(request->id, id);
    tide_request_free(request);
    kit.ops->set_waker(kit.stream, NULL);
    kit_close(&kit);
    tide_waker_done(&waker);
}

static void waker_is_woken_by_acknowledgements_requests_and_room(void **state)
{
    (void)state;
    struct kit kit;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_open(&kit, 0, 0, 2);
    kit.ops->set_waker(kit.stream, &waker);
    uint64_t build = kit_publish(&kit, kit_set(&kit, 2), 1);
    struct tide_delivery delivery = kit_expect(&kit, 0, build);
    assert_false(tide_waker_wait(&waker, 0));
    kit_acknowledge(&kit, 0, &delivery);
    assert_true(tide_waker_wait(&waker, tide_clock_deadline_us(KIT_SOON_US)));
    uint64_t id = 0;
    assert_int_equal(kit.ops->request(kit.stream, kit.lanes[0], NULL, 0, &id, &kit.err), TIDE_OK);
    assert_true(tide_waker_wait(&waker, tide_clock_deadline_us(KIT_SOON_US)));
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[1], &kit.err), TIDE_OK);
    assert_true(tide_waker_wait(&waker, tide_clock_deadline_us(KIT_SOON_US)));
    kit.ops->set_waker(kit.stream, NULL);
    assert_int_equal(kit.ops->request(kit.stream, kit.lanes[0], NULL, 0, &id, &kit.err), TIDE_OK);
    assert_false(tide_waker_wait(&waker, 0));
    kit_close(&kit);
    tide_waker_done(&waker);
}

int stream_conformance_wait(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(publish_full_lane_times_out_and_goes_on_where_it_was),
        cmocka_unit_test(publish_waits_no_shorter_than_its_deadline),
        cmocka_unit_test(publish_bytes_are_bounded_and_a_larger_item_enters_an_empty_lane),
        cmocka_unit_test(publish_blocked_is_let_go_by_an_acknowledgement),
        cmocka_unit_test(publish_blocked_is_ended_by_close_cancel_and_drop),
        cmocka_unit_test(publish_blocked_is_interrupted_by_its_waker),
        cmocka_unit_test(publish_with_room_leaves_a_wake_alone),
        cmocka_unit_test(receive_blocked_is_ended),
        cmocka_unit_test(interrupt_before_receive_ends_the_next_wait_only),
        cmocka_unit_test(receive_waits_no_shorter_than_its_deadline),
        cmocka_unit_test(request_reaches_ingest_while_a_lane_is_full),
        cmocka_unit_test(waker_is_woken_by_acknowledgements_requests_and_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
