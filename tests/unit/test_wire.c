#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "bytes_kit.h"
#include "format/wire/wire.h"
#include "soak.h"
#include "wire_kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LENGTH_SIZE  4

/* Golden frames: what each of them says. */

#define STATE                                                                                      \
    {                                                                                              \
        5, 6                                                                                       \
    }

static const char uuid[] = "3f2b1c4d-0000-4000-8000-00000000abcd";

static const struct {
    const char *name;
    struct tide_wire_frame frame;
} golden[] = {
    {"handshake",
     {.kind = TIDE_WIRE_HANDSHAKE,
      .handshake = {.has_uuid = true,
                    .uuid = {uuid, sizeof(uuid) - 1},
                    .labels = {1, {"\6\0\0\0source\1\0\0\0a", 15}},
                    .clock_anchor_wall_ns = 1700000000000000000,
                    .is_complete = true}}},
    {"index",
     {.kind = TIDE_WIRE_INDEX,
      .index = {{"s", 1}, .ts = 500, .is_delta = false, .state = STATE, .bytes = {"full@500", 8}}}},
    {"rows",
     {.kind = TIDE_WIRE_ROWS,
      .rows = {.seq = 0,
               .state = STATE,
               .count = 1,
               .rows = {"\1\0\0\0s"
                        "\xe8\3\0\0\0\0\0\0"
                        "\7\0\0\0\0\0\0\0"
                        "\x8\0\0\0"
                        "\xe8\3\0\0\0\0\0\0",
                        33}}}},
    {"rows_none", {.kind = TIDE_WIRE_ROWS, .rows = {.seq = 1, .state = STATE}}},
    {"segment",
     {.kind = TIDE_WIRE_SEGMENT,
      .segment = {{"s", 1}, 2, 1000, 2000, {"1000,2000", 9}, true, {"idx", 3}}}},
    {"segment_plain",
     {.kind = TIDE_WIRE_SEGMENT,
      .segment = {{"s", 1}, 2, 1000, 2000, {"1000,2000", 9}, false, {"", 0}}}},
    {"clock_offset",
     {.kind = TIDE_WIRE_CLOCK_OFFSET, .source = 4, .clock_offset = {INT64_MIN, INT64_MAX}}},
};

