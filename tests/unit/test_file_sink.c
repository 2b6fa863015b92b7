#include "cmocka_prelude.h"

#include "sink/file/file_name.h"
#include "sink/file/file_sink.h"
#include "sink_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct tide_sink_ops *const ops = &tide_file_sink_ops;

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void write_script(struct tide_sink *sink)
{
    const struct tide_relation *t = kit_relation("t");
    const struct tide_relation *other = kit_relation("other");
    kit_write(ops, sink, kit_changes(other, 5, 1));
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = t,
                                         .snapshot = 1,
                                         .opening = TIDE_OPENING_BEGIN,
                                         .rows = 2,
                                         .note = "{\n \"a\":\r\n1}"}));
    kit_write(ops, sink, kit_changes(t, 9, 2));
    kit_write(ops, sink,
              kit_rows((struct kit_part){
                  .relation = t, .snapshot = 1, .first_seq = 2, .rows = 1, .is_end = true}));
}

static void write_batches_one_file_is_golden(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    write_script(sink);
    kit_assert_file("out.ndjson", ""); /* small: still in memory */
    kit_flush(ops, sink);
    kit_assert_golden("out.ndjson", "file_sink/one_file.ndjson");
    assert_int_equal(mode_of("out.ndjson"), 0600);
    assert_int_equal(mode_of(".out.ndjson.tidemark"), 0600);
    struct tide_sink_counts counts;
    ops->counts(sink, &counts);
    assert_int_equal(counts.rows, 3);
    assert_int_equal(counts.changes, 3);
    assert_int_equal(counts.stubs, 0);
    struct stat st;
    assert_int_equal(stat("out.ndjson", &st), 0);
    assert_int_equal(counts.bytes, st.st_size);
    ops->close(sink);
}

static void write_batch_from_first_change_leaves_out_what_is_held(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_sink_options options = kit_options("all.ndjson");
    struct tide_sink *all = kit_open(ops, &options);
    kit_write(ops, all, kit_changes(kit_relation("t"), 9, 3));
    kit_flush(ops, all);
    ops->close(all);
    options = kit_options("some.ndjson");
    struct tide_sink *some = kit_open(ops, &options);
    struct tide_batch *batch = kit_changes(kit_relation("t"), 9, 3);
    assert_int_equal(ops->write_batch(some, batch, 2, &err), TIDE_OK);
    assert_int_equal(ops->write_batch(some, batch, 3, &err), TIDE_OK);
    tide_batch_unref(batch);
    kit_flush(ops, some);
    ops->close(some);
    size_t all_len = 0;
    char *bytes = kit_read("all.ndjson", &all_len);
    assert_non_null(bytes);
    const char *third = strchr(strchr(bytes, '\n') + 1, '\n') + 1;
    kit_assert_file("some.ndjson", third);
    free(bytes);
}

static void held_follows_flush_not_write(void **state)
{
    (void)state;
    struct tide_sink_held held;
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    const struct tide_relation *t = kit_relation("t");
    kit_write(ops, sink, kit_changes(t, 9, 2));
    kit_write(ops, sink,
              kit_rows((struct kit_part){
                  .relation = t, .snapshot = 1, .opening = TIDE_OPENING_BEGIN, .rows = 2}));
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = t,
                                         .snapshot = 2,
                                         .opening = TIDE_OPENING_RESUME,
                                         .attempt = 3,
                                         .first_seq = 40,
                                         .rows = 2}));
    ops->held(sink, &held);
    assert_true(held.is_known);
    assert_false(held.place.known);
    assert_int_equal(held.snapshot_count, 0);
    kit_flush(ops, sink);
    ops->held(sink, &held);
    assert_true(held.place.known);
    assert_int_equal(held.place.position.lo, 9);
    assert_true(held.place.index == TIDE_INDEX_AFTER_ALL);
    assert_int_equal(held.snapshot_count, 2);
    assert_int_equal(held.snapshots[0].next_seq, 2);
    assert_int_equal(held.snapshots[1].next_seq, 42);
    assert_int_equal(held.snapshots[1].attempt, 3);
    kit_write(
        ops, sink,
        kit_rows((struct kit_part){.relation = t, .snapshot = 1, .first_seq = 2, .is_end = true}));
    kit_flush(ops, sink);
    ops->held(sink, &held);
    assert_int_equal(held.snapshot_count, 2);
    char id[TIDE_UUID_LEN + 1];
    kit_snapshot_id(2, id);
    assert_string_equal(held.snapshots[0].id, id);
    assert_true(held.snapshots[1].next_seq == TIDE_SEQ_ENDED);
    ops->close(sink);
}

static void write_batch_part_of_a_transaction_holds_its_last_change(void **state)
{
    (void)state;
    struct tide_sink_held held;
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    struct tide_batch *batch = kit_changes(kit_relation("t"), 9, 2);
    batch->has_position = false;
    kit_write(ops, sink, batch);
    kit_flush(ops, sink);
    ops->held(sink, &held);
    assert_int_equal(held.place.position.lo, 9);
    assert_int_equal(held.place.index, 1);
    ops->close(sink);
}

