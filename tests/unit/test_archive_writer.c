#include "archive_kit.h"

#include "archive/container.h"
#include "archive/sessions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_source_writes_all_of_it_at_once(void **state)
{
    (void)state;
    assert_string_equal(kit_text(&kit, "SELECT labels FROM sources"),
                        "{\"db\":\"shop\",\"table\":\"orders\"}");
    assert_int_equal(kit_number(&kit, "SELECT complete FROM sources"), 0);
    assert_int_equal(kit_number(&kit, "SELECT clock_anchor_wall_ns FROM sources"), -1000);
    assert_int_equal(kit_number(&kit, "SELECT heartbeat FROM sources"), 1);
    assert_int_equal(kit_number(&kit, "SELECT heartbeat_interval_ns FROM sources"), 5000000000);
    assert_int_equal(kit_number(&kit, "SELECT length(uuid) = 36 AND substr(uuid, 15, 1) = '4' AND"
                                      " instr('89ab', substr(uuid, 20, 1)) > 0 AND"
                                      " lower(uuid) = uuid FROM sources"),
                     1);
    assert_string_equal(kit_text(&kit, "SELECT metadata ->> 'encoder' FROM sources"), "plain-1");
    assert_int_equal(kit_number(&kit, "SELECT json_array_length(metadata ->> 'writer_sessions')"
                                      " FROM sources"),
                     1);
    assert_int_equal(kit_number(&kit, "SELECT (metadata ->> 'writer_sessions') -> 0 ->>"
                                      " 'clock_anchor_wall_ns' FROM sources"),
                     -1000);
}

static void add_source_with_bad_labels_writes_nothing(void **state)
{
    (void)state;
    int64_t id = 0;
    static const struct tide_archive_pair bad[] = {
        {{"encoder", 7}, {"x", 1}}, {{"writer_sessions", 15}, {"[]", 2}},
        {{"events", 6}, {"", 0}},   {{"a", 1}, {"\xff", 1}},
        {{"a\0b", 3}, {"", 0}},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tide_archive_pair pair = bad[i];
        struct tide_archive_new_source source = {.metadata = {&pair, 1}};
        assert_int_equal(tide_archive_add_source(kit.writer, &source, &id, &kit.err), TIDE_INVALID);
    }
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM sources"), 1);
}

static void write_is_readable_at_once_and_in_order_of_time(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 5, 9));
    kit_ok(&kit, kit_write(&kit, "s", 1, 3)); /* late, but nothing is sealed */
    kit_ok(&kit, kit_write(&kit, "t", 2, 2));
    assert_string_equal(kit_times(&kit, "s"), "1-3 5-9");
    assert_string_equal(kit_times(&kit, "t"), "2");
    assert_int_equal(kit_number(&kit, "SELECT SUM(wall_offset) FROM wal WHERE stream = 's'"),
                     8 * 1000 + 1 + 2 + 3 + 5 + 6 + 0 + 1 + 2);
    struct tide_archive_series_state found;
    tide_archive_series_state(kit_series(&kit, "s"), &found);
    assert_int_equal(found.live_rows, 8);
    assert_int_equal(found.live_bytes, 8);
    assert_int_equal(found.oldest_live_ts, 1);
    assert_int_equal(found.newest_ts, 9);
}

static void write_takes_every_time_there_is(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", INT64_MIN, INT64_MIN));
    kit_ok(&kit, kit_write(&kit, "s", INT64_MAX - 1, INT64_MAX - 1));
    kit_ok(&kit, kit_write(&kit, "s", -1, 1));
    assert_string_equal(kit_times(&kit, "s"), "-9223372036854775808 -1-1 9223372036854775806");
}

