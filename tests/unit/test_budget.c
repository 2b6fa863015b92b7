#include "cmocka_prelude.h"

#include "base/budget.h"
#include "base/clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static const size_t floors[TIDE_BUDGET_USERS] = {10, 10, 10, 10};

static struct tide_charge charge_of(struct tide_budget *budget, enum tide_budget_user user)
{
    return (struct tide_charge){.budget = budget, .user = user};
}

static void charge_without_budget_always_succeeds(void **state)
{
    (void)state;
    struct tide_charge charge = {0};
    assert_true(tide_charge_try_set(&charge, SIZE_MAX));
    assert_true(tide_charge_try_move(&charge, TIDE_BUDGET_LANES));
    tide_charge_done(&charge);
    assert_int_equal(charge.bytes, 0);
    assert_true(tide_charge_try_ahead(&charge, SIZE_MAX));
    assert_int_equal(tide_budget_used(NULL), 0);
    assert_false(tide_budget_is_short(NULL));
}

/* One user takes all there is in common; each other still has its floor. */
static void try_set_leaves_others_their_floors(void **state)
{
    (void)state;
    struct tide_budget *budget = tide_budget_new(100, floors);
    struct tide_charge greedy = charge_of(budget, TIDE_BUDGET_MEMORY);
    assert_false(tide_charge_try_set(&greedy, 71));
    assert_true(tide_charge_try_set(&greedy, 70));
    assert_int_equal(tide_budget_used_by(budget, TIDE_BUDGET_MEMORY), 70);
    for (unsigned user = 0; user < TIDE_BUDGET_MEMORY; user++) {
        struct tide_charge charge = charge_of(budget, (enum tide_budget_user)user);
        assert_true(tide_charge_try_set(&charge, 10));
        assert_false(tide_charge_try_set(&charge, 11));
        assert_int_equal(charge.bytes, 10);
        tide_charge_done(&charge);
    }
    tide_charge_done(&greedy);
    assert_int_equal(tide_budget_used(budget), 0);
    tide_budget_free(budget);
}

static void set_past_the_limit_succeeds_and_counts(void **state)
{
    (void)state;
    struct tide_budget *budget = tide_budget_new(100, floors);
    struct tide_charge large = charge_of(budget, TIDE_BUDGET_BUILD);
    struct tide_charge small = charge_of(budget, TIDE_BUDGET_CHUNKS);
    tide_charge_set(&large, 1000);
    assert_int_equal(tide_budget_used(budget), 1000);
    assert_true(tide_budget_is_short(budget));
    assert_true(tide_charge_try_set(&small, 10));
    assert_false(tide_charge_try_set(&small, 11));
    tide_charge_set(&large, 5);
    assert_false(tide_budget_is_short(budget));
    assert_true(tide_charge_try_set(&small, 70));
    tide_charge_done(&large);
    tide_charge_done(&small);
    tide_budget_free(budget);
}

static void try_ahead_keeps_something_in_common(void **state)
{
    (void)state;
    struct tide_budget *budget = tide_budget_new(100, floors); /* short below 12 in common */
    struct tide_charge ahead = charge_of(budget, TIDE_BUDGET_CHUNKS);
    assert_false(tide_charge_try_ahead(&ahead, 59));
    assert_true(tide_charge_try_ahead(&ahead, 58));
    assert_false(tide_budget_is_short(budget));
    struct tide_charge memory = charge_of(budget, TIDE_BUDGET_MEMORY);
    assert_true(tide_charge_try_set(&memory, 22));
    assert_true(tide_budget_is_short(budget));
    assert_false(tide_charge_try_ahead(&ahead, 59));
    tide_charge_done(&ahead);
    tide_charge_done(&memory);
    tide_budget_free(budget);
}

/* What is larger than everything enters empty lanes, and waits while anything is on them. */
static void try_move_large_waits_until_alone(void **state)
{
    (void)state;
    struct tide_budget *budget = tide_budget_new(100, floors);
    struct tide_waker waker;
    tide_waker_init(&waker);
    tide_budget_set_waker(budget, &waker);
    struct tide_charge first = charge_of(budget, TIDE_BUDGET_CHUNKS);
    struct tide_charge second = charge_of(budget, TIDE_BUDGET_BUILD);
    tide_charge_set(&first, 500);
    tide_charge_set(&second, 20);
    assert_true(tide_charge_try_move(&first, TIDE_BUDGET_LANES));
    assert_int_equal(tide_budget_used_by(budget, TIDE_BUDGET_CHUNKS), 0);
    assert_false(tide_budget_is_awaited(budget));
    assert_false(tide_charge_try_move(&second, TIDE_BUDGET_LANES));
    assert_int_equal(second.user, TIDE_BUDGET_BUILD);
    assert_int_equal(tide_budget_used(budget), 520);
    assert_true(tide_budget_is_awaited(budget));
    assert_false(tide_waker_wait(&waker, 0));
    tide_charge_done(&first);
    assert_false(tide_budget_is_awaited(budget));
    assert_true(tide_waker_wait(&waker, 0));
    assert_true(tide_charge_try_move(&second, TIDE_BUDGET_LANES));
    tide_charge_done(&second);
    assert_false(tide_waker_wait(&waker, 0));
    tide_budget_set_waker(budget, NULL);
    tide_budget_free(budget);
    tide_waker_done(&waker);
}

