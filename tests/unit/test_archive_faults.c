/*
 * The same history of an archive with each call that changes a file failing, or killing, in turn.
 * What a step gives is known from a run without faults, so that after any fault the archive must
 * hold what it held before the step that was hit, or after it.
 */
#include "archive_kit.h"

#include "archive/container.h"
#include "faulty_vfs.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static tide_status step_write(void)
{
    struct tide_archive_series_state found;
    tide_archive_series_state(kit_series(&kit, "s"), &found);
    int64_t first = found.has_newest ? found.newest_ts + 1 : 1;
    return kit_write(&kit, "s", first, first + 19);
}

static tide_status step_seal(void)
{
    return kit_seal(&kit, "s");
}

static tide_status step_forget(void)
{
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = 30};
    struct tide_archive_retained retained;
    return tide_archive_writer_retain(kit.writer, &retention, &retained, &kit.err);
}

static tide_status step_compact(void)
{
    int64_t merged = 0;
    return kit_compact(&kit, "s", 1000, &merged);
}

static tide_status step_finalize(void)
{
    return tide_archive_finalize_source(kit.writer, kit.source, 1000, 0, &kit.err);
}

static tide_status step_held(void)
{
    struct tide_archive_held held = {kit.source, TIDE_STR("place"), TIDE_STR("x")};
    struct tide_archive_tick tick = {.held = &held, .held_count = 1};
    return tide_archive_write(kit.writer, &tick, &kit.err);
}

static tide_status (*const steps[])(void) = {
    step_write, step_seal,  step_write,   step_held,  step_write,
    step_seal,  step_write, step_seal,    step_write, step_forget,
    step_seal,  step_write, step_compact, step_write, step_finalize,
};
#define STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

static char contents[STEPS + 1][64]; /* after so many steps, without faults */
static int64_t calls_of_all;

static void take_contents(int after)
{
    struct faulty_vfs kept = faulty_vfs;
    faulty_vfs.fault = FAULTY_VFS_NONE;
    (void)snprintf(contents[after], sizeof(contents[after]), "%s", kit_times(&kit, "s"));
    faulty_vfs = kept;
}

static int run_without_faults(void **state)
{
    (void)state;
    faulty_vfs_install();
    kit_setup(&kit);
    faulty_vfs.calls = 0;
    for (int i = 0; i < STEPS; i++) {
        kit_ok(&kit, steps[i]());
        take_contents(i + 1);
    }
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    calls_of_all = faulty_vfs.calls;
    kit_teardown(&kit);
    return 0;
}

static void assert_holds(int steps_done, bool may_be_one_more)
{
    struct faulty_vfs kept = faulty_vfs;
    faulty_vfs.fault = FAULTY_VFS_NONE;
    const char *found = kit_times(&kit, "s");
    if (strcmp(found, contents[steps_done]) != 0 &&
        !(may_be_one_more && steps_done < STEPS && strcmp(found, contents[steps_done + 1]) == 0)) {
        fail_msg("call %" PRId64 ", %d steps: holds %s instead of %s", kept.at, steps_done, found,
                 contents[steps_done]);
    }
    faulty_vfs = kept;
}

static void run_with_error(enum faulty_vfs_fault fault, int64_t at, bool for_ever)
{
    kit_setup(&kit);
    faulty_vfs = (struct faulty_vfs){.fault = fault, .at = at, .for_ever = for_ever};
    for (int i = 0; i < STEPS; i++) {
        tide_status status = steps[i]();
        if (status == TIDE_OK) {
            continue;
        }
        assert_int_equal(status, TIDE_IO);
        assert_true(kit.err.retriable);
        assert_holds(i, false); /* nothing of it has been written */
        faulty_vfs.fault = FAULTY_VFS_NONE;
        kit_ok(&kit, steps[i]()); /* and the same call may be made again */
    }
    faulty_vfs.fault = FAULTY_VFS_NONE;
    assert_holds(STEPS, false);
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_holds(STEPS, false);
    assert_int_equal(kit_verify(&kit), 0);
    kit_teardown(&kit);
}

static void run_all_with(enum faulty_vfs_fault fault, bool for_ever)
{
    assert_true(calls_of_all > 30);
    int64_t hits = 0;
    for (int64_t at = 1; at <= calls_of_all; at++) {
        run_with_error(fault, at, for_ever);
        hits += faulty_vfs.hits;
    }
    assert_true(hits >= calls_of_all / 2);
}

static void a_call_that_fails_once_loses_nothing(void **state)
{
    (void)state;
    run_all_with(FAULTY_VFS_ERROR, false);
}

static void a_disk_that_fails_for_a_while_loses_nothing(void **state)
{
    (void)state;
    run_all_with(FAULTY_VFS_ERROR, true);
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    run_all_with(FAULTY_VFS_FULL, true);
}

static void run_in_child(int64_t at, volatile int *ret_done)
{
    faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_KILL, .at = at};
    for (int i = 0; i < STEPS; i++) {
        if (steps[i]() != TIDE_OK) {
            _exit(1);
        }
        *ret_done = i + 1;
    }
    tide_archive_writer_close(kit.writer);
    _exit(0);
}

/* The child gets the archive without connections: they do not survive a fork. */
static void run_killed(int64_t at, volatile int *done)
{
    int status = 0;
    faulty_vfs.fault = FAULTY_VFS_NONE;
    kit_setup(&kit);
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    *done = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kit_reopen(&kit);
        run_in_child(at, done);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_holds(*done, true);
    assert_int_equal(kit_verify(&kit), 0);
    kit_reopen(&kit); /* goes on with what is there, and mends it */
    assert_holds(*done, true);
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal WHERE EXISTS (SELECT 1 FROM "
                                      "segments WHERE last_ts >= ts)"),
                     0);
    kit_ok(&kit, step_write());
    kit_ok(&kit, step_seal());
    assert_int_equal(kit_verify(&kit), 0);
    kit_teardown(&kit);
}

static void a_kill_at_any_call_loses_and_doubles_nothing(void **state)
{
    (void)state;
    volatile int *done =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(done, MAP_FAILED);
    for (int64_t at = 1; at <= calls_of_all; at++) {
        run_killed(at, done);
    }
}

static void creation_that_fails_leaves_nothing(void **state)
{
    (void)state;
    char path[KIT_PATH_MAX + 8];
    char command[2 * KIT_PATH_MAX];
    kit_setup(&kit);
    (void)snprintf(path, sizeof(path), "%s/new.tide", kit.root);
    for (int64_t at = 1;; at++) {
        faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_ERROR, .at = at};
        tide_status status = tide_archive_create(path, &kit.err);
        int64_t hits = faulty_vfs.hits;
        faulty_vfs.fault = FAULTY_VFS_NONE;
        if (status == TIDE_OK) {
            assert_int_equal(unlink(path), 0);
        }
        (void)snprintf(command, sizeof(command), "test $(ls '%s' | wc -l) = 3", kit.root);
        assert_int_equal(system(command), 0); /* a.tide and its two files */
        if (hits == 0) {
            assert_true(at > 5);
            break;
        }
    }
    kit_teardown(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_once_loses_nothing),
        cmocka_unit_test(a_disk_that_fails_for_a_while_loses_nothing),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_kill_at_any_call_loses_and_doubles_nothing),
        cmocka_unit_test(creation_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, run_without_faults, NULL);
}
