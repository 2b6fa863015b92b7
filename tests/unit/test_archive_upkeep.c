/* An archive kept in order beside its sink: forgetting, joining, giving room back. */
#include "archive_sink_kit.h"

#include "base/clock.h"
#include "sink/archive/archive_sink.h"
#include "sink/archive/archive_upkeep.h"
#include "sink_kit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH "a.tide"

static const struct tide_sink_ops *const ops = &tide_archive_sink_ops;

/* What the upkeep said, a line each. */
static struct tide_buf said;

static void say(tide_str name, const char *what)
{
    tide_buf_printf(&said, "%.*s: %s\n", TIDE_STR_ARG(name), what);
}

static int setup(void **state)
{
    said.len = 0;
    return kit_setup(state);
}

static int teardown(void **state)
{
    tide_buf_done(&said);
    said = (struct tide_buf){0};
    return kit_teardown(state);
}

static struct tide_sink_options options_of(int64_t retain_s)
{
    struct tide_sink_options options = kit_options(PATH);
    options.name = TIDE_STR("kept");
    options.say = say;
    options.segments.retain_us = retain_s * 1000000;
    options.segments.rows_max = 100;
    return options;
}

/* A writer with its upkeep, without its thread. */
struct work {
    struct tide_archive_target target;
    struct tide_archive_upkeep *upkeep;
    struct tide_error err;
};

static void work_open(struct work *work, const struct tide_sink_options *options)
{
    struct tide_sink_options resumed = *options;
    *work = (struct work){.target = {.place = {.lock_fd = -1}}};
    resumed.is_resumed = true;
    ok(tide_archive_target_open(&work->target, &resumed, &work->err), &work->err);
    work->upkeep = tide_archive_upkeep_new(&work->target, &resumed);
}

static void work_close(struct work *work)
{
    tide_archive_upkeep_free(work->upkeep);
    tide_archive_target_close(&work->target);
}

static void look(struct work *work, int64_t now_ns)
{
    ok(tide_archive_upkeep_look(work->upkeep, now_ns, &work->err), &work->err);
}

static struct tide_batch *copy_of(const char *table, unsigned snapshot)
{
    return kit_rows((struct kit_part){
        .relation = kit_relation(table),
        .snapshot = snapshot,
        .opening = TIDE_OPENING_BEGIN,
        .rows = 2,
        .is_end = true,
    });
}

/* Opens, writes what there is and ends in order, so that all is sealed. */
static void run_once(struct tide_batch *const *batches, size_t count, bool is_resumed)
{
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options(PATH);
    options.is_resumed = is_resumed;
    struct tide_sink *sink = kit_open(ops, &options);
    for (size_t i = 0; i < count; i++) {
        kit_write(ops, sink, batches[i]);
    }
    kit_flush(ops, sink);
    ok(ops->finish(sink, &err), &err);
    ops->close(sink);
}

/* Two copies of t with changes before and behind the second, which other segments hold; changes of
 * u alone. */
static void make_two_copies(void)
{
    const struct tide_relation *t = kit_relation("t");
    run_once((struct tide_batch *[]){copy_of("t", 1), kit_changes(t, 10, 3),
                                     kit_changes(kit_relation("u"), 11, 2)},
             3, false);
    run_once((struct tide_batch *[]){copy_of("t", 2), kit_changes(t, 30, 2)}, 2, true);
}

static int64_t oldest(const char *series)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "SELECT MIN(first_ts) FROM segments WHERE stream = '%s'",
                   series);
    return number_of(PATH, sql);
}

static void look_forgets_what_is_before_the_newest_copy_that_is_old_enough(void **state)
{
    (void)state;
    make_two_copies();
    int64_t second = number_of(PATH, "SELECT first_ts FROM segments WHERE stream = 'shop.t' AND "
                                     "seq = 1");
    int64_t end = number_of(PATH, "SELECT last_ts FROM segments WHERE stream = 'shop.t' AND "
                                  "seq = 1");
    int64_t first = oldest("shop.t");
    int64_t other = oldest("shop.u");
    int64_t age = INT64_C(3600) * 1000000000;
    struct tide_sink_options options = options_of(3600);
    struct work work;
    work_open(&work, &options);
    look(&work, first + age); /* nothing is as old */
    assert_int_equal(said.len, 0);
    look(&work, second + age); /* the second copy has not ended by then */
    assert_int_equal(oldest("shop.t"), first);
    look(&work, end + age);
    assert_int_equal(oldest("shop.t"), second);
    assert_int_equal(oldest("shop.u"), other);
    look(&work, end + 2 * age); /* again: nothing more, and nothing is said twice */
    assert_int_equal(oldest("shop.t"), second);
    assert_non_null(strstr(tide_buf_cstr(&said), "kept: forgot 1 segments and 0 live rows"));
    const char *left = strstr(said.ptr, "kept: nothing of shop.u is forgotten");
    assert_non_null(left);
    assert_null(strstr(strchr(left, '\n'), "shop.u"));
    /* What is left has its columns, and goes on. */
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM caller_rows WHERE stream = 'shop.t'"),
                     1);
    work_close(&work);
    run_once((struct tide_batch *[]){kit_changes(kit_relation("t"), 40, 1)}, 1, true);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf rows = {0};
    list_rows(PATH, &rows);
    assert_non_null(strstr(tide_buf_cstr(&rows), "1 shop.t\nbegin seq 0\n"));
}

