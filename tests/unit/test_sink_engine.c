#include "cmocka_prelude.h"

#include "sink_engine_kit.h"

static void run_items_at_hand_are_flushed_once_before_acknowledged(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig_publish_some(&rig, 3);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_NEW);
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 3);
    rig_publish(&rig, 4);
    rig_await_floor(&rig, 4);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 w2:0 w3:0 f1@0 w4:0 f1@3 c ");
    assert_int_equal(rig_status(&rig).acknowledged, 4);
    assert_int_equal(rig_status(&rig).error.status, TIDE_OK);
    rig_close(&rig);
}

static void run_many_items_are_flushed_in_groups(void **state)
{
    (void)state;

    const struct {
        size_t items;
        size_t bytes;
        const char *want;
    } cases[] = {
        {2, 0, "o w1:0 w2:0 f0@0 w3:0 w4:0 f0@2 w5:0 f1@4 c "},
        {0, 3000, "o w1:0 w2:0 w3:0 f0@0 w4:0 w5:0 f1@3 c "},
        {1, 1, "o w1:0 f0@0 w2:0 f0@1 w3:0 f0@2 w4:0 f0@3 w5:0 f1@4 c "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig rig;
        rig_stream(&rig);
        rig.options.group_items = cases[i].items;
        rig.options.group_bytes = cases[i].bytes;
        rig_engine(&rig);
        rig_publish_some(&rig, 5);
        tide_sink_engine_start(rig.engine);
        rig_close_and_join(&rig);
        rig_expect_log(&rig, cases[i].want);
        rig_close(&rig);
    }
}

static void run_marker_is_acknowledged_after_a_flush(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    const tide_str table = TIDE_STR("t");
    rig_publish_item(&rig, (struct tide_item){.kind = TIDE_ITEM_SNAPSHOT_COMPLETE,
                                              .marker = tide_marker_new(9, &table, 1, NULL, 0)});
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o f1@0 c ");
    rig_close(&rig);
}

static void run_failed_write_delivers_all_again_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.write_failures_skip = 1;
    rig.script.write_failures = 1;
    rig_publish_some(&rig, 3);
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 w2:0! c r w1:0 w2:0 w3:0 f1@0 c ");
    assert_int_equal(rig_status(&rig).restarts, 1);
    assert_int_equal(rig_status(&rig).error.status, TIDE_IO);
    rig_close(&rig);
}

static void run_failed_flush_acknowledges_nothing(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.flush_failures = 2;
    rig_publish_some(&rig, 2);
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 w2:0 f1@0! c r w1:0 w2:0 f1@0! c r w1:0 w2:0 f1@0 c ");
    rig_close(&rig);
}

static void run_failure_after_a_group_leaves_that_group_held(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.group_items = 2;
    rig_engine(&rig);
    rig.script.write_failures_skip = 3;
    rig.script.write_failures = 1;
    rig_publish_some(&rig, 4);
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 w2:0 f0@0 w3:0 w4:0! c r w3:0 w4:0 f1@2 c ");
    rig_close(&rig);
}

static void run_held_changes_are_passed_over(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.held = (struct tide_place){.position.lo = 5, .index = 1, .known = true};
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(4, 2)});
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(5, 4)});
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(6, 3)});
    rig_publish_item(&rig,
                     (struct tide_item){.batch = rig_batch(2, 0)}); /* a snapshot's: no changes */
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w4:2 w5:2 w6:0 w2:0 f1@0 c ");
    struct tide_sink_counts counts;
    tide_sink_engine_counts(rig.engine, &counts);
    assert_int_equal(counts.changes, 5);
    rig_close(&rig);
}

static void run_reopened_sink_is_asked_again_what_it_holds(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.flush_failures = 1;
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(1, 3)});
    assert_int_equal(tide_sink_engine_prepare(rig.engine, &rig_err), TIDE_OK);
    /* what it will say from the next opening on */
    rig.script.held = (struct tide_place){.position.lo = 1, .index = 0, .known = true};
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o w1:0 f1@0! c r w1:1 f1@0 c ");
    rig_close(&rig);
}

static void counts_leave_out_what_a_reopened_sink_has_cut_away(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.flush_failures = 1;
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(1, 3)});
    tide_sink_engine_start(rig.engine);
    rig_await_floor(&rig, 1);
    struct tide_sink_counts counts;
    tide_sink_engine_counts(rig.engine, &counts); /* one closed, one open */
    assert_int_equal(counts.changes, 3);
    rig_close_and_join(&rig);
    tide_sink_engine_counts(rig.engine, &counts);
    assert_int_equal(counts.changes, 3);
    rig_close(&rig);
}

