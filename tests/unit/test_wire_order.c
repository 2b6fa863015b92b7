#include "cmocka_prelude.h"

#include "base/limits.h"
#include "format/wire/order.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct tide_wire_frame make(enum tide_wire_kind kind, uint32_t source)
{
    return (struct tide_wire_frame){.kind = kind, .source = source};
}

static struct tide_wire_frame make_index(uint32_t source, bool is_delta, uint64_t state)
{
    struct tide_wire_frame frame = make(TIDE_WIRE_INDEX, source);
    frame.index.is_delta = is_delta;
    frame.index.state.a = state;
    return frame;
}

static struct tide_wire_frame make_rows(uint32_t source, uint64_t seq, uint64_t state)
{
    struct tide_wire_frame frame = make(TIDE_WIRE_ROWS, source);
    frame.rows.seq = seq;
    frame.rows.state.a = state;
    return frame;
}

static struct tide_wire_verdict take(struct tide_wire_order *order, struct tide_wire_frame frame)
{
    struct tide_wire_verdict verdict = {0};
    struct tide_error err = {0};
    if (tide_wire_order_take(order, &frame, &verdict, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return verdict;
}

static void expect_error(struct tide_wire_order *order, struct tide_wire_frame frame,
                         tide_status want, const char *says)
{
    struct tide_wire_verdict verdict = {.place = 77};
    struct tide_error err = {0};
    size_t count = order->count;
    assert_int_equal(tide_wire_order_take(order, &frame, &verdict, &err), want);
    if (strstr(err.message, says) == NULL) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(verdict.place, 77);
    assert_int_equal(order->count, count);
    assert_false(err.retriable);
}

static void take_frames_of_sources_nobody_introduced_are_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};

    static const enum tide_wire_kind kinds[] = {TIDE_WIRE_INDEX, TIDE_WIRE_ROWS, TIDE_WIRE_SEGMENT,
                                                TIDE_WIRE_CLOCK_OFFSET};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        expect_error(&order, make(kinds[i], 0), TIDE_INVALID,
                     "source 0, which no handshake has introduced");
    }
    assert_true(take(&order, make(TIDE_WIRE_HANDSHAKE, 0)).is_new);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        assert_false(take(&order, make(kinds[i], 0)).is_new);
        expect_error(&order, make(kinds[i], 1), TIDE_INVALID,
                     "source 1, which no handshake has introduced");
    }
}

static void take_a_second_handshake_is_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, UINT32_MAX));
    expect_error(&order, make(TIDE_WIRE_HANDSHAKE, UINT32_MAX), TIDE_INVALID,
                 "second handshake introduces source 4294967295");
    tide_wire_order_done(&order); /* the next stream begins anew */
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, UINT32_MAX));
}

static void take_places_count_up_whatever_the_numbers(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(take(&order, make(TIDE_WIRE_HANDSHAKE, i * 2654435761u)).place, i);
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(take(&order, make(TIDE_WIRE_SEGMENT, i * 2654435761u)).place, i);
        assert_int_equal(order.places[i].source, i * 2654435761u);
    }
}

static void take_more_sources_than_the_limit_are_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    for (uint32_t i = 0; i < TIDE_WIRE_SOURCES_MAX; i++) {
        (void)take(&order, make(TIDE_WIRE_HANDSHAKE, i));
    }
    expect_error(&order, make(TIDE_WIRE_HANDSHAKE, UINT32_MAX), TIDE_UNSUPPORTED, "65536");
}

static void take_rows_find_gaps_in_seq(void **state)
{
    (void)state;

    static const struct {
        uint64_t seq;
        bool is_gap;
    } steps[] = {{5, false},
                 {6, false},
                 {8, true},
                 {8, false},
                 {3, false},
                 {4, false},
                 {0, false},
                 {UINT64_MAX, true},
                 {UINT64_MAX, false},
                 {0, false},
                 {1, false},
                 {3, true},
                 {UINT64_MAX - 1, true},
                 {UINT64_MAX, false}};
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, 0));
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, 1));
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct tide_wire_verdict verdict = take(&order, make_rows(0, steps[i].seq, 0));
        if (verdict.is_gap != steps[i].is_gap || verdict.is_unmatched) {
            fail_msg("step %zu", i);
        }
        assert_false(take(&order, make_rows(1, i, 0)).is_gap); /* each source counts for itself */
    }
}

/* Which rows can be used: against none, before and after an index. */
static void take_rows_are_matched_by_state(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, 0));
    (void)take(&order, make(TIDE_WIRE_HANDSHAKE, 1));
    assert_false(take(&order, make_rows(0, 0, 0)).is_unmatched);
    assert_true(take(&order, make_rows(0, 1, 5)).is_unmatched);
    (void)take(&order, make_index(0, true, 5)); /* a delta alone is not enough */
    assert_true(take(&order, make_rows(0, 2, 5)).is_unmatched);
    assert_true(take(&order, make_rows(0, 3, 0)).is_unmatched);
    (void)take(&order, make_index(0, false, 6));
    assert_false(take(&order, make_rows(0, 4, 6)).is_unmatched);
    assert_true(take(&order, make_rows(0, 5, 5)).is_unmatched);
    (void)take(&order, make_index(0, true, 7));
    assert_true(take(&order, make_rows(0, 6, 6)).is_unmatched);
    assert_false(take(&order, make_rows(0, 7, 7)).is_unmatched);
    assert_true(take(&order, make_rows(0, 8, 0)).is_unmatched);
    assert_false(take(&order, make_rows(1, 0, 0)).is_unmatched); /* the other source has none */
    assert_true(take(&order, make_rows(0, 20, 0)).is_gap);       /* unmatched rows count, too */
    assert_false(take(&order, make_rows(0, 21, 7)).is_gap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_frames_of_sources_nobody_introduced_are_refused),
        cmocka_unit_test(take_a_second_handshake_is_refused),
        cmocka_unit_test(take_places_count_up_whatever_the_numbers),
        cmocka_unit_test(take_more_sources_than_the_limit_are_refused),
        cmocka_unit_test(take_rows_find_gaps_in_seq),
        cmocka_unit_test(take_rows_are_matched_by_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
