#include "cmocka_prelude.h"

#include "archive/change_form.h"
#include "archive/change_real.h"
#include "archive/change_scalar.h"
#include "archive/change_time.h"
#include "change_maker.h"

/* clang-format off */
static const struct {
    const char *positions;
    const char *type;
    bool is_key;
    enum tide_change_form form;
    unsigned precision, scale;
} types[] = {
    {"lsn", "boolean", false, TIDE_FORM_BOOL, 0, 0},
    {"lsn", "integer", false, TIDE_FORM_I64, 0, 0},
    {"lsn", "interval", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "numeric(10,2)", false, TIDE_FORM_DECIMAL, 10, 2},
    {"lsn", "numeric(38,38)", false, TIDE_FORM_DECIMAL, 38, 38},
    {"lsn", "numeric(39,2)", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "numeric(2,-3)", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "numeric(2,5)", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "numeric", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "numeric(10,2)[]", false, TIDE_FORM_JSON, 0, 0},
    {"lsn", "numeric(10,2)[]", true, TIDE_FORM_STRING, 0, 0},
    {"lsn", "jsonb", false, TIDE_FORM_JSON, 0, 0},
    {"lsn", "jsonb", true, TIDE_FORM_STRING, 0, 0},
    {"lsn", "timestamp without time zone", false, TIDE_FORM_TIMESTAMP, 0, 0},
    {"lsn", "timestamp(3) with time zone", false, TIDE_FORM_TIMESTAMP_UTC, 0, 0},
    {"lsn", "time with time zone", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "time(0) without time zone", false, TIDE_FORM_TIME, 0, 0},
    {"lsn", "character varying(20)", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", "", false, TIDE_FORM_STRING, 0, 0},
    {"lsn", ")date(", false, TIDE_FORM_STRING, 0, 0},
    {"integer", "INT", false, TIDE_FORM_I64, 0, 0},
    {"integer", "charint", false, TIDE_FORM_I64, 0, 0},
    {"integer", "VarChar(10)", false, TIDE_FORM_STRING, 0, 0},
    {"integer", "", false, TIDE_FORM_STRING, 0, 0},
    {"integer", "BLOB", false, TIDE_FORM_BINARY, 0, 0},
    {"integer", "DOUBLE PRECISION", false, TIDE_FORM_DOUBLE, 0, 0},
    {"integer", "BOOLEAN", false, TIDE_FORM_I64, 0, 0},
    {"integer", "DECIMAL( 10 , 2 )", false, TIDE_FORM_NUMBER, 10, 2},
    {"integer", "NUMERIC", false, TIDE_FORM_NUMBER, 38, 9},
    {"integer", "DATETIME", false, TIDE_FORM_STRING, 0, 0},
};

static const struct {
    const char *positions;
    const char *type;
    enum tide_value_kind kind;
    const char *text;
    bool is_held;
} values[] = {
    {"lsn", "boolean", TIDE_VALUE_BOOL, "true", true},
    {"lsn", "boolean", TIDE_VALUE_TEXT, "true", false},
    {"lsn", "bigint", TIDE_VALUE_INTEGER, "-9223372036854775808", true},
    {"lsn", "bigint", TIDE_VALUE_INTEGER, "9223372036854775808", false},
    {"lsn", "bigint", TIDE_VALUE_INTEGER, "-0", false},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "19.90", true},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "-0.01", true},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "19.9", false},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "99999999.99", true},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "100000000.00", false},
    {"lsn", "numeric(10,2)", TIDE_VALUE_DECIMAL, "NaN", false},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1.0", false},
    {"lsn", "double precision", TIDE_VALUE_REAL, "-0", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "0.1", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1e+15", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "100000000000000", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1e-05", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "0.0001", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "0.30000000000000004", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1.7976931348623157e+308", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "5e-324", false}, /* ours has more digits of it */
    {"lsn", "double precision", TIDE_VALUE_REAL, "1.2345678901234568e+17", true},
    {"lsn", "double precision", TIDE_VALUE_REAL, "NaN", false},
    {"lsn", "double precision", TIDE_VALUE_REAL, "1e+400", false},
    {"lsn", "real", TIDE_VALUE_REAL, "1e+06", true},
    {"lsn", "real", TIDE_VALUE_REAL, "1000000", false},
    {"lsn", "real", TIDE_VALUE_REAL, "123456", true},
    {"lsn", "real", TIDE_VALUE_REAL, "1.2345679e+08", true},
    {"lsn", "real", TIDE_VALUE_REAL, "3.14", true},
    {"lsn", "date", TIDE_VALUE_TEXT, "2024-02-29", true},
    {"lsn", "date", TIDE_VALUE_TEXT, "2023-02-29", false},
    {"lsn", "date", TIDE_VALUE_TEXT, "1900-02-29", false},
    {"lsn", "date", TIDE_VALUE_TEXT, "0001-01-01", true},
    {"lsn", "date", TIDE_VALUE_TEXT, "0000-01-01", false},
    {"lsn", "date", TIDE_VALUE_TEXT, "9999-12-31", true},
    {"lsn", "date", TIDE_VALUE_TEXT, "10000-01-01", false},
    {"lsn", "date", TIDE_VALUE_TEXT, "0044-03-15 BC", false},
    {"lsn", "time without time zone", TIDE_VALUE_TEXT, "23:59:59.999999", true},
    {"lsn", "time without time zone", TIDE_VALUE_TEXT, "24:00:00", false},
    {"lsn", "time without time zone", TIDE_VALUE_TEXT, "12:00:00.10", false},
    {"lsn", "timestamp without time zone", TIDE_VALUE_TEXT, "2026-11-29T13:40:55.5", true},
    {"lsn", "timestamp without time zone", TIDE_VALUE_TEXT, "2026-11-29 13:40:55.5", false},
    {"lsn", "timestamp without time zone", TIDE_VALUE_TEXT, "infinity", false},
    {"lsn", "timestamp with time zone", TIDE_VALUE_TEXT, "1969-12-31T23:59:59.999999+00", true},
    {"lsn", "timestamp with time zone", TIDE_VALUE_TEXT, "2026-11-29T13:40:55+01", false},
    {"lsn", "timestamp with time zone", TIDE_VALUE_TEXT, "+00", false},
    {"lsn", "uuid", TIDE_VALUE_TEXT, "b3d0a1f2-0000-4000-8000-00000000000a", true},
    {"lsn", "uuid", TIDE_VALUE_TEXT, "B3D0A1F2-0000-4000-8000-00000000000A", false},
    {"lsn", "uuid", TIDE_VALUE_TEXT, "b3d0a1f2-0000-4000-8000-00000000000", false},
    {"lsn", "jsonb", TIDE_VALUE_JSON, "{\"a\": 1}", true},
    {"lsn", "jsonb", TIDE_VALUE_TEXT, "{\"a\": 1}", false},
    {"lsn", "bytea", TIDE_VALUE_BYTES, "\xff", true},
    {"integer", "INTEGER", TIDE_VALUE_INTEGER, "7", true},
    {"integer", "INTEGER", TIDE_VALUE_TEXT, "seven", false},
    {"integer", "REAL", TIDE_VALUE_REAL, "1.0", true},
    {"integer", "REAL", TIDE_VALUE_REAL, "1", false},
    {"integer", "REAL", TIDE_VALUE_REAL, "-0.0", true},
    {"integer", "REAL", TIDE_VALUE_REAL, "1e+300", true},
    {"integer", "DECIMAL(10,2)", TIDE_VALUE_REAL, "19.9", true},
    {"integer", "DECIMAL(10,2)", TIDE_VALUE_INTEGER, "19", true},
    {"integer", "DECIMAL(10,2)", TIDE_VALUE_REAL, "19.0", false},
    {"integer", "DECIMAL(10,2)", TIDE_VALUE_REAL, "0.125", false},
    {"integer", "DECIMAL(10,2)", TIDE_VALUE_INTEGER, "100000000", false},
    {"integer", "BLOB", TIDE_VALUE_BYTES, "", true},
    {"integer", "BLOB", TIDE_VALUE_TEXT, "abc", false},
};