static void read_golden(struct tide_buf *text)
{
    struct tide_error err = {0};
    if (tide_file_read(TIDE_TEST_ROOT "/golden/wire/frames.txt", TIDE_MIB, text, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    (void)tide_buf_cstr(text);
}

/* The bytes of the golden frame of that name, its length included. */
static void golden_bytes(const char *name, struct tide_buf *ret_bytes)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    char start[40];
    read_golden(&text);
    (void)snprintf(start, sizeof(start), "%s ", name);
    const char *line = text.ptr;
    while (strncmp(line, start, strlen(start)) != 0) {
        line = strchr(line, '\n');
        assert_non_null(line);
        line++;
    }
    const char *hex = line + strlen(start);
    tide_buf_reset(ret_bytes);
    bytes_unhex(tide_str_of(hex, strcspn(hex, "\n")), ret_bytes);
}

static tide_str body_of(tide_str frame)
{
    return tide_str_of(frame.ptr + LENGTH_SIZE, frame.len - LENGTH_SIZE);
}

/* Decodes from memory of just that size. What was decoded is printed, so that all of it is read. */
static tide_status decode_exact(tide_str body, struct tide_buf *ret_text, struct tide_error *err)
{
    struct tide_wire_frame frame;
    tide_str exact = bytes_exact(body);
    tide_status status = tide_wire_decode(exact, &frame, err);
    if (status == TIDE_OK) {
        wire_print(ret_text, &frame);
    }
    bytes_free(exact);
    return status;
}

static void print_frame(const struct tide_wire_frame *frame, struct tide_buf *ret_text)
{
    tide_buf_reset(ret_text);
    wire_print(ret_text, frame);
    (void)tide_buf_cstr(ret_text);
}

static void encode_golden_frames_are_byte_for_byte(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    for (size_t i = 0; i < COUNT(golden); i++) {
        struct tide_error err = {0};
        golden_bytes(golden[i].name, &want);
        tide_buf_reset(&got);
        tide_buf_append_str(&got, TIDE_STR("before"));
        if (tide_wire_encode(&golden[i].frame, &got, &err) != TIDE_OK) {
            fail_msg("%s: %s", golden[i].name, err.message);
        }
        assert_int_equal(got.len, 6 + want.len);
        assert_memory_equal(got.ptr, "before", 6);
        assert_memory_equal(got.ptr + 6, want.ptr, want.len);
    }
}

static void decode_golden_frames_say_the_same(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    for (size_t i = 0; i < COUNT(golden); i++) {
        struct tide_error err = {0};
        golden_bytes(golden[i].name, &bytes);
        tide_buf_reset(&got);
        assert_int_equal(decode_exact(body_of(tide_buf_str(&bytes)), &got, &err), TIDE_OK);
        print_frame(&golden[i].frame, &want);
        assert_string_equal(tide_buf_cstr(&got), want.ptr);
    }
}

static void decode_every_truncation_and_a_byte_more_are_corrupt(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    struct tide_error err = {0};
    for (size_t i = 0; i < COUNT(golden); i++) {
        golden_bytes(golden[i].name, &bytes);
        tide_buf_append_char(&bytes, '\0');
        tide_str longer = body_of(tide_buf_str(&bytes));
        for (size_t len = 0; len <= longer.len; len++) {
            tide_status want = len + 1 == longer.len ? TIDE_OK : TIDE_CORRUPT;
            if (decode_exact(tide_str_of(longer.ptr, len), &text, &err) != want) {
                fail_msg("%zu bytes of %s", len, golden[i].name);
            }
        }
    }
}

/* Whatever is decoded can be sent on as it came; of maps, only those whose keys rise. */
static void check_reencodes(tide_str body)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
    struct tide_wire_frame frame;
    struct tide_error err = {0};
    assert_int_equal(tide_wire_decode(body, &frame, &err), TIDE_OK);
    tide_status status = tide_wire_encode(&frame, &again, &err);
    if (status == TIDE_INVALID && frame.kind == TIDE_WIRE_HANDSHAKE) {
        return;
    }
    assert_int_equal(status, TIDE_OK);
    assert_int_equal(again.len, LENGTH_SIZE + body.len);
    assert_memory_equal(again.ptr + LENGTH_SIZE, body.ptr, body.len);
}

static void decode_every_other_byte_is_another_frame_or_an_error(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    size_t counts[TIDE_STALE + 1] = {0};
    for (size_t i = 0; i < COUNT(golden); i++) {
        golden_bytes(golden[i].name, &bytes);
        for (size_t at = LENGTH_SIZE; at < bytes.len; at++) {
            for (unsigned flip = 1; flip < 256; flip++) {
                struct tide_error err = {0};
                bytes.ptr[at] = (char)(bytes.ptr[at] ^ flip);
                tide_buf_reset(&text);
                tide_str body = body_of(tide_buf_str(&bytes));
                tide_status status = decode_exact(body, &text, &err);
                assert_true(status == TIDE_OK || status == TIDE_CORRUPT ||
                            (status == TIDE_UNSUPPORTED && at == LENGTH_SIZE));
                assert_true(status == TIDE_OK || err.message[0] != '\0');
                if (status == TIDE_OK) {
                    check_reencodes(body);
                }
                counts[status]++;
                bytes.ptr[at] = (char)(bytes.ptr[at] ^ flip);
            }
        }
    }
    assert_true(counts[TIDE_OK] > 1000 && counts[TIDE_CORRUPT] > 1000);
    assert_true(counts[TIDE_UNSUPPORTED] > 1000);
}

/* Frames that nobody should send. Bodies in hex: kind, source, then the fields. */

#define HANDSHAKE                                                                                  \
    "01"                                                                                           \
    "00000000"
#define INDEX                                                                                      \
    "02"                                                                                           \
    "00000000"
#define ROWS                                                                                       \
    "03"                                                                                           \
    "00000000"                                                                                     \
    "0000000000000000"                                                                             \
    "0000000000000000"                                                                             \
    "0000000000000000"
