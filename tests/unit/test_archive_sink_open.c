#include "cmocka_prelude.h"

#include "archive/container.h"
#include "archive/writer.h"
#include "archive_sink_kit.h"
#include "sink/archive/archive_sink.h"
#include "sink_kit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH "a.tide"

static const struct tide_sink_ops *const ops = &tide_archive_sink_ops;

static void refused(const struct tide_sink_options *options, tide_status want, const char *says)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    tide_status status = ops->open(options, &sink, &err);
    if (status != want || strstr(err.message, says) == NULL) {
        fail_msg("status %d, not %d: %s, without %s", status, want, err.message, says);
    }
    assert_null(sink);
    assert_false(err.retriable);
    assert_false(kit_exists(PATH "-lock"));
}

static void begin_with_a_copy(void)
{
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
}

#define ONE "change at 9.0 key 900 values 900,name 900,null\n"

static void open_on_a_copy_does_as_existing_says(void **state)
{
    (void)state;
    begin_with_a_copy();
    struct tide_sink_options options = kit_options(PATH);
    refused(&options, TIDE_INVALID, "an earlier copy of this pipeline; append to it");
    options.pipeline = TIDE_STR("q");
    refused(&options, TIDE_INVALID, "an earlier copy, of the pipeline \"p\"");
    options.existing = TIDE_EXISTING_APPEND; /* the same database: its rows go on */
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n" ONE ONE);
    options.identity = TIDE_STR("\"another\"");
    sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n" ONE ONE "2 shop.t\n" ONE);
    options.existing = TIDE_EXISTING_OVERWRITE;
    sink = kit_open(ops, &options);
    ops->close(sink);
    assert_rows(PATH, "");
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM sources"), 1);
    assert_false(kit_exists(PATH "-new"));
}

static void open_goes_on_with_its_own_of_several(void **state)
{
    (void)state;
    struct tide_sink_held held;
    struct tide_sink_options options = kit_options(PATH);
    begin_with_a_copy();
    options.pipeline = TIDE_STR("q");
    options.identity = TIDE_STR("\"another\"");
    options.existing = TIDE_EXISTING_APPEND;
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 30, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    sink = open_resumed(PATH);
    ops->held(sink, &held);
    assert_int_equal(held.place.position.lo, 9);
    ops->close(sink);
    options.is_resumed = true;
    sink = kit_open(ops, &options);
    ops->held(sink, &held);
    assert_int_equal(held.place.position.lo, 30);
    ops->close(sink);
}

static void open_resumed_refuses_what_is_not_its_own(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options(PATH);
    options.is_resumed = true;
    refused(&options, TIDE_STALE, "a.tide is not there; give the sink another name");
    kit_put(PATH, "", 0);
    refused(&options, TIDE_STALE, "a.tide is not there; give the sink another name");
    kit_put(PATH, "some text that is no archive at all", 35);
    refused(&options, TIDE_INVALID, "a.tide is not an archive");
    kit_remove(PATH);
    begin_with_a_copy();
    options.pipeline = TIDE_STR("q");
    refused(&options, TIDE_INVALID, "a copy of the pipeline \"p\", not of \"q\"");
    options.pipeline = TIDE_STR("p");
    options.identity = TIDE_STR("\"another\"");
    refused(&options, TIDE_STALE, "a copy of another source");
    options.identity = TIDE_STR("\"s\"");
    options.position_kind = &tide_position_lsn;
    refused(&options, TIDE_STALE, "a copy of another source");
    options.position_kind = &tide_position_integer;
    (void)number_of(PATH, "UPDATE tidemark_held SET bytes = substr(bytes, 1, length(bytes) - 1)");
    refused(&options, TIDE_CORRUPT, "record of what is held does not follow its layout; give");
    (void)number_of(PATH, "DELETE FROM tidemark_held");
    refused(&options, TIDE_STALE, "a.tide has no record of what it holds; give");
    assert_rows(PATH, "1 shop.t\n" ONE);
}

static void open_refuses_another_encoder(void **state)
{
    (void)state;
    begin_with_a_copy();
    struct tide_sink_options options = kit_options(PATH);
    options.is_resumed = true;
    (void)number_of(PATH, "UPDATE sources SET metadata = json_set(metadata, '$.encoder', 'x-9')");
    refused(&options, TIDE_UNSUPPORTED, "x-9");
    options.is_resumed = false;
    options.existing = TIDE_EXISTING_APPEND;
    refused(&options, TIDE_UNSUPPORTED, "x-9");
}

