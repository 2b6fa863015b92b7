/* What the file sink does with what it finds: continues, appends, replaces, or refuses and says
 * the ways on; a refusal changes nothing. */
#include "cmocka_prelude.h"

#include "sink/file/file_sink.h"
#include "sink_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD ".out.ndjson.tidemark"
#define NEW                                                                                        \
    "; append to it (--append, or existing: append), replace it (--overwrite, or existing: "       \
    "overwrite) or choose another place"
#define RESUMED                                                                                    \
    "; give the sink another name in the configuration, which copies it anew, or bring it back "   \
    "as it was with its record (of tidemark copy: another --state, and --append or --overwrite)"

static const struct tide_sink_ops *const ops = &tide_file_sink_ops;

/* Writes changes at `position` and has them held. */
static void copy_one(const struct tide_sink_options *options, uint64_t position)
{
    struct tide_sink *sink = kit_open(ops, options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), position, 2));
    kit_flush(ops, sink);
    ops->close(sink);
}

static void expect_refused(const struct tide_sink_options *options, tide_status status,
                           const char *message)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    assert_int_equal(ops->open(options, &sink, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(err.status, status);
    assert_null(sink);
}

/* What is in a file, to see that it did not change or how it goes on. */
struct content {
    char *bytes;
    size_t len;
};

static struct content content_of(const char *path)
{
    struct content content;
    content.bytes = kit_read(path, &content.len);
    assert_non_null(content.bytes);
    return content;
}

static void expect_same(const char *path, struct content before)
{
    size_t len = 0;
    char *bytes = kit_read(path, &len);
    assert_non_null(bytes);
    assert_int_equal(len, before.len);
    assert_memory_equal(bytes, before.bytes, len);
    free(bytes);
    free(before.bytes);
}

static void append_bytes(const char *path, const char *text)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void open_new_over_a_foreign_file_is_refused(void **state)
{
    (void)state;
    kit_put("out.ndjson", "mine\n", 5);
    struct tide_sink_options options = kit_options("out.ndjson");
    expect_refused(&options, TIDE_INVALID,
                   "out.ndjson is there, and no record says that it is a copy of ours" NEW);
    kit_assert_file("out.ndjson", "mine\n");
    assert_false(kit_exists(RECORD));
    options.place = TIDE_STR("./out.ndjson");
    expect_refused(&options, TIDE_INVALID,
                   "out.ndjson is there, and no record says that it is a copy of ours" NEW);
}

static void open_new_over_copies_is_refused_by_whose_they_are(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 1);
    struct content before = content_of("out.ndjson");
    struct content record = content_of(RECORD);
    expect_refused(&options, TIDE_INVALID, "out.ndjson holds an earlier copy of this pipeline" NEW);
    options.pipeline = TIDE_STR("q");
    expect_refused(&options, TIDE_INVALID,
                   "out.ndjson holds an earlier copy, of the pipeline \"p\"" NEW);
    options = kit_options("out.ndjson");
    options.identity = TIDE_STR("\"z\"");
    expect_refused(&options, TIDE_STALE,
                   "out.ndjson holds a copy of another source, \"s\", not of \"z\"" NEW);
    expect_same(RECORD, record);
    kit_put(RECORD, "damaged", 7);
    options = kit_options("out.ndjson");
    expect_refused(&options, TIDE_CORRUPT,
                   "./" RECORD " is damaged: it has not the length of two slots" NEW);
    expect_same("out.ndjson", before);
}

static void open_new_on_an_empty_or_unacknowledged_file_begins(void **state)
{
    (void)state;
    kit_put("out.ndjson", "", 0);
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 5000)); /* written, never flushed */
    ops->close(sink);
    struct content unflushed = content_of("out.ndjson");
    assert_true(unflushed.len > 0);
    free(unflushed.bytes);
    sink = kit_open(ops, &options);
    kit_assert_file("out.ndjson", "");
    ops->close(sink);
    assert_int_equal(unlink("out.ndjson"), 0); /* a record without its file is nothing either */
    copy_one(&options, 1);
    assert_int_equal(unlink("out.ndjson"), 0);
    copy_one(&options, 1);
    assert_true(kit_exists("out.ndjson"));
}