/* clang-format on */

static struct tide_parquet_column form_of(const char *positions, const char *type, bool is_key,
                                          struct tide_change_column *column)
{
    struct tide_column declared = {.type = tide_str_from(type)};
    struct tide_change_schema schema = {
        .position_kind = tide_str_from(positions), .columns = &declared, .column_count = 1};
    *column = (struct tide_change_column){.key_place = is_key};
    return tide_change_form_of(&schema, 0, column);
}

static void form_of_a_declared_type_is_fixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct tide_change_column column;
        struct tide_parquet_column parquet =
            form_of(types[i].positions, types[i].type, types[i].is_key, &column);
        if (column.form != types[i].form || parquet.precision != types[i].precision ||
            parquet.scale != types[i].scale) {
            fail_msg("%s of %s: form %d, %u, %u", types[i].type, types[i].positions,
                     (int)column.form, parquet.precision, parquet.scale);
        }
    }
}

static void scalar_of_a_value_is_there_when_it_gives_the_value(void **state)
{
    struct tide_change_scratch scratch TIDE_CLEANUP(tide_change_scratch_done) = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct tide_change_column column;
        struct tide_change_scalar scalar;
        struct tide_parquet_column parquet =
            form_of(values[i].positions, values[i].type, false, &column);
        struct tide_value value = {.ptr = values[i].text,
                                   .len = (uint32_t)strlen(values[i].text),
                                   .kind = (uint8_t)values[i].kind};
        if (tide_change_scalar_of(&column, parquet.precision, value, &scratch, &scalar) !=
            values[i].is_held) {
            fail_msg("%s in %s", values[i].text, values[i].type);
        }
    }
}

