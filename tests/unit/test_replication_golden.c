/*
 * What the crate has sent is followed, and what is sent here is what the crate has followed: the
 * streams are in tests/golden/wire, with the program that made and applied them.
 */
#include "replication_kit.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "format/wire/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_golden(const char *name, struct tide_buf *ret_bytes)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/golden/wire/%s", TIDE_TEST_ROOT, name);
    kit_ok(&kit, tide_file_read(path, TIDE_MIB, ret_bytes, &kit.err));
}

/* An archive of the crate: 20 rows of each of two series sealed, 10 live. */
static void stream_of_the_crate_makes_its_archive(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    struct tide_subscriber_counts counts;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    read_golden("published.bin", &stream);
    for (int time = 0; time < 2; time++) { /* the second time all of it is there */
        if (time == 0) {
            follow_open(&follow, &kit, "copy.tide");
        }
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
        follow_end(&follow);
        struct archive_kit copy = kit;
        copy.writer = NULL;
        copy.source = 1;
        memcpy(copy.path, follow.path, sizeof(copy.path));
        assert_string_equal(kit_times(&copy, "a"), "1-30");
        assert_string_equal(kit_times(&copy, "b"), "1-30");
        assert_int_equal(kit_number(&copy, "SELECT COUNT(*) FROM segments"), 2);
        assert_int_equal(kit_number(&copy, "SELECT COUNT(*) FROM caller_rows"), 1);
        assert_int_equal(kit_number(&copy, "SELECT complete FROM sources"), 1);
        assert_int_equal(kit_verify(&copy), 0);
    }
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.rows, 20);
    assert_int_equal(counts.rows_held, 20);
    assert_int_equal(counts.segments_held, 2);
    assert_int_equal(counts.index_entries_held, 1);
    follow_close(&follow);
}

static void write_note(const char *series, int64_t ts, const char *text)
{
    const struct tide_archive_note note = {kit_series(&kit, series), ts, tide_str_from(text)};
    const struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

static void send_all(struct tide_publisher *publisher, struct tide_buf *stream)
{
    for (bool is_caught_up = false; !is_caught_up;) {
        kit_ok(&kit, tide_publisher_next(publisher, stream, 1000, &is_caught_up, &kit.err));
    }
    kit_ok(&kit, tide_publisher_keepalive(publisher, stream, &kit.err));
}

/* The same stream, with what is drawn at random in an archive set. */
static void make_repeatable(tide_str stream, struct tide_buf *ret_stream)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf pairs = {0};
    struct tide_wire_reader reader = tide_wire_reader_of(stream);
    struct tide_wire_frame frame;
    tide_wire_pair_append(&pairs, TIDE_STR("writer"), TIDE_STR("test"));
    tide_wire_preamble_append(ret_stream);
    tide_status status = TIDE_OK;
    while ((status = tide_wire_reader_next(&reader, &frame, &kit.err)) == TIDE_OK) {
        if (frame.kind == TIDE_WIRE_HANDSHAKE) {
            frame.handshake.uuid = TIDE_STR("3f2b1c4d-0000-4000-8000-00000000abcd");
            frame.handshake.metadata = (struct tide_wire_map){1, tide_buf_str(&pairs)};
        }
        kit_ok(&kit, tide_wire_encode(&frame, ret_stream, &kit.err));
    }
    assert_int_equal(status, TIDE_END);
}

static void stream_that_is_sent_is_one_that_the_crate_has_applied(void **state)
{
    (void)state;
    const struct tide_publisher_options all = {0};
    struct tide_publisher *publisher = NULL;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sent = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf golden = {0};
    const char *keep = getenv("TIDEMARK_GOLDEN_STREAM"); /* a file to write it to, for the crate */
    write_note("a", 1, "columns of a");
    kit_ok(&kit, kit_write(&kit, "a", 1, 20));
    kit_ok(&kit, kit_write(&kit, "b", 1, 10));
    kit_ok(&kit, kit_seal(&kit, "a"));
    kit_ok(&kit, kit_write(&kit, "a", 21, 25));
    kit_ok(&kit, tide_publisher_open(kit.path, &all, &publisher, &kit.err));
    send_all(publisher, &sent);
    write_note("a", 26, "columns of a, changed");
    kit_ok(&kit, kit_write(&kit, "a", 26, 30));
    send_all(publisher, &sent);
    kit_ok(&kit, kit_seal(&kit, "a")); /* all of it was sent */
    kit_ok(&kit, kit_write(&kit, "c", 31, 33));
    kit_ok(&kit, kit_seal(&kit, "c")); /* none of it was */
    kit_ok(&kit, kit_write(&kit, "a", 31, 33));
    send_all(publisher, &sent);
    tide_publisher_close(publisher);
    make_repeatable(tide_buf_str(&sent), &stream);
    if (keep != NULL) {
        FILE *file = fopen(keep, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(stream.ptr, 1, stream.len, file), stream.len);
        assert_int_equal(fclose(file), 0);
    }
    read_golden("sent.bin", &golden);
    assert_true(tide_str_equal(tide_buf_str(&stream), tide_buf_str(&golden)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stream_of_the_crate_makes_its_archive, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(stream_that_is_sent_is_one_that_the_crate_has_applied,
                                        kit_setup_test, kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