static void write_of_a_taken_time_fails_whole(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    struct tide_archive_row rows[] = {
        {kit_series(&kit, "t"), 7, 0, TIDE_STR("7")},
        {kit_series(&kit, "s"), 6, 0, TIDE_STR("6")},
        {kit_series(&kit, "s"), 3, 0, TIDE_STR("3")},
    };
    struct tide_archive_held held = {kit.source, TIDE_STR("place"), TIDE_STR("x")};
    struct tide_archive_note note = {kit_series(&kit, "s"), 6, TIDE_STR("columns")};
    struct tide_archive_tick tick = {rows, 3, &note, 1, &held, 1};
    kit_fails(tide_archive_write(kit.writer, &tick, &kit.err), TIDE_INVALID,
              "a row of s has the time 3, where the series has a row already");
    assert_string_equal(kit_times(&kit, "s"), "1-5");
    assert_string_equal(kit_times(&kit, "t"), "");
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM caller_rows"), 0);
    assert_int_equal(
        kit_number(&kit, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'tidemark_held'"), 0);
    struct tide_archive_series_state found;
    tide_archive_series_state(kit_series(&kit, "s"), &found);
    assert_int_equal(found.live_rows, 5);
    assert_int_equal(found.newest_ts, 5);
    kit_ok(&kit, kit_write(&kit, "s", 6, 6)); /* the writer lives on */
}

/* Rows by turns of two series, each with its time as text. */
static void make_many(struct tide_archive_row *rows, char texts[][8], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(texts[i], 8, "%zu", i + 1);
        rows[i] = (struct tide_archive_row){kit_series(&kit, i % 2 == 0 ? "s" : "t"),
                                            (int64_t)i + 1, 0, tide_str_of(texts[i], (size_t)len)};
    }
}

static void write_of_many_rows_has_each_in_its_place(void **state)
{
    (void)state;
    struct tide_archive_row rows[150];
    char texts[150][8];
    make_many(rows, texts, 150);
    struct tide_archive_tick tick = {.rows = rows, .row_count = 150};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal WHERE ts BETWEEN 1 AND 150 AND "
                                      "CAST(row AS TEXT) = ts AND "
                                      "stream = CASE ts % 2 WHEN 1 THEN 's' ELSE 't' END"),
                     150);
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal"), 150);
}

static void write_of_many_rows_names_the_time_that_is_taken(void **state)
{
    (void)state;
    struct tide_archive_row rows[150];
    char texts[150][8];
    kit_ok(&kit, kit_write(&kit, "t", 70, 70));
    make_many(rows, texts, 150);
    struct tide_archive_tick tick = {.rows = rows, .row_count = 150};
    kit_fails(tide_archive_write(kit.writer, &tick, &kit.err), TIDE_INVALID,
              "a row of t has the time 70, where the series has a row already");
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal"), 1);
    rows[69].ts = 151;
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err)); /* the writer lives on */
    assert_int_equal(kit_number(&kit, "SELECT COUNT(*) FROM wal"), 151);
}

static void write_behind_what_is_sealed_fails_whole(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_fails(kit_write(&kit, "s", 5, 8), TIDE_INVALID, "the series is sealed to 5");
    kit_fails(kit_write(&kit, "s", -9, -9), TIDE_INVALID, "the series is sealed to 5");
    assert_string_equal(kit_times(&kit, "s"), "1-5");
    kit_ok(&kit, kit_write(&kit, "s", 6, 8));
    assert_string_equal(kit_times(&kit, "s"), "1-8");
}