static void open_append_goes_on_behind(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("new.ndjson");
    copy_one(&options, 9);
    struct content frames = content_of("new.ndjson");
    options = kit_options("out.ndjson");
    options.existing = TIDE_EXISTING_APPEND;
    kit_put("out.ndjson", "mine", 4); /* without line end: it gets one */
    struct tide_sink *sink = kit_open(ops, &options);
    kit_assert_file("out.ndjson", "mine"); /* but only with what follows */
    ops->close(sink);
    copy_one(&options, 9);
    struct tide_buf want = {0};
    tide_buf_printf(&want, "mine\n%s", frames.bytes);
    kit_assert_file("out.ndjson", tide_buf_cstr(&want));
    append_bytes("out.ndjson", "{\"torn");
    copy_one(&options, 9); /* what was never acknowledged is cut first */
    tide_buf_append(&want, frames.bytes, frames.len);
    kit_assert_file("out.ndjson", tide_buf_cstr(&want));
    tide_buf_done(&want);
    free(frames.bytes);
}

/* Its owner would write over what was appended, or find it damaged. */
static void open_append_leaves_a_database_alone(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    options.existing = TIDE_EXISTING_APPEND;
    kit_put("out.ndjson", "SQLite format 3\0 and pages", 27);
    expect_refused(&options, TIDE_INVALID,
                   "out.ndjson is an SQLite database, which frames behind it would damage (an "
                   "archive is written as archive:FILE); replace it (--overwrite, or existing: "
                   "overwrite) or choose another place");
    struct content content = content_of("out.ndjson");
    assert_int_equal(content.len, 27);
    free(content.bytes);
    options.existing = TIDE_EXISTING_OVERWRITE;
    copy_one(&options, 9);
}

/* The line end is still owed when the run that began behind an open line was killed at once. */
static void open_resumed_behind_an_open_line_ends_it(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    options.existing = TIDE_EXISTING_APPEND;
    kit_put("out.ndjson", "mine", 4);
    ops->close(kit_open(ops, &options));
    options.is_resumed = true;
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    struct content content = content_of("out.ndjson");
    assert_memory_equal(content.bytes, "mine\n{\"kind\":\"change\"", 20);
    free(content.bytes);
}

static void open_append_forgets_what_was_held(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 9);
    options.existing = TIDE_EXISTING_APPEND;
    struct tide_sink *sink = kit_open(ops, &options);
    struct tide_sink_held held;
    ops->held(sink, &held);
    assert_true(held.is_known);
    assert_false(held.place.known); /* a new copy: all is to be sent */
    ops->close(sink);
}