#define SEGMENT                                                                                    \
    "04"                                                                                           \
    "00000000"
#define ZERO "0000000000000000"

static void decode_wrong_frames_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *hex; tide_status want; const char *says; } cases[] = {
        {"", TIDE_CORRUPT, "ends within"},
        {"00", TIDE_UNSUPPORTED, "0 is not a known kind"},
        {"06", TIDE_UNSUPPORTED, "6 is not a known kind"},
        {"c8" "01020304", TIDE_UNSUPPORTED, "200 is not a known kind"},
        {"05" "00000000" ZERO ZERO, TIDE_OK, ""},
        {"05" "00000000" ZERO ZERO "00", TIDE_CORRUPT, "1 bytes are left"},
        {HANDSHAKE "00" "00000000" "00000000" ZERO "00", TIDE_OK, ""},
        {HANDSHAKE "02" "00000000" "00000000" ZERO "00", TIDE_CORRUPT, "neither 0 nor 1"},
        {HANDSHAKE "00" "00000000" "00000000" ZERO "02", TIDE_CORRUPT, "neither 0 nor 1"},
        {HANDSHAKE "00" "00000000" "00000000" ZERO "ff", TIDE_CORRUPT, "neither 0 nor 1"},
        {HANDSHAKE "01" "00000000" "00000000" "00000000" ZERO "00", TIDE_OK, ""}, /* an empty uuid */
        {HANDSHAKE "01" "02000000" "c080" "00000000" "00000000" ZERO "00", TIDE_CORRUPT, "UTF-8"},
        {HANDSHAKE "00" "01000000" "0100000061" "03000000eda080" "00000000" ZERO "00", TIDE_CORRUPT, "UTF-8"}, /* a surrogate */
        {HANDSHAKE "00" "01000000" "01000000ff" "00000000" "00000000" ZERO "00", TIDE_CORRUPT, "UTF-8"},
        {HANDSHAKE "00" "01000000" "0100000000" "0100000000" "00000000" ZERO "00", TIDE_OK, ""}, /* NUL */
        {HANDSHAKE "00" "02000000" "0100000062" "00000000" "0100000061" "00000000" "00000000" ZERO "00", TIDE_OK, ""}, /* in any order */
        {HANDSHAKE "00" "02000000" "0100000061" "00000000" "0100000061" "00000000" "00000000" ZERO "00", TIDE_OK, ""}, /* a key again */
        {HANDSHAKE "00" "ffffffff" "0100000061" "00000000" "00000000" ZERO "00", TIDE_CORRUPT, "ends within"},
        {HANDSHAKE "00" "00000000" "ffffffff" ZERO "00", TIDE_CORRUPT, "ends within"},
        {INDEX "00000000" ZERO "00" ZERO ZERO "00000000", TIDE_OK, ""}, /* a name may be empty here */
        {INDEX "00000000" ZERO "01" ZERO ZERO "00000000", TIDE_OK, ""},
        {INDEX "00000000" ZERO "02" ZERO ZERO "00000000", TIDE_CORRUPT, "neither a full index nor a delta"},
        {INDEX "01000000" "80" ZERO "00" ZERO ZERO "00000000", TIDE_CORRUPT, "UTF-8"},
        {INDEX "00000000" ZERO "00" ZERO ZERO "ffffffff", TIDE_CORRUPT, "ends within"},
        {ROWS "00000000", TIDE_OK, ""},
        {ROWS "01000000" "00000000" ZERO ZERO "00000000", TIDE_OK, ""},
        {ROWS "00000000" "00000000" ZERO ZERO "00000000", TIDE_CORRUPT, "24 bytes are left"},
        {ROWS "02000000" "00000000" ZERO ZERO "00000000", TIDE_CORRUPT, "ends within"},
        {ROWS "ffffffff", TIDE_CORRUPT, "ends within"},
        {ROWS "ffffffff" "00000000" ZERO ZERO "00000000", TIDE_CORRUPT, "ends within"},
        {ROWS "01000000" "01000000" "f8" ZERO ZERO "00000000", TIDE_CORRUPT, "UTF-8"},
        {ROWS "02000000" "00000000" ZERO ZERO "00000000" "01000000" "ff" ZERO ZERO "00000000", TIDE_CORRUPT, "UTF-8"},
        {ROWS "02000000" "0100000061" ZERO ZERO "00000000" "01000000" "ff" ZERO ZERO "00000000", TIDE_CORRUPT, "UTF-8"},
        {ROWS "01000000" "00000000" ZERO ZERO "ffffffff", TIDE_CORRUPT, "ends within"},
        {SEGMENT "00000000" "ffffffffffffff7f" ZERO ZERO "00000000" "00", TIDE_OK, ""},
        {SEGMENT "00000000" "0000000000000080" ZERO ZERO "00000000" "00", TIDE_CORRUPT, "more rows than"},
        {SEGMENT "00000000" "ffffffffffffffff" ZERO ZERO "00000000" "00", TIDE_CORRUPT, "more rows than"},
        {SEGMENT "00000000" ZERO ZERO ZERO "00000000" "01" "00000000", TIDE_OK, ""},
        {SEGMENT "00000000" ZERO ZERO ZERO "00000000" "02" "00000000", TIDE_CORRUPT, "neither 0 nor 1"},
        {SEGMENT "00000000" ZERO ZERO ZERO "00000000" "01", TIDE_CORRUPT, "ends within"},
        {SEGMENT "02000000" "c3" ZERO ZERO ZERO "00000000" "00", TIDE_CORRUPT, ""},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf body = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        struct tide_error err = {0};
        bytes_unhex(tide_str_from(cases[i].hex), &body);
        tide_status status = decode_exact(tide_buf_str(&body), &text, &err);
        if (status != cases[i].want || strstr(err.message, cases[i].says) == NULL) {
            fail_msg("case %zu: %s: %s", i, tide_status_name(status), err.message);
        }
    }
}

