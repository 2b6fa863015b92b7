/*
 * A file sink that dies at every step. The program is linked with --wrap for the calls that change
 * files: a child process runs a fixed copy and is killed before, or halfway through, call number
 * 1, 2, 3 … In half of the runs the power goes too: what was not synced is then lost in part, by
 * sectors, at random. Opened again, the sink must hold all that it had acknowledged, show no half
 * frame, and go on to the same files as a run without a crash.
 */
#include "cmocka_prelude.h"

#include "sink/file/file_sink.h"
#include "sink_kit.h"
#include "wrapped_io.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUPS 6

static const struct tide_sink_ops *const ops = &tide_file_sink_ops;

/* What the child tells before it dies. */
struct told {
    _Atomic int opened;
    _Atomic uint64_t acked; /* groups */
};

static struct told *told;

static tide_status write_and_drop(struct tide_sink *sink, struct tide_batch *batch,
                                  struct tide_error *err)
{
    tide_status status = ops->write_batch(sink, batch, 0, err);
    tide_batch_unref(batch);
    return status;
}

/* Group number `group` of the copy: a part of a snapshot, then changes up to position `group`. */
static tide_status write_group(struct tide_sink *sink, uint64_t group, struct tide_error *err)
{
    const struct tide_relation *t = kit_relation("t");
    size_t many = group == 4 ? 1500 : 2; /* more than a buffer */
    TIDE_TRY(
        write_and_drop(sink,
                       kit_rows((struct kit_part){
                           .relation = t,
                           .snapshot = 1,
                           .opening = group % GROUPS == 1 ? TIDE_OPENING_BEGIN : TIDE_OPENING_NONE,
                           .first_seq = 3 * (group - 1),
                           .rows = 3,
                           .is_end = group % GROUPS == 0}),
                       err));
    if (group > 2) { /* a table that comes later */
        TIDE_TRY(write_and_drop(sink, kit_changes(kit_relation("other"), group, 1), err));
    }
    TIDE_TRY(write_and_drop(sink, kit_changes(t, group, many), err));
    return ops->flush(sink, true, err);
}

static uint64_t held_groups(struct tide_sink *sink)
{
    struct tide_sink_held held;
    ops->held(sink, &held);
    return held.place.known ? held.place.position.lo : 0;
}

/* What is there before the copy, and what is to become of it. */
struct scenario {
    const char *place; /* of the copy that dies */
    const char *golden_place;
    enum tide_sink_existing existing;
    void (*prepare)(const char *place); /* NULL: nothing is there */
    const char *files[2];               /* behind either place */
};

/* Opens and goes on to group `last`, telling what it does; -1 with a message when it fails. */
static int run_copy(const char *place, enum tide_sink_existing existing, bool is_resumed,
                    uint64_t last)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = kit_options(place);
    options.is_resumed = is_resumed;
    options.existing = existing;
    tide_status status = ops->open(&options, &sink, &err);
    told->opened |= status == TIDE_OK;
    for (uint64_t group = status == TIDE_OK ? held_groups(sink) + 1 : 0;
         status == TIDE_OK && group <= last; group++) {
        status = write_group(sink, group, &err);
        if (status == TIDE_OK) {
            told->acked = group;
        }
    }
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s: %s\n", place, err.message);
    }
    ops->close(sink);
    return status == TIDE_OK ? 0 : -1;
}

/* The files of a run without a crash, and their lengths after each group; 0: only opened. */
struct golden {
    size_t lengths[GROUPS + 1][2];
    char *bytes[2];
};

static char *read_file(const char *place, const char *file, size_t *ret_len)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s%s", place, file);
    *ret_len = 0;
    return kit_read(path, ret_len);
}

static void make_golden(const struct scenario *scenario, struct golden *golden)
{
    if (scenario->prepare != NULL) {
        scenario->prepare(scenario->golden_place);
    }
    for (uint64_t group = 0; group <= GROUPS; group++) {
        assert_int_equal(run_copy(scenario->golden_place, scenario->existing, group > 0, group), 0);
        for (size_t i = 0; i < 2 && scenario->files[i] != NULL; i++) {
            free(golden->bytes[i]);
            golden->bytes[i] =
                read_file(scenario->golden_place, scenario->files[i], &golden->lengths[group][i]);
        }
    }
}

static void expect_groups(const struct scenario *scenario, const struct golden *golden,
                          uint64_t groups)
{
    for (size_t i = 0; i < 2 && scenario->files[i] != NULL; i++) {
        size_t len = 0;
        char *bytes = read_file(scenario->place, scenario->files[i], &len);
        assert_int_equal(len, golden->lengths[groups][i]);
        if (len > 0) {
            assert_memory_equal(bytes, golden->bytes[i], len);
        }
        free(bytes);
    }
}

static void remove_copy(const char *place)
{
    char record[128];
    (void)snprintf(record, sizeof(record), ".%s.tidemark", place);
    kit_remove(place);
    if (strchr(place, '/') == NULL) {
        kit_remove(record);
    }
}

