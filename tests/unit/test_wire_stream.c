#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "bytes_kit.h"
#include "format/wire/order.h"
#include "format/wire/stream.h"
#include "soak.h"
#include "wire_kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define PREAMBLE      "dendro-repl\0\1\0"
#define CHUNK_SIZE    65536
#define UNKNOWN_FRAME "\5\0\0\0\xc8nnnn" /* of kind 200 */
#define OFFSET_FRAME  "\x15\0\0\0\5\1\0\0\0AAAAAAAABBBBBBBB"

static const tide_str preamble = {PREAMBLE, TIDE_WIRE_PREAMBLE_SIZE};

/* Reads a stream both ways; they agree, whatever it holds. */
static void read_both(tide_str stream, struct wire_maker *maker, size_t size_max,
                      struct wire_outcome *outcome)
{
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome pushed = {0};
    tide_str exact = bytes_exact(stream);
    wire_read(exact, outcome);
    wire_push(exact, maker, size_max, &pushed);
    bytes_free(exact);
    const char *what = wire_differ(outcome, &pushed);
    if (what != NULL) {
        fail_msg("%s differ: %s; %s", what, outcome->err.message, pushed.err.message);
    }
}

static struct wire_maker cutter = {.state = 4711};

/* `count` frames of at most `size_max` bytes, unknown ones between them. */
static void make_stream(struct wire_maker *maker, size_t count, size_t size_max,
                        struct tide_buf *ret_stream, struct tide_buf *ret_text)
{
    tide_buf_reset(ret_stream);
    tide_buf_reset(ret_text);
    tide_wire_preamble_append(ret_stream);
    while (count > 0) {
        struct tide_wire_frame frame;
        struct tide_error err = {0};
        size_t start = ret_stream->len;
        wire_make(maker, &frame);
        assert_int_equal(tide_wire_encode(&frame, ret_stream, &err), TIDE_OK);
        if (ret_stream->len - start > size_max) {
            ret_stream->len = start;
            continue;
        }
        wire_print(ret_text, &frame);
        count--;
        if (wire_random(maker, 4) == 0) {
            tide_buf_append(ret_stream, UNKNOWN_FRAME, sizeof(UNKNOWN_FRAME) - 1);
        }
    }
}

/* Preambles. */

static void preamble_is_golden(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    bytes_unhex(TIDE_STR("64656e64726f2d7265706c000100"), &want);
    tide_wire_preamble_append(&out);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.ptr, want.ptr, want.len);
}

static void read_beginnings_are_told_apart(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { tide_str bytes; tide_status want; const char *says; bool is_retriable; } cases[] = {
        {{"", 0}, TIDE_CLOSED, "cut within its beginning", true},
        {{"dendro-repl", 11}, TIDE_CLOSED, "cut within its beginning", true},
        {{"dendro-repl\0\1", 13}, TIDE_CLOSED, "cut within its beginning", true},
        {{PREAMBLE, 14}, TIDE_END, "", false},
        {{"HTTP/", 5}, TIDE_CORRUPT, "not a dendro replication stream", false}, /* early on */
        {{"dendro-repl.\1\0", 14}, TIDE_CORRUPT, "not a dendro replication stream", false},
        {{"dendro-repl\0\x63\0", 14}, TIDE_UNSUPPORTED, "protocol version 99", false},
        {{"dendro-repl\0\1\1", 14}, TIDE_UNSUPPORTED, "protocol version 257", false},
        {{"dendro-repl\0\0\0", 14}, TIDE_UNSUPPORTED, "protocol version 0", false},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
        read_both(cases[i].bytes, &cutter, 3, &outcome);
        if (outcome.status != cases[i].want || strstr(outcome.err.message, cases[i].says) == NULL) {
            fail_msg("case %zu: %s", i, outcome.err.message);
        }
        assert_int_equal(outcome.err.retriable, cases[i].is_retriable);
    }
}

/* Frames. */

static void read_unknown_kinds_are_skipped_and_counted(void **state)
{
    (void)state;
    static const char stream[] =
        PREAMBLE OFFSET_FRAME UNKNOWN_FRAME "\1\0\0\0\0" /* kind 0, empty */
        OFFSET_FRAME "\2\0\0\0\6x" OFFSET_FRAME "\1\0\0\0\xff";
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
    for (size_t size_max = 1; size_max < 40; size_max++) {
        read_both(tide_str_of(stream, sizeof(stream) - 1), &cutter, size_max, &outcome);
        assert_int_equal(outcome.status, TIDE_END);
        assert_int_equal(outcome.progress.frames, 3);
        assert_int_equal(outcome.progress.skipped, 4);
        assert_int_equal(outcome.progress.bytes, sizeof(stream) - 1);
    }
}