static void write_of_nothing_is_fine(void **state)
{
    (void)state;
    struct tide_archive_tick tick = {0};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

static void write_takes_rows_without_bytes(void **state)
{
    (void)state;
    struct tide_archive_row row = {kit_series(&kit, "s"), 1, 0, {NULL, 0}};
    struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    assert_string_equal(kit_text(&kit, "SELECT typeof(row) || length(row) FROM wal"), "blob0");
}

static void write_of_more_bytes_than_a_row_takes_fails_whole(void **state)
{
    (void)state;
    /* What is refused is never read: the bytes need not be there. */
    tide_str huge = {"", 1000000000};
    struct tide_archive_row rows[] = {{kit_series(&kit, "s"), 1, 0, TIDE_STR("1")},
                                      {kit_series(&kit, "s"), 2, 0, huge}};
    struct tide_archive_note note = {kit_series(&kit, "s"), 1, huge};
    struct tide_archive_held held = {kit.source, TIDE_STR("place"), huge};
    struct tide_archive_tick ticks[] = {
        {.rows = rows, .row_count = 2},
        {.rows = rows, .row_count = 1, .notes = &note, .note_count = 1},
        {.rows = rows, .row_count = 1, .held = &held, .held_count = 1}};
    for (size_t i = 0; i < 3; i++) {
        kit_fails(tide_archive_write(kit.writer, &ticks[i], &kit.err), TIDE_INVALID,
                  "larger than an archive takes");
        assert_string_equal(kit_times(&kit, "s"), "");
    }
    kit_ok(&kit, kit_write(&kit, "s", 1, 1));
}

static void series_of_bad_names_and_sources_are_refused(void **state)
{
    (void)state;
    struct tide_archive_series *series = NULL;
    char name[4098];
    memset(name, 'x', sizeof(name));
    const tide_str bad[] = {{"", 0}, {"\xff", 1}, {"a\0b", 3}, {name, 4097}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(
            tide_archive_series_open(kit.writer, kit.source, bad[i], &series, &kit.err),
            TIDE_INVALID);
    }
    kit_fails(tide_archive_series_open(kit.writer, 99, TIDE_STR("s"), &series, &kit.err),
              TIDE_INVALID, "add or resume it first");
    kit_ok(&kit, tide_archive_series_open(kit.writer, kit.source, tide_str_of(name, 4096), &series,
                                          &kit.err));
    assert_ptr_equal(kit_series(&kit, "a"), kit_series(&kit, "a"));
}

static void row_times_rise_from_the_newest_row(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 100, 100));
    struct tide_archive_series *s = kit_series(&kit, "s");
    struct tide_archive_series *t = kit_series(&kit, "t");
    for (int again = 0; again < 2; again++) { /* a call that failed is made again */
        struct tide_archive_row rows[] = {
            {s, 50, 7, TIDE_STR("")},  {t, 50, 7, TIDE_STR("")},  {s, 50, 7, TIDE_STR("")},
            {t, 50, 7, TIDE_STR("")},  {s, 200, 7, TIDE_STR("")}, {s, 199, 7, TIDE_STR("")},
            {t, -50, 7, TIDE_STR("")},
        };
        static const int64_t want[] = {101, 50, 102, 51, 200, 201, 52};
        static const int64_t wall[] = {57, 57, 57, 57, 207, 206, -43};
        kit_ok(&kit, tide_archive_row_times(rows, 7, &kit.err));
        for (size_t i = 0; i < 7; i++) {
            assert_int_equal(rows[i].ts, want[i]);
            assert_int_equal(rows[i].ts + rows[i].wall_offset, wall[i]);
        }
    }
    struct tide_archive_row last = {t, INT64_MAX, 0, TIDE_STR("")};
    struct tide_archive_tick tick = {.rows = &last, .row_count = 1};
    kit_ok(&kit, tide_archive_row_times(&last, 1, &kit.err));
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    kit_fails(tide_archive_row_times(&last, 1, &kit.err), TIDE_INVALID, "no later time");
    kit_ok(&kit, tide_archive_row_times(NULL, 0, &kit.err));
}

static void row_times_rise_from_what_was_there_on_resuming(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1000, 1000));
    kit_reopen(&kit);
    /* The floor is the source's: also for a series that has not so new a row, or none. */
    struct tide_archive_row rows[] = {{kit_series(&kit, "s"), 5, 0, TIDE_STR("")},
                                      {kit_series(&kit, "u"), 5, 0, TIDE_STR("")}};
    kit_ok(&kit, tide_archive_row_times(rows, 2, &kit.err));
    assert_int_equal(rows[0].ts, 1001);
    assert_int_equal(rows[1].ts, 1001);
}

static void resume_refuses_rows_at_or_before_the_newest(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    kit_ok(&kit, kit_write(&kit, "t", 1, 9));
    kit_reopen(&kit);
    kit_fails(kit_write(&kit, "s", 6, 9), TIDE_INVALID, "gone on with behind 9");
    kit_fails(kit_write(&kit, "new", 9, 9), TIDE_INVALID, "gone on with behind 9");
    kit_ok(&kit, kit_write(&kit, "s", 10, 11));
    assert_string_equal(kit_times(&kit, "s"), "1-5 10-11");
}