/* Live rows too, where nothing has been sealed. */
static void look_forgets_live_rows(void **state)
{
    (void)state;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, copy_of("t", 1));
    kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 3));
    kit_write(ops, sink, copy_of("t", 2));
    kit_flush(ops, sink);
    ops->close(sink);
    int64_t rows = number_of(PATH, "SELECT COUNT(*) FROM wal");
    struct tide_sink_options options = options_of(1);
    struct work work;
    work_open(&work, &options);
    look(&work, tide_clock_utc_us() * 1000);
    work_close(&work);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM wal"), rows - 4 - 3);
}

static void make_small_segments(int count)
{
    run_once((struct tide_batch *[]){copy_of("t", 1)}, 1, false);
    for (int i = 1; i < count; i++) {
        run_once((struct tide_batch *[]){kit_changes(kit_relation("t"), (uint64_t)i, 2)}, 1, true);
    }
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), count);
}

static void look_joins_small_segments_when_they_are_many(void **state)
{
    (void)state;
    struct tide_sink_options options = options_of(0);
    struct work work;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf before = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf after = {0};
    make_small_segments(7);
    work_open(&work, &options);
    look(&work, 0);
    work_close(&work);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), 7);
    run_once((struct tide_batch *[]){kit_changes(kit_relation("t"), 50, 2)}, 1, true);
    list_rows(PATH, &before);
    work_open(&work, &options);
    look(&work, 0);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), 1);
    work_close(&work);
    list_rows(PATH, &after);
    assert_string_equal(tide_buf_cstr(&before), tide_buf_cstr(&after));
    run_once((struct tide_batch *[]){kit_changes(kit_relation("t"), 60, 2)}, 1, true);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), 2);
    assert_int_equal(said.len, 0);
}

static void look_joins_none_that_are_large_or_when_told_not_to(void **state)
{
    (void)state;
    struct work work;
    struct tide_sink_options options = options_of(0);
    make_small_segments(9);
    options.segments.leaves_small = true;
    work_open(&work, &options);
    look(&work, 0);
    work_close(&work);
    options.segments.leaves_small = false;
    options.segments.rows_max = 4; /* of which a quarter is one row */
    work_open(&work, &options);
    look(&work, 0);
    work_close(&work);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), 9);
}

static void look_at_another_file_changes_nothing(void **state)
{
    (void)state;
    struct tide_sink_options options = options_of(1);
    struct work work;
    make_two_copies();
    assert_int_equal(rename(PATH, "other.tide"), 0);
    make_two_copies();
    work_open(&work, &options);
    assert_int_equal(rename(PATH, "moved.tide"), 0);
    assert_int_equal(tide_archive_upkeep_look(work.upkeep, INT64_MAX, &work.err), TIDE_INVALID);
    assert_int_equal(rename("other.tide", PATH), 0);
    assert_int_equal(tide_archive_upkeep_look(work.upkeep, INT64_MAX, &work.err), TIDE_STALE);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments"), 3);
    assert_int_equal(number_of("moved.tide", "SELECT COUNT(*) FROM segments"), 3);
    work_close(&work);
}

/* It looks at rows, forgets and joins while the sink writes. */
static void thread_works_beside_the_sink(void **state)
{
    (void)state;
    const struct tide_relation *t = kit_relation("t");
    struct tide_sink_options options = options_of(1);
    make_small_segments(9);
    options.is_resumed = true;
    struct tide_sink *sink = kit_open(ops, &options);
    int64_t deadline_us = tide_clock_deadline_us(INT64_C(60000000));
    uint64_t position = 100;
    kit_write(ops, sink, copy_of("t", 2));
    for (; number_of(PATH, "SELECT COUNT(*) FROM segments WHERE rows < 5") > 8 &&
           tide_clock_monotonic_us() < deadline_us;
         position++) {
        kit_write(ops, sink, kit_changes(t, position, 1));
        kit_flush(ops, sink);
    }
    ops->close(sink);
    assert_true(number_of(PATH, "SELECT COUNT(*) FROM segments WHERE rows < 5") <= 8);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf rows = {0};
    list_rows(PATH, &rows);
    char last[64];
    (void)snprintf(last, sizeof(last), "change at %llu.0 ", (unsigned long long)position - 1);
    assert_non_null(strstr(tide_buf_cstr(&rows), last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            look_forgets_what_is_before_the_newest_copy_that_is_old_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(look_forgets_live_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(look_joins_small_segments_when_they_are_many, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(look_joins_none_that_are_large_or_when_told_not_to, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(look_at_another_file_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(thread_works_beside_the_sink, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
