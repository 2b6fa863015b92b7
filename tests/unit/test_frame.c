#include "cmocka_prelude.h"

#include "base/buf.h"
#include "base/fsio.h"
#include "format/frame.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "\"snapshot_id\":\"01a22789-8c8f-7abc-8def-0123456789ab\","                                    \
    "\"snapshot_at\":\"2026-11-29T13:40:55.567Z\",\"timestamp\":\"2026-11-29T13:40:55.567Z\","     \
    "\"store\":\"shop.orders\",\"seq\":7"
#define ROW "{\"kind\":\"row\"," HEAD ",\"record\":{\"id\":1}}"

static tide_status decode(tide_str line, struct tide_frame *ret_frame, struct tide_error *err)
{
    static struct tide_frame_decoder decoder;
    decoder = (struct tide_frame_decoder){0};
    return tide_frame_decode(&decoder, line, ret_frame, err);
}

static struct tide_frame decode_good(const char *line)
{
    struct tide_frame frame;
    struct tide_error err = {0};
    tide_status status = decode(tide_str_from(line), &frame, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TIDE_OK);
    return frame;
}

static void assert_text(tide_str got, const char *want)
{
    assert_non_null(got.ptr);
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void decode_row_gives_the_record_as_written(void **state)
{
    (void)state;
    struct tide_frame frame = decode_good("{\"kind\":\"row\"," HEAD
                                          ",\"record\":{\"a\" : 1.50, \"b\":[1e0]},\"position\":"
                                          "\"0/16B3748\",\"incarnation\":2,\"attempt\":3}");
    assert_int_equal(frame.kind, TIDE_FRAME_ROW);
    assert_text(frame.snapshot_id, "01a22789-8c8f-7abc-8def-0123456789ab");
    assert_text(frame.snapshot_at, "2026-11-29T13:40:55.567Z");
    assert_text(frame.timestamp, "2026-11-29T13:40:55.567Z");
    assert_text(frame.store, "shop.orders");
    assert_int_equal(frame.seq, 7);
    assert_text(frame.record, "{\"a\" : 1.50, \"b\":[1e0]}");
    assert_text(frame.position, "\"0/16B3748\"");
    assert_int_equal(frame.incarnation, 2);
    assert_int_equal(frame.attempt, 3);
    assert_false(frame.has_total);
    assert_null(frame.row_key.ptr);
}

static void decode_begin_and_end_give_their_tails(void **state)
{
    (void)state;
    struct tide_frame frame =
        decode_good("{\"kind\":\"begin\"," HEAD ",\"total\":18446744073709551615}");
    assert_int_equal(frame.kind, TIDE_FRAME_BEGIN);
    assert_true(frame.has_total);
    assert_int_equal(frame.total, UINT64_MAX);
    assert_false(frame.changes_from.is_given);
    frame = decode_good("{\"kind\":\"begin\"," HEAD ",\"changes_from\":null}");
    assert_true(frame.changes_from.is_given);
    assert_false(frame.changes_from.is_known);
    frame = decode_good(
        "{\"kind\":\"end\"," HEAD ",\"row_count\":9,\"completed_at\":\"T\","
        "\"changes_to\":[{\"file\":\"b.01\",\"pos\":4},5],\"starts\":[4,7],\"attempt\":2}");
    assert_int_equal(frame.row_count, 9);
    assert_text(frame.completed_at, "T");
    assert_true(frame.changes_to.is_known);
    assert_text(frame.changes_to.position, "{\"file\":\"b.01\",\"pos\":4}");
    assert_int_equal(frame.changes_to.index, 5);
    uint64_t starts[2];
    assert_int_equal(frame.starts_count, 2);
    tide_frame_read_starts(&frame, starts);
    assert_int_equal(starts[0], 4);
    assert_int_equal(starts[1], 7);
}

static void decode_stub_keeps_an_empty_key_apart_from_none(void **state)
{
    (void)state;
    struct tide_frame frame = decode_good("{\"kind\":\"oversize\"," HEAD ",\"bytes\":12}");
    assert_int_equal(frame.bytes, 12);
    assert_null(frame.row_key.ptr);
    frame = decode_good("{\"kind\":\"oversize\"," HEAD ",\"bytes\":12,\"row_key\":\"\"}");
    assert_text(frame.row_key, "\"\"");
}

static void decode_change_gives_its_place_and_the_one_before(void **state)
{
    (void)state;
    struct tide_frame frame = decode_good(
        "{\"kind\":\"change\",\"op\":\"update\",\"timestamp\":\"T\",\"store\":\"a\\\"b\","
        "\"position\":5,\"index\":2,\"prev\":[4,1],\"tx\":\"9\",\"key\":{\"id\":1},"
        "\"moved_from\":{\"id\":2},\"oversize\":77,\"unchanged\":[\"c\"]}");
    assert_int_equal(frame.kind, TIDE_FRAME_CHANGE);
    assert_text(frame.op, "update");
    assert_true(frame.store_has_escapes);
    assert_text(frame.store, "a\\\"b");
    assert_text(frame.position, "5");
    assert_int_equal(frame.index, 2);
    assert_text(frame.prev.position, "4");
    assert_int_equal(frame.prev.index, 1);
    assert_text(frame.moved_from, "{\"id\":2}");
    assert_int_equal(frame.oversize, 77);
    assert_null(frame.record.ptr);
}

static void decode_takes_other_orders_spaces_and_unknown_keys(void **state)
{
    (void)state;
    struct tide_frame frame = decode_good(
        " { \"record\" : [1, {\"kind\":\"end\"}] , "
        "\"seq\":3,\"store\":\"s\",\"later\":{\"seq\":[9]},"
        "\"timestamp\":\"t\",\"snapshot_at\":\"a\",\"snapshot_id\":\"i\",\"k\\u0069nd\":\"row\","
        "\"_timestamp_fetcher\":1,\"_timestamp_received\":2,\"_source\":\"x\",\"_source_fetcher\":"
        "\"y\"}\r");
    assert_int_equal(frame.kind, TIDE_FRAME_ROW);
    assert_int_equal(frame.seq, 3);
    assert_text(frame.record, "[1, {\"kind\":\"end\"}]");
    assert_text(frame.received, "2");
}

struct bad_case {
    const char *line;
    const char *message; /* how it begins */
};

static const struct bad_case bad_cases[] = {
    {"", "not valid JSON at byte 0"},
    {"garbage", "not valid JSON at byte 0"},
    {"[]", "at byte 0: wanted an object"},
    {"{}", "at byte 1: not a frame, it has no \"kind\""},
    {ROW "x", "not valid JSON at byte"},
    {ROW ROW, "not valid JSON at byte"},
    {"{\"kind\":\"rows\"," HEAD ",\"record\":1}", "at byte 8: \"kind\" wants begin, row,"},
    {"{\"kind\":3," HEAD ",\"record\":1}", "at byte 8: \"kind\" wants"},
    {"{\"kind\":\"row\"," HEAD "}", "at byte 176: row frame without \"record\""},
    {"{\"kind\":\"row\"," HEAD ",\"record\":1,\"seq\":7}",
     "at byte 188: the key \"seq\" comes twice"},
    {"{\"kind\":\"row\"," HEAD ",\"record\":1,\"s\\u0065q\":7}",
     "at byte 188: the key \"seq\" comes"},
    {"{\"kind\":\"row\"," HEAD ",\"record\":1,\"attempt\":-1}", "at byte 198: \"attempt\" wants"},
    {"{\"kind\":\"row\"," HEAD ",\"record\":1,\"attempt\":65537}", "at byte 203: attempt 65537 is"},
    {"{\"kind\":\"row\"," HEAD ",\"record\":{\"a\":tru}}", "not valid JSON at byte 191"},
    {"{\"kind\":\"row\"," HEAD ".0,\"record\":1}", "at byte 175: \"seq\" wants"},
    {"{\"kind\":\"end\"," HEAD ",\"row_count\":1,\"attempt\":1}",
     "at byte 202: 0 starts in a frame"},
    {"{\"kind\":\"end\"," HEAD ",\"row_count\":1,\"starts\":[1,null],\"attempt\":2}",
     "at byte 200: \"starts\""},
    {"{\"kind\":\"end\"," HEAD ",\"row_count\":1,\"changes_to\":[1]}",
     "at byte 204: \"changes_to\" wants"},
    {"{\"kind\":\"end\"," HEAD ",\"row_count\":1,\"changes_to\":[1,2,3]}",
     "at byte 204: \"changes_to\""},
    {"{\"kind\":\"resume\"," HEAD ",\"attempt\":1}",
     "at byte 191: resume frame without \"starts\""},
    {"{\"kind\":\"oversize\"," HEAD "}", "at byte 181: oversize frame without \"bytes\""},
    {"{\"kind\":\"change\",\"op\":\"insert\",\"timestamp\":\"T\",\"store\":\"s\",\"position\":1,"
     "\"index\":0}",
     "at byte 81: change frame without \"prev\""},
};

static void decode_bad_lines_are_corrupt_and_say_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_cases) / sizeof(bad_cases[0]); i++) {
        struct tide_frame frame;
        struct tide_error err = {0};
        assert_int_equal(decode(tide_str_from(bad_cases[i].line), &frame, &err), TIDE_CORRUPT);
        if (strncmp(err.message, bad_cases[i].message, strlen(bad_cases[i].message)) != 0) {
            fail_msg("%s\n  gives %s\n  not %s", bad_cases[i].line, err.message,
                     bad_cases[i].message);
        }
    }
}

