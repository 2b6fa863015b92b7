/*
 * At every commit that the source brings, the copy is what the database was at one commit: while a
 * writer moves amounts between accounts as fast as it can, the copy's sum never changes.
 */
#include "cmocka_prelude.h"

#include "base/clock.h"
#include "soak.h"
#include "sqlite_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OPS      tide_sqlite_source_ops
#define ACCOUNTS 2000
#define AMOUNT   100

struct bank {
    struct sqlite_kit kit;
    atomic_bool is_closed;
    atomic_long transfers;
    long balance[ACCOUNTS];
    long commits;
    long changes;
};

static void *transfer(void *context)
{
    struct bank *bank = context;
    unsigned seed = 7;
    while (!atomic_load(&bank->is_closed)) {
        char sql[512];
        int rows = rand_r(&seed) % 300 + 1; /* sometimes more than a slice takes */
        int from = rand_r(&seed) % ACCOUNTS;
        (void)snprintf(sql, sizeof(sql),
                       "BEGIN IMMEDIATE;"
                       "UPDATE t SET a = a - 1 WHERE id >= %d AND id < %d;"
                       "UPDATE t SET a = a + (SELECT count(*) FROM t WHERE id >= %d AND id < %d)"
                       " WHERE id = %d; COMMIT",
                       from, from + rows, from, from + rows, rand_r(&seed) % ACCOUNTS);
        kit_sql(&bank->kit, sql);
        (void)atomic_fetch_add(&bank->transfers, 1);
        (void)usleep(500); /* on a busy machine a reader finds no moment else */
    }
    return NULL;
}

static void check_sum(struct bank *bank)
{
    long sum = 0;
    for (size_t i = 0; i < ACCOUNTS; i++) {
        sum += bank->balance[i];
    }
    assert_int_equal(sum, (long)ACCOUNTS * AMOUNT);
}

static void apply(struct bank *bank, const struct tide_event *event)
{
    if (event->kind != TIDE_EVENT_CHANGE) {
        bank->commits++;
        check_sum(bank);
        return;
    }
    int64_t id = 0;
    int64_t amount = 0;
    assert_int_equal(event->change.op, TIDE_OP_UPDATE);
    assert_true(tide_str_to_i64(tide_value_str(event->change.key[0]), &id));
    assert_true(tide_str_to_i64(tide_value_str(event->change.values[1]), &amount));
    bank->balance[id] = amount;
    bank->changes++;
}

static void follow_until(struct bank *bank, int64_t deadline_us)
{
    struct tide_event event;
    struct tide_error err;
    for (;;) {
        tide_arena_reset(&bank->kit.arena);
        tide_status status =
            OPS.next(bank->kit.source, &bank->kit.arena, NULL, deadline_us, &event, &err);
        if (status == TIDE_TIMEOUT) {
            return;
        }
        if (status != TIDE_OK) {
            fail_msg("%s", err.message);
        }
        apply(bank, &event);
        if (event.kind != TIDE_EVENT_CHANGE) {
            (void)OPS.confirm(bank->kit.source, event.position, &err);
        }
        if (tide_clock_monotonic_us() >= deadline_us && atomic_load(&bank->is_closed) == false) {
            return;
        }
    }
}

static void copy_is_a_cut_at_every_commit(const char *mode)
{
    static struct bank bank;
    pthread_t writer;
    bank = (struct bank){0};
    kit_init(&bank.kit, mode);
    kit_sql(&bank.kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT NOT NULL);"
                       "WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999)"
                       " INSERT INTO t SELECT i, 100 FROM n");
    for (size_t i = 0; i < ACCOUNTS; i++) {
        bank.balance[i] = AMOUNT;
    }
    kit_follow(&bank.kit);
    assert_int_equal(pthread_create(&writer, NULL, transfer, &bank), 0);
    int64_t patience_us = tide_clock_deadline_us(30000000); /* other programs may be busy */
    do {
        follow_until(&bank, tide_clock_deadline_us(soak_rounds(1, 60) * 1000000));
    } while (bank.commits < 3 && tide_clock_monotonic_us() < patience_us);
    atomic_store(&bank.is_closed, true);
    (void)pthread_join(writer, NULL);
    follow_until(&bank, tide_clock_monotonic_us() + 300000);
    assert_true(bank.commits >= 3 && bank.changes > bank.commits);
    for (size_t i = 0; i < ACCOUNTS; i++) {
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "SELECT a FROM t WHERE id = %zu", i);
        char *amount = kit_get(&bank.kit, sql);
        assert_int_equal(bank.balance[i], strtol(amount, NULL, 10));
        free(amount);
    }
    print_message("%s: %ld transfers, %ld commits of %ld changes\n", mode,
                  atomic_load(&bank.transfers), bank.commits, bank.changes);
    kit_done(&bank.kit);
}

static void copy_is_a_cut_at_every_commit_with_a_wal(void **state)
{
    (void)state;
    copy_is_a_cut_at_every_commit("wal");
}

static void copy_is_a_cut_at_every_commit_with_a_journal(void **state)
{
    (void)state;
    copy_is_a_cut_at_every_commit("delete");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_a_cut_at_every_commit_with_a_wal),
        cmocka_unit_test(copy_is_a_cut_at_every_commit_with_a_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