/* True when the child died at its call number `step`; false when it came to the end. */
static bool run_and_die(const struct scenario *scenario, const struct wrapped_plan *plan)
{
    *told = (struct told){0};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        wrapped_io_arm(plan);
        _exit(run_copy(scenario->place, scenario->existing, false, GROUPS) == 0 ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return true;
}

static void recover(const struct scenario *scenario, const struct golden *golden)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = kit_options(scenario->place);
    options.is_resumed = told->opened != 0;
    options.existing = scenario->existing;
    if (ops->open(&options, &sink, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    uint64_t groups = held_groups(sink);
    ops->close(sink);
    assert_true(groups >= told->acked && groups <= told->acked + 1);
    expect_groups(scenario, golden, groups);
    assert_int_equal(run_copy(scenario->place, scenario->existing, true, GROUPS), 0);
    expect_groups(scenario, golden, GROUPS);
}

/* Returns the number of steps. */
static unsigned die_at_every_step(const struct scenario *scenario, const struct golden *golden,
                                  uint64_t seed)
{
    for (unsigned step = 1;; step++) {
        struct wrapped_plan plan = {
            .die_at = step, .cuts_power = seed > 0, .seed = seed * 100003 + step};
        if (scenario->prepare != NULL) {
            scenario->prepare(scenario->place);
        }
        bool has_died = run_and_die(scenario, &plan);
        if (has_died) {
            recover(scenario, golden);
        }
        expect_groups(scenario, golden, GROUPS);
        remove_copy(scenario->place);
        if (!has_died) {
            return step;
        }
    }
}

/* Seed 0 kills only; the others cut the power. */
static void expect_survival(const struct scenario *scenario)
{
    struct golden golden = {0};
    make_golden(scenario, &golden);
    assert_true(golden.lengths[GROUPS][0] > 256 * 1024);
    for (uint64_t seed = 0; seed < 4; seed++) {
        assert_true(die_at_every_step(scenario, &golden, seed) > 20);
    }
    free(golden.bytes[0]);
    free(golden.bytes[1]);
}

static void one_file_dies_at_every_step_and_goes_on(void **state)
{
    (void)state;
    expect_survival(&(struct scenario){.place = "copy", .golden_place = "golden", .files = {""}});
}

static void directory_dies_at_every_step_and_goes_on(void **state)
{
    (void)state;
    expect_survival(&(struct scenario){.place = "copy/",
                                       .golden_place = "golden/",
                                       .files = {"shop.t.ndjson", "shop.other.ndjson"}});
}

static void put_open_line(const char *place)
{
    kit_put(place, "mine", 4);
}

static void append_dies_at_every_step_and_goes_on(void **state)
{
    (void)state;
    expect_survival(&(struct scenario){.place = "copy",
                                       .golden_place = "golden",
                                       .existing = TIDE_EXISTING_APPEND,
                                       .prepare = put_open_line,
                                       .files = {""}});
}

/* A copy of another pipeline, whose last frames are not held. */
static void put_other_copy(const char *place)
{
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options(place);
    options.pipeline = TIDE_STR("another");
    options.existing = TIDE_EXISTING_OVERWRITE;
    struct tide_sink *sink = kit_open(ops, &options);
    assert_int_equal(write_group(sink, 1, &err), TIDE_OK);
    assert_int_equal(write_group(sink, 5, &err), TIDE_OK);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 6, 3000));
    ops->close(sink);
}

static void overwrite_dies_at_every_step_and_goes_on(void **state)
{
    (void)state;
    expect_survival(&(struct scenario){.place = "copy",
                                       .golden_place = "golden",
                                       .existing = TIDE_EXISTING_OVERWRITE,
                                       .prepare = put_other_copy,
                                       .files = {""}});
}

static void overwritten_directory_dies_at_every_step_and_goes_on(void **state)
{
    (void)state;
    expect_survival(&(struct scenario){.place = "copy/",
                                       .golden_place = "golden/",
                                       .existing = TIDE_EXISTING_OVERWRITE,
                                       .prepare = put_other_copy,
                                       .files = {"shop.t.ndjson", "shop.other.ndjson"}});
}

static uint64_t held_in(const char *place)
{
    struct tide_sink_options options = kit_options(place);
    options.is_resumed = true;
    struct tide_sink *sink = kit_open(ops, &options);
    uint64_t groups = held_groups(sink);
    ops->close(sink);
    return groups;
}

/* A copy that is killed at moments of the clock, and goes on each time. On a busy machine a round
 * may bring nothing: rounds go on, longer and longer, until there is something to lose. */
static void copy_killed_twenty_times_and_more_loses_and_repeats_nothing(void **state)
{
    (void)state;
    unsigned seed = 7;
    *told = (struct told){0};
    for (unsigned round = 0; round < 20 || told->acked <= 20; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(run_copy("copy", TIDE_EXISTING_REFUSE, told->opened != 0, UINT64_MAX) == 0 ? 0
                                                                                             : 3);
        }
        useconds_t longest_us = 15000 * (1 + round / 20);
        (void)usleep(500 + (useconds_t)rand_r(&seed) % longest_us);
        assert_int_equal(kill(child, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    /* one more in each round may be held than was told of: several, when rounds are that short */
    uint64_t held = held_in("copy");
    assert_true(held >= told->acked);
    assert_int_equal(run_copy("copy", TIDE_EXISTING_REFUSE, true, held + 2), 0);
    assert_int_equal(told->acked, held + 2);
    assert_int_equal(run_copy("golden", TIDE_EXISTING_REFUSE, false, held + 2), 0);
    size_t len = 0;
    char *want = kit_read("golden", &len);
    assert_non_null(want);
    kit_assert_file("copy", want);
    free(want);
}

static int share_memory(void **state)
{
    (void)state;
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told == MAP_FAILED ? -1 : 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_file_dies_at_every_step_and_goes_on),
        TEST(directory_dies_at_every_step_and_goes_on),
        TEST(append_dies_at_every_step_and_goes_on),
        TEST(overwrite_dies_at_every_step_and_goes_on),
        TEST(overwritten_directory_dies_at_every_step_and_goes_on),
        TEST(copy_killed_twenty_times_and_more_loses_and_repeats_nothing),
    };
    return cmocka_run_group_tests(tests, share_memory, NULL);
}