static void write_batch_large_is_written_before_flush(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 5000));
    struct stat st;
    assert_int_equal(stat("out.ndjson", &st), 0);
    assert_true(st.st_size > 256 * 1024);
    kit_flush(ops, sink);
    ops->close(sink);
}

static void oversize_row_and_change_are_letters_first(void **state)
{
    (void)state;
    struct kit_letters letters = {0};
    struct tide_sink_options options = kit_options("out.ndjson");
    options.record_bytes_max = 60;
    options.dead_letters = kit_letters_target(&letters);
    struct tide_sink *sink = kit_open(ops, &options);
    const char *name = "a name that is too long for a record of sixty bytes, as one can see";
    kit_write(ops, sink,
              kit_rows((struct kit_part){
                  .relation = kit_relation("t"), .snapshot = 1, .rows = 1, .name = name}));
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 9, name));
    kit_flush(ops, sink);
    assert_string_equal(tide_buf_cstr(&letters.text),
                        "shop.t|file:out.ndjson|97 bytes, limit 60|97|0\n"
                        "shop.t|file:out.ndjson|99 bytes, limit 60|99|9\n");
    kit_assert_golden("out.ndjson", "file_sink/oversize.ndjson");
    struct tide_sink_counts counts;
    ops->counts(sink, &counts);
    assert_int_equal(counts.rows, 0);
    assert_int_equal(counts.stubs, 1);
    assert_int_equal(counts.changes, 1);
    ops->close(sink);
    tide_buf_done(&letters.text);
}

static void oversize_without_a_kept_letter_writes_no_stub(void **state)
{
    (void)state;
    struct tide_error err;
    struct kit_letters letters = {.fails = true};
    for (int with_letters = 0; with_letters < 2; with_letters++) {
        struct tide_sink_options options = kit_options(with_letters ? "a.ndjson" : "b.ndjson");
        options.record_bytes_max = 20;
        if (with_letters) {
            options.dead_letters = kit_letters_target(&letters);
        }
        struct tide_sink *sink = kit_open(ops, &options);
        struct tide_batch *batch = kit_changes(kit_relation("t"), 9, 1);
        tide_status status = ops->write_batch(sink, batch, 0, &err);
        tide_batch_unref(batch);
        assert_int_equal(status, with_letters ? TIDE_IO : TIDE_INVALID);
        assert_string_equal(err.message,
                            with_letters ? "the letters are full"
                                         : "a record of shop.t has 40 bytes, limit 20, and there "
                                           "are no dead letters to keep it in");
        kit_flush(ops, sink);
        kit_assert_file(with_letters ? "a.ndjson" : "b.ndjson", "");
        ops->close(sink);
    }
}

static void file_name_of_any_store_is_safe(void **state)
{
    (void)state;

    static const struct {
        tide_str store;
        const char *want;
    } cases[] = {
        {TIDE_STR("shop.users"), "shop.users.ndjson"},
        {TIDE_STR("shop.Us-er_9"), "shop.Us-er_9.ndjson"},
        {TIDE_STR("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd.ndjson"},
        {TIDE_STR(".hidden"), "%2Ehidden.ndjson"},
        {TIDE_STR("a%2Fb"), "a%252Fb.ndjson"},
        {TIDE_STR("a b\n\0~*"), "a%20b%0A%00%7E%2A.ndjson"},
        {TIDE_STR("\xc3\xa4"), "%C3%A4.ndjson"},
        {TIDE_STR(""), ".ndjson"},
    };
    struct tide_buf name = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tide_buf_reset(&name);
        tide_file_name_append(&name, cases[i].store);
        assert_string_equal(tide_buf_cstr(&name), cases[i].want);
    }
    tide_buf_done(&name);
}

/* Around the limit: never longer, different for different stores, never cut inside a %XX. */
static void file_name_of_long_store_is_cut_with_a_hash(void **state)
{
    (void)state;
    char store[400];
    char previous[300] = "";
    struct tide_buf name = {0};
    for (size_t len = 150; len < sizeof(store); len++) {
        memset(store, len % 2 == 0 ? 'a' : '/', len);
        store[0] = 'x';
        tide_buf_reset(&name);
        tide_file_name_append(&name, tide_str_of(store, len));
        size_t escaped = len % 2 == 0 ? len : 1 + 3 * (len - 1);
        assert_true(name.len <= TIDE_FILE_NAME_MAX);
        assert_int_equal(strchr(tide_buf_cstr(&name), '~') != NULL, escaped + 7 > 200);
        assert_string_not_equal(tide_buf_cstr(&name), previous);
        if (len % 2 != 0) {
            assert_memory_equal(strchr(tide_buf_cstr(&name), '~') - 3, "%2F", 3);
        }
        memcpy(previous, tide_buf_cstr(&name), name.len + 1);
    }
    tide_buf_done(&name);
}

