/* Forgetting, joining and verifying. */
#include "archive_kit.h"

#include "archive/caller_rows.h"
#include "archive/compact.h"
#include "archive/container.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tide_status forget(int64_t cutoff, struct tide_archive_retained *ret_retained)
{
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = cutoff};
    return tide_archive_writer_retain(kit.writer, &retention, ret_retained, &kit.err);
}

static void note_at(const char *series, int64_t ts)
{
    struct tide_archive_note note = {kit_series(&kit, series), ts, TIDE_STR("note")};
    struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

static void retention_keeps_a_segment_across_the_cutoff_whole(void **state)
{
    (void)state;
    struct tide_archive_retained retained;
    for (int64_t i = 0; i < 4; i++) {
        kit_ok(&kit, kit_write(&kit, "s", i * 10 + 1, i * 10 + 10));
        if (i < 3) {
            kit_ok(&kit, kit_seal(&kit, "s"));
        }
        note_at("s", i * 10 + 1);
    }
    kit_ok(&kit, forget(15, &retained));
    assert_int_equal(retained.segments, 1);
    assert_int_equal(retained.wal_rows, 0);
    assert_int_equal(retained.live_rows, 0);
    assert_int_equal(retained.caller_rows, 2);
    assert_string_equal(kit_times(&kit, "s"), "11-40");
    assert_string_equal(kit_text(&kit, "SELECT group_concat(ts) FROM clock_offsets"), "20,30");
    kit_ok(&kit, forget(20, &retained)); /* a row at the cutoff stays */
    assert_int_equal(retained.segments, 0);
    kit_ok(&kit, forget(36, &retained));
    assert_int_equal(retained.segments, 2);
    assert_int_equal(retained.wal_rows, 5);
    assert_int_equal(retained.live_rows, 5); /* really lost: forgotten before it was sealed */
    assert_string_equal(kit_times(&kit, "s"), "36-40");
    struct tide_archive_series_state found;
    tide_archive_series_state(kit_series(&kit, "s"), &found);
    assert_int_equal(found.live_rows, 5);
    assert_int_equal(found.oldest_live_ts, 36);
    assert_int_equal(found.next_seq, 3);
    assert_int_equal(kit_verify(&kit), 0);
}

static void retention_does_not_bring_shadowed_rows_back(void **state)
{
    (void)state;
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = 4};
    struct tide_archive_retained retained;
    struct tide_archive *archive = NULL;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 5, 5));
    kit_shadow_rows();
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_EDIT, &archive, &kit.err));
    kit_ok(&kit, tide_archive_retain_in(archive, &retention, &retained, &kit.err));
    tide_archive_close(archive);
    assert_int_equal(retained.wal_rows, 2);
    assert_int_equal(retained.live_rows, 0);
    assert_string_equal(kit_times(&kit, "s"), "5");
}

static void retention_never_lets_rows_come_behind_what_was_there(void **state)
{
    (void)state;
    struct tide_archive_retained retained;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, forget(100, &retained));
    assert_string_equal(kit_times(&kit, "s"), "");
    assert_int_equal(kit_write(&kit, "s", 3, 3), TIDE_INVALID);
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_number(&kit, "SELECT seq FROM segments"), 1); /* a gap is normal */
    assert_string_equal(kit_times(&kit, "s"), "4-6");
}

/* As much as is worth it. */
/* Else a segment would span what a copy still has, and lack it. */
static void retention_lets_no_row_come_before_what_it_forgot(void **state)
{
    (void)state;
    struct tide_archive_retained retained;
    kit_ok(&kit, kit_write(&kit, "s", 11, 30));
    kit_ok(&kit, forget(21, &retained));
    assert_int_equal(retained.live_rows, 10);
    kit_fails(kit_write(&kit, "s", 5, 5), TIDE_INVALID, "is forgotten before 21");
    kit_ok(&kit, kit_write(&kit, "s", 31, 31));
    kit_ok(&kit, forget(1, &retained));
    kit_fails(kit_write(&kit, "s", 20, 20), TIDE_INVALID, "is forgotten before 21");
    assert_string_equal(kit_times(&kit, "s"), "21-31");
}

static void give_all_back(void)
{
    bool is_more = true;
    assert_true(kit_number(&kit, "PRAGMA freelist_count") > 0);
    while (is_more) {
        kit_ok(&kit, tide_archive_writer_give_back(kit.writer, 2, &is_more, &kit.err));
    }
    assert_true(kit_number(&kit, "PRAGMA freelist_count") * 10 <=
                kit_number(&kit, "PRAGMA page_count"));
}

static void retention_gives_space_back(void **state)
{
    (void)state;
    struct tide_archive_retained retained;
    for (int64_t i = 0; i < 4; i++) {
        kit_ok(&kit, kit_write(&kit, "s", i * 2000 + 1, i * 2000 + 2000));
        kit_ok(&kit, kit_seal(&kit, "s"));
    }
    int64_t pages = kit_number(&kit, "PRAGMA page_count");
    kit_ok(&kit, forget(8000, &retained));
    assert_int_equal(retained.segments, 3);
    give_all_back();
    assert_true(kit_number(&kit, "PRAGMA page_count") < pages);
    assert_string_equal(kit_times(&kit, "s"), "6001-8000");
}