static void open_begins_where_nothing_was_held(void **state)
{
    (void)state;
    ops->close(open_new(PATH)); /* a start that was interrupted before its first flush */
    begin_with_a_copy();
    assert_rows(PATH, "1 shop.t\n" ONE);
    kit_put("empty.tide", "", 0);
    ops->close(open_new("empty.tide"));
    assert_rows("empty.tide", "");
}

/* As another program writes them. */
static void make_foreign(void)
{
    struct tide_error err = {0};
    struct tide_archive_writer *writer = NULL;
    struct tide_archive_series *series = NULL;
    const struct tide_archive_writer_options options = {0};
    const struct tide_archive_new_source source = {.clock_anchor_wall_ns = 1};
    int64_t id = 0;
    ok(tide_archive_create(PATH, &err), &err);
    ok(tide_archive_writer_open(PATH, &options, &writer, &err), &err);
    ok(tide_archive_add_source(writer, &source, &id, &err), &err);
    ok(tide_archive_series_open(writer, id, TIDE_STR("cpu"), &series, &err), &err);
    const struct tide_archive_row row = {.series = series, .ts = 5, .bytes = TIDE_STR("x")};
    ok(tide_archive_write(writer, &(struct tide_archive_tick){.rows = &row, .row_count = 1}, &err),
       &err);
    tide_archive_writer_close(writer);
}

static void open_on_another_programs_archive_begins_beside_its_rows(void **state)
{
    (void)state;
    make_foreign();
    struct tide_sink_options options = kit_options(PATH);
    refused(&options, TIDE_INVALID, "with rows that are no copy of ours; append to it");
    options.is_resumed = true;
    refused(&options, TIDE_STALE, "has no record of what it holds; give the sink another name");
    options.is_resumed = false;
    options.existing = TIDE_EXISTING_APPEND;
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM wal WHERE stream = 'cpu' AND ts = 5"),
                     1);
    assert_int_equal(number_of(PATH, "SELECT source_id FROM wal WHERE stream = 'shop.t'"), 2);
    assert_int_equal(number_of(PATH, "SELECT complete FROM sources WHERE id = 1"), 0);
}

static void open_resumed_on_a_damaged_archive_says_so(void **state)
{
    (void)state;
    begin_with_a_copy();
    size_t len = 0;
    char *bytes = kit_read(PATH, &len);
    memset(bytes + 4096, 'x', len - 4096);
    kit_put(PATH, bytes, len);
    free(bytes);
    struct tide_sink_options options = kit_options(PATH);
    refused(&options, TIDE_CORRUPT, "take it from a copy; replace it (--overwrite");
    options.existing = TIDE_EXISTING_APPEND;
    refused(&options, TIDE_CORRUPT, "take it from a copy; replace it (--overwrite");
    options.is_resumed = true;
    refused(&options, TIDE_CORRUPT, "bring it back as it was");
    options.is_resumed = false;
    options.existing = TIDE_EXISTING_OVERWRITE;
    ops->close(kit_open(ops, &options));
    assert_rows(PATH, "");
}

static void open_over_a_file_that_is_no_archive(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options(PATH);
    kit_put(PATH, "some text that is no archive at all", 35);
    refused(&options, TIDE_INVALID, "give the path of an archive; replace it (--overwrite");
    options.existing = TIDE_EXISTING_APPEND;
    refused(&options, TIDE_INVALID, "give the path of an archive; replace it (--overwrite");
    kit_assert_file(PATH, "some text that is no archive at all");
    options.existing = TIDE_EXISTING_OVERWRITE;
    ops->close(kit_open(ops, &options));
    assert_rows(PATH, "");
}

/* A log that was left by a kill must not be taken for the new archive's. */
static void overwrite_leaves_no_log_behind(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options(PATH);
    begin_with_a_copy();
    size_t len = 0;
    struct tide_sink *sink = open_resumed(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 1));
    kit_flush(ops, sink);
    char *log = kit_read(PATH "-wal", &len);
    ops->close(sink);
    kit_put(PATH "-wal", log, len);
    free(log);
    options.existing = TIDE_EXISTING_OVERWRITE;
    ops->close(kit_open(ops, &options));
    assert_rows(PATH, "");
}