static void decode_absent_and_empty_are_two_things(void **state)
{
    (void)state;
    static const char *const hex[] = {
        SEGMENT "00000000" ZERO ZERO ZERO "00000000"
                "00",
        SEGMENT "00000000" ZERO ZERO ZERO "00000000"
                "01"
                "00000000",
    };
    for (size_t i = 0; i < COUNT(hex); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf body = {0};
        struct tide_wire_frame frame;
        struct tide_error err = {0};
        bytes_unhex(tide_str_from(hex[i]), &body);
        assert_int_equal(tide_wire_decode(tide_buf_str(&body), &frame, &err), TIDE_OK);
        assert_int_equal(frame.segment.has_caller_index, i == 1);
        assert_int_equal(frame.segment.caller_index.len, 0);
        check_reencodes(tide_buf_str(&body));
    }
}

static void decode_failure_leaves_the_frame_alone(void **state)
{
    (void)state;
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_INDEX, .source = 7};
    struct tide_error err = {0};
    tide_status status = tide_wire_decode(TIDE_STR("\5\0\0\0\0"), &frame, &err);
    assert_int_equal(status, TIDE_CORRUPT);
    assert_int_equal(frame.kind, TIDE_WIRE_INDEX);
    assert_int_equal(frame.source, 7);
}

/* What cannot be sent. */

static void expect_refused(const struct tide_wire_frame *frame, const char *says)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    tide_buf_append_str(&out, TIDE_STR("before"));
    size_t cap = out.cap;
    assert_int_equal(tide_wire_encode(frame, &out, &err), TIDE_INVALID);
    if (strstr(err.message, says) == NULL) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(out.len, 6);
    assert_int_equal(out.cap, cap);
    assert_memory_equal(out.ptr, "before", 6);
}

static struct tide_wire_frame handshake_of(uint32_t count, tide_str labels)
{
    return (struct tide_wire_frame){.kind = TIDE_WIRE_HANDSHAKE,
                                    .handshake = {.labels = {count, labels}}};
}

