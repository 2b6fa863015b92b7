#include "cmocka_prelude.h"

#include "base/limits.h"
#include "bytes_kit.h"
#include "format/wire/opening.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define OPENING_HEX                                                                                \
    "746964656d61726b2d676f00"                                                                     \
    "0100"                                                                                         \
    "09000000"                                                                                     \
    "01"                                                                                           \
    "01"                                                                                           \
    "03000000"                                                                                     \
    "616263"
#define REFUSAL_HEX                                                                                \
    "746964656d61726b2d6e6f00"                                                                     \
    "0100"                                                                                         \
    "07000000"                                                                                     \
    "01"                                                                                           \
    "02000000"                                                                                     \
    "6e6f"

static const struct tide_wire_opening opening = {true, true, {"abc", 3}};
static const struct tide_wire_refusal refusal = {true, {"no", 2}};

static tide_status decode_opening_exact(tide_str bytes, struct tide_error *err)
{
    struct tide_wire_opening got;
    tide_str exact = bytes_exact(bytes);
    tide_status status = tide_wire_opening_decode(exact, &got, err);
    bytes_free(exact);
    return status;
}

static tide_status decode_refusal_exact(tide_str bytes, struct tide_error *err)
{
    struct tide_wire_refusal got;
    tide_str exact = bytes_exact(bytes);
    tide_status status = tide_wire_refusal_decode(exact, &got, err);
    bytes_free(exact);
    return status;
}

static void append_golden_bytes(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    bytes_unhex(TIDE_STR(OPENING_HEX REFUSAL_HEX), &want);
    tide_wire_opening_append(&opening, &out);
    tide_wire_refusal_append(&refusal, &out);
    assert_int_equal(out.len, want.len);
    assert_memory_equal(out.ptr, want.ptr, want.len);
}

static void decode_golden_bytes_says_the_same(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_wire_opening opened;
    struct tide_wire_refusal refused;
    struct tide_error err;
    bytes_unhex(TIDE_STR(OPENING_HEX), &bytes);
    assert_int_equal(tide_wire_opening_decode(tide_buf_str(&bytes), &opened, &err), TIDE_OK);
    assert_true(opened.ends && opened.has_token);
    assert_true(tide_str_equal(opened.token, opening.token));
    tide_buf_reset(&bytes);
    bytes_unhex(TIDE_STR(REFUSAL_HEX), &bytes);
    assert_int_equal(tide_wire_refusal_decode(tide_buf_str(&bytes), &refused, &err), TIDE_OK);
    assert_true(refused.is_retriable && tide_str_equal(refused.reason, refusal.reason));
}

static void opening_without_a_token_is_not_one_with_an_empty_one(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_wire_opening got;
    struct tide_error err;
    tide_wire_opening_append(&(struct tide_wire_opening){0}, &out);
    assert_int_equal(out.len, TIDE_WIRE_OPENING_HEAD_SIZE + 2);
    assert_int_equal(tide_wire_opening_decode(tide_buf_str(&out), &got, &err), TIDE_OK);
    assert_false(got.ends || got.has_token);
    tide_buf_reset(&out);
    tide_wire_opening_append(&(struct tide_wire_opening){.has_token = true}, &out);
    assert_int_equal(tide_wire_opening_decode(tide_buf_str(&out), &got, &err), TIDE_OK);
    assert_true(got.has_token && got.token.len == 0);
}

static void decode_every_truncation_and_a_byte_more_are_corrupt(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_error err;
    bytes_unhex(TIDE_STR(OPENING_HEX "00"), &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        assert_int_equal(decode_opening_exact(tide_str_of(bytes.ptr, len), &err),
                         len + 1 == bytes.len ? TIDE_OK : TIDE_CORRUPT);
    }
    tide_buf_reset(&bytes);
    bytes_unhex(TIDE_STR(REFUSAL_HEX "00"), &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        assert_int_equal(decode_refusal_exact(tide_str_of(bytes.ptr, len), &err),
                         len + 1 == bytes.len ? TIDE_OK : TIDE_CORRUPT);
    }
}

static void size_is_known_from_the_head(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_error err;
    bytes_unhex(TIDE_STR(OPENING_HEX), &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        size_t size = 1;
        tide_str have = tide_str_of(bytes.ptr, len);
        assert_int_equal(tide_wire_opening_size(have, &size, &err), TIDE_OK);
        assert_int_equal(size, len < TIDE_WIRE_OPENING_HEAD_SIZE ? 0 : bytes.len);
        assert_true(tide_wire_opening_may_be(have));
        assert_int_equal(tide_wire_refusal_may_be(have), len <= 9); /* up to "tidemark-" */
    }
}

static void size_wrong_heads_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *hex; tide_status want; const char *says; } cases[] = {
        {"474554202f", TIDE_CORRUPT, "no opening"},
        {"746964656d61726b2d676f01", TIDE_CORRUPT, "no opening"},
        {"746964656d61726b2d676f00" "0200" "02000000", TIDE_UNSUPPORTED, "version 2"},
        {"746964656d61726b2d676f00" "0101" "02000000", TIDE_UNSUPPORTED, "version 257"},
        {"746964656d61726b2d676f00" "0100" "ffffffff", TIDE_CORRUPT, "4294967295 bytes"},
        {"746964656d61726b2d676f00" "0100" "07040000", TIDE_CORRUPT, "limit is 1030"},
    };

    /* clang-format on */

    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
        struct tide_error err;
        size_t size = 0;
        bytes_unhex(tide_str_from(cases[i].hex), &bytes);
        assert_int_equal(tide_wire_opening_size(tide_buf_str(&bytes), &size, &err), cases[i].want);
        assert_non_null(strstr(err.message, cases[i].says));
    }
}

static void refusal_that_is_too_long_is_cut_between_characters(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf reason = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_wire_refusal got;
    struct tide_error err;
    tide_buf_append_char(&reason, 'a');
    while (reason.len < 2 * TIDE_REFUSAL_BYTES_MAX) {
        tide_buf_append_str(&reason, TIDE_STR("\xc3\xab"));
    }
    tide_wire_refusal_append(&(struct tide_wire_refusal){.reason = tide_buf_str(&reason)}, &out);
    assert_int_equal(tide_wire_refusal_decode(tide_buf_str(&out), &got, &err), TIDE_OK);
    assert_int_equal(got.reason.len, TIDE_REFUSAL_BYTES_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_golden_bytes),
        cmocka_unit_test(decode_golden_bytes_says_the_same),
        cmocka_unit_test(opening_without_a_token_is_not_one_with_an_empty_one),
        cmocka_unit_test(decode_every_truncation_and_a_byte_more_are_corrupt),
        cmocka_unit_test(size_is_known_from_the_head),
        cmocka_unit_test(size_wrong_heads_are_refused),
        cmocka_unit_test(refusal_that_is_too_long_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