static void open_overwrite_replaces_and_keeps_the_mode(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("new.ndjson");
    copy_one(&options, 9);
    struct content frames = content_of("new.ndjson");
    options = kit_options("out.ndjson");
    options.existing = TIDE_EXISTING_OVERWRITE;
    kit_put("out.ndjson", "mine and quite long\n", 20);
    assert_int_equal(chmod("out.ndjson", 0644), 0);
    copy_one(&options, 9);
    kit_assert_file("out.ndjson", frames.bytes);
    options.pipeline = TIDE_STR("another");
    copy_one(&options, 9);
    expect_same("out.ndjson", frames);
    struct stat st;
    assert_int_equal(stat("out.ndjson", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void open_resumed_cuts_what_was_not_acknowledged(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 3);
    struct content before = content_of("out.ndjson");
    append_bytes("out.ndjson", "{\"half a frame");
    options.is_resumed = true;
    options.existing = TIDE_EXISTING_OVERWRITE; /* says what to do at the start only */
    struct tide_sink *sink = kit_open(ops, &options);
    struct tide_sink_held held;
    ops->held(sink, &held);
    assert_true(held.place.known);
    assert_int_equal(held.place.position.lo, 3);
    ops->close(sink);
    expect_same("out.ndjson", before);
}

static void open_resumed_of_others_is_refused(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 3);
    append_bytes("out.ndjson", "{\"half");
    struct content before = content_of("out.ndjson");
    options.is_resumed = true;
    options.pipeline = TIDE_STR("q");
    expect_refused(&options, TIDE_INVALID,
                   "out.ndjson holds a copy of the pipeline \"p\", not of \"q\"" RESUMED);
    options.pipeline = TIDE_STR("p");
    options.identity = TIDE_STR("{\"file\":\"z\"}");
    expect_refused(&options, TIDE_STALE,
                   "out.ndjson holds a copy of another source, \"s\", not of "
                   "{\"file\":\"z\"}" RESUMED);
    struct tide_position_kind kind = tide_position_integer;
    kind.name = "lsn";
    options = kit_options("out.ndjson");
    options.is_resumed = true;
    options.position_kind = &kind;
    expect_refused(&options, TIDE_STALE,
                   "out.ndjson holds a copy of another source, \"s\", not of \"s\"" RESUMED);
    expect_same("out.ndjson", before);
}

static void open_resumed_without_record_is_refused(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    options.is_resumed = true;
    static const char *const message =
        "this pipeline goes on from a checkpoint, but out.ndjson has no record of what it holds "
        "(" RECORD " is not there)" RESUMED;
    expect_refused(&options, TIDE_STALE, message);
    assert_false(kit_exists("out.ndjson"));
    assert_false(kit_exists(RECORD));
    kit_put("out.ndjson", "x\n", 2);
    expect_refused(&options, TIDE_STALE, message);
    kit_assert_file("out.ndjson", "x\n");
}

static void open_resumed_over_a_changed_file_is_refused(void **state)
{
    (void)state;
    char message[512];
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 3);
    options.is_resumed = true;
    struct content content = content_of("out.ndjson");
    /* any byte of the tail, and any length below */
    for (size_t i = 0; i < content.len; i += 7) {
        content.bytes[i] ^= 1;
        kit_put("out.ndjson", content.bytes, content.len);
        (void)snprintf(message, sizeof(message),
                       "out.ndjson was changed: its bytes before byte %zu differ" RESUMED,
                       content.len);
        expect_refused(&options, TIDE_STALE, message);
        content.bytes[i] ^= 1;
        kit_put("out.ndjson", content.bytes, i);
        (void)snprintf(message, sizeof(message),
                       "out.ndjson has %zu bytes, but %zu were held" RESUMED, i, content.len);
        expect_refused(&options, TIDE_STALE, message);
    }
    kit_put("out.ndjson", content.bytes, content.len);
    ops->close(kit_open(ops, &options));
    assert_int_equal(rename("out.ndjson", "moved"), 0);
    expect_refused(&options, TIDE_STALE, "out.ndjson is gone" RESUMED);
    kit_put("out.ndjson", content.bytes, content.len);
    expect_refused(&options, TIDE_STALE,
                   "out.ndjson is another file than the one that was written" RESUMED);
    expect_same("out.ndjson", content);
}

static void open_resumed_with_a_record_of_another_file_is_refused(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    copy_one(&options, 3);
    assert_int_equal(rename(RECORD, ".b.ndjson.tidemark"), 0);
    assert_int_equal(rename("out.ndjson", "b.ndjson"), 0);
    options = kit_options("b.ndjson");
    options.is_resumed = true;
    expect_refused(&options, TIDE_STALE,
                   "the record .b.ndjson.tidemark is of another file than b.ndjson" RESUMED);
}