static void encode_what_nobody_could_read_is_refused(void **state)
{
    (void)state;
    const tide_str pair = TIDE_STR("\1\0\0\0a\0\0\0\0");
    const tide_str falling = TIDE_STR("\1\0\0\0b\0\0\0\0\1\0\0\0a\0\0\0\0");
    const tide_str twice = TIDE_STR("\1\0\0\0a\0\0\0\0\1\0\0\0a\0\0\0\0");
    const tide_str not_text = TIDE_STR("\1\0\0\0a\1\0\0\0\xff");
    const struct tide_wire_frame frames[] = {
        handshake_of(0, pair),
        handshake_of(2, pair),
        handshake_of(1, not_text),
        handshake_of(2, falling),
        handshake_of(2, twice),
        {.kind = TIDE_WIRE_HANDSHAKE, .handshake = {.has_uuid = true, .uuid = TIDE_STR("\x80")}},
        {.kind = TIDE_WIRE_HANDSHAKE, .handshake = {.metadata = {2, falling}}},
        {.kind = TIDE_WIRE_INDEX, .index = {.series = TIDE_STR("\xc3")}},
        {.kind = TIDE_WIRE_SEGMENT, .segment = {.series = TIDE_STR("\xc3")}},
        {.kind = TIDE_WIRE_SEGMENT, .segment = {.rows = -1}},
        {.kind = TIDE_WIRE_ROWS, .rows = {.count = 1}},
        {.kind = TIDE_WIRE_ROWS, .rows = {.count = 0, .rows = TIDE_STR("x")}},
        {.kind = (enum tide_wire_kind)6},
    };
    static const char *const says[COUNT(frames)] = {
        "not encoded pairs", "not encoded pairs", "not encoded pairs",
        "do not rise",       "do not rise",       "uuid",
        "do not rise",       "not UTF-8",         "not UTF-8",
        "less than no rows", "as many encoded",   "as many encoded",
        "no such kind"};
    for (size_t i = 0; i < COUNT(frames); i++) {
        expect_refused(&frames[i], says[i]);
    }
}

/* Bytes for the largest segment there may be: fields take 42 bytes of its 64 MiB. */
#define LARGEST_SEGMENT (TIDE_WIRE_FRAME_BYTES_MAX - 1 - 4 - 4 - 24 - 4 - 1)

static void encode_at_the_limit_is_sent_and_above_it_is_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    char *bytes = calloc(1, LARGEST_SEGMENT + 1);
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_SEGMENT,
                                    .segment = {.bytes = {bytes, LARGEST_SEGMENT}}};
    struct tide_wire_frame again;
    assert_non_null(bytes);
    assert_int_equal(tide_wire_encode(&frame, &out, &err), TIDE_OK);
    assert_int_equal(out.len, LENGTH_SIZE + TIDE_WIRE_FRAME_BYTES_MAX);
    assert_memory_equal(out.ptr, "\0\0\0\4\4", 5);
    assert_int_equal(tide_wire_decode(body_of(tide_buf_str(&out)), &again, &err), TIDE_OK);
    assert_int_equal(again.segment.bytes.len, LARGEST_SEGMENT);
    frame.segment.bytes.len++;
    expect_refused(&frame, "the limit is 67108864 bytes");
    frame.segment.bytes.len = (size_t)5 << 32; /* nobody looks at bytes that are too many */
    expect_refused(&frame, "the limit is 67108864 bytes");
    free(bytes);
}

/* Rows, one by one. */

static void rows_added_one_by_one_are_the_golden_frame(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    struct tide_wire_row row = {TIDE_STR("s"), 1000, 7, TIDE_STR("\xe8\3\0\0\0\0\0\0")};
    golden_bytes("rows", &want);
    struct tide_wire_draft draft = tide_wire_rows_begin(0, 0, (struct tide_wire_state){5, 6}, &out);
    assert_true(tide_wire_rows_has_room(&draft, &row, &out));
    assert_int_equal(tide_wire_rows_add(&draft, &row, &out, &err), TIDE_OK);
    tide_wire_rows_end(&draft, &out);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.ptr, want.ptr, want.len);
    golden_bytes("rows_none", &want);
    draft = tide_wire_rows_begin(0, 1, (struct tide_wire_state){5, 6}, &out);
    tide_wire_rows_end(&draft, &out);
    assert_memory_equal(out.ptr + draft.start, want.ptr, want.len);
    assert_int_equal(out.len, draft.start + want.len);
}

