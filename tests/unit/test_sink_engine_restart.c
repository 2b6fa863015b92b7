#include "cmocka_prelude.h"

#include "sink_engine_kit.h"

#include <stdatomic.h>

static void run_errors_in_a_row_double_the_wait_up_to_its_bound(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.engine = rig.engine;
    rig.script.open_failures = 5;
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o! o! o! o! o! o c ");
    assert_string_equal(tide_buf_cstr(&rig.script.waits), "0 1000 2000 4000 4000 4000 ");
    assert_int_equal(rig_status(&rig).restarts, 5);
    rig_close(&rig);
}

static void run_error_waits_at_least_that_long(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.wait_first_us = 30000;
    rig.options.wait_max_us = 60000;
    rig_engine(&rig);
    rig.script.open_failures = 2;
    int64_t from_us = tide_clock_monotonic_us();
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    assert_true(tide_clock_monotonic_us() - from_us >= 90000);
    rig_close(&rig);
}

static void run_good_run_starts_the_waits_over(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.good_run_us = 20000;
    rig_engine(&rig);
    rig.script.engine = rig.engine;
    rig.script.open_failures = 2;
    tide_sink_engine_start(rig.engine);
    rig_publish(&rig, 1);
    rig_await_floor(&rig, 1);
    rig_sleep_us(25000);
    tide_mutex_lock(&rig.script.mutex);
    rig.script.write_failures = 1;
    tide_mutex_unlock(&rig.script.mutex);
    rig_publish(&rig, 2);
    rig_await_floor(&rig, 2);
    rig_close_and_join(&rig);
    assert_string_equal(tide_buf_cstr(&rig.script.waits), "0 1000 2000 1000 ");
    rig_close(&rig);
}

static void stop_while_it_waits_for_items_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_publish(&rig, 1);
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    rig_sleep_us(2000); /* most likely it waits now; it must end either way */
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_STOPPED);
    assert_true(tide_waker_wait(&rig.done, 0));
    rig_expect_log(&rig, "o w1:0 f1@0 c ");
    rig_close(&rig);
}

static void stop_while_it_waits_for_the_restart_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.wait_first_us = 3600 * (int64_t)1000000;
    rig_engine(&rig);
    rig.script.open_failures = 1;
    tide_sink_engine_start(rig.engine);
    rig_await_state(&rig, TIDE_SINK_WAITING);
    struct tide_sink_engine_status status = rig_status(&rig);
    assert_int_equal(status.error.status, TIDE_IO);
    assert_string_equal(status.error.message, "as the script says");
    assert_true(status.wait_until_us > tide_clock_monotonic_us());
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_STOPPED);
    rig_expect_log(&rig, "o! ");
    rig_close(&rig);
}

static void stop_while_it_writes_leaves_the_items_on_the_lane(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.write_us = 200000;
    rig_publish_some(&rig, 5);
    tide_sink_engine_start(rig.engine);
    rig_sleep_us(30000);
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_STOPPED);
    assert_int_equal(rig.stream->ops->held(rig.stream, rig.lane), 0);
    struct tide_lane_consumer next;
    struct tide_delivery delivery;
    assert_int_equal(rig.stream->ops->attach(rig.stream, rig.lane, &next, &rig_err), TIDE_OK);
    assert_int_equal(rig.stream->ops->receive(&next, 0, &delivery, &rig_err), TIDE_OK);
    assert_int_equal(delivery.build, 1);
    rig_close(&rig);
}

static void stop_before_start_ends_it_at_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_start(rig.engine);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_STOPPED);
    rig_expect_log(&rig, "");
    rig_close(&rig);
}

static void cancelled_stream_stops_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    tide_sink_engine_start(rig.engine);
    rig.stream->ops->cancel(rig.stream);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_STOPPED);
    rig_close(&rig);
}

static void dropped_lane_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.write_us = 500;
    rig_publish_some(&rig, 100);
    tide_sink_engine_start(rig.engine);
    rig_sleep_us(5000);
    assert_int_equal(rig.stream->ops->drop_lane(rig.stream, rig.lane, &rig_err), TIDE_OK);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
    rig_close(&rig);
}

