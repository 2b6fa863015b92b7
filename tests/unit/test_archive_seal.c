/* Sealing, and reading what has been sealed. */
#include "archive_kit.h"

#include "archive/container.h"
#include "archive/scan.h"
#include "archive/tail.h"
#include "archive/verify.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void seal_moves_rows_into_a_segment(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal"), 0);
    assert_string_equal(kit_text(&kit, "SELECT stream || seq || ' ' || rows || ' ' || first_ts ||"
                                       " ' ' || last_ts || ' ' || caller_index FROM segments"),
                        "s0 10 1 10 10");
    assert_string_equal(kit_times(&kit, "s"), "1-10");
    kit_ok(&kit, kit_seal(&kit, "s")); /* nothing is left */
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM segments"), 1);
    /* The clock, once, as of the row at the segment's end. */
    assert_string_equal(
        kit_text(&kit, "SELECT COUNT(*) || ' ' || ts || ' ' || offset_ns FROM clock_offsets"),
        "1 10 1003");
}

static void seal_at_and_below_zero_loses_nothing(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", -10, 0));
    assert_string_equal(kit_times(&kit, "s"), "-10-0");
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_times(&kit, "s"), "-10-0");
    kit_ok(&kit, kit_write(&kit, "s", 1, 2));
    assert_string_equal(kit_times(&kit, "s"), "-10-2");
    kit_ok(&kit, kit_write(&kit, "least", INT64_MIN, INT64_MIN));
    kit_ok(&kit, kit_seal(&kit, "least"));
    kit_ok(&kit, kit_write(&kit, "least", INT64_MIN + 1, INT64_MIN + 1));
    kit_reopen(&kit);
    assert_string_equal(kit_times(&kit, "least"), "-9223372036854775808--9223372036854775807");
}

static void seal_at_the_end_of_time_leaves_no_live_row(void **state)
{
    (void)state;
    struct tide_archive_series_info info;
    struct tide_archive *archive = NULL;
    struct tide_archive_row row = {kit_series(&kit, "s"), INT64_MAX, 0,
                                   TIDE_STR("9223372036854775807")};
    struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_times(&kit, "s"), "9223372036854775807");
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_series_read(archive, kit.source, TIDE_STR("s"), &info, &kit.err));
    assert_int_equal(info.live_rows, 0);
    tide_archive_close(archive);
    assert_int_equal(kit_write(&kit, "s", 5, 5), TIDE_INVALID);
    assert_int_equal(kit_write(&kit, "t", 5, 5), TIDE_OK);
}

static void seal_takes_as_many_rows_as_a_segment_should_have(void **state)
{
    (void)state;
    struct tide_archive_series *series = kit_series(&kit, "s");
    struct tide_archive_seal_policy policy = {.rows_max = 4, .bytes_max = INT64_MAX};
    struct tide_archive_seal_counts counts;
    struct tide_archive_series_state found;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, tide_archive_seal(kit.writer, &series, 1, &policy, &counts, &kit.err));
    assert_int_equal(counts.rows, 4);
    policy = (struct tide_archive_seal_policy){.rows_max = INT64_MAX, .bytes_max = 3};
    kit_ok(&kit, tide_archive_seal(kit.writer, &series, 1, &policy, &counts, &kit.err));
    assert_int_equal(counts.rows, 3);
    tide_archive_series_state(series, &found);
    assert_int_equal(found.sealed_to, 7);
    assert_int_equal(found.live_rows, 3);
    assert_int_equal(found.live_bytes, 4);
    assert_int_equal(found.oldest_live_ts, 8);
    assert_string_equal(kit_times(&kit, "s"), "1-10");
    assert_string_equal(kit_text(&kit, "SELECT group_concat(ts) FROM wal"), "8,9,10");
}

static void seal_keeps_live_what_the_encoder_left_at_the_end(void **state)
{
    (void)state;
    kit.fault.rows_max = 6;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_number(&kit, "SELECT last_ts FROM segments"), 6);
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal"), 4);
    assert_string_equal(kit_times(&kit, "s"), "1-10");
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_times(&kit, "s"), "1-10");
}

