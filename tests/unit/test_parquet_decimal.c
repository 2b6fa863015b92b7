#include "cmocka_prelude.h"

#include "format/parquet/decimal.h"

static const struct {
    const char *text;
    unsigned scale;
    const char *want; /* as written back; NULL: refused */
} cases[] = {
    {"0", 0, "0"},
    {"-0", 2, "0.00"},
    {"19.90", 2, "19.90"},
    {"19.9", 2, "19.90"},
    {"19.900", 2, "19.90"},
    {"19.901", 2, NULL},
    {"+1", 1, "1.0"},
    {".5", 1, "0.5"},
    {"5.", 1, "5.0"},
    {"-0.05", 2, "-0.05"},
    {"1e3", 0, "1000"},
    {"1.5E-3", 4, "0.0015"},
    {"1.5e-3", 3, NULL},
    {"150e-1", 0, "15"},
    {"0e99999", 2, "0.00"},
    {"0.0000000000000000000000000000000000000000000000000000", 1, "0.0"},
    {"000000000000000000000000000000000000000000000000000001", 0, "1"},
    {"1e-99999999999", 2, NULL},
    {"1e99999999999", 2, NULL},
    {"99999999999999999999999999999999999999", 0, "99999999999999999999999999999999999999"},
    {"-99999999999999999999999999999999999999", 0, "-99999999999999999999999999999999999999"},
    {"99999999999999999999999999999999999999", 9, NULL},
    {"100000000000000000000000000000000000000", 0, NULL},
    {"0.99999999999999999999999999999999999999", 38, "0.99999999999999999999999999999999999999"},
    {"1", 38, NULL},
    {"-0.00000000000000000000000000000000000001", 38, "-0.00000000000000000000000000000000000001"},
    {"", 0, NULL},
    {"-", 0, NULL},
    {".", 0, NULL},
    {"1e", 0, NULL},
    {"1e+", 0, NULL},
    {"1 ", 0, NULL},
    {" 1", 0, NULL},
    {"--1", 0, NULL},
    {"1.2.3", 2, NULL},
    {"NaN", 2, NULL},
    {"Infinity", 2, NULL},
    {"0x10", 0, NULL},
};

static void from_text_then_append_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tide_int128 value = 7;
        struct tide_buf out = {0};
        bool taken =
            tide_parquet_decimal_from_text(tide_str_from(cases[i].text), cases[i].scale, &value);
        if (taken != (cases[i].want != NULL) || (!taken && value != 7)) {
            fail_msg("%s at scale %u", cases[i].text, cases[i].scale);
        }
        if (taken) {
            tide_parquet_decimal_append(&out, value, cases[i].scale);
            assert_string_equal(tide_buf_cstr(&out), cases[i].want);
        }
        tide_buf_done(&out);
    }
}

static void fits_as_many_digits_as_the_precision(void **state)
{
    (void)state;
    tide_int128 power = 1;
    for (unsigned precision = 1; precision <= 38; precision++) {
        power *= 10;
        assert_true(tide_parquet_decimal_fits(power - 1, precision));
        assert_true(tide_parquet_decimal_fits(1 - power, precision));
        assert_false(tide_parquet_decimal_fits(power, precision));
        assert_false(tide_parquet_decimal_fits(-power, precision));
    }
}

/* What a damaged file may hold: more than 38 digits. */
static void append_extremes_of_128_bits_is_whole(void **state)
{
    (void)state;
    struct tide_buf out = {0};
    tide_int128 least = (tide_int128)((unsigned __int128)1 << 127);
    tide_parquet_decimal_append(&out, least, 38);
    tide_buf_append_char(&out, ' ');
    tide_parquet_decimal_append(&out, least, 0);
    assert_string_equal(tide_buf_cstr(&out), "-1.70141183460469231731687303715884105728 "
                                             "-170141183460469231731687303715884105728");
    tide_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_text_then_append_is_exact),
        cmocka_unit_test(fits_as_many_digits_as_the_precision),
        cmocka_unit_test(append_extremes_of_128_bits_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