static void assert_notes(struct tide_archive_caller_row *rows, size_t count, const char *want)
{
    char found[256] = "";
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(found);
        (void)snprintf(found + len, sizeof(found) - len, "%s%" PRId64 "%.*s", i == 0 ? "" : " ",
                       rows[i].ts, TIDE_STR_ARG(rows[i].bytes));
    }
    assert_string_equal(found, want);
}

static void caller_rows_come_by_time_then_as_they_were_written(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_arena arena = {0};
    struct tide_archive_caller_row *found = NULL;
    size_t count = 0;

    static const struct {
        int64_t ts;
        const char *text;
    } notes[] = {{20, "c"}, {10, "b"}, {INT64_MIN, "z"}, {10, "a"}, {30, "d"}};

    for (size_t i = 0; i < 5; i++) {
        struct tide_archive_note note = {kit_series(&kit, "s"), notes[i].ts,
                                         tide_str_from(notes[i].text)};
        struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
        kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    }
    note_at("t", 10);
    tide_str s = TIDE_STR("s");
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_caller_rows_read(archive, kit.source, s, INT64_MIN, INT64_MAX, &arena,
                                               &found, &count, &kit.err));
    assert_notes(found, count, "-9223372036854775808z 10b 10a 20c 30d");
    kit_ok(&kit, tide_archive_caller_rows_read(archive, kit.source, s, 10, 20, &arena, &found,
                                               &count, &kit.err));
    assert_notes(found, count, "10b 10a 20c");

    static const struct {
        int64_t first;
        int64_t last;
        const char *want;
    } in_force[] = {{15, 15, "10b 10a"},
                    {10, 19, "10b 10a"},
                    {15, 30, "10b 10a 20c 30d"},
                    {9, 9, "-9223372036854775808z"},
                    {99, 99, "30d"}};

    for (size_t i = 0; i < sizeof(in_force) / sizeof(in_force[0]); i++) {
        kit_ok(&kit, tide_archive_caller_rows_in_force(archive, kit.source, s, in_force[i].first,
                                                       in_force[i].last, &arena, &found, &count,
                                                       &kit.err));
        assert_notes(found, count, in_force[i].want);
    }
    kit_ok(&kit, tide_archive_caller_rows_in_force(archive, kit.source, TIDE_STR("t"), 9, 9, &arena,
                                                   &found, &count, &kit.err));
    assert_int_equal(count, 0);
    tide_archive_close(archive);
    tide_arena_done(&arena);
}

static bool is_not_kept(void *context, tide_str series)
{
    (void)context;
    return !tide_str_equal(series, TIDE_STR("kept"));
}

static int64_t keep_from(void *context, tide_str series, bool has_rows, int64_t oldest_ts)
{
    struct tide_archive_retained *calls = context; /* counts, in fields of its choice */
    calls->segments += has_rows;
    calls->wal_rows += has_rows ? oldest_ts : 0;
    return tide_str_equal(series, TIDE_STR("all")) ? INT64_MIN : 15;
}

static void retention_of_some_series_asks_for_the_floor_of_each(void **state)
{
    (void)state;
    static const char *const names[] = {"kept", "all", "some", "only notes"};
    struct tide_archive_retained calls = {0};
    struct tide_archive_retained retained;
    for (size_t i = 0; i < 4; i++) {
        if (i < 3) {
            kit_ok(&kit, kit_write(&kit, names[i], 1, 20));
            kit_ok(&kit, i == 0 ? kit_seal(&kit, "kept") : TIDE_OK);
            kit_ok(&kit, kit_write(&kit, names[i], 21, 30));
        }
        for (int64_t ts = 10; ts <= 30; ts += 10) {
            note_at(names[i], ts);
        }
    }
    kit_ok(&kit, kit_seal(&kit, "kept"));
    struct tide_archive_retention retention = {.source = kit.source,
                                               .cutoff_ts = 25,
                                               .is_removed = is_not_kept,
                                               .keep_from = keep_from,
                                               .context = &calls};
    kit_ok(&kit, tide_archive_writer_retain(kit.writer, &retention, &retained, &kit.err));
    assert_string_equal(kit_times(&kit, "kept"), "1-30");
    assert_string_equal(kit_times(&kit, "all"), "25-30");
    assert_string_equal(kit_times(&kit, "some"), "25-30");
    assert_int_equal(retained.live_rows, 48);
    assert_int_equal(retained.caller_rows, 2); /* before 15, of two series */
    assert_int_equal(calls.segments, 2);       /* asked after the rows have gone */
    assert_int_equal(calls.wal_rows, 50);
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM caller_rows"), 10);
    /* Offsets stay as long as the oldest row of the source needs them. */
    assert_string_equal(kit_text(&kit, "SELECT group_concat(ts) FROM clock_offsets"), "20,30");
}

