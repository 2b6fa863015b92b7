/*
 * The same copy again and again, with each call that changes a file failing in turn, or the process
 * killed there. What delivers to the sink does as the engine does: it opens it again and gives it
 * everything once more that was not acknowledged. In the end the archive must hold just what it
 * holds without a fault: each row once.
 */
#include "cmocka_prelude.h"

#include "archive/container.h"
#include "archive_sink_kit.h"
#include "faulty_vfs.h"
#include "sink/archive/archive_sink.h"
#include "sink_kit.h"
#include "soak.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH   "a.tide"
#define GROUPS 8

static const struct tide_sink_ops *const ops = &tide_archive_sink_ops;
static struct tide_buf wanted;
static int64_t calls_of_all;
static int64_t stride; /* how many calls there are from one that is hit to the next */

/* Batch number `n` of the copy; two of them make a group. */
static struct tide_batch *batch_of(unsigned n)
{
    if (n % 2 == 0) {
        return kit_changes(kit_relation("t"), 10 + n, 4);
    }
    return kit_rows((struct kit_part){
        .relation = kit_relation(n % 4 == 1 ? "t" : "u"),
        .snapshot = n % 4,
        .opening = n < 4 ? TIDE_OPENING_BEGIN : TIDE_OPENING_NONE,
        .first_seq = n / 4 * 3,
        .rows = 3,
        .is_end = n >= 2 * GROUPS - 4,
    });
}

/* How a copy has come so far. */
struct copy {
    bool was_opened;
    unsigned group; /* the first that is not acknowledged */
};

static tide_status write_groups(struct tide_sink *sink, struct copy *copy, struct tide_error *err)
{
    struct tide_sink_held held;
    ops->held(sink, &held);
    struct tide_place place = held.place;
    while (copy->group < GROUPS) {
        for (unsigned i = 0; i < 2; i++) {
            struct tide_batch *batch = batch_of(2 * copy->group + i);
            tide_status status =
                ops->write_batch(sink, batch, tide_batch_count_until(batch, place), err);
            tide_batch_unref(batch);
            TIDE_TRY(status);
        }
        TIDE_TRY(ops->flush(sink, false, err));
        copy->group++;
    }
    return ops->finish(sink, err);
}

/* From opening the sink to closing it. */
static tide_status run_once(struct copy *copy, struct tide_error *err)
{
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = kit_options(PATH);
    options.is_resumed = copy->was_opened;
    options.segments.rows_max = 7;
    TIDE_TRY(ops->open(&options, &sink, err));
    copy->was_opened = true;
    tide_status status = write_groups(sink, copy, err);
    ops->close(sink);
    return status;
}

static void remove_all(void)
{
    kit_remove(PATH);
    kit_remove(PATH "-wal");
    kit_remove(PATH "-shm");
    kit_remove(PATH "-lock");
}

static void check(const char *what)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    faulty_vfs.fault = FAULTY_VFS_NONE;
    list_rows(PATH, &text);
    if (!tide_str_equal(tide_buf_str(&text), tide_buf_str(&wanted))) {
        fail_msg("%s at call %lld: the archive holds\n%s\ninstead of\n%s", what,
                 (long long)faulty_vfs.at, tide_buf_cstr(&text), tide_buf_cstr(&wanted));
    }
    remove_all();
}

static void copy_without_faults_is_what_is_wanted(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct copy copy = {0};
    faulty_vfs = (struct faulty_vfs){0};
    ok(run_once(&copy, &err), &err);
    calls_of_all = faulty_vfs.calls;
    list_rows(PATH, &wanted);
    assert_int_equal(number_of(PATH, "SELECT SUM(rows) FROM segments"), 8 * 4 + 8 * 3 + 4);
}

static void run_to_the_end(struct copy *copy)
{
    struct tide_error err = {0};
    int tries = 0;
    while (run_once(copy, &err) != TIDE_OK || copy->group < GROUPS) {
        if (tries++ == 3) {
            fail_msg("call %lld: %s", (long long)faulty_vfs.at, err.message);
        }
        faulty_vfs.fault = FAULTY_VFS_NONE;
    }
}

static void with_each_call_failing(enum faulty_vfs_fault fault, const char *what)
{
    assert_true(calls_of_all > 50);
    for (int64_t at = 1; at <= calls_of_all; at += stride) {
        struct copy copy = {0};
        faulty_vfs =
            (struct faulty_vfs){.fault = fault, .at = at, .for_ever = at / stride % 2 == 0};
        run_to_the_end(&copy);
        check(what);
    }
}

static void copy_with_each_call_failing_holds_each_row_once(void **state)
{
    (void)state;
    with_each_call_failing(FAULTY_VFS_ERROR, "an error");
}