/* All forms but STRING, JSON and BINARY, which keep bytes, against any text. */
static void scalar_of_any_value_gives_the_same_again(void **state)
{
    static const char *const names[] = {"boolean",
                                        "bigint",
                                        "real",
                                        "double precision",
                                        "numeric(10,2)",
                                        "numeric(38,2)",
                                        "date",
                                        "time without time zone",
                                        "timestamp without time zone",
                                        "timestamp with time zone",
                                        "uuid"};
    static const char *const sqlite_names[] = {"INT", "REAL", "DECIMAL(12,3)", "NUMERIC"};
    struct tide_change_scratch scratch TIDE_CLEANUP(tide_change_scratch_done) = {0};
    struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = 3};
    size_t held[16] = {0};
    (void)state;
    for (size_t i = 0; i < 300000; i++) {
        struct tide_change_column column;
        struct tide_change_scalar scalar;
        size_t n = i % 15;
        struct tide_parquet_column parquet = form_of(
            n < 11 ? "lsn" : "integer", n < 11 ? names[n] : sqlite_names[n - 11], false, &column);
        struct tide_value value = change_maker_value(&maker, TIDE_STR(""));
        if (tide_change_scalar_of(&column, parquet.precision, value, &scratch, &scalar)) {
            uint8_t kind = 0;
            tide_buf_reset(&scratch.text);
            assert_true(tide_change_scalar_append(&column, &scalar, &scratch.text, &kind));
            assert_int_equal(kind, value.kind);
            assert_int_equal(scratch.text.len, value.len);
            assert_memory_equal(scratch.text.ptr, value.ptr, value.len);
            held[n]++;
        }
        if (i % 1000 == 0) {
            tide_arena_reset(&maker.arena);
        }
    }
    for (size_t n = 0; n < 15; n++) {
        assert_true(held[n] > 50);
    }
}

static void date_of_every_day_reads_back(void **state)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    char before[10] = "0000-12-31";
    (void)state;
    for (int32_t day = -719162; day <= 2932896; day++) {
        int32_t again = 0;
        tide_buf_reset(&text);
        assert_true(tide_change_date_append(&text, day));
        assert_true(tide_change_date_parse(tide_buf_str(&text), &again));
        assert_int_equal(again, day);
        assert_true(memcmp(before, text.ptr, 10) < 0);
        memcpy(before, text.ptr, 10);
    }
    assert_memory_equal(before, "9999-12-31", 10);
    assert_false(tide_change_date_append(&text, -719163));
    assert_false(tide_change_date_append(&text, 2932897));
    assert_false(tide_change_date_append(&text, INT32_MIN));
    assert_false(tide_change_date_append(&text, INT32_MAX));
    assert_false(tide_change_timestamp_append(&text, INT64_MIN));
    assert_false(tide_change_timestamp_append(&text, INT64_MAX));
    assert_false(tide_change_clock_append(&text, -1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form_of_a_declared_type_is_fixed),
        cmocka_unit_test(scalar_of_a_value_is_there_when_it_gives_the_value),
        cmocka_unit_test(scalar_of_any_value_gives_the_same_again),
        cmocka_unit_test(date_of_every_day_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