static void open_directory_with_foreign_files(void **state)
{
    (void)state;
    assert_int_equal(mkdir("out", 0700), 0);
    kit_put("out/readme.txt", "x", 1); /* no business of ours */
    kit_put("out/shop.t.ndjson", "mine\n", 5);
    struct tide_sink_options options = kit_options("out/");
    expect_refused(&options, TIDE_INVALID,
                   "out/shop.t.ndjson is there, and no record says that it is a copy of "
                   "ours" NEW);
    assert_false(kit_exists("out/.tidemark-held"));
    options.existing = TIDE_EXISTING_APPEND;
    copy_one(&options, 1);
    struct content content = content_of("out/shop.t.ndjson");
    assert_memory_equal(content.bytes, "mine\n{", 6);
    free(content.bytes);
    options.existing = TIDE_EXISTING_OVERWRITE;
    kit_put("out/other.ndjson", "x\n", 2); /* not recorded: stays */
    struct tide_sink *sink = kit_open(ops, &options);
    assert_false(kit_exists("out/shop.t.ndjson"));
    kit_assert_file("out/other.ndjson", "x\n");
    kit_assert_file("out/readme.txt", "x");
    ops->close(sink);
}

static void open_directory_resumed_checks_every_file_before_cutting_any(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out/");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("a"), 1, 1));
    kit_write(ops, sink, kit_changes(kit_relation("b"), 2, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    append_bytes("out/shop.a.ndjson", "{\"half");
    struct content a = content_of("out/shop.a.ndjson");
    assert_int_equal(truncate("out/shop.b.ndjson", 0), 0);
    options.is_resumed = true;
    struct tide_error err = {0};
    assert_int_equal(ops->open(&options, &sink, &err), TIDE_STALE);
    assert_non_null(strstr(err.message, "out/shop.b.ndjson has 0 bytes, but "));
    expect_same("out/shop.a.ndjson", a);
}

/* A file that comes up where a table's file is to be made, after the sink was opened. */
static void write_batch_for_a_table_whose_file_is_taken_is_refused(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options("out/");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_put("out/shop.t.ndjson", "mine\n", 5);
    struct tide_batch *batch = kit_changes(kit_relation("t"), 1, 1);
    assert_int_equal(ops->write_batch(sink, batch, 0, &err), TIDE_INVALID);
    assert_string_equal(err.message,
                        "out/shop.t.ndjson is there, and no record says that it is a copy of "
                        "ours" NEW);
    tide_batch_unref(batch);
    ops->close(sink);
    kit_assert_file("out/shop.t.ndjson", "mine\n");
}

/* As on a file system that ignores case: two names, one file. */
static void write_batch_two_tables_in_one_file_names_both(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options("out/");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1));
    assert_int_equal(link("out/shop.t.ndjson", "out/shop.T.ndjson"), 0);
    struct tide_batch *batch = kit_changes(kit_relation("T"), 2, 1);
    assert_int_equal(ops->write_batch(sink, batch, 0, &err), TIDE_INVALID);
    assert_string_equal(err.message, "the tables \"shop.t\" and \"shop.T\" would share the file "
                                     "out/shop.T.ndjson; copy one of them to another place");
    tide_batch_unref(batch);
    ops->close(sink);
}

