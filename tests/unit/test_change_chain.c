#include "cmocka_prelude.h"

#include "format/change_chain.h"
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tide_ordered_place place(const char *position, uint64_t index)
{
    return tide_ordered_place_of(tide_str_from(position), index, 0);
}

static struct tide_ordered_place number(uint64_t n)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    return n == 0 ? (struct tide_ordered_place){0} : place(text, 0);
}

static void compare_known_forms_orders_them(void **state)
{
    (void)state;

    const struct {
        const char *a;
        const char *b;
        enum tide_place_order order;
    } cases[] = {
        {"9", "10", TIDE_PLACE_BEFORE},
        {"-1", "0", TIDE_PLACE_BEFORE},
        {"-2", "-1", TIDE_PLACE_BEFORE},
        {"18446744073709551615", "1", TIDE_PLACE_AFTER},
        {"7", "7", TIDE_PLACE_SAME},
        {"\"0/FFFFFFFF\"", "\"1/0\"", TIDE_PLACE_BEFORE},
        {"\"16/B374D848\"", "\"9/B374D848\"", TIDE_PLACE_AFTER},
        {"\"a/1\"", "\"A/1\"", TIDE_PLACE_SAME},
        {"\"0/1\"", "1", TIDE_PLACE_UNORDERED},
        {"\"0/123456789\"", "\"0/1\"", TIDE_PLACE_UNORDERED},
        {"\"0/\"", "\"0/1\"", TIDE_PLACE_UNORDERED},
        {"\"0/1x\"", "\"0/1\"", TIDE_PLACE_UNORDERED},
        {"{\"file\":\"b.000009\",\"pos\":900}", "{\"file\":\"b.000010\",\"pos\":4}",
         TIDE_PLACE_BEFORE},
        {"{\"file\":\"b.999999\",\"pos\":900}", "{\"file\":\"b.1000000\",\"pos\":4}",
         TIDE_PLACE_BEFORE},
        {"{\"pos\":900,\"file\":\"b.000009\"}", "{\"file\":\"b.000009\",\"pos\":1000}",
         TIDE_PLACE_BEFORE},
        {"{\"file\":\"b.000000\",\"pos\":4}", "{\"file\":\"b.000000\",\"pos\":4}", TIDE_PLACE_SAME},
        {"{\"file\":\"b.000009\",\"pos\":4}", "{\"file\":\"c.000010\",\"pos\":4}",
         TIDE_PLACE_UNORDERED},
        {"{\"file\":\"b\",\"pos\":4}", "{\"file\":\"b\",\"pos\":5}", TIDE_PLACE_UNORDERED},
        {"{\"file\":\"b.1\",\"pos\":4,\"x\":1}", "{\"file\":\"b.1\",\"pos\":4,\"x\":1}",
         TIDE_PLACE_SAME},
        {"{\"file\":\"b.1\"}", "{\"file\":\"b.2\"}", TIDE_PLACE_UNORDERED},
        {"1.5", "2.5", TIDE_PLACE_UNORDERED},
        {"[1]", "[1]", TIDE_PLACE_SAME},
        {"[1]", "[2]", TIDE_PLACE_UNORDERED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_ordered_place a = place(cases[i].a, 0);
        struct tide_ordered_place b = place(cases[i].b, 0);
        if (tide_ordered_place_compare(&a, &b) != cases[i].order) {
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        }
    }
}

static void compare_null_index_and_incarnation(void **state)
{
    (void)state;
    struct tide_ordered_place null = {0};
    struct tide_ordered_place first = place("5", 1);
    struct tide_ordered_place second = place("5", 2);
    struct tide_ordered_place newer = tide_ordered_place_of(TIDE_STR("1"), 0, 1);
    assert_int_equal(tide_ordered_place_compare(&null, &first), TIDE_PLACE_BEFORE);
    assert_int_equal(tide_ordered_place_compare(&null, &null), TIDE_PLACE_SAME);
    assert_int_equal(tide_ordered_place_compare(&first, &null), TIDE_PLACE_AFTER);
    assert_int_equal(tide_ordered_place_compare(&first, &second), TIDE_PLACE_BEFORE);
    assert_int_equal(tide_ordered_place_compare(&newer, &second), TIDE_PLACE_AFTER);
}

static void append_place_writes_it_as_frames_do(void **state)
{
    (void)state;
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    const struct tide_ordered_place places[] = {place("5", 1), place("-5", 0), number(0),
                                                place("\"16/B374D848\"", 3)};
    for (size_t i = 0; i < 4; i++) {
        tide_ordered_place_append(&buf, &places[i]);
    }
    assert_string_equal(tide_buf_cstr(&buf), "[5,1][-5,0]null[\"16/B374D848\",3]");
}

/* 200,000 changes one after the other, and again: one stretch. */
static void add_in_order_keeps_one_stretch(void **state)
{
    (void)state;
    struct tide_change_chain chain = {0};
    for (int again = 0; again < 2; again++) {
        for (uint64_t i = 1; i <= 200000; i++) {
            struct tide_ordered_place prev = number(i - 1);
            struct tide_ordered_place to = number(i);
            tide_change_chain_add(&chain, &prev, &to);
        }
    }
    assert_int_equal(chain.count, 1);
    assert_int_equal(chain.seen, 400000);
    tide_change_chain_done(&chain);
}

/* As when the files of seven partitions are read one after the other. */
static void add_by_partition_ends_in_one_stretch(void **state)
{
    (void)state;
    struct tide_change_chain chain = {0};
    for (uint64_t partition = 0; partition < 7; partition++) {
        for (uint64_t i = 1 + partition; i <= 70000; i += 7) {
            struct tide_ordered_place prev = number(i - 1);
            struct tide_ordered_place to = number(i);
            tide_change_chain_add(&chain, &prev, &to);
        }
    }
    struct tide_ordered_place from = number(0);
    struct tide_ordered_place to = number(70000);
    assert_true(tide_change_chain_prove(&chain, &from, &to).is_whole);
    assert_int_equal(chain.count, 1);
    tide_change_chain_done(&chain);
}

static void add_too_many_gaps_stays_bounded_and_proves_nothing_false(void **state)
{
    (void)state;
    struct tide_change_chain chain = {0};
    for (uint64_t i = 1; i < 600000; i++) {
        struct tide_ordered_place prev = number(i * 4);
        struct tide_ordered_place to = number(i * 4 + 1);
        tide_change_chain_add(&chain, &prev, &to);
    }
    assert_true(chain.overflowed);
    assert_true(chain.cap <= TIDE_CHANGE_STRETCHES_MAX);
    struct tide_ordered_place from = number(4);
    struct tide_ordered_place to = number(5);
    assert_true(tide_change_chain_prove(&chain, &from, &to).is_whole);
    to = number(6);
    assert_false(tide_change_chain_prove(&chain, &from, &to).is_whole);
    from = number(4 * 599999);
    to = number(4 * 599999 + 1);
    assert_false(tide_change_chain_prove(&chain, &from, &to).is_whole);
    tide_change_chain_done(&chain);
}

/* A place at or before its own `prev` says nothing. */
static void add_backwards_is_left_out(void **state)
{
    (void)state;
    struct tide_change_chain chain = {0};
    struct tide_ordered_place five = number(5);
    struct tide_ordered_place three = number(3);
    tide_change_chain_add(&chain, &five, &three);
    tide_change_chain_add(&chain, &five, &five);
    assert_int_equal(chain.count, 0);
    tide_change_chain_done(&chain);
}

static void prove_opaque_places_link_by_link(void **state)
{
    (void)state;
    struct tide_change_chain chain = {0};
    const char *const names[] = {"\"a\"", "\"q\"", "\"c\"", "\"x\"", "\"b\""};
    for (size_t i = 0; i < 4; i++) {
        size_t k = (i * 3 + 1) % 4; /* out of order */
        struct tide_ordered_place prev = place(names[k], 0);
        struct tide_ordered_place to = place(names[k + 1], 0);
        tide_change_chain_add(&chain, &prev, &to);
        tide_change_chain_add(&chain, &prev, &to);
    }
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 5; k++) {
            struct tide_ordered_place from = place(names[i], 0);
            struct tide_ordered_place to = place(names[k], 0);
            assert_int_equal(tide_change_chain_prove(&chain, &from, &to).is_whole, i <= k);
        }
    }
    tide_change_chain_done(&chain);
}

