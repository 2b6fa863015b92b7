/* Waiting: for commits, for locks that writers hold, for what a killed one left. */
#include "cmocka_prelude.h"

#include "base/clock.h"
#include "sqlite_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS   tide_sqlite_source_ops
#define MODES 2

static const char *const modes[MODES] = {"wal", "delete"};

static void *hold_lock(void *context)
{
    struct sqlite_kit *kit = context;
    kit_sql(kit, "BEGIN IMMEDIATE; INSERT INTO t VALUES (500, 'held')");
    (void)usleep(400000);
    kit_sql(kit, "COMMIT");
    return NULL;
}

static void confirm_gives_way_to_a_writer(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        struct tide_error err;
        pthread_t thread;
        kit_follow_with_rows(&kit, modes[mode], HUNDRED_ROWS);
        uint64_t end = kit_log_end(&kit);
        char *before = kit_state(&kit);
        assert_int_equal(pthread_create(&thread, NULL, hold_lock, &kit), 0);
        (void)usleep(100000);
        int64_t start_us = tide_clock_monotonic_us();
        assert_int_equal(OPS.confirm(kit.source, (struct tide_position){.lo = end}, &err),
                         TIDE_TIMEOUT);
        assert_true(tide_clock_monotonic_us() - start_us < 250000);
        (void)pthread_join(thread, NULL);
        char *after = kit_state(&kit);
        assert_string_equal(after, before); /* nothing happened */
        free(before);
        free(after);
        kit_expect(&kit, "insert t: i500 = i500|t'held'\ncommit\n");
        kit_confirm(kit.source, end);
        kit_done(&kit);
    }
}

static void next_waits_for_the_deadline_and_the_waker(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_event event;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_follow_with_rows(&kit, "wal", "INSERT INTO t VALUES (1, 1)");
    int64_t start_us = tide_clock_monotonic_us();
    assert_int_equal(
        OPS.next(kit.source, &kit.arena, &waker, tide_clock_deadline_us(120000), &event, &err),
        TIDE_TIMEOUT);
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    assert_true(took_us >= 120000 && took_us < 400000);
    tide_waker_wake(&waker);
    start_us = tide_clock_monotonic_us();
    assert_int_equal(OPS.next(kit.source, &kit.arena, &waker, TIDE_NO_DEADLINE, &event, &err),
                     TIDE_TIMEOUT);
    assert_true(tide_clock_monotonic_us() - start_us < 50000);
    tide_waker_done(&waker);
    kit_done(&kit);
}

static void *write_soon(void *context)
{
    struct sqlite_kit *kit = context;
    (void)usleep(150000);
    kit_sql(kit, "INSERT INTO t VALUES (77, 'soon')");
    return NULL;
}

static void next_sees_a_commit_soon(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        struct tide_error err;
        struct tide_event event;
        pthread_t thread;
        kit_follow_with_rows(&kit, modes[mode], "INSERT INTO t VALUES (1, 1)");
        assert_int_equal(pthread_create(&thread, NULL, write_soon, &kit), 0);
        int64_t start_us = tide_clock_monotonic_us();
        assert_int_equal(
            OPS.next(kit.source, &kit.arena, NULL, tide_clock_deadline_us(5000000), &event, &err),
            TIDE_OK);
        assert_true(tide_clock_monotonic_us() - start_us < 600000);
        assert_int_equal(event.kind, TIDE_EVENT_CHANGE);
        (void)pthread_join(thread, NULL);
        kit_done(&kit);
    }
}