static void compaction_joins_runs_up_to_the_target(void **state)
{
    (void)state;
    int64_t merged = 0;
    static const int64_t sizes[] = {10, 10, 10, 50, 5, 5, 60, 1};
    int64_t ts = 1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        kit_ok(&kit, kit_write(&kit, "s", ts, ts + sizes[i] - 1));
        kit_ok(&kit, kit_seal(&kit, "s"));
        ts += sizes[i];
    }
    kit_ok(&kit, kit_write(&kit, "s", ts, ts + 2));
    kit_ok(&kit, kit_compact(&kit, "s", 60, &merged));
    assert_string_equal(kit_text(&kit, "SELECT group_concat(seq || ':' || rows) FROM (SELECT * "
                                       "FROM segments ORDER BY seq)"),
                        "0:30,3:60,6:60,7:1");
    assert_int_equal(merged, 6);
    assert_int_equal(
        kit_number(&kit, "SELECT COUNT(*) FROM segments WHERE caller_index IS NOT NULL"), 2);
    assert_string_equal(kit_times(&kit, "s"), "1-154");
    assert_int_equal(kit_verify(&kit), 0);
    kit_ok(&kit, kit_write(&kit, "s", ts + 3, ts + 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_number(&kit, "SELECT MAX(seq) FROM segments"), 8);
    kit_ok(&kit, kit_compact(&kit, "none", 60, &merged));
    assert_int_equal(merged, 0);
}

static void compaction_gives_space_back(void **state)
{
    (void)state;
    int64_t merged = 0;
    for (int64_t i = 0; i < 4; i++) {
        kit_ok(&kit, kit_write(&kit, "s", i * 2000 + 1, i * 2000 + 2000));
        kit_ok(&kit, kit_seal(&kit, "s"));
    }
    kit_ok(&kit, kit_compact(&kit, "s", 8000, &merged));
    give_all_back();
    assert_int_equal(merged, 4);
    assert_string_equal(kit_times(&kit, "s"), "1-8000");
}

static void compaction_without_a_way_to_join_is_refused(void **state)
{
    (void)state;
    int64_t merged = 0;
    kit.encoder.merge = NULL;
    assert_int_equal(kit_compact(&kit, "s", 60, &merged), TIDE_INVALID);
}

static tide_status merge_badly(void *context, tide_str series,
                               const struct tide_archive_segment *segments, size_t count,
                               struct tide_archive_draft *ret_draft, struct tide_error *err)
{
    (void)context;
    (void)series;
    (void)err;
    tide_buf_append_str(&ret_draft->bytes, segments[0].bytes);
    ret_draft->rows = segments[0].rows;
    ret_draft->first_ts = segments[0].first_ts;
    ret_draft->last_ts = segments[count - 1].last_ts;
    return TIDE_OK;
}

static void compaction_that_lacks_rows_changes_nothing(void **state)
{
    (void)state;
    int64_t merged = 0;
    kit.encoder.merge = merge_badly;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_compact(&kit, "s", 60, &merged), TIDE_INVALID);
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM segments"), 2);
    assert_string_equal(kit_times(&kit, "s"), "1-6");
    kit_ok(&kit, kit_write(&kit, "s", 7, 7));
}

static void verify_finds_what_breaks_a_rule(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE segments SET first_ts = 9, last_ts = 8 WHERE seq = 1",
        "UPDATE segments SET rows = 0 WHERE seq = 1",
        "UPDATE segments SET rows = 'x' WHERE seq = 1",
        "UPDATE segments SET first_ts = 2 WHERE seq = 1",
        "UPDATE sources SET labels = '[]'",
        "UPDATE sources SET metadata = '{\"a\":1}'",
        "PRAGMA foreign_keys = OFF; DELETE FROM sources",
        "PRAGMA foreign_keys = OFF; INSERT INTO caller_rows VALUES (9, 's', 1, x'')",
        "UPDATE wal SET wall_offset = 'x'",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'segments_by_time'",
    };
    char command[4 * KIT_PATH_MAX + 64];
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 7, 8));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_int_equal(kit_verify(&kit), 0);
    (void)snprintf(command, sizeof(command), "cp '%s' '%s.kept'", kit.path, kit.path);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        kit_change(&kit, damages[i]);
        if (kit_verify(&kit) == 0) {
            fail_msg("not found: %s", damages[i]);
        }
        (void)snprintf(command, sizeof(command), "rm -f '%s-wal' '%s-shm'; cp '%s.kept' '%s'",
                       kit.path, kit.path, kit.path, kit.path);
        assert_int_equal(system(command), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(retention_keeps_a_segment_across_the_cutoff_whole,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(retention_does_not_bring_shadowed_rows_back, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(retention_never_lets_rows_come_behind_what_was_there,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(retention_lets_no_row_come_before_what_it_forgot,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(retention_gives_space_back, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(caller_rows_come_by_time_then_as_they_were_written,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(retention_of_some_series_asks_for_the_floor_of_each,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(compaction_joins_runs_up_to_the_target, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(compaction_gives_space_back, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(compaction_without_a_way_to_join_is_refused, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(compaction_that_lacks_rows_changes_nothing, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(verify_finds_what_breaks_a_rule, kit_setup_test,
                                        kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