static void read_wrong_lengths_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { tide_str bytes; tide_status want; const char *says; } cases[] = {
        {{"\0\0\0\0", 4}, TIDE_CORRUPT, "length of 0"},
        {{"\0\0\0\0\5", 5}, TIDE_CORRUPT, "length of 0"},
        {{"\1\0\0\4", 4}, TIDE_CORRUPT, "claims 67108865 bytes; the limit is 67108864"},
        {{"\xff\xff\xff\xff", 4}, TIDE_CORRUPT, "claims 4294967295 bytes; the limit is 67108864"},
        {{"\xff\xff\xff\xff\xc8", 5}, TIDE_CORRUPT, "the limit"}, /* unknown kinds too */
        {{"\0\0\0\4", 4}, TIDE_CLOSED, "cut within a frame"}, /* as long as it may be */
        {{"\0\0\0\4\5", 5}, TIDE_CLOSED, "cut within a frame"},
        {{"\0\0\0\4\xc8", 5}, TIDE_CLOSED, "cut within a frame"},
        {{"\1", 1}, TIDE_CLOSED, "cut within a frame"},
        {{"\1\0\0", 3}, TIDE_CLOSED, "cut within a frame"},
        {{"\1\0\0\0\5", 5}, TIDE_CORRUPT, "malformed clock offset frame"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
        tide_buf_append_str(&stream, preamble);
        tide_buf_append(&stream, OFFSET_FRAME, sizeof(OFFSET_FRAME) - 1);
        tide_buf_append_str(&stream, cases[i].bytes);
        read_both(tide_buf_str(&stream), &cutter, 4, &outcome);
        if (outcome.status != cases[i].want || strstr(outcome.err.message, cases[i].says) == NULL) {
            fail_msg("case %zu: %s", i, outcome.err.message);
        }
        assert_non_null(strstr(outcome.err.message, "at byte 39 (behind 1 frame)"));
        assert_int_equal(outcome.progress.frames, 1);
    }
}

/* The border between two frames that is at or before `at`. */
static size_t border_before(tide_str stream, size_t at)
{
    size_t border = TIDE_WIRE_PREAMBLE_SIZE;
    for (;;) {
        uint32_t body = 0;
        if (border + sizeof(body) > stream.len) {
            return border;
        }
        memcpy(&body, stream.ptr + border, sizeof(body));
        if (border + sizeof(body) + body > at) {
            return border;
        }
        border += sizeof(body) + body;
    }
}

static void read_cut_anywhere_is_whole_between_frames_alone(void **state)
{
    (void)state;
    struct wire_maker maker = {.state = 99};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
    make_stream(&maker, 20, 150, &stream, &text);
    for (size_t len = 0; len <= stream.len; len++) {
        read_both(tide_str_of(stream.ptr, len), &cutter, 200, &outcome);
        bool is_begun = len >= TIDE_WIRE_PREAMBLE_SIZE;
        size_t border = is_begun ? border_before(tide_buf_str(&stream), len) : 0;
        assert_int_equal(outcome.status, is_begun && border == len ? TIDE_END : TIDE_CLOSED);
        assert_int_equal(outcome.progress.bytes, border);
        assert_memory_equal(outcome.text.ptr, text.ptr, outcome.text.len);
    }
    assert_int_equal(outcome.text.len, text.len);
    wire_maker_done(&maker);
}

static void read_any_other_byte_gives_the_same_both_ways(void **state)
{
    (void)state;
    struct wire_maker maker = {.state = 5};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
    size_t failed = 0;
    make_stream(&maker, 10, 80, &stream, &text);
    for (size_t at = 0; at < stream.len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            stream.ptr[at] = (char)(stream.ptr[at] ^ (1 << bit));
            read_both(tide_buf_str(&stream), &cutter, 300, &outcome);
            failed += outcome.status != TIDE_END;
            stream.ptr[at] = (char)(stream.ptr[at] ^ (1 << bit));
        }
    }
    assert_true(failed > stream.len / 10 && failed < stream.len * 8);
    wire_maker_done(&maker);
}

static void random_streams_in_random_cuts_are_what_was_sent(void **state)
{
    (void)state;
    struct wire_maker maker = {.state = 20261129};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
    static const size_t sizes[] = {1, 3, 20, 300, 100000};
    for (long round = soak_rounds(200, 20000); round > 0; round--) {
        make_stream(&maker, wire_random(&maker, 30), 100000, &stream, &text);
        read_both(tide_buf_str(&stream), &cutter, sizes[round % 5], &outcome);
        assert_int_equal(outcome.status, TIDE_END);
        assert_string_equal(tide_buf_cstr(&outcome.text), tide_buf_cstr(&text));
    }
    wire_maker_done(&maker);
}