static void a_locked_database_is_waited_for(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_event event;
    struct tide_chunk chunk = {0};
    struct tide_chunk_reader *reader = NULL;
    kit_follow_with_rows(&kit, "delete", "INSERT INTO t VALUES (1, 1)");
    struct tide_chunk_request request = {
        .relation = kit_relation(kit.source, "t"), .rows_max = 5, .bytes_max = 1000};
    assert_int_equal(OPS.reader_open(kit.source, &reader, &err), TIDE_OK);
    kit_sql(&kit, "BEGIN EXCLUSIVE; INSERT INTO t VALUES (2, 2)");
    assert_int_equal(
        OPS.next(kit.source, &kit.arena, NULL, tide_clock_deadline_us(60000), &event, &err),
        TIDE_TIMEOUT);
    kit_sql(&kit, "COMMIT");
    kit_expect(&kit, "insert t: i2 = i2|i2\ncommit\n");
    assert_int_equal(OPS.reader_read(reader, &request, &chunk, &err), TIDE_OK);
    assert_int_equal(chunk.row_count, 2);
    tide_chunk_done(&chunk);
    /* nothing of ours is open between two calls: a writer without patience gets the lock */
    (void)sqlite3_busy_timeout(kit.app, 0);
    kit_sql(&kit, "BEGIN EXCLUSIVE; ROLLBACK");
    OPS.reader_close(reader);
    kit_done(&kit);
}

/* Dies in the middle of a transaction of which some pages are in the file already. */
static void die_while_writing(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA cache_size = 1; BEGIN; UPDATE t SET a = a || zeroblob(200)", NULL,
                     NULL, NULL) != SQLITE_OK) {
        _exit(1);
    }
    _exit(0);
}

static void what_a_killed_writer_left_is_mended(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_chunk chunk = {0};
    struct tide_chunk_reader *reader = NULL;
    int exited = -1;
    char journal[128];
    kit_follow_with_rows(&kit, "delete", HUNDRED_ROWS);
    struct tide_chunk_request request = {
        .relation = kit_relation(kit.source, "t"), .rows_max = 500, .bytes_max = 100000};
    assert_int_equal(OPS.reader_open(kit.source, &reader, &err), TIDE_OK);
    (void)sqlite3_close(kit.app);
    kit.app = NULL;
    pid_t child = fork();
    if (child == 0) {
        die_while_writing(kit.path);
    }
    assert_int_equal(waitpid(child, &exited, 0), child);
    assert_int_equal(exited, 0);
    (void)snprintf(journal, sizeof(journal), "%s-journal", kit.path);
    assert_int_equal(access(journal, F_OK), 0);
    assert_int_equal(OPS.reader_read(reader, &request, &chunk, &err), TIDE_TIMEOUT);
    assert_true(err.retriable);
    kit_expect(&kit, ""); /* mends it: the reader may only read */
    assert_int_equal(OPS.reader_read(reader, &request, &chunk, &err), TIDE_OK);
    assert_int_equal(chunk.row_count, 100);
    assert_int_equal(chunk.rows[99][1].len, 3);
    tide_chunk_done(&chunk);
    OPS.reader_close(reader);
    kit_done(&kit);
}

struct cancelling {
    struct tide_chunk_reader *reader;
};

static void *cancel_soon(void *context)
{
    struct cancelling *cancelling = context;
    (void)usleep(50000);
    OPS.reader_cancel(cancelling->reader);
    return NULL;
}

static void reader_cancel_ends_a_wait_for_a_lock(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_chunk chunk = {0};
    struct cancelling cancelling = {0};
    pthread_t thread;
    kit_follow_with_rows(&kit, "delete", "INSERT INTO t VALUES (1, 1)");
    struct tide_chunk_request request = {
        .relation = kit_relation(kit.source, "t"), .rows_max = 5, .bytes_max = 1000};
    assert_int_equal(OPS.reader_open(kit.source, &cancelling.reader, &err), TIDE_OK);
    kit_sql(&kit, "BEGIN EXCLUSIVE");
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancelling), 0);
    int64_t start_us = tide_clock_monotonic_us();
    assert_int_equal(OPS.reader_read(cancelling.reader, &request, &chunk, &err), TIDE_CANCELLED);
    assert_true(tide_clock_monotonic_us() - start_us < 1000000);
    (void)pthread_join(thread, NULL);
    kit_sql(&kit, "COMMIT");
    OPS.reader_close(cancelling.reader);
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confirm_gives_way_to_a_writer),
        cmocka_unit_test(next_waits_for_the_deadline_and_the_waker),
        cmocka_unit_test(next_sees_a_commit_soon),
        cmocka_unit_test(a_locked_database_is_waited_for),
        cmocka_unit_test(what_a_killed_writer_left_is_mended),
        cmocka_unit_test(reader_cancel_ends_a_wait_for_a_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