static void copy_with_a_full_disk_at_each_call_holds_each_row_once(void **state)
{
    (void)state;
    with_each_call_failing(FAULTY_VFS_FULL, "a full disk");
}

/* What was acknowledged is lost with the process: everything comes again, but for changes that the
 * sink says it holds. */
static void copy_killed_at_each_call_holds_each_row_once(void **state)
{
    (void)state;
    assert_true(calls_of_all > 50);
    for (int64_t at = 1; at <= calls_of_all; at += stride) {
        struct copy copy = {0};
        int killed = 0;
        faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_KILL, .at = at};
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct tide_error err = {0};
            _exit(run_once(&copy, &err) == TIDE_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &killed, 0), child);
        assert_true(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
        faulty_vfs.fault = FAULTY_VFS_NONE;
        copy.was_opened =
            kit_exists(PATH) && number_of(PATH, "SELECT COUNT(*) FROM sqlite_schema WHERE name = "
                                                "'tidemark_held'") > 0;
        run_to_the_end(&copy);
        check("a kill");
    }
}

/* Two processes beside the test, which come on when they are told and say when they have. */
struct beside {
    pid_t pid;
    int tell; /* a byte into it lets it come on */
    int said; /* a byte out of it says that it has */
};

static void come_on(struct beside *beside)
{
    char byte = 0;
    assert_int_equal(write(beside->tell, "", 1), 1);
    assert_int_equal(read(beside->said, &byte, 1), 1);
}

static bool wait_for_word(int fd)
{
    char byte = 0;
    return read(fd, &byte, 1) == 1;
}

static struct beside start_beside(void (*run)(int told, int say))
{
    int down[2];
    int up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(down[1]); /* so that the end of the test is the end of its word */
        (void)close(up[0]);
        run(down[0], up[1]);
        _exit(0);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    return (struct beside){.pid = pid, .tell = down[1], .said = up[0]};
}

static void end_beside(struct beside *beside)
{
    (void)kill(beside->pid, SIGKILL);
    assert_int_equal(waitpid(beside->pid, NULL, 0), beside->pid);
    (void)close(beside->tell);
    (void)close(beside->said);
}

static void write_and_die(int told, int say)
{
    struct tide_error ignored;
    if (!wait_for_word(told)) {
        return;
    }
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    (void)!write(say, "", 1);
    if (wait_for_word(told)) {
        kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 1));
        faulty_vfs.fault = FAULTY_VFS_KILL_AT_SYNC;
        (void)ops->flush(sink, false, &ignored);
    }
}

static void read_and_stay(int told, int say)
{
    struct tide_archive *archive = NULL;
    struct tide_error ignored;
    if (wait_for_word(told) &&
        tide_archive_open(PATH, TIDE_ARCHIVE_READ, &archive, &ignored) == TIDE_OK) {
        (void)!write(say, "", 1);
        (void)wait_for_word(told);
    }
}

static struct beside reader;

static void end_reader(void)
{
    faulty_vfs.on_writer = NULL;
    end_beside(&reader);
}

/*
 * The kill leaves a transaction in the log of which the log's index knows nothing, and a reader
 * keeps that index. It leaves when the sink has looked and is about to write: then the log is read
 * anew, with the transaction.
 */
static void open_after_a_kill_goes_on_behind_all_of_the_log(void **state)
{
    (void)state;
    struct tide_sink_held held;
    faulty_vfs = (struct faulty_vfs){0};
    struct beside writer = start_beside(write_and_die);
    reader = start_beside(read_and_stay);
    come_on(&writer);
    come_on(&reader);
    assert_int_equal(write(writer.tell, "", 1), 1);
    assert_false(wait_for_word(writer.said)); /* it is dead */
    end_beside(&writer);
    faulty_vfs.on_writer = end_reader;
    struct tide_sink *sink = open_resumed(PATH);
    assert_null(faulty_vfs.on_writer);
    ops->held(sink, &held);
    if (held.place.position.lo < 10) {
        kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 1));
        kit_flush(ops, sink);
    }
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\nchange at 9.0 key 900 values 900,name 900,null\n"
                      "change at 10.0 key 1000 values 1000,name 1000,null\n");
}

static int set_up(void **state)
{
    (void)state;
    faulty_vfs_install();
    stride = soak_rounds(3, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tide_buf_done(&wanted);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(copy_without_faults_is_what_is_wanted),
        TEST(copy_with_each_call_failing_holds_each_row_once),
        TEST(copy_with_a_full_disk_at_each_call_holds_each_row_once),
        TEST(copy_killed_at_each_call_holds_each_row_once),
        TEST(open_after_a_kill_goes_on_behind_all_of_the_log),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