/* Random takes and gives of 12 charges against sums worked out anew at each step. */
static void charges_random_agree_with_model(void **state)
{
    (void)state;
    struct tide_budget *budget = tide_budget_new(1000, floors);
    struct tide_charge charges[12];
    uint64_t seed = 7;
    for (unsigned i = 0; i < 12; i++) {
        charges[i] = charge_of(budget, (enum tide_budget_user)(i % TIDE_BUDGET_USERS));
    }
    for (int step = 0; step < 100000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct tide_charge *charge = &charges[(seed >> 33) % 12];
        size_t bytes = (seed >> 20) % 200;
        size_t used = 0;
        size_t by[TIDE_BUDGET_USERS] = {0};
        size_t common = 0;
        if ((seed >> 40) % 4 == 0) {
            tide_charge_set(charge, bytes);
        } else if ((seed >> 40) % 4 == 1) {
            (void)tide_charge_try_move(charge, (enum tide_budget_user)((seed >> 50) % 4));
        } else {
            (void)tide_charge_try_set(charge, bytes);
        }
        for (unsigned i = 0; i < 12; i++) {
            by[charges[i].user] += charges[i].bytes;
            used += charges[i].bytes;
        }
        for (unsigned user = 0; user < TIDE_BUDGET_USERS; user++) {
            assert_int_equal(tide_budget_used_by(budget, (enum tide_budget_user)user), by[user]);
            common += by[user] > 10 ? by[user] - 10 : 0;
        }
        assert_int_equal(tide_budget_used(budget), used);
        assert_int_equal(tide_budget_is_short(budget), common > 960 || 960 - common < 125);
    }
    for (unsigned i = 0; i < 12; i++) {
        tide_charge_done(&charges[i]);
    }
    tide_budget_free(budget);
}

/* Hands charges from the thread that takes to one that gives. */
#define HANDED 20000

struct hand_over {
    struct tide_budget *budget;
    _Atomic size_t made;
    struct tide_charge charges[HANDED];
};

static void *give_all(void *arg)
{
    struct hand_over *over = arg;
    for (size_t i = 0; i < HANDED; i++) {
        while (atomic_load(&over->made) <= i) {
            (void)sched_yield();
        }
        tide_charge_done(&over->charges[i]);
    }
    return NULL;
}

static void try_move_while_another_thread_gives_never_misses_a_wake(void **state)
{
    (void)state;
    struct hand_over *over = calloc(1, sizeof(*over));
    struct tide_waker waker;
    pthread_t thread;
    tide_waker_init(&waker);
    over->budget = tide_budget_new(100, floors);
    tide_budget_set_waker(over->budget, &waker);
    tide_thread_start(&thread, give_all, over);
    for (size_t i = 0; i < HANDED; i++) {
        struct tide_charge *charge = &over->charges[i];
        *charge = charge_of(over->budget, TIDE_BUDGET_BUILD);
        tide_charge_set(charge, 1 + i % 60);
        while (!tide_charge_try_move(charge, TIDE_BUDGET_LANES)) {
            if (!tide_waker_wait(&waker, tide_clock_deadline_us(20000000))) {
                fail_msg("charge %zu was never woken", i);
            }
        }
        atomic_store(&over->made, i + 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(tide_budget_used(over->budget), 0);
    tide_budget_set_waker(over->budget, NULL);
    tide_budget_free(over->budget);
    tide_waker_done(&waker);
    free(over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(charge_without_budget_always_succeeds),
        cmocka_unit_test(try_set_leaves_others_their_floors),
        cmocka_unit_test(set_past_the_limit_succeeds_and_counts),
        cmocka_unit_test(try_ahead_keeps_something_in_common),
        cmocka_unit_test(try_move_large_waits_until_alone),
        cmocka_unit_test(charges_random_agree_with_model),
        cmocka_unit_test(try_move_while_another_thread_gives_never_misses_a_wake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