static void decode_without_any_head_field_is_corrupt(void **state)
{
    (void)state;
    const char *const fields[] = {"\"snapshot_id\":\"i\"", "\"snapshot_at\":\"a\"",
                                  "\"timestamp\":\"t\"", "\"store\":\"s\"", "\"seq\":0"};
    for (size_t without = 0; without <= 5; without++) {
        struct tide_buf line TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&line, "{\"kind\":\"begin\"");
        for (size_t i = 0; i < 5; i++) {
            tide_buf_printf(&line, "%s%s", i == without ? "" : ",", i == without ? "" : fields[i]);
        }
        tide_buf_append_char(&line, '}');
        struct tide_frame frame;
        struct tide_error err;
        assert_int_equal(decode(tide_buf_str(&line), &frame, &err),
                         without == 5 ? TIDE_OK : TIDE_CORRUPT);
    }
}

/* Every prefix of a frame is refused, also after the frame itself was read, and is known for cut
 * off once it has begun. */
static void check_prefixes(tide_str line)
{
    struct tide_frame frame;
    struct tide_error err;
    static struct tide_frame_decoder after;
    assert_int_equal(decode(line, &frame, &err), TIDE_OK);
    assert_int_equal(tide_frame_decode(&after, line, &frame, &err), TIDE_OK);
    assert_false(tide_frame_is_cut_off(line));
    for (size_t len = 0; len < line.len; len++) {
        char *copy = malloc(len + 1); /* so that a sanitizer sees a byte read too much */
        memcpy(copy, line.ptr, len);
        assert_int_equal(decode(tide_str_of(copy, len), &frame, &err), TIDE_CORRUPT);
        assert_int_equal(tide_frame_decode(&after, tide_str_of(copy, len), &frame, &err),
                         TIDE_CORRUPT);
        assert_int_equal(tide_frame_is_cut_off(tide_str_of(copy, len)), len > 0);
        free(copy);
    }
}