static void resume_records_the_session_and_clears_complete(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 5, 77, &kit.err));
    assert_int_equal(kit_number(&kit, "SELECT complete FROM sources"), 1);
    assert_int_equal(kit_number(&kit, "SELECT offset_ns FROM clock_offsets WHERE ts = 5"), 77);
    kit_reopen(&kit);
    assert_int_equal(kit_number(&kit, "SELECT complete FROM sources"), 0);
    assert_int_equal(kit_number(&kit, "SELECT clock_anchor_wall_ns FROM sources"), -1000);
    assert_int_equal(kit_number(&kit, "SELECT (metadata ->> 'writer_sessions') -> 1 ->>"
                                      " 'resumed_after_ts' FROM sources"),
                     5);
    assert_int_equal(kit_number(&kit, "SELECT (metadata ->> 'writer_sessions') -> 1 ->>"
                                      " 'clock_anchor_wall_ns' FROM sources"),
                     6);
    assert_int_equal(kit_number(&kit, "SELECT 'writer_session:' || ((metadata ->>"
                                      " 'writer_sessions') -> 1 ->> 'session') = ((metadata ->>"
                                      " 'events') -> 'events' -> 0 ->> 'id') FROM sources"),
                     1);
    assert_int_equal(kit_number(&kit, "SELECT (metadata ->> 'events') -> 'events' -> 0 ->>"
                                      " 'timestamp' FROM sources"),
                     6);
    kit_reopen(&kit);
    kit_ok(&kit, kit_write(&kit, "s", 7, 8));
    kit_reopen(&kit);
    assert_int_equal(kit_number(&kit, "SELECT json_array_length(metadata ->> 'writer_sessions')"
                                      " FROM sources"),
                     3); /* the one that wrote nothing is not told */
    assert_int_equal(kit_number(&kit, "SELECT json_array_length(metadata ->> 'events', '$.events')"
                                      " FROM sources"),
                     2);
    assert_int_equal(kit_number(&kit, "SELECT 'writer_session:' || ((metadata ->>"
                                      " 'writer_sessions') -> 2 ->> 'session') = ((metadata ->>"
                                      " 'events') -> 'events' -> 1 ->> 'id') FROM sources"),
                     1);
}

/* SQLite would go on, and fill the hole with zeros. */
static void write_into_a_file_that_was_cut_is_corrupt(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 2000));
    kit_reopen(&kit);
    kit_ok(&kit, kit_write(&kit, "s", 2001, 2002));
    assert_true(kit_number(&kit, "SELECT page_count FROM pragma_page_count") > 6);
    assert_int_equal(truncate(kit.path, 5 * 4096), 0);
    kit_fails(kit_write(&kit, "s", 2003, 2003), TIDE_CORRUPT, "was cut to 20480 bytes");
    int64_t next_us = 0;
    kit_fails(tide_archive_tend(kit.writer, &next_us, &kit.err), TIDE_CORRUPT, "was cut");
}

static void write_goes_on_when_the_file_was_made_smaller_by_us(void **state)
{
    (void)state;
    bool is_more = false;
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = 3000};
    struct tide_archive_retained retained;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3000));
    kit_reopen(&kit);
    kit_ok(&kit, tide_archive_writer_retain(kit.writer, &retention, &retained, &kit.err));
    kit_ok(&kit, tide_archive_writer_give_back(kit.writer, 100, &is_more, &kit.err));
    (void)kit_number(&kit, "PRAGMA wal_checkpoint"); /* the file is cut to what is left here */
    kit_ok(&kit, kit_write(&kit, "s", 3001, 3500));
    kit_ok(&kit, kit_write(&kit, "s", 3501, 3502));
    assert_string_equal(kit_times(&kit, "s"), "3000-3502");
}