static uint64_t seed = 5;

static unsigned next_random(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* The rule as it is written: a change with `prev` at or before what is covered moves it on. */
static unsigned plain_cover(const unsigned (*links)[2], size_t count, unsigned from)
{
    unsigned covered = from;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < count; i++) {
            if (links[i][0] <= covered && links[i][1] > covered) {
                covered = links[i][1];
                moved = true;
            }
        }
    }
    return covered;
}

static void prove_random_links_agrees_with_the_plain_rule(void **state)
{
    (void)state;
    for (long round = 0; round < soak_rounds(3000, 300000); round++) {
        struct tide_change_chain chain = {0};
        unsigned links[60][2];
        size_t count = next_random(60);
        for (size_t i = 0; i < count; i++) {
            links[i][0] = next_random(80);
            links[i][1] = links[i][0] + 1 + next_random(4);
            struct tide_ordered_place prev = number(links[i][0]);
            struct tide_ordered_place to = number(links[i][1]);
            tide_change_chain_add(&chain, &prev, &to);
            if (next_random(5) != 0) {
                continue;
            }
            unsigned from = next_random(80);
            unsigned until = next_random(85);
            unsigned covered = plain_cover(links, i + 1, from);
            struct tide_ordered_place start = number(from);
            struct tide_ordered_place end = number(until);
            struct tide_change_proof proof = tide_change_chain_prove(&chain, &start, &end);
            assert_int_equal(proof.is_whole, covered >= until);
            if (covered < until) {
                struct tide_ordered_place want = number(covered);
                assert_int_equal(tide_ordered_place_compare(&proof.covered, &want),
                                 TIDE_PLACE_SAME);
            }
        }
        tide_change_chain_done(&chain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_known_forms_orders_them),
        cmocka_unit_test(compare_null_index_and_incarnation),
        cmocka_unit_test(append_place_writes_it_as_frames_do),
        cmocka_unit_test(add_in_order_keeps_one_stretch),
        cmocka_unit_test(add_by_partition_ends_in_one_stretch),
        cmocka_unit_test(add_too_many_gaps_stays_bounded_and_proves_nothing_false),
        cmocka_unit_test(add_backwards_is_left_out),
        cmocka_unit_test(prove_opaque_places_link_by_link),
        cmocka_unit_test(prove_random_links_agrees_with_the_plain_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