static void decode_every_prefix_of_the_writers_frames_is_corrupt(void **state)
{
    (void)state;
    DIR *dir = opendir(TIDE_TEST_ROOT "/golden/envelope");
    assert_non_null(dir);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_error err;
        tide_buf_printf(&path, TIDE_TEST_ROOT "/golden/envelope/%s", entry->d_name);
        assert_int_equal(tide_file_read(tide_buf_cstr(&path), 65536, &bytes, &err), TIDE_OK);
        while (bytes.len > 0 && bytes.ptr[bytes.len - 1] == '\n') {
            bytes.len--;
        }
        check_prefixes(tide_buf_str(&bytes));
        count++;
    }
    closedir(dir);
    assert_true(count >= 6);
}

static void is_cut_off_garbage_is_not(void **state)
{
    (void)state;
    assert_false(tide_frame_is_cut_off(TIDE_STR("hello")));
    assert_false(tide_frame_is_cut_off(TIDE_STR("{}x")));
    assert_false(tide_frame_is_cut_off(TIDE_STR("\"{")));
    assert_true(tide_frame_is_cut_off(TIDE_STR("{\"a}\\\"}")));
}

/* The quick way through known heads says the same as a fresh decoder, line by line. */
static void decode_rows_in_a_row_equals_decoding_each_alone(void **state)
{
    (void)state;
    const char *const lines[] = {
        ROW,
        "{\"kind\":\"row\"," HEAD "1,\"record\":null}",
        "{\"kind\":\"row\"," HEAD "2,\"record\":null,\"position\":4,\"attempt\":1}",
        "{\"kind\":\"row\"," HEAD "2,\"record\":null,\"record\":4}",
        "{\"kind\":\"row\"," HEAD "2,\"record\":nul}",
        "{\"kind\":\"row\"," HEAD "2,\"record\":null,}",
        "{\"kind\":\"row\"," HEAD "2,\"kind\":\"end\",\"row_count\":1}",
        "{\"kind\":\"row\"," HEAD "99999999999999999999,\"record\":1}",
        "{\"kind\":\"row\"," HEAD ",\"record\":1",
        "{\"kind\":\"row\"," HEAD,
        "{\"kind\":\"end\"," HEAD ",\"row_count\":1}",
        ROW " ",
        "{\"kind\":\"row\"," HEAD "5,\"record\":\"\xff\"}",
    };
    static struct tide_frame_decoder decoder;
    for (size_t i = 0; i < 13 * 13; i++) {
        tide_str line = tide_str_from(lines[i % 2 == 0 ? i / 2 % 13 : i * 7 % 13]);
        struct tide_frame alone = {0};
        struct tide_frame after = {0};
        struct tide_error alone_err = {0};
        struct tide_error after_err = {0};
        tide_status status = decode(line, &alone, &alone_err);
        assert_int_equal(tide_frame_decode(&decoder, line, &after, &after_err), status);
        assert_string_equal(after_err.message, alone_err.message);
        assert_int_equal(after.seq, alone.seq);
        assert_int_equal(after.attempt, alone.attempt);
        assert_true(after.record.ptr == alone.record.ptr && after.record.len == alone.record.len);
        assert_true(tide_str_equal(after.store, alone.store));
    }
}