/* Streams that the crate itself has written, and what it has read of them (dendro_frames.rs):
 * frames of all kinds made at random, unknown ones between them; and an archive of its own. */

static void read_golden(const char *name, const char *ending, struct tide_buf *ret_bytes)
{
    char path[512];
    struct tide_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/golden/wire/%s%s", TIDE_TEST_ROOT, name, ending);
    if (tide_file_read(path, TIDE_MIB, ret_bytes, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

static const struct {
    const char *name;
    uint64_t frames;
    uint64_t skipped;
} golden[] = {{"dendro", 40, 6}, {"published", 8, 0}};

static void read_streams_of_the_crate_are_what_it_reads_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(golden); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        TIDE_CLEANUP(wire_outcome_done) struct wire_outcome outcome = {0};
        read_golden(golden[i].name, ".bin", &stream);
        read_golden(golden[i].name, ".txt", &text);
        read_both(tide_buf_str(&stream), &cutter, 100, &outcome);
        assert_int_equal(outcome.status, TIDE_END);
        assert_int_equal(outcome.progress.frames, golden[i].frames);
        assert_int_equal(outcome.progress.skipped, golden[i].skipped);
        assert_string_equal(tide_buf_cstr(&outcome.text), tide_buf_cstr(&text));
    }
}

/* What we write of the frames that were read is what the crate has written, without the frames that
 * nobody knows: those have 9 bytes each. */
static void encode_frames_of_the_crate_are_its_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(golden); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
        struct tide_wire_frame frame;
        struct tide_error err = {0};
        read_golden(golden[i].name, ".bin", &stream);
        struct tide_wire_reader reader = tide_wire_reader_of(tide_buf_str(&stream));
        tide_wire_preamble_append(&again);
        while (tide_wire_reader_next(&reader, &frame, &err) == TIDE_OK) {
            size_t start = again.len;
            assert_int_equal(tide_wire_encode(&frame, &again, &err), TIDE_OK);
            size_t size = again.len - start;
            assert_memory_equal(again.ptr + start, stream.ptr + reader.pos - size, size);
        }
        assert_int_equal(again.len + 9 * reader.progress.skipped, stream.len);
    }
}

/* The crate's publisher keeps the order that is asked for, and its states are ours. */
static void order_of_the_crates_publisher_is_right(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    struct tide_wire_verdict verdict = {0};
    struct tide_wire_state hash = {0};
    struct tide_wire_frame frame;
    struct tide_error err = {0};
    read_golden("published", ".bin", &stream);
    struct tide_wire_reader reader = tide_wire_reader_of(tide_buf_str(&stream));
    while (tide_wire_reader_next(&reader, &frame, &err) == TIDE_OK) {
        assert_int_equal(tide_wire_order_take(&order, &frame, &verdict, &err), TIDE_OK);
        assert_false(verdict.is_gap || verdict.is_unmatched);
        if (frame.kind == TIDE_WIRE_INDEX) {
            hash = tide_wire_state_fold(hash, frame.index.ts, frame.index.bytes);
            assert_true(hash.a == frame.index.state.a); /* the other lane is not the crate's */
        }
    }
    assert_int_equal(order.count, 1);
    assert_false(tide_wire_state_is_none(hash));
}

/* The push decoder. */

static void decoder_error_stays_and_reset_forgets_it(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_decoder_done) struct tide_wire_decoder decoder = {0};
    struct tide_wire_frame frame;
    struct tide_error err = {0};
    struct tide_error again = {0};
    bool is_frame = false;
    tide_wire_decoder_feed(&decoder, TIDE_STR(PREAMBLE "\0\0\0\0" OFFSET_FRAME));
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_CORRUPT);
    tide_wire_decoder_feed(&decoder, TIDE_STR(OFFSET_FRAME));
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &again), TIDE_CORRUPT);
    assert_string_equal(again.message, err.message);
    assert_int_equal(tide_wire_decoder_end(&decoder, &again), TIDE_CORRUPT);
    assert_false(is_frame);
    tide_wire_decoder_reset(&decoder);
    tide_wire_decoder_feed(&decoder, TIDE_STR(PREAMBLE OFFSET_FRAME));
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
    assert_true(is_frame);
    assert_int_equal(frame.source, 1);
    assert_int_equal(tide_wire_decoder_end(&decoder, &err), TIDE_OK);
    assert_int_equal(decoder.progress.frames, 1);
}