static void resume_of_a_source_without_rows_says_null(void **state)
{
    (void)state;
    kit_reopen(&kit);
    assert_string_equal(kit_text(&kit, "SELECT (metadata ->> 'writer_sessions') -> 1 ->"
                                       " 'resumed_after_ts' FROM sources"),
                        "null");
    kit_ok(&kit, kit_write(&kit, "s", INT64_MIN, INT64_MIN + 2)); /* no floor */
}

static void resume_of_a_source_without_a_session_begins_the_list(void **state)
{
    (void)state;
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "UPDATE sources SET metadata = '{\"x\":\"y\"}'");
    kit_reopen(&kit);
    assert_int_equal(kit_number(&kit, "SELECT json_array_length(metadata ->> 'writer_sessions')"
                                      " FROM sources"),
                     1);
    assert_string_equal(kit_text(&kit, "SELECT metadata ->> 'encoder' FROM sources"), "plain-1");
    assert_string_equal(kit_text(&kit, "SELECT metadata ->> 'x' FROM sources"), "y");
}

static void resume_of_a_source_whose_sessions_are_none_is_corrupt(void **state)
{
    (void)state;
    tide_archive_writer_close(kit.writer);
    kit_change(&kit, "UPDATE sources SET metadata = '{\"writer_sessions\":\"{}\"}'");
    struct tide_archive_writer_options options = {.encoder = &kit.encoder};
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_fails(tide_archive_resume_source(kit.writer, kit.source, 6, &kit.err), TIDE_CORRUPT,
              "wanted");
    if (strstr(kit.err.message, kit.path) == NULL) {
        fail_msg("does not name the archive: %s", kit.err.message);
    }
}

static void resume_backwards_writes_nothing(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 5, 0, &kit.err));
    char before[4096];
    (void)snprintf(before, sizeof(before), "%s", kit_text(&kit, "SELECT metadata FROM sources"));
    kit_fails(tide_archive_resume_source(kit.writer, kit.source, 5, &kit.err), TIDE_INVALID,
              "time would run backwards");
    assert_string_equal(kit_text(&kit, "SELECT metadata FROM sources"), before);
    assert_int_equal(kit_number(&kit, "SELECT complete FROM sources"), 1);
    kit_fails(tide_archive_resume_source(kit.writer, 77, 9, &kit.err), TIDE_INVALID,
              "has no source 77");
    kit_ok(&kit, tide_archive_resume_source(kit.writer, kit.source, 6, &kit.err));
}

static void resume_with_another_encoder_is_refused(void **state)
{
    (void)state;
    kit.encoder.version = "plain-2";
    tide_archive_writer_close(kit.writer);
    struct tide_archive_writer_options options = {.encoder = &kit.encoder};
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_fails(tide_archive_resume_source(kit.writer, kit.source, 6, &kit.err), TIDE_UNSUPPORTED,
              "plain-1");
    kit.encoder.version = NULL; /* either side may say nothing */
    kit_ok(&kit, tide_archive_resume_source(kit.writer, kit.source, 6, &kit.err));
}

static void finalize_takes_no_more_rows(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 5));
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 5, 0, &kit.err));
    kit_fails(kit_write(&kit, "s", 6, 6), TIDE_INVALID, "is finalized");
    kit_fails(tide_archive_finalize_source(kit.writer, 5, 5, 0, &kit.err), TIDE_INVALID,
              "not open");
}

static void held_bytes_go_with_their_rows(void **state)
{
    (void)state;
    struct tide_buf found = {0};
    bool is_any = true;
    kit_ok(&kit, tide_archive_writer_held(kit.writer, kit.source, TIDE_STR("place"), &is_any,
                                          &found, &kit.err));
    assert_false(is_any);
    for (int64_t i = 1; i <= 3; i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "%" PRId64, i);
        struct tide_archive_row row = {kit_series(&kit, "s"), i, 0, tide_str_from(text)};
        struct tide_archive_held held[] = {{kit.source, TIDE_STR("place"), tide_str_from(text)},
                                           {kit.source, TIDE_STR("other"), TIDE_STR("")}};
        struct tide_archive_tick tick = {
            .rows = &row, .row_count = 1, .held = held, .held_count = 2};
        kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    }
    kit_ok(&kit, tide_archive_writer_held(kit.writer, kit.source, TIDE_STR("place"), &is_any,
                                          &found, &kit.err));
    assert_true(is_any);
    assert_string_equal(tide_buf_cstr(&found), "3");
    kit_ok(&kit, tide_archive_writer_held(kit.writer, kit.source, TIDE_STR("other"), &is_any,
                                          &found, &kit.err));
    assert_true(is_any);
    tide_buf_done(&found);
}

