#include "cmocka_prelude.h"

#include "model/position.h"

#include <stdlib.h>
#include <string.h>

static void lsn_text_is_read_and_written_as_the_server_writes_it(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint64_t lsn;
        const char *written;
    } cases[] = {
        {"0/0", 0, "0/0"},
        {"16/B374D848", UINT64_C(0x16B374D848), "16/B374D848"},
        {"0/19A1128", UINT64_C(0x19A1128), "0/19A1128"},
        {"1/00000001", UINT64_C(0x100000001), "1/1"},
        {"ffffffff/ABCDEFab", UINT64_MAX - 0x54321054, "FFFFFFFF/ABCDEFAB"},
        {"FFFFFFFF/FFFFFFFF", UINT64_MAX, "FFFFFFFF/FFFFFFFF"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t lsn = 1;
        struct tide_buf buf = {0};
        assert_true(tide_lsn_parse(tide_str_from(cases[i].text), &lsn));
        assert_int_equal(lsn, cases[i].lsn);
        tide_lsn_append(&buf, lsn);
        assert_string_equal(tide_buf_cstr(&buf), cases[i].written);
        tide_buf_done(&buf);
    }
}

static void lsn_text_of_another_form_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "/",    "0",    "0/",    "/0",  "0/0/0", "g/0", "0/:",  "0/@",        "000000000/0",
        " 0/0", "0/0 ", "-1/0", "0x1/0", "0/`", "0/G",   "0/g", "0\\0", "0/123456789"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t lsn = 77;
        assert_false(tide_lsn_parse(tide_str_from(texts[i]), &lsn));
        assert_int_equal(lsn, 77);
    }
    uint64_t lsn = 77;
    assert_false(tide_lsn_parse(tide_str_of("0/0\0", 4), &lsn));
}

static void lsn_position_goes_through_json(void **state)
{
    (void)state;
    for (uint64_t lsn = 1; lsn != 0; lsn <<= 1) {
        struct tide_error err;
        struct tide_buf buf = {0};
        struct tide_position back = {0};
        tide_position_lsn.write((struct tide_position){.lo = lsn}, &buf);
        assert_int_equal(tide_position_lsn.parse(tide_buf_str(&buf), &back, &err), TIDE_OK);
        assert_int_equal(back.hi, 0);
        assert_int_equal(back.lo, lsn);
        for (size_t len = 0; len < buf.len; len++) {
            assert_int_equal(tide_position_lsn.parse(tide_str_of(buf.ptr, len), &back, &err),
                             TIDE_CORRUPT);
        }
        tide_buf_done(&buf);
    }
}

static void lsn_position_of_another_kind_is_corrupt(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    "\"",    "\"\"", "12",
                                        "0/0", "\"0/0", "null", "\"0\\/0\""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tide_error err;
        struct tide_position back = {.lo = 5};
        assert_int_equal(tide_position_lsn.parse(tide_str_from(texts[i]), &back, &err),
                         TIDE_CORRUPT);
        assert_int_equal(back.lo, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lsn_text_is_read_and_written_as_the_server_writes_it),
        cmocka_unit_test(lsn_text_of_another_form_is_refused),
        cmocka_unit_test(lsn_position_goes_through_json),
        cmocka_unit_test(lsn_position_of_another_kind_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