static void lane_dropped_while_it_waits_for_the_restart_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.wait_first_us = 20000;
    rig_engine(&rig);
    rig.script.write_failures = 1;
    struct tide_batch *batch = rig_batch(1, 1);
    rig_publish_item(&rig, (struct tide_item){.batch = tide_batch_ref(batch)});
    tide_sink_engine_start(rig.engine);
    rig_await_state(&rig, TIDE_SINK_WAITING);
    assert_int_equal(rig.stream->ops->drop_lane(rig.stream, rig.lane, &rig_err), TIDE_OK);
    assert_int_equal(atomic_load(&batch->refs), 1); /* nobody keeps it for the closed sink */
    tide_batch_unref(batch);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
    rig_close(&rig);
}

static void lane_dropped_before_it_was_ever_open_ends_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig_engine(&rig);
    tide_sink_engine_pause(rig.engine);
    tide_sink_engine_start(rig.engine);
    rig_await_state(&rig, TIDE_SINK_PAUSED);
    assert_int_equal(rig.stream->ops->drop_lane(rig.stream, rig.lane, &rig_err), TIDE_OK);
    tide_sink_engine_resume(rig.engine);
    tide_sink_engine_join(rig.engine);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
    rig_close(&rig);
}

static void run_lasting_error_fails_it_for_good(void **state)
{
    (void)state;
    const tide_status lasting[] = {TIDE_INVALID,     TIDE_STALE,  TIDE_CORRUPT,
                                   TIDE_UNSUPPORTED, TIDE_CLOSED, TIDE_IO};
    const char *const want[] = {"o! ", "o w1:0! c ", "o w1:0 f1@0! c "};
    for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]) * 3; i++) {
        struct rig rig;
        rig_open(&rig);
        rig.script.status = lasting[i / 3];
        rig.script.is_retriable = false;
        script_set_failure(&rig.script, (int)(i % 3), 1);
        rig_publish(&rig, 1);
        tide_sink_engine_start(rig.engine);
        assert_true(tide_waker_wait(&rig.done, tide_clock_deadline_us(10000000)));
        tide_sink_engine_join(rig.engine);
        struct tide_sink_engine_status status = rig_status(&rig);
        assert_int_equal(status.state, TIDE_SINK_FAILED);
        assert_int_equal(status.error.status, lasting[i / 3]);
        assert_int_equal(status.restarts, 0);
        assert_int_equal(rig.stream->ops->held(rig.stream, rig.lane), 0);
        rig_expect_log(&rig, want[i % 3]);
        rig_close(&rig);
    }
}

static void run_retriable_or_passing_error_is_tried_again(void **state)
{
    (void)state;

    const struct {
        tide_status status;
        bool is_retriable;
    } cases[] = {{TIDE_INVALID, true},   {TIDE_STALE, true},  {TIDE_IO, true},
                 {TIDE_REMOTE, false},   {TIDE_CLOSED, true}, {TIDE_TIMEOUT, true},
                 {TIDE_CANCELLED, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) * 3; i++) {
        struct rig rig;
        rig_open(&rig);
        rig.script.status = cases[i / 3].status;
        rig.script.is_retriable = cases[i / 3].is_retriable;
        script_set_failure(&rig.script, (int)(i % 3), 1);
        rig_publish(&rig, 1);
        tide_sink_engine_start(rig.engine);
        rig_await_floor(&rig, 1);
        rig_close_and_join(&rig);
        assert_int_equal(rig_status(&rig).restarts, 1);
        rig_close(&rig);
    }
}

/* Writers fail at random while items come: each item is held in the end, floors never go back. */
static void run_random_failures_hold_everything_in_the_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.wait_first_us = 100;
    rig.options.wait_max_us = 200;
    rig.options.group_items = 7;
    rig_engine(&rig);
    tide_sink_engine_start(rig.engine);
    uint64_t seed = 11;
    uint64_t floor = 0;
    for (unsigned i = 1; i <= 600; i++) {
        rig_publish(&rig, i);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (seed >> 33 & 8) {
            tide_mutex_lock(&rig.script.mutex);
            script_set_failure(&rig.script, (int)((seed >> 40) % 3), 1);
            tide_mutex_unlock(&rig.script.mutex);
        }
        uint64_t now = rig.stream->ops->held(rig.stream, rig.lane);
        assert_true(now >= floor && now <= i);
        floor = now;
        rig_sleep_us(50);
    }
    rig_await_floor(&rig, 600);
    rig_close_and_join(&rig);
    assert_true(rig_status(&rig).restarts > 3);
    assert_int_equal(rig_status(&rig).acknowledged, 600);
    rig_close(&rig);
}