static void held_bytes_of_no_source_fail(void **state)
{
    (void)state;
    struct tide_archive_row row = {kit_series(&kit, "s"), 1, 0, TIDE_STR("1")};
    struct tide_archive_held held = {99, TIDE_STR("place"), TIDE_STR("x")};
    struct tide_archive_tick tick = {.rows = &row, .row_count = 1, .held = &held, .held_count = 1};
    kit_fails(tide_archive_write(kit.writer, &tick, &kit.err), TIDE_INVALID, "FOREIGN KEY");
    assert_string_equal(kit_times(&kit, "s"), "");
}

static void another_writer_ends_this_one(void **state)
{
    (void)state;
    struct archive_kit other = kit;
    kit_ok(&kit, kit_write(&kit, "s", 1, 2));
    struct tide_archive_writer_options options = {.encoder = &kit.encoder};
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &other.writer, &kit.err));
    kit_ok(&other, tide_archive_resume_source(other.writer, kit.source, 3, &other.err));
    kit_fails(kit_write(&kit, "s", 3, 4), TIDE_STALE, "one writes at a time");
    struct tide_archive_series *series = NULL;
    struct tide_archive_tick nothing = {0};
    kit_fails(tide_archive_series_open(kit.writer, kit.source, TIDE_STR("s"), &series, &kit.err),
              TIDE_STALE, "another program");
    kit_fails(tide_archive_write(kit.writer, &nothing, &kit.err), TIDE_STALE, "another program");
    kit_ok(&other, kit_write(&other, "s", 3, 4));
    tide_archive_writer_close(other.writer);
    assert_string_equal(kit_times(&kit, "s"), "1-4");
}

static tide_status forget_beside(int64_t cutoff_ts)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *guest = NULL;
    const struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = cutoff_ts};
    struct tide_archive_retained retained;
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_EDIT_BESIDE, &guest, &kit.err));
    return tide_archive_retain_in(guest, &retention, &retained, &kit.err);
}

/* As the one of a pipeline. */
static void reopen_for_edits(void)
{
    const struct tide_archive_writer_options options = {.encoder = &kit.encoder,
                                                        .allows_edits = true};
    int64_t anchor = 0;
    tide_archive_writer_close(kit.writer);
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_ok(&kit, tide_archive_resume_anchor(kit.writer, kit.source, 0, &anchor, &kit.err));
    kit_ok(&kit, tide_archive_resume_source(kit.writer, kit.source, anchor, &kit.err));
}

static void edits_beside_a_writer_are_no_end_where_it_allows_them(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 4));
    kit_fails(forget_beside(3), TIDE_TIMEOUT, "lets nobody edit it meanwhile");
    kit_ok(&kit, kit_write(&kit, "s", 5, 5));
    reopen_for_edits();
    kit_ok(&kit, kit_write(&kit, "s", 6, 6));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 7, 8));
    kit_ok(&kit, forget_beside(7));
    kit_ok(&kit, kit_write(&kit, "s", 9, 9));
    kit_ok(&kit, forget_beside(8));
    kit_ok(&kit, forget_beside(9));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_string_equal(kit_times(&kit, "s"), "9");
    assert_int_equal(kit_number(&kit, "SELECT MAX(seq) FROM segments"), 1);
    kit_change(&kit, "UPDATE sources SET heartbeat = 1"); /* another program's is another matter */
    kit_fails(kit_write(&kit, "s", 10, 10), TIDE_STALE, "one writes at a time");
    kit_reopen(&kit); /* by one that does not */
    kit_fails(forget_beside(10), TIDE_TIMEOUT, "lets nobody edit it meanwhile");
    assert_int_equal(kit_verify(&kit), 0);
}

