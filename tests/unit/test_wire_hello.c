#include "cmocka_prelude.h"

#include "base/limits.h"
#include "bytes_kit.h"
#include "format/wire/hello.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What a follower of two sources says: the one has three series, the other has none yet. */
static struct tide_wire_hello_series series[] = {
    {{"orders", 6}, true, 1000, true, 500},
    {{"users", 5}, true, -1, false, 0},
    {{"z", 1}, false, 0, false, 0},
};
static struct tide_wire_hello_source sources[] = {
    {{"3f2b1c4d-0000-4000-8000-00000000abcd", 36}, series, 3},
    {{"uid1-", 5}, NULL, 0},
};
static const struct tide_wire_hello hello = {sources, 2};

#define HEAD   "746964656d61726b2d6869000100"
#define SOURCE "2400000033663262316334642d303030302d343030302d383030302d303030303030303061626364"
#define BODY                                                                                       \
    "02000000" SOURCE "03000000"                                                                   \
    "060000006f7264657273"                                                                         \
    "01e803000000000000"                                                                           \
    "01f401000000000000"                                                                           \
    "050000007573657273"                                                                           \
    "01ffffffffffffffff"                                                                           \
    "00"                                                                                           \
    "010000007a"                                                                                   \
    "00"                                                                                           \
    "00"                                                                                           \
    "05000000756964312d"                                                                           \
    "00000000"

static void golden_bytes(struct tide_buf *ret_bytes)
{
    tide_buf_reset(ret_bytes);
    bytes_unhex(TIDE_STR(HEAD "73000000" BODY), ret_bytes);
}

static tide_status decode_exact(tide_str bytes, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_wire_hello got = {0};
    tide_str exact = bytes_exact(bytes);
    tide_status status = tide_wire_hello_decode(exact, &arena, &got, err);
    bytes_free(exact);
    return status;
}

static void encode_hello_is_golden(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    golden_bytes(&want);
    assert_int_equal(tide_wire_hello_encode(&hello, &out, &err), TIDE_OK);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.ptr, want.ptr, want.len);
    tide_buf_reset(&out);
    assert_int_equal(tide_wire_hello_encode(&(struct tide_wire_hello){0}, &out, &err), TIDE_OK);
    assert_int_equal(out.len, TIDE_WIRE_HELLO_HEAD_SIZE + 4);
    assert_int_equal(decode_exact(tide_buf_str(&out), &err), TIDE_OK);
}

static void decode_golden_hello_says_the_same(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_wire_hello got = {0};
    struct tide_error err = {0};
    golden_bytes(&bytes);
    assert_int_equal(tide_wire_hello_decode(tide_buf_str(&bytes), &arena, &got, &err), TIDE_OK);
    assert_int_equal(got.source_count, 2);
    for (size_t i = 0; i < got.source_count; i++) {
        assert_true(tide_str_equal(got.sources[i].uuid, sources[i].uuid));
        assert_int_equal(got.sources[i].series_count, sources[i].series_count);
    }
    for (size_t i = 0; i < COUNT(series); i++) {
        const struct tide_wire_hello_series *one = &got.sources[0].series[i];
        assert_true(tide_str_equal(one->name, series[i].name));
        assert_int_equal(one->has_newest, series[i].has_newest);
        assert_int_equal(one->newest_ts, series[i].newest_ts);
        assert_int_equal(one->is_sealed, series[i].is_sealed);
        assert_int_equal(one->sealed_to, series[i].sealed_to);
    }
}

static void decode_every_truncation_and_a_byte_more_are_corrupt(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_error err = {0};
    golden_bytes(&bytes);
    tide_buf_append_char(&bytes, '\0');
    for (size_t len = 0; len <= bytes.len; len++) {
        tide_status want = len + 1 == bytes.len ? TIDE_OK : TIDE_CORRUPT;
        assert_int_equal(decode_exact(tide_str_of(bytes.ptr, len), &err), want);
    }
    for (size_t body = 0; body + TIDE_WIRE_HELLO_HEAD_SIZE < bytes.len - 1; body++) {
        bytes.ptr[14] = (char)body; /* a length that is right, of fields that are cut */
        tide_str cut = tide_str_of(bytes.ptr, TIDE_WIRE_HELLO_HEAD_SIZE + body);
        assert_int_equal(decode_exact(cut, &err), TIDE_CORRUPT);
    }
}

static void decode_every_other_byte_is_another_hello_or_an_error(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    size_t good = 0;
    size_t bad = 0;
    golden_bytes(&bytes);
    for (size_t at = 0; at < bytes.len; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
            TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
            struct tide_wire_hello got = {0};
            struct tide_error err = {0};
            bytes.ptr[at] = (char)(bytes.ptr[at] ^ flip);
            if (tide_wire_hello_decode(tide_buf_str(&bytes), &arena, &got, &err) == TIDE_OK) {
                assert_int_equal(tide_wire_hello_encode(&got, &again, &err), TIDE_OK);
                assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
                good++;
            } else {
                assert_true(err.status == TIDE_CORRUPT || err.status == TIDE_UNSUPPORTED);
                bad++;
            }
            bytes.ptr[at] = (char)(bytes.ptr[at] ^ flip);
        }
    }
    assert_true(good > 1000 && bad > 1000);
}