static void pause_closes_it_and_resume_delivers_what_came_meanwhile(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_publish(&rig, 1);
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    tide_sink_engine_pause(rig.engine);
    rig_await_state(&rig, TIDE_SINK_PAUSED);
    rig_publish(&rig, 2);
    rig_sleep_us(5000);
    assert_int_equal(rig.stream->ops->held(rig.stream, rig.lane), 1);
    tide_sink_engine_resume(rig.engine);
    rig_await_floor(&rig, 2);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 f1@0 c r w2:0 f1@1 c ");
    assert_int_equal(rig_status(&rig).restarts, 0);
    rig_close(&rig);
}

static void pause_before_the_start_does_not_open_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    tide_sink_engine_pause(rig.engine);
    tide_sink_engine_start(rig.engine);
    rig_await_state(&rig, TIDE_SINK_PAUSED);
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_join(rig.engine);
    rig_expect_log(&rig, "");
    rig_close(&rig);
}

static void keep_trying_opens_again_after_an_error_that_would_end_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.keeps_trying = true;
    rig_engine(&rig);
    rig.script.status = TIDE_STALE;
    rig.script.is_retriable = false;
    rig.script.open_failures = 2;
    rig_publish(&rig, 1);
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o! o! o w1:0 f1@0 c ");
    rig_close(&rig);
}

static void resume_ends_the_wait_for_a_restart(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.wait_first_us = 3600 * (int64_t)1000000;
    rig_engine(&rig);
    rig.script.open_failures = 1;
    rig_publish(&rig, 1);
    tide_sink_engine_start(rig.engine);
    rig_await_state(&rig, TIDE_SINK_WAITING);
    tide_sink_engine_resume(rig.engine);
    rig_await_floor(&rig, 1);
    rig_close_and_join(&rig);
    rig_close(&rig);
}

static tide_status refuse_unless_told(void *context, const struct tide_sink_held *held,
                                      struct tide_error *err)
{
    atomic_uint *calls = context;
    (void)held;
    return atomic_fetch_add(calls, 1) == 0
               ? tide_fail_retriable(err, TIDE_STALE, "it has lost something")
               : TIDE_OK;
}

static void check_that_fails_closes_it_before_anything_is_written(void **state)
{
    (void)state;
    struct rig rig;
    atomic_uint calls = 0;
    rig_stream(&rig);
    rig.options.check = refuse_unless_told;
    rig.options.check_context = &calls;
    rig_engine(&rig);
    rig_publish(&rig, 1);
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o c r w1:0 f1@0 c ");
    assert_int_equal(atomic_load(&calls), 2);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_errors_in_a_row_double_the_wait_up_to_its_bound),
        cmocka_unit_test(run_error_waits_at_least_that_long),
        cmocka_unit_test(run_good_run_starts_the_waits_over),
        cmocka_unit_test(stop_while_it_waits_for_items_ends_it),
        cmocka_unit_test(stop_while_it_waits_for_the_restart_ends_it),
        cmocka_unit_test(stop_while_it_writes_leaves_the_items_on_the_lane),
        cmocka_unit_test(stop_before_start_ends_it_at_once),
        cmocka_unit_test(cancelled_stream_stops_it),
        cmocka_unit_test(dropped_lane_ends_it),
        cmocka_unit_test(lane_dropped_while_it_waits_for_the_restart_ends_it),
        cmocka_unit_test(lane_dropped_before_it_was_ever_open_ends_it),
        cmocka_unit_test(run_lasting_error_fails_it_for_good),
        cmocka_unit_test(run_retriable_or_passing_error_is_tried_again),
        cmocka_unit_test(run_random_failures_hold_everything_in_the_end),
        cmocka_unit_test(pause_closes_it_and_resume_delivers_what_came_meanwhile),
        cmocka_unit_test(pause_before_the_start_does_not_open_it),
        cmocka_unit_test(keep_trying_opens_again_after_an_error_that_would_end_it),
        cmocka_unit_test(resume_ends_the_wait_for_a_restart),
        cmocka_unit_test(check_that_fails_closes_it_before_anything_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