static void counts_are_summed_over_openings(void **state)
{
    (void)state;
    struct rig rig;
    rig_stream(&rig);
    rig.options.group_items = 1;
    rig_engine(&rig);
    rig.script.write_failures_skip = 1;
    rig.script.write_failures = 1;
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(1, 3)});
    rig_publish_item(&rig, (struct tide_item){.batch = rig_batch(2, 4)});
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    struct tide_sink_counts counts;
    tide_sink_engine_counts(rig.engine, &counts);
    assert_int_equal(counts.changes, 7);
    rig_close(&rig);
}

static void close_drains_the_lane_and_ends(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.write_us = 200;
    rig_publish_some(&rig, 150);
    rig.stream->ops->close(rig.stream);
    tide_sink_engine_start(rig.engine);
    assert_true(tide_waker_wait(&rig.done, tide_clock_deadline_us(10000000)));
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
    assert_int_equal(rig.stream->ops->held(rig.stream, rig.lane), 150);
    assert_true(rig.stream->ops->is_idle(rig.stream));
    rig_close(&rig);
}

static void prepare_error_is_the_callers_and_may_be_tried_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    rig.script.open_failures = 1;
    rig.script.status = TIDE_INVALID;
    assert_int_equal(tide_sink_engine_prepare(rig.engine, &rig_err), TIDE_INVALID);
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_NEW);
    rig.script.held = (struct tide_place){.position.lo = 3, .known = true};
    assert_int_equal(tide_sink_engine_prepare(rig.engine, &rig_err), TIDE_OK);
    struct tide_sink_held held;
    tide_sink_engine_held(rig.engine, &held);
    assert_true(held.is_known);
    assert_int_equal(held.place.position.lo, 3);
    rig_publish(&rig, 4);
    tide_sink_engine_start(rig.engine);
    rig_close_and_join(&rig);
    rig_expect_log(&rig, "o! o w4:0 f1@0 c "); /* start did not open it again */
    rig_close(&rig);
}

static void prepared_and_never_started_is_closed_by_free(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(tide_sink_engine_prepare(rig.engine, &rig_err), TIDE_OK);
    tide_sink_engine_free(rig.engine);
    rig_expect_log(&rig, "o c ");
    rig_engine(&rig);
    rig_close(&rig);
}

static void finishing_rig(struct rig *rig)
{
    rig_stream(rig);
    rig->options.ops = &rig_finishing_ops;
    rig_engine(rig);
    rig_publish(rig, 1);
    tide_sink_engine_start(rig->engine);
    rig_await_floor(rig, 1);
}

static void drained_lane_finishes_the_sink_before_it_is_closed(void **state)
{
    (void)state;
    for (int failures = 0; failures < 2; failures++) {
        struct rig rig;
        finishing_rig(&rig);
        rig.script.finish_failures = failures;
        rig_close_and_join(&rig);
        rig_expect_log(&rig, failures == 0 ? "o w1:0 f1@0 e c " : "o w1:0 f1@0 e! c ");
        assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
        rig_close(&rig);
    }
}

static void stopped_or_dropped_sink_is_not_finished(void **state)
{
    (void)state;
    struct rig rig;
    finishing_rig(&rig);
    tide_sink_engine_stop(rig.engine);
    tide_sink_engine_join(rig.engine);
    rig_expect_log(&rig, "o w1:0 f1@0 c ");
    rig_close(&rig);
    finishing_rig(&rig);
    assert_int_equal(rig.stream->ops->drop_lane(rig.stream, rig.lane, &rig_err), TIDE_OK);
    tide_sink_engine_join(rig.engine);
    rig_expect_log(&rig, "o w1:0 f1@0 c ");
    assert_int_equal(rig_status(&rig).state, TIDE_SINK_ENDED);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_items_at_hand_are_flushed_once_before_acknowledged),
        cmocka_unit_test(run_many_items_are_flushed_in_groups),
        cmocka_unit_test(run_marker_is_acknowledged_after_a_flush),
        cmocka_unit_test(run_failed_write_delivers_all_again_in_order),
        cmocka_unit_test(run_failed_flush_acknowledges_nothing),
        cmocka_unit_test(run_failure_after_a_group_leaves_that_group_held),
        cmocka_unit_test(run_held_changes_are_passed_over),
        cmocka_unit_test(run_reopened_sink_is_asked_again_what_it_holds),
        cmocka_unit_test(counts_leave_out_what_a_reopened_sink_has_cut_away),
        cmocka_unit_test(counts_are_summed_over_openings),
        cmocka_unit_test(close_drains_the_lane_and_ends),
        cmocka_unit_test(prepare_error_is_the_callers_and_may_be_tried_again),
        cmocka_unit_test(prepared_and_never_started_is_closed_by_free),
        cmocka_unit_test(drained_lane_finishes_the_sink_before_it_is_closed),
        cmocka_unit_test(stopped_or_dropped_sink_is_not_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