/* The quick and the careful way stop at the same depth: the frame itself is one level. */
static void decode_nesting_is_limited(void **state)
{
    (void)state;
    static struct tide_frame_decoder decoder;
    for (size_t depth = TIDE_JSON_DEPTH_MAX - 2; depth <= TIDE_JSON_DEPTH_MAX; depth++) {
        struct tide_buf line TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_frame frame;
        struct tide_error err;
        tide_buf_printf(&line, "{\"kind\":\"row\"," HEAD ",\"record\":");
        for (size_t i = 0; i < depth * 2; i++) {
            tide_buf_append_char(&line, i < depth ? '[' : ']');
        }
        tide_buf_append_char(&line, '}');
        tide_status want = depth < TIDE_JSON_DEPTH_MAX ? TIDE_OK : TIDE_CORRUPT;
        assert_int_equal(decode(tide_buf_str(&line), &frame, &err), want);
        assert_int_equal(tide_frame_decode(&decoder, tide_buf_str(&line), &frame, &err), want);
    }
}

static void decode_changed_bytes_never_crash(void **state)
{
    (void)state;
    uint64_t seed = 3;
    const char *line = "{\"kind\":\"row\"," HEAD
                       ",\"record\":{\"id\":1,\"t\":\"a\\u00e9\"},\"position\":[1],\"attempt\":1}";
    size_t len = strlen(line);
    char *copy = malloc(len);
    static struct tide_frame_decoder decoder;
    for (int i = 0; i < 20000; i++) {
        memcpy(copy, line, len);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[(seed >> 33) % len] = "\"{}[]:,\\0 x\xff"[(seed >> 20) % 12];
        }
        struct tide_frame frame;
        struct tide_error err;
        tide_status status = tide_frame_decode(&decoder, tide_str_of(copy, len), &frame, &err);
        assert_true(status == TIDE_OK || status == TIDE_CORRUPT);
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_row_gives_the_record_as_written),
        cmocka_unit_test(decode_begin_and_end_give_their_tails),
        cmocka_unit_test(decode_stub_keeps_an_empty_key_apart_from_none),
        cmocka_unit_test(decode_change_gives_its_place_and_the_one_before),
        cmocka_unit_test(decode_takes_other_orders_spaces_and_unknown_keys),
        cmocka_unit_test(decode_bad_lines_are_corrupt_and_say_where),
        cmocka_unit_test(decode_without_any_head_field_is_corrupt),
        cmocka_unit_test(decode_every_prefix_of_the_writers_frames_is_corrupt),
        cmocka_unit_test(is_cut_off_garbage_is_not),
        cmocka_unit_test(decode_rows_in_a_row_equals_decoding_each_alone),
        cmocka_unit_test(decode_nesting_is_limited),
        cmocka_unit_test(decode_changed_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