static void decoder_reads_into_its_room_without_a_copy(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_decoder_done) struct tide_wire_decoder decoder = {0};
    struct tide_wire_frame frame;
    struct tide_error err = {0};
    bool is_frame = false;
    static const char segment[] = PREAMBLE "\x32\0\0\0\4\0\0\0\0\2\0\0\0or"
                                           "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
                                           "\n\0\0\0PAR1..PAR1\0";
    char *room = tide_wire_decoder_room(&decoder, 1000);
    memcpy(room, segment, sizeof(segment) - 1);
    tide_wire_decoder_came(&decoder, sizeof(segment) - 1);
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
    assert_true(is_frame);
    assert_true(frame.segment.bytes.ptr == room + sizeof(segment) - 1 - 11);
    assert_memory_equal(frame.segment.bytes.ptr, "PAR1..PAR1", frame.segment.bytes.len);
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
    assert_false(is_frame);
}

/* A length reserves nothing, and a frame that is passed over is never kept. */
static void decoder_memory_is_what_came(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_decoder_done) struct tide_wire_decoder decoder = {0};
    struct tide_wire_frame frame;
    struct tide_error err = {0};
    bool is_frame = false;
    static char zeros[CHUNK_SIZE];
    tide_wire_decoder_feed(&decoder, TIDE_STR(PREAMBLE "\0\0\0\4\3"));
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
    assert_true(decoder.buf.cap < 1000);
    tide_wire_decoder_reset(&decoder);
    tide_wire_decoder_feed(&decoder, TIDE_STR(PREAMBLE "\0\0\0\4\xc8"));
    for (size_t left = TIDE_WIRE_FRAME_BYTES_MAX - 1; left > 0;) {
        size_t size = left < sizeof(zeros) ? left : sizeof(zeros);
        tide_wire_decoder_feed(&decoder, tide_str_of(zeros, size));
        assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
        assert_false(is_frame);
        left -= size;
    }
    assert_int_equal(decoder.progress.skipped, 1);
    assert_int_equal(decoder.progress.bytes, 14 + 4 + TIDE_WIRE_FRAME_BYTES_MAX);
    assert_true(decoder.buf.cap <= 4 * CHUNK_SIZE);
    tide_wire_decoder_feed(&decoder, TIDE_STR(OFFSET_FRAME));
    assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
    assert_true(is_frame);
    assert_int_equal(tide_wire_decoder_end(&decoder, &err), TIDE_OK);
}

static void decoder_takes_the_largest_frame_in_pieces(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_wire_decoder_done) struct tide_wire_decoder decoder = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_SEGMENT, .source = 3};
    struct tide_error err = {0};
    bool is_frame = false;
    size_t size = TIDE_WIRE_FRAME_BYTES_MAX - 42;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'x', size);
    frame.segment.bytes = tide_str_of(bytes, size);
    tide_wire_preamble_append(&stream);
    assert_int_equal(tide_wire_encode(&frame, &stream, &err), TIDE_OK);
    frame = (struct tide_wire_frame){0};
    for (size_t at = 0; at < stream.len; at += CHUNK_SIZE) {
        size_t len = stream.len - at < CHUNK_SIZE ? stream.len - at : CHUNK_SIZE;
        tide_wire_decoder_feed(&decoder, tide_str_of(stream.ptr + at, len));
        assert_int_equal(tide_wire_decoder_next(&decoder, &frame, &is_frame, &err), TIDE_OK);
        assert_int_equal(is_frame, at + len == stream.len);
    }
    assert_int_equal(frame.source, 3);
    assert_true(tide_str_equal(frame.segment.bytes, tide_str_of(bytes, size)));
    assert_true(decoder.buf.cap <= 2 * TIDE_WIRE_FRAME_BYTES_MAX);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preamble_is_golden),
        cmocka_unit_test(read_beginnings_are_told_apart),
        cmocka_unit_test(read_unknown_kinds_are_skipped_and_counted),
        cmocka_unit_test(read_wrong_lengths_are_refused),
        cmocka_unit_test(read_cut_anywhere_is_whole_between_frames_alone),
        cmocka_unit_test(read_any_other_byte_gives_the_same_both_ways),
        cmocka_unit_test(random_streams_in_random_cuts_are_what_was_sent),
        cmocka_unit_test(read_streams_of_the_crate_are_what_it_reads_itself),
        cmocka_unit_test(encode_frames_of_the_crate_are_its_bytes),
        cmocka_unit_test(order_of_the_crates_publisher_is_right),
        cmocka_unit_test(decoder_error_stays_and_reset_forgets_it),
        cmocka_unit_test(decoder_reads_into_its_room_without_a_copy),
        cmocka_unit_test(decoder_memory_is_what_came),
        cmocka_unit_test(decoder_takes_the_largest_frame_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