static void rows_add_refuses_and_the_draft_goes_on(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    struct tide_wire_frame frame;
    char *bytes = calloc(1, TIDE_WIRE_FRAME_BYTES_MAX);
    size_t largest = TIDE_WIRE_FRAME_BYTES_MAX - 33 - 25; /* behind the head, in a row of "s" */
    struct tide_wire_row row = {TIDE_STR("s"), 1, 2, {bytes, largest + 1}};
    assert_non_null(bytes);
    struct tide_wire_draft draft = tide_wire_rows_begin(1, 2, (struct tide_wire_state){0}, &out);
    size_t cap = out.cap;
    assert_false(tide_wire_rows_has_room(&draft, &row, &out));
    assert_int_equal(tide_wire_rows_add(&draft, &row, &out, &err), TIDE_INVALID);
    assert_int_equal(out.cap, cap);
    row.series = TIDE_STR("\xff");
    row.bytes.len = 0;
    assert_int_equal(tide_wire_rows_add(&draft, &row, &out, &err), TIDE_INVALID);
    row.series = TIDE_STR("s");
    row.bytes.len = largest;
    assert_true(tide_wire_rows_has_room(&draft, &row, &out));
    assert_int_equal(tide_wire_rows_add(&draft, &row, &out, &err), TIDE_OK);
    assert_false(tide_wire_rows_has_room(&draft, &(struct tide_wire_row){0}, &out));
    tide_wire_rows_end(&draft, &out);
    assert_int_equal(out.len, LENGTH_SIZE + TIDE_WIRE_FRAME_BYTES_MAX);
    assert_int_equal(tide_wire_decode(body_of(tide_buf_str(&out)), &frame, &err), TIDE_OK);
    assert_int_equal(frame.rows.count, 1);
    free(bytes);
}

/* Maps. */

static void map_read_keeps_the_last_of_a_key_and_sorts(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"b", "1"}, {"a", "2"}, {"b", "3"},
                                           {"", "4"},  {"c", "5"}, {"b", "6"}};
    static const char *const want[][2] = {{"", "4"}, {"a", "2"}, {"b", "6"}, {"c", "5"}};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_error err = {0};
    struct tide_wire_pair *got = NULL;
    size_t count = 0;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        tide_wire_pair_append(&bytes, tide_str_from(pairs[i][0]), tide_str_from(pairs[i][1]));
    }
    struct tide_wire_map map = {COUNT(pairs), tide_buf_str(&bytes)};
    assert_int_equal(tide_wire_map_read(&map, &arena, &got, &count, &err), TIDE_OK);
    assert_int_equal(count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_true(tide_str_equal(got[i].key, tide_str_from(want[i][0])));
        assert_true(tide_str_equal(got[i].value, tide_str_from(want[i][1])));
    }
    map = (struct tide_wire_map){0};
    assert_int_equal(tide_wire_map_read(&map, &arena, &got, &count, &err), TIDE_OK);
    assert_int_equal(count, 0);
}

static void map_read_of_too_much_is_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_error err = {0};
    struct tide_wire_pair *got = NULL;
    size_t count = 5;
    struct tide_wire_map map = {1, {"", TIDE_WIRE_PAIRS_BYTES_MAX + 1}};
    assert_int_equal(tide_wire_map_read(&map, &arena, &got, &count, &err), TIDE_UNSUPPORTED);
    assert_int_equal(count, 5);
    assert_int_equal(arena.size, 0);
}

/* States. */

static void state_fold_first_lane_is_as_the_crate_computes_it(void **state)
{
    (void)state;
    struct tide_wire_state one =
        tide_wire_state_fold((struct tide_wire_state){0}, 500, TIDE_STR("a:slots@500"));
    assert_true(one.a == 0xe7ceddae2ba6f995);
    struct tide_wire_state two = tide_wire_state_fold(one, 500, TIDE_STR("a:more@500"));
    assert_true(two.a == 0x508b74be6635814f);
    assert_false(one.b == two.b);
    assert_true(tide_wire_state_is_none((struct tide_wire_state){0, 0}));
    assert_false(tide_wire_state_is_none((struct tide_wire_state){0, 1}));
}