static void seal_of_a_segment_that_lacks_rows_is_refused(void **state)
{
    (void)state;
    static const struct plain_encoder_fault faults[] = {{.does_skip_first = true},
                                                        {.does_skip_middle = true},
                                                        {.does_overstate = true},
                                                        {.does_misdate = true},
                                                        {.does_fail = true}};
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        kit.fault = faults[i];
        assert_int_equal(kit_seal(&kit, "s"), TIDE_INVALID);
        assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM segments"), 0);
        assert_string_equal(kit_times(&kit, "s"), "1-10");
    }
    kit.fault = (struct plain_encoder_fault){.does_take_none = true};
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_times(&kit, "s"), "1-10");
    kit.fault = (struct plain_encoder_fault){0};
    kit_ok(&kit, kit_seal(&kit, "s")); /* the writer lives on */
    assert_string_equal(kit_times(&kit, "s"), "1-10");
}

static void seal_of_several_is_one_transaction_with_one_clock(void **state)
{
    (void)state;
    struct tide_archive_seal_counts counts;
    kit_ok(&kit, kit_write(&kit, "a", 1, 20));
    kit_ok(&kit, kit_write(&kit, "b", 1, 30));
    kit_ok(&kit, kit_write(&kit, "c", 1, 30));
    struct tide_archive_row odd = {kit_series(&kit, "c"), 31, 5, TIDE_STR("31")};
    struct tide_archive_row even = {kit_series(&kit, "b"), 31, 6, TIDE_STR("31")};
    struct tide_archive_tick tick = {.rows = &odd, .row_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    tick.rows = &even;
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    struct tide_archive_series *all[] = {kit_series(&kit, "c"), kit_series(&kit, "b"),
                                         kit_series(&kit, "a"), kit_series(&kit, "none")};
    kit_ok(&kit, tide_archive_seal(kit.writer, all, 4, NULL, &counts, &kit.err));
    assert_int_equal(counts.segments, 3);
    assert_int_equal(counts.rows, 20 + 31 + 31);
    /* The newest end, and of two the series that comes later. */
    assert_string_equal(kit_text(&kit, "SELECT group_concat(ts || ' ' || offset_ns) FROM "
                                       "clock_offsets"),
                        "31 6");
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM segments WHERE stream = 'none'"), 0);
    all[1] = all[0];
    assert_int_equal(tide_archive_seal(kit.writer, all, 2, NULL, &counts, &kit.err), TIDE_INVALID);
}

static void seal_after_reopening_goes_on_counting(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    kit_reopen(&kit);
    struct tide_archive_series_state found;
    tide_archive_series_state(kit_series(&kit, "s"), &found);
    assert_true(found.is_sealed && found.has_newest);
    assert_int_equal(found.sealed_to, 3);
    assert_int_equal(found.newest_ts, 6);
    assert_int_equal(found.next_seq, 1);
    assert_int_equal(found.live_rows, 3);
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_text(&kit, "SELECT group_concat(seq) FROM segments"), "0,1");
    assert_string_equal(kit_times(&kit, "s"), "1-6");
}

static void shadowed_rows_are_neither_read_nor_kept(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_arena arena = {0};
    struct tide_archive_findings found;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 4, 5));
    kit_shadow_rows();
    assert_string_equal(kit_times(&kit, "s"), "1-5");
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_verify(archive, false, &arena, &found, &kit.err));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.harmful, 0);
    assert_true(found.items[0].is_harmless);
    struct tide_archive_series_info info;
    kit_ok(&kit, tide_archive_series_read(archive, kit.source, TIDE_STR("s"), &info, &kit.err));
    assert_int_equal(info.live_rows, 2);
    tide_archive_close(archive);
    tide_arena_done(&arena);
    kit_reopen(&kit);
    assert_string_equal(kit_text(&kit, "SELECT group_concat(ts) FROM wal"), "4,5");
}

static tide_status count_one(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    (void)ts;
    (void)bytes;
    (void)err;
    (*(size_t *)context)++;
    return TIDE_OK;
}

static size_t count_row(struct tide_archive *archive, int64_t start, int64_t end)
{
    size_t count = 0;
    struct tide_archive_range range = {kit.source, TIDE_STR("s"), start, end};
    struct tide_archive_row_taker taker = {count_one, &count};
    kit_ok(&kit, tide_archive_rows_read(archive, &range, &kit.encoder, &taker, &kit.err));
    return count;
}

static void scan_of_a_range_gives_its_rows_alone(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    for (int64_t i = 0; i < 4; i++) {
        kit_ok(&kit, kit_write(&kit, "s", i * 10 + 1, i * 10 + 10));
        if (i < 3) {
            kit_ok(&kit, kit_seal(&kit, "s"));
        }
    }
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    for (int64_t start = -1; start <= 42; start++) {
        for (int64_t end = -1; end <= 42; end++) {
            int64_t from = start < 1 ? 1 : start;
            int64_t to = end > 40 ? 40 : end;
            size_t want = to < from ? 0 : (size_t)(to - from + 1);
            assert_int_equal(count_row(archive, start, end), want);
        }
    }
    tide_archive_close(archive);
}