static void directory_gives_each_table_a_file(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options("out/deep/");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("../up"), 1, 1));
    kit_write(ops, sink, kit_changes(kit_relation("a b"), 2, 2));
    kit_write(ops, sink, kit_changes(kit_relation("../up"), 3, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_int_equal(mode_of("out"), 0700);
    assert_int_equal(mode_of("out/deep"), 0700);
    assert_int_equal(mode_of("out/deep/shop.a%20b.ndjson"), 0600);
    assert_int_equal(mode_of("out/deep/.tidemark-held"), 0600);
    kit_assert_golden("out/deep/shop...%2Fup.ndjson", "file_sink/up.ndjson");
    kit_assert_golden("out/deep/shop.a%20b.ndjson", "file_sink/a_b.ndjson");
}

static void directory_without_slash_is_a_directory_too(void **state)
{
    (void)state;
    assert_int_equal(mkdir("out", 0755), 0);
    struct tide_sink_options options = kit_options("out");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_true(kit_exists("out/shop.t.ndjson"));
    assert_int_equal(mode_of("out"), 0755); /* not ours to change */
}

/* More tables than files may be open: each file has its frames, and a second run goes on. */
static void directory_of_many_tables_keeps_all_apart(void **state)
{
    (void)state;
    char name[40];
    struct tide_sink_options options = kit_options("out/");
    for (uint64_t run = 1; run <= 2; run++) {
        options.is_resumed = run == 2;
        struct tide_sink *sink = kit_open(ops, &options);
        for (unsigned i = 0; i < 600; i++) {
            (void)snprintf(name, sizeof(name), "table %u", i % 300);
            kit_write(ops, sink, kit_changes(kit_relation(name), run * 1000 + i, 1));
        }
        kit_flush(ops, sink);
        ops->close(sink);
    }
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "out/shop.table%%20%u.ndjson", i);
        size_t len = 0;
        char *bytes = kit_read(name, &len);
        assert_non_null(bytes);
        char *at = bytes;
        for (unsigned k = 0; k < 4; k++) {
            char want[40];
            (void)snprintf(want, sizeof(want), "\"position\":%u,",
                           (k / 2 + 1) * 1000 + i + k % 2 * 300);
            at = strstr(at, want);
            assert_non_null(at);
            at = strchr(at, '\n') + 1;
        }
        assert_ptr_equal(at, bytes + len);
        free(bytes);
    }
}

/* A disk of 1 MiB: full is an error that may pass, and once there is room the copy goes on. */
static void full_disk_is_retriable_and_loses_nothing_held(void **state)
{
    (void)state;
    assert_int_equal(mkdir("disk", 0700), 0);
    if (mount("none", "disk", "tmpfs", 0, "size=1m") != 0) {
        print_message("skipped: no right to mount a small file system\n");
        skip();
    }
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options("disk/out.ndjson");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1500));
    kit_flush(ops, sink);
    struct stat held;
    assert_int_equal(stat("disk/out.ndjson", &held), 0);
    struct tide_batch *batch = kit_changes(kit_relation("t"), 2, 4000);
    tide_status status = ops->write_batch(sink, batch, 0, &err);
    tide_batch_unref(batch);
    if (status == TIDE_OK) {
        status = ops->flush(sink, true, &err);
    }
    ops->close(sink);
    assert_int_equal(status, TIDE_IO);
    assert_true(err.retriable);
    assert_string_equal(err.message, "cannot write disk/out.ndjson: No space left on device");
    options.is_resumed = true;
    sink = kit_open(ops, &options); /* frees what was not held */
    struct stat now;
    assert_int_equal(stat("disk/out.ndjson", &now), 0);
    assert_int_equal(now.st_size, held.st_size);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 2, 100));
    kit_flush(ops, sink);
    ops->close(sink);
    size_t len = 0;
    char *bytes = kit_read("disk/out.ndjson", &len);
    assert_non_null(bytes);
    assert_string_equal(bytes + len - 15, ",\"note\":null}}\n");
    free(bytes);
}

static int unmount_and_teardown(void **state)
{
    (void)umount2("disk", MNT_DETACH);
    return kit_teardown(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(write_batches_one_file_is_golden),
        TEST(write_batch_from_first_change_leaves_out_what_is_held),
        TEST(held_follows_flush_not_write),
        TEST(write_batch_part_of_a_transaction_holds_its_last_change),
        TEST(write_batch_large_is_written_before_flush),
        TEST(oversize_row_and_change_are_letters_first),
        TEST(oversize_without_a_kept_letter_writes_no_stub),
        TEST(file_name_of_any_store_is_safe),
        TEST(file_name_of_long_store_is_cut_with_a_hash),
        TEST(directory_gives_each_table_a_file),
        TEST(directory_without_slash_is_a_directory_too),
        TEST(directory_of_many_tables_keeps_all_apart),
        cmocka_unit_test_setup_teardown(full_disk_is_retriable_and_loses_nothing_held, kit_setup,
                                        unmount_and_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