static void metadata_is_patched_key_by_key(void **state)
{
    (void)state;
    struct tide_archive_pair pairs[] = {{TIDE_STR("producer_version"), TIDE_STR("9")},
                                        {TIDE_STR("note"), TIDE_STR("\"x\"")}};
    struct tide_archive_pairs patch = {pairs, 2};
    kit_ok(&kit, tide_archive_set_metadata(kit.writer, kit.source, &patch, &kit.err));
    assert_string_equal(kit_text(&kit, "SELECT metadata ->> 'note' FROM sources"), "\"x\"");
    assert_string_equal(kit_text(&kit, "SELECT metadata ->> 'encoder' FROM sources"), "plain-1");
    pairs[0].key = TIDE_STR("encoder");
    kit_fails(tide_archive_set_metadata(kit.writer, kit.source, &patch, &kit.err), TIDE_INVALID,
              "kept by the archive itself");
    patch.count = 0;
    assert_int_equal(tide_archive_set_metadata(kit.writer, 99, &patch, &kit.err), TIDE_INVALID);
}

static void columns_that_an_older_program_left_out_are_added(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, kit_seal(&kit, "s"));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "ALTER TABLE sources DROP COLUMN uuid;"
                     "ALTER TABLE sources DROP COLUMN heartbeat;"
                     "ALTER TABLE sources DROP COLUMN heartbeat_interval_ns;"
                     "ALTER TABLE segments DROP COLUMN caller_index");
    struct tide_archive *archive = NULL;
    struct tide_arena arena = {0};
    struct tide_archive_source source;
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_source_read(archive, kit.source, &arena, &source, &kit.err));
    assert_string_equal(source.uuid, "");
    assert_false(source.has_heartbeat);
    tide_archive_close(archive);
    tide_arena_done(&arena);
    assert_string_equal(kit_times(&kit, "s"), "1-3");
    assert_int_equal(kit_verify(&kit), 0);

    kit_reopen(&kit);
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    kit_ok(&kit, kit_seal(&kit, "s"));
    assert_int_equal(kit_number(&kit, "SELECT heartbeat FROM sources"), 1);
    assert_string_equal(kit_text(&kit, "SELECT caller_index FROM segments WHERE seq = 1"), "3");
    assert_string_equal(kit_times(&kit, "s"), "1-6");
}

static void tend_beats_and_a_pulse_tells(void **state)
{
    (void)state;
    int64_t next_us = 0;
    kit_ok(&kit, tide_archive_tend(kit.writer, &next_us, &kit.err));
    assert_int_equal(kit_number(&kit, "SELECT heartbeat FROM sources"), 1); /* not due */
    tide_archive_writer_close(kit.writer);
    struct tide_archive_writer_options options = {
        .encoder = &kit.encoder, .heartbeat_us = 1000, .checkpoint_us = 1000, .has_keeper = true};
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_ok(&kit, tide_archive_resume_source(kit.writer, kit.source, 1, &kit.err));
    int64_t before = kit_number(&kit, "SELECT heartbeat FROM sources");
    for (int64_t i = 0; kit_number(&kit, "SELECT heartbeat FROM sources") < before + 3; i++) {
        kit_ok(&kit, kit_write(&kit, "s", i + 1, i + 1)); /* beside the keeper */
        assert_true(i < 10000);
        (void)usleep(1000);
    }
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 0, 0, &kit.err));
    before = kit_number(&kit, "SELECT heartbeat FROM sources");
    (void)usleep(20000);
    assert_int_equal(kit_number(&kit, "SELECT heartbeat FROM sources"), before);
}