static void open_twice_is_refused_until_closed(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink *second = NULL;
    struct tide_sink *sink = open_new(PATH);
    struct tide_sink_options options = kit_options("link.tide");
    assert_int_equal(symlink(PATH, "link.tide"), 0);
    options.is_resumed = true;
    assert_int_equal(ops->open(&options, &second, &err), TIDE_INVALID);
    assert_non_null(strstr(err.message, "is being written by another process"));
    ops->close(sink);
    second = kit_open(ops, &options);
    ops->close(second);
    struct stat st;
    assert_int_equal(lstat("link.tide", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

static void open_of_a_link_that_leads_nowhere_says_so(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("link.tide");
    assert_int_equal(symlink("none.tide", "link.tide"), 0);
    refused(&options, TIDE_INVALID, "link.tide is a link that leads nowhere; remove it");
    options.existing = TIDE_EXISTING_OVERWRITE;
    refused(&options, TIDE_INVALID, "link.tide is a link that leads nowhere; remove it");
    assert_false(kit_exists("none.tide"));
}

static void open_removes_what_kills_left_half_made(void **state)
{
    (void)state;
    static const char *const left[] = {
        PATH ".new-8zbYEV",         PATH ".new-8zbYEV-journal", PATH "-new.new-8zbYEV",
        PATH "-new.new-8zbYEV-wal", PATH "-new.new-8zbYEV-shm", PATH "-new",
    };
    static const char *const others[] = {PATH ".new-8zb", PATH ".new-8zbYEV.txt",
                                         "b" PATH ".new-8zbYEV", PATH "-old.new-8zbYEV"};
    struct tide_sink_options options = kit_options(PATH);
    begin_with_a_copy();
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        kit_put(left[i], "x", 1);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        kit_put(others[i], "x", 1);
    }
    options.existing = TIDE_EXISTING_OVERWRITE;
    ops->close(kit_open(ops, &options));
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        assert_false(kit_exists(left[i]));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        kit_assert_file(others[i], "x");
    }
}

/* Two writers by two names would not see each other's log. */
static void open_of_a_file_with_two_names_is_refused(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_error err = {0};
    struct tide_sink *sink = open_new(PATH);
    struct tide_sink_options options = kit_options("second.tide");
    assert_int_equal(link(PATH, "second.tide"), 0);
    for (int existing = TIDE_EXISTING_REFUSE; existing <= TIDE_EXISTING_OVERWRITE; existing++) {
        struct tide_sink *second = NULL;
        options.existing = (enum tide_sink_existing)existing;
        assert_int_equal(ops->open(&options, &second, &err), TIDE_INVALID);
        assert_non_null(strstr(err.message, "second.tide has 2 names (hard links)"));
        assert_false(kit_exists("second.tide-wal"));
    }
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    for (int access = TIDE_ARCHIVE_EDIT; access <= TIDE_ARCHIVE_EDIT_BESIDE; access++) {
        assert_int_equal(tide_archive_open(PATH, (enum tide_archive_access)access, &archive, &err),
                         TIDE_INVALID);
        assert_non_null(strstr(err.message, "make a copy with `tidemark archive copy`"));
    }
    assert_rows(PATH, "1 shop.t\n" ONE); /* reading does no harm */
    kit_remove("second.tide");
    ops->close(open_resumed(PATH));
}

static void open_with_a_lock_file_of_a_kill(void **state)
{
    (void)state;
    kit_put(PATH "-lock", "", 0);
    begin_with_a_copy();
    assert_false(kit_exists(PATH "-lock"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(open_on_a_copy_does_as_existing_says),
        TEST(open_goes_on_with_its_own_of_several),
        TEST(open_resumed_refuses_what_is_not_its_own),
        TEST(open_refuses_another_encoder),
        TEST(open_begins_where_nothing_was_held),
        TEST(open_on_another_programs_archive_begins_beside_its_rows),
        TEST(open_resumed_on_a_damaged_archive_says_so),
        TEST(open_over_a_file_that_is_no_archive),
        TEST(overwrite_leaves_no_log_behind),
        TEST(open_twice_is_refused_until_closed),
        TEST(open_of_a_link_that_leads_nowhere_says_so),
        TEST(open_removes_what_kills_left_half_made),
        TEST(open_of_a_file_with_two_names_is_refused),
        TEST(open_with_a_lock_file_of_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