static void size_is_known_from_the_head(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_error err = {0};
    golden_bytes(&bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        size_t size = 1;
        assert_int_equal(tide_wire_hello_size(tide_str_of(bytes.ptr, len), &size, &err), TIDE_OK);
        assert_int_equal(size, len < TIDE_WIRE_HELLO_HEAD_SIZE ? 0 : bytes.len);
    }
}

static void size_wrong_heads_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *hex; tide_status want; const char *says; } cases[] = {
        {"64", TIDE_CORRUPT, "not a hello"},                        /* known by its first byte */
        {"746964656d61726b2d68690001", TIDE_OK, ""},
        {HEAD "00004000", TIDE_OK, ""},                             /* 4 MiB */
        {HEAD "01004000", TIDE_CORRUPT, "the limit is 4194304"},
        {HEAD "ffffffff", TIDE_CORRUPT, "claims 4294967295 bytes"},
        {"746964656d61726b2d6869000200" "04000000", TIDE_UNSUPPORTED, "version 2"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
        struct tide_error err = {0};
        size_t size = 0;
        bytes_unhex(tide_str_from(cases[i].hex), &bytes);
        tide_status status = tide_wire_hello_size(tide_buf_str(&bytes), &size, &err);
        if (status != cases[i].want || strstr(err.message, cases[i].says) == NULL) {
            fail_msg("case %zu: %s", i, err.message);
        }
    }
}

/* Bodies in hex, each with its right length before it. */
static void decode_wrong_hellos_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *hex; const char *says; } cases[] = {
        {"ffffffff", "counts more"},
        {"01000000" "0000000000000000", "no uuid"},
        {"01000000" "01000000ff" "00000000", "UTF-8"},
        {"01000000" "0100000061" "ffffffff", "counts more"},
        {"02000000" "0100000061" "00000000" "0100000061" "00000000", "sources do not rise"},
        {"02000000" "0100000062" "00000000" "0100000061" "00000000", "sources do not rise"},
        {"01000000" "0100000061" "02000000" "010000006d0000" "010000006d0000", "series do not rise"},
        {"01000000" "0100000061" "02000000" "010000006e0000" "010000006d0000", "series do not rise"},
        {"01000000" "0100000061" "01000000" "010000006d" "00" "010000000000000000", "behind its newest row"},
        {"01000000" "0100000061" "01000000" "010000006d" "010000000000000000" "010100000000000000", "behind its newest row"},
        {"01000000" "0100000061" "01000000" "010000006d" "02" "00", "neither 0 nor 1"},
        {"01000000" "0100000061" "01000000" "0100000080" "00" "00", "UTF-8"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
        struct tide_error err = {0};
        bytes_unhex(TIDE_STR(HEAD "00000000"), &bytes);
        bytes_unhex(tide_str_from(cases[i].hex), &bytes);
        bytes.ptr[14] = (char)(bytes.len - TIDE_WIRE_HELLO_HEAD_SIZE);
        tide_status status = decode_exact(tide_buf_str(&bytes), &err);
        if (status != TIDE_CORRUPT || strstr(err.message, cases[i].says) == NULL) {
            fail_msg("case %zu: %s", i, err.message);
        }
    }
}

static void encode_wrong_hellos_are_refused(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_error err = {0};
    char *large = calloc(1, TIDE_WIRE_HELLO_BYTES_MAX);
    struct tide_wire_hello_source wrong[2] = {sources[1], sources[0]};
    struct tide_wire_hello falling = {wrong, 2};
    assert_non_null(large);
    assert_int_equal(tide_wire_hello_encode(&falling, &out, &err), TIDE_INVALID);
    wrong[0].uuid = tide_str_of(large, TIDE_WIRE_HELLO_BYTES_MAX - 12);
    struct tide_wire_hello one = {wrong, 1};
    assert_int_equal(tide_wire_hello_encode(&one, &out, &err), TIDE_OK);
    assert_int_equal(decode_exact(tide_buf_str(&out), &err), TIDE_OK);
    tide_buf_reset(&out);
    wrong[0].uuid.len++;
    assert_int_equal(tide_wire_hello_encode(&one, &out, &err), TIDE_INVALID);
    assert_int_equal(out.len, 0);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_hello_is_golden),
        cmocka_unit_test(decode_golden_hello_says_the_same),
        cmocka_unit_test(decode_every_truncation_and_a_byte_more_are_corrupt),
        cmocka_unit_test(decode_every_other_byte_is_another_hello_or_an_error),
        cmocka_unit_test(size_is_known_from_the_head),
        cmocka_unit_test(size_wrong_heads_are_refused),
        cmocka_unit_test(decode_wrong_hellos_are_refused),
        cmocka_unit_test(encode_wrong_hellos_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