static void pulse_stops_after_three_silent_intervals(void **state)
{
    (void)state;
    struct tide_archive_pulse pulse = {0};
    struct tide_archive_source source = {
        .has_heartbeat = true, .heartbeat = 7, .heartbeat_interval_ns = 5000000000};
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 100), TIDE_ARCHIVE_LIVE);
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 15000099), TIDE_ARCHIVE_LIVE);
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 15000100), TIDE_ARCHIVE_STOPPED);
    source.heartbeat++;
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 15000200), TIDE_ARCHIVE_LIVE);
    source.has_heartbeat = false;
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 15000300), TIDE_ARCHIVE_UNKNOWN);
    source.is_complete = true;
    assert_int_equal(tide_archive_pulse_look(&pulse, &source, 15000300), TIDE_ARCHIVE_COMPLETE);
}

static void catalogue_lists_series_as_long_as_they_have_rows(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    struct tide_archive_catalogue found;
    kit_ok(&kit, kit_write(&kit, "b", 1, 4));
    kit_ok(&kit, kit_seal(&kit, "b"));
    kit_ok(&kit, kit_write(&kit, "b", 5, 7));
    kit_ok(&kit, kit_write(&kit, "a", 3, 3));
    kit_ok(&kit, kit_write(&kit, "c", -5, -4));
    kit_ok(&kit, kit_seal(&kit, "c"));
    struct tide_archive_note note = {kit_series(&kit, "only a note"), 1, TIDE_STR("x")};
    struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    kit_ok(&kit, tide_archive_writer_catalogue(kit.writer, &arena, &found, &kit.err));
    assert_int_equal(found.source_count, 1);
    assert_int_equal(found.sources[0].labels.count, 2);
    assert_int_equal(found.series_count, 3);
    assert_true(tide_str_equal(found.series[0].name, TIDE_STR("a")));
    assert_int_equal(found.series[0].segments, 0);
    assert_int_equal(found.series[0].live_rows, 1);
    assert_true(tide_str_equal(found.series[1].name, TIDE_STR("b")));
    assert_int_equal(found.series[1].segments, 1);
    assert_int_equal(found.series[1].sealed_rows, 4);
    assert_int_equal(found.series[1].sealed_to, 4);
    assert_int_equal(found.series[1].live_rows, 3);
    assert_int_equal(found.series[1].live_from, 5);
    assert_int_equal(found.series[1].live_to, 7);
    assert_true(tide_str_equal(found.series[2].name, TIDE_STR("c")));
    assert_int_equal(found.series[2].sealed_from, -5);
    assert_int_equal(found.series[2].live_rows, 0);
    tide_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(add_source_writes_all_of_it_at_once, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(add_source_with_bad_labels_writes_nothing, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_is_readable_at_once_and_in_order_of_time,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_takes_every_time_there_is, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_of_a_taken_time_fails_whole, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_of_many_rows_has_each_in_its_place, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_of_many_rows_names_the_time_that_is_taken,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_behind_what_is_sealed_fails_whole, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_of_nothing_is_fine, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_takes_rows_without_bytes, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_of_more_bytes_than_a_row_takes_fails_whole,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(series_of_bad_names_and_sources_are_refused, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(row_times_rise_from_the_newest_row, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(row_times_rise_from_what_was_there_on_resuming,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_refuses_rows_at_or_before_the_newest, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_records_the_session_and_clears_complete,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_into_a_file_that_was_cut_is_corrupt, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(write_goes_on_when_the_file_was_made_smaller_by_us,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_of_a_source_without_rows_says_null, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_of_a_source_without_a_session_begins_the_list,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_of_a_source_whose_sessions_are_none_is_corrupt,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_backwards_writes_nothing, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(resume_with_another_encoder_is_refused, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(finalize_takes_no_more_rows, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(held_bytes_go_with_their_rows, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(held_bytes_of_no_source_fail, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(another_writer_ends_this_one, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(edits_beside_a_writer_are_no_end_where_it_allows_them,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(metadata_is_patched_key_by_key, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(columns_that_an_older_program_left_out_are_added,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(tend_beats_and_a_pulse_tells, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(pulse_stops_after_three_silent_intervals, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(catalogue_lists_series_as_long_as_they_have_rows,
                                        kit_setup_test, kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