/* A byte anywhere changes each lane: none is shifted out of it. */
static void state_fold_both_lanes_depend_on_every_byte(void **state)
{
    (void)state;
    char bytes[100] = {0};
    struct tide_wire_state none = {0};
    struct tide_wire_state plain = tide_wire_state_fold(none, 1, tide_str_of(bytes, 100));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        struct tide_wire_state other = tide_wire_state_fold(none, 1, tide_str_of(bytes, 100));
        assert_true(other.a != plain.a && other.b != plain.b);
        bytes[i] = 0;
    }
    struct tide_wire_state later = tide_wire_state_fold(none, 2, tide_str_of(bytes, 100));
    assert_true(later.a != plain.a && later.b != plain.b);
}

/* At random. */

static void random_frames_survive_a_round_trip(void **state)
{
    (void)state;
    struct wire_maker maker = {.state = 0x9e3779b97f4a7c15};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    size_t kinds[6] = {0};
    for (long round = soak_rounds(2000, 200000); round > 0; round--) {
        struct tide_wire_frame frame;
        struct tide_error err = {0};
        wire_make(&maker, &frame);
        tide_buf_reset(&out);
        tide_buf_reset(&got);
        if (tide_wire_encode(&frame, &out, &err) != TIDE_OK) {
            fail_msg("round %ld: %s", round, err.message);
        }
        print_frame(&frame, &want);
        assert_int_equal(decode_exact(body_of(tide_buf_str(&out)), &got, &err), TIDE_OK);
        assert_string_equal(tide_buf_cstr(&got), want.ptr);
        check_reencodes(body_of(tide_buf_str(&out)));
        kinds[frame.kind]++;
    }
    for (unsigned kind = 1; kind <= 5; kind++) {
        assert_true(kinds[kind] > 100);
    }
    wire_maker_done(&maker);
}

static void random_frames_cut_short_are_corrupt(void **state)
{
    (void)state;
    struct wire_maker maker = {.state = 77};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    for (long round = soak_rounds(100, 5000); round > 0; round--) {
        struct tide_wire_frame frame;
        struct tide_error err = {0};
        wire_make(&maker, &frame);
        tide_buf_reset(&out);
        assert_int_equal(tide_wire_encode(&frame, &out, &err), TIDE_OK);
        tide_str body = body_of(tide_buf_str(&out));
        for (size_t len = 0; len < body.len; len++) {
            tide_status status = decode_exact(tide_str_of(body.ptr, len), &text, &err);
            assert_int_equal(status, TIDE_CORRUPT);
        }
    }
    wire_maker_done(&maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_golden_frames_are_byte_for_byte),
        cmocka_unit_test(decode_golden_frames_say_the_same),
        cmocka_unit_test(decode_every_truncation_and_a_byte_more_are_corrupt),
        cmocka_unit_test(decode_every_other_byte_is_another_frame_or_an_error),
        cmocka_unit_test(decode_wrong_frames_are_refused),
        cmocka_unit_test(decode_absent_and_empty_are_two_things),
        cmocka_unit_test(decode_failure_leaves_the_frame_alone),
        cmocka_unit_test(encode_what_nobody_could_read_is_refused),
        cmocka_unit_test(encode_at_the_limit_is_sent_and_above_it_is_refused),
        cmocka_unit_test(rows_added_one_by_one_are_the_golden_frame),
        cmocka_unit_test(rows_add_refuses_and_the_draft_goes_on),
        cmocka_unit_test(map_read_keeps_the_last_of_a_key_and_sorts),
        cmocka_unit_test(map_read_of_too_much_is_refused),
        cmocka_unit_test(state_fold_first_lane_is_as_the_crate_computes_it),
        cmocka_unit_test(state_fold_both_lanes_depend_on_every_byte),
        cmocka_unit_test(random_frames_survive_a_round_trip),
        cmocka_unit_test(random_frames_cut_short_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