static void scan_gives_long_live_tails_in_parts(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_archive_scan *scan = NULL;
    struct tide_archive_part part;
    struct tide_archive_range range = {kit.source, TIDE_STR("s"), INT64_MIN, INT64_MAX};
    kit_ok(&kit, kit_write(&kit, "s", 1, 2500));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_scan_open(archive, &range, &scan, &kit.err));
    size_t count = 0;
    unsigned parts = 0;
    while (tide_archive_scan_next(scan, &part, &kit.err) == TIDE_OK) {
        assert_true(part.is_live);
        count += part.row_count;
        parts++;
    }
    assert_int_equal(tide_archive_scan_next(scan, &part, &kit.err), TIDE_END);
    assert_int_equal(count, 2500);
    assert_int_equal(parts, 3);
    tide_archive_scan_close(scan);
    assert_int_equal(count_row(archive, INT64_MIN, INT64_MAX), 2500);
    tide_archive_close(archive);
}

static void scan_of_a_segment_that_lies_is_corrupt(void **state)
{
    (void)state;
    static const char *const lies[] = {
        "UPDATE segments SET rows = 4",
        "UPDATE segments SET first_ts = 2",
        "UPDATE segments SET last_ts = 2",
        "UPDATE segments SET bytes = x''",
        "UPDATE segments SET bytes = substr(bytes, 1, 20)",
        "UPDATE segments SET rows = 'many'",
        "UPDATE segments SET rows = -1",
        "UPDATE segments SET bytes = bytes || substr(bytes, 6)",
    };
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "CREATE TABLE kept AS SELECT * FROM segments");
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct tide_archive *archive = NULL;
        size_t count = 0;
        struct tide_archive_range range = {kit.source, TIDE_STR("s"), INT64_MIN, INT64_MAX};
        struct tide_archive_row_taker taker = {count_one, &count};
        kit_change(&kit, lies[i]);
        kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
        assert_int_equal(tide_archive_rows_read(archive, &range, &kit.encoder, &taker, &kit.err),
                         TIDE_CORRUPT);
        tide_archive_close(archive);
        kit_change(&kit, "DELETE FROM segments; INSERT INTO segments SELECT * FROM kept");
    }
    assert_string_equal(kit_times(&kit, "s"), "1-3");
}

/* Segments come one after the other, whatever the archive has of them. */
static void scan_holds_one_segment_at_a_time(void **state)
{
    (void)state;

    enum {
        COUNT = 24,
        SIZE = 1024 * 1024
    };
    struct tide_archive *archive = NULL;
    struct tide_archive_scan *scan = NULL;
    struct tide_archive_part part;
    char *bytes = calloc(1, SIZE);
    assert_non_null(bytes);
    for (int64_t i = 1; i <= COUNT; i++) {
        struct tide_archive_row row = {kit_series(&kit, "s"), i, 0, tide_str_of(bytes, SIZE)};
        struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
        kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
        kit_ok(&kit, kit_seal(&kit, "s"));
    }
    const struct tide_archive_range range = {kit.source, TIDE_STR("s"), 0, INT64_MAX};
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_set_cache(archive, 256, &kit.err));
    int64_t before = sqlite3_memory_used();
    (void)sqlite3_memory_highwater(1);
    kit_ok(&kit, tide_archive_scan_open(archive, &range, &scan, &kit.err));
    for (int i = 0; i < COUNT; i++) {
        kit_ok(&kit, tide_archive_scan_next(scan, &part, &kit.err));
    }
    assert_true(sqlite3_memory_highwater(0) - before < (int64_t)6 * SIZE);
    tide_archive_scan_close(scan);
    tide_archive_close(archive);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(seal_moves_rows_into_a_segment, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_at_and_below_zero_loses_nothing, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_at_the_end_of_time_leaves_no_live_row, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_takes_as_many_rows_as_a_segment_should_have,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_keeps_live_what_the_encoder_left_at_the_end,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_of_a_segment_that_lacks_rows_is_refused,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_of_several_is_one_transaction_with_one_clock,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(seal_after_reopening_goes_on_counting, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(shadowed_rows_are_neither_read_nor_kept, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(scan_of_a_range_gives_its_rows_alone, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(scan_gives_long_live_tails_in_parts, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(scan_of_a_segment_that_lies_is_corrupt, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(scan_holds_one_segment_at_a_time, kit_setup_test,
                                        kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