static void open_places_that_cannot_be(void **state)
{
    (void)state;
    char name[400];
    assert_int_equal(mkfifo("pipe", 0600), 0);
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';

    const struct {
        const char *place;
        tide_status status;
        const char *message;
    } cases[] = {
        {"", TIDE_INVALID,
         "file: needs a path: file:out.ndjson for one file, file:out/ for a file for each table"},
        {"no/such/out.ndjson", TIDE_INVALID,
         "cannot write out.ndjson: there is no directory no/such; make it first"},
        {"pipe", TIDE_INVALID, "pipe is not a regular file; name one, or use - for a pipe"},
        {"/dev/null", TIDE_INVALID,
         "/dev/null is not a regular file; name one, or use - for a pipe"},
        {name, TIDE_INVALID,
         "the file name \"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…\" is longer than 240 bytes"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_sink_options options = kit_options(cases[i].place);
        expect_refused(&options, cases[i].status, cases[i].message);
        options.existing = TIDE_EXISTING_APPEND;
        expect_refused(&options, cases[i].status, cases[i].message);
    }
    assert_false(kit_exists("/dev/.null.tidemark"));
}

/* As a user without rights: root may write everywhere. */
static void open_without_rights_says_so(void **state)
{
    (void)state;
    assert_int_equal(chmod(".", 0755), 0);
    assert_int_equal(mkdir("out", 0555), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct tide_error err = {0};
        struct tide_sink *sink = NULL;
        struct tide_sink_options options = kit_options("out/x.ndjson");
        if (geteuid() == 0 && setuid(65534) != 0) {
            _exit(2);
        }
        tide_status status = ops->open(&options, &sink, &err);
        (void)fprintf(stderr, "%s\n", err.message);
        _exit(status == TIDE_IO && !err.retriable &&
                      strcmp(err.message, "cannot open out/x.ndjson: Permission denied") == 0
                  ? 0
                  : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(kit_exists("out/x.ndjson"));
}

static void open_twice_is_refused(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *first = kit_open(ops, &options);
    expect_refused(&options, TIDE_INVALID, "out.ndjson is being written by another process");
    ops->close(first);
    options = kit_options("dir/");
    first = kit_open(ops, &options);
    expect_refused(&options, TIDE_INVALID, "dir is being written by another process");
    ops->close(first);
}

static void flush_after_the_file_was_taken_away_is_not_held(void **state)
{
    (void)state;
    static const char *const message =
        "out.ndjson was moved, replaced or changed while it was being written";
    for (int what = 0; what < 3; what++) {
        struct tide_error err = {0};
        struct tide_sink_options options = kit_options("out.ndjson");
        options.existing = TIDE_EXISTING_OVERWRITE;
        struct tide_sink *sink = kit_open(ops, &options);
        if (what == 0) {
            assert_int_equal(unlink("out.ndjson"), 0);
        } else if (what == 1) {
            assert_int_equal(rename("out.ndjson", "out.1"), 0);
            kit_put("out.ndjson", "", 0);
        } else {
            append_bytes("out.ndjson", "a line of somebody else, longer than ours by very much, so "
                                       "that it lies behind all that is written in this test, for "
                                       "which two hundred and fifty bytes will have to be enough, "
                                       "as the frame of one change has some two hundred\n");
        }
        kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1));
        assert_int_equal(ops->flush(sink, true, &err), TIDE_STALE);
        assert_string_equal(err.message, message);
        struct tide_sink_held held;
        ops->held(sink, &held);
        assert_false(held.place.known);
        ops->close(sink);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(open_new_over_a_foreign_file_is_refused),
        TEST(open_new_over_copies_is_refused_by_whose_they_are),
        TEST(open_new_on_an_empty_or_unacknowledged_file_begins),
        TEST(open_append_goes_on_behind),
        TEST(open_append_leaves_a_database_alone),
        TEST(open_resumed_behind_an_open_line_ends_it),
        TEST(open_append_forgets_what_was_held),
        TEST(open_overwrite_replaces_and_keeps_the_mode),
        TEST(open_resumed_cuts_what_was_not_acknowledged),
        TEST(open_resumed_of_others_is_refused),
        TEST(open_resumed_without_record_is_refused),
        TEST(open_resumed_over_a_changed_file_is_refused),
        TEST(open_resumed_with_a_record_of_another_file_is_refused),
        TEST(open_directory_with_foreign_files),
        TEST(open_directory_resumed_checks_every_file_before_cutting_any),
        TEST(write_batch_for_a_table_whose_file_is_taken_is_refused),
        TEST(write_batch_two_tables_in_one_file_names_both),
        TEST(open_places_that_cannot_be),
        TEST(open_without_rights_says_so),
        TEST(open_twice_is_refused),
        TEST(flush_after_the_file_was_taken_away_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
