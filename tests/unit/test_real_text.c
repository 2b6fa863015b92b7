#include "cmocka_prelude.h"

#include "format/json_reader.h"
#include "format/real_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void real_to_text_known_values(void **state)
{
    (void)state;

    static const struct {
        double value;
        const char *want;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-1.0, "-1.0"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {19.99, "19.99"},
        {-1234.5, "-1234.5"},
        {100.0, "100.0"},
        {0.001, "0.001"},
        {1e-7, "0.0000001"},
        {123456789012345.0, "123456789012345.0"},
        {999999999999999.0, "999999999999999.0"},
        {-216237.00000035969, "-216237.0000003597"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3.0, "0.3333333333333333"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e15, "1e+15"},
        {1e22, "1e+22"},
        {1e300, "1e+300"},
        {1e-300, "1e-300"},
        {1e-40, "1e-40"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {-DBL_MAX, "-1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "4.94065645841247e-324"},
        {(double)INFINITY, "Infinity"},
        {-(double)INFINITY, "-Infinity"},
        {(double)NAN, "NaN"},
        {-(double)NAN, "NaN"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TIDE_REAL_TEXT_SIZE];
        size_t len = tide_real_to_text(cases[i].value, text);
        assert_string_equal(text, cases[i].want);
        assert_int_equal(len, strlen(text));
    }
}

static uint64_t bits_of(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Reads back to the same bits, is a JSON number and no integer. */
static void check(double value)
{
    char text[TIDE_REAL_TEXT_SIZE];
    memset(text, 'x', sizeof(text));
    size_t len = tide_real_to_text(value, text);
    struct tide_error err = {0};
    double back = strtod(text, NULL);
    assert_int_equal(text[len], '\0');
    if (bits_of(back) != bits_of(value) || strpbrk(text, ".e") == NULL ||
        tide_json_check(tide_str_of(text, len), 0, &err) != TIDE_OK) {
        fail_msg("%.17g was written as %s", value, text);
    }
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed ^ *seed >> 29;
}

static void real_to_text_random_bits_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random(&seed);
        double value = 0;
        memcpy(&value, &bits, sizeof(value));
        if (isfinite(value)) {
            check(value);
        }
    }
}

static double power_of_ten(unsigned places)
{
    double power = 1;
    while (places-- > 0) {
        power *= 10;
    }
    return power;
}

/* Decimals of up to 15 digits come out with no more digits than went in. */
static void real_to_text_decimals_stay_short(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int i = 0; i < 200000; i++) {
        unsigned places = 1 + (unsigned)(next_random(&seed) >> 33) % 15;
        uint64_t digits = (next_random(&seed) >> 14) % UINT64_C(1000000000000000);
        digits >>= (next_random(&seed) >> 33) % 48;
        digits |= 1; /* no trailing zero */
        char decimal[64];
        (void)snprintf(decimal, sizeof(decimal), "%.*f", (int)places,
                       (double)digits / power_of_ten(places));
        double value = strtod(decimal, NULL);
        check(value);
        char text[TIDE_REAL_TEXT_SIZE];
        tide_real_to_text(value, text);
        if (digits % 10 != 0 && strlen(decimal) <= 16 && strcmp(text, decimal) != 0) {
            fail_msg("%s was written as %s", decimal, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_to_text_known_values),
        cmocka_unit_test(real_to_text_random_bits_round_trip),
        cmocka_unit_test(real_to_text_decimals_stay_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
