#include "cmocka_prelude.h"

#include "pgoutput_kit.h"

static void frame_decode_data_gives_the_body(void **state)
{
    (void)state;
    tide_str packet = TIDE_STR("w"
                               "\0\0\0\1\2\3\4\5"
                               "\0\0\0\1\2\3\4\6"
                               "\0\0\0\0\0\0\0\7"
                               "Body");
    struct tide_pg_frame frame = {0};
    struct tide_error err = {0};
    assert_int_equal(tide_pg_frame_decode(packet, &frame, &err), TIDE_OK);
    assert_int_equal(frame.type, TIDE_PG_FRAME_DATA);
    assert_true(frame.start_lsn == UINT64_C(0x102030405));
    assert_true(frame.end_lsn == UINT64_C(0x102030406));
    assert_true(frame.sent_us == INT64_C(946684800000007));
    assert_true(tide_str_equal(frame.body, TIDE_STR("Body")));
    assert_ptr_equal(frame.body.ptr, packet.ptr + 25);
}

static void frame_decode_keepalive_tells_position_and_request(void **state)
{
    (void)state;
    char packet[] = "k"
                    "\0\0\0\1\2\3\4\6"
                    "\xff\xff\xff\xff\xff\xff\xff\xff"
                    "\1";
    struct tide_pg_frame frame = {0};
    struct tide_error err = {0};
    tide_str whole = {packet, sizeof(packet) - 1};
    assert_int_equal(tide_pg_frame_decode(whole, &frame, &err), TIDE_OK);
    assert_int_equal(frame.type, TIDE_PG_FRAME_KEEPALIVE);
    assert_true(frame.end_lsn == UINT64_C(0x102030406));
    assert_true(frame.sent_us == INT64_C(946684799999999));
    assert_true(frame.reply_requested);
    packet[17] = 0;
    assert_int_equal(tide_pg_frame_decode(whole, &frame, &err), TIDE_OK);
    assert_false(frame.reply_requested);
    packet[17] = 2;
    assert_int_equal(tide_pg_frame_decode(whole, &frame, &err), TIDE_CORRUPT);
}

/* All lengths but `keep` of the packet, which starts a frame, are refused. */
static void expect_cut_frames_corrupt(tide_str packet, size_t keep)
{
    for (size_t len = 0; len < keep; len++) {
        tide_str cut = bytes_exact(tide_str_of(packet.ptr, len));
        struct tide_pg_frame frame = {0};
        struct tide_error err = {0};
        assert_int_equal(tide_pg_frame_decode(cut, &frame, &err), TIDE_CORRUPT);
        bytes_free(cut);
    }
}

static void frame_decode_wrong_frames_are_corrupt(void **state)
{
    (void)state;
    static const char zeros[64] = "";
    char packet[64] = "w";
    struct tide_pg_frame frame = {0};
    struct tide_error err = {0};
    expect_cut_frames_corrupt(tide_str_of(packet, 25), 25);
    packet[0] = 'k';
    expect_cut_frames_corrupt(tide_str_of(packet, 18), 18);
    assert_int_equal(tide_pg_frame_decode(tide_str_of(packet, 18), &frame, &err), TIDE_OK);
    assert_int_equal(tide_pg_frame_decode(tide_str_of(packet, 19), &frame, &err), TIDE_CORRUPT);
    packet[0] = 's';
    assert_int_equal(tide_pg_frame_decode(tide_str_of(packet, 25), &frame, &err), TIDE_CORRUPT);
    assert_int_equal(tide_pg_frame_decode(tide_str_of(zeros, 25), &frame, &err), TIDE_CORRUPT);
    memset(packet, 0xff, sizeof(packet));
    packet[0] = 'w';
    packet[17] = 0x7f; /* the time overflows */
    assert_int_equal(tide_pg_frame_decode(tide_str_of(packet, 25), &frame, &err), TIDE_CORRUPT);
}

static void status_encode_is_golden_and_comes_back(void **state)
{
    (void)state;
    static const char want[] = "r"
                               "\0\0\0\1\2\3\4\5"
                               "\0\0\0\1\2\3\4\4"
                               "\0\0\0\1\2\3\4\3"
                               "\0\0\0\0\0\0\0\7"
                               "\1";
    const struct tide_pg_status status = {UINT64_C(0x102030405), UINT64_C(0x102030404),
                                          UINT64_C(0x102030403), INT64_C(946684800000007), true};
    char packet[TIDE_PG_STATUS_SIZE];
    tide_pg_status_encode(&status, packet);
    assert_int_equal(sizeof(want) - 1, TIDE_PG_STATUS_SIZE);
    assert_memory_equal(packet, want, TIDE_PG_STATUS_SIZE);
    struct tide_pg_status back = {0};
    struct tide_error err = {0};
    assert_int_equal(tide_pg_status_decode(tide_str_of(packet, sizeof(packet)), &back, &err),
                     TIDE_OK);
    assert_true(back.written_lsn == status.written_lsn && back.flushed_lsn == status.flushed_lsn);
    assert_true(back.applied_lsn == status.applied_lsn && back.now_us == status.now_us);
    assert_true(back.reply_requested);
    for (size_t len = 0; len < sizeof(packet); len++) {
        tide_str cut = bytes_exact(tide_str_of(packet, len));
        assert_int_equal(tide_pg_status_decode(cut, &back, &err), TIDE_CORRUPT);
        bytes_free(cut);
    }
    packet[0] = 'h';
    assert_int_equal(tide_pg_status_decode(tide_str_of(packet, sizeof(packet)), &back, &err),
                     TIDE_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_decode_data_gives_the_body),
        cmocka_unit_test(frame_decode_keepalive_tells_position_and_request),
        cmocka_unit_test(frame_decode_wrong_frames_are_corrupt),
        cmocka_unit_test(status_encode_is_golden_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
