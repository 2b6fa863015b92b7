#include "cmocka_prelude.h"

#include "source/postgres/pg_state.h"

static const struct tide_pg_state example = {
    .system_identifier = UINT64_C(7390000000000000123),
    .timeline = 3,
    .slot = "tidemark_shop_1a2b3c4d",
    .publication = "tidemark_shop_1a2b3c4d",
    .consistent_lsn = UINT64_C(0x16B374D848),
};
static const char written[] =
    "{\"system_identifier\":\"7390000000000000123\",\"timeline\":3,"
    "\"slot\":\"tidemark_shop_1a2b3c4d\",\"publication\":\"tidemark_shop_1a2b3c4d\","
    "\"consistent_point\":\"16/B374D848\"}";

static void write_then_read_gives_the_same(void **state)
{
    (void)state;
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_pg_state read = {0};
    struct tide_error err = {0};
    tide_pg_state_write(&example, &buf);
    assert_string_equal(tide_buf_cstr(&buf), written);
    assert_int_equal(tide_pg_state_read(tide_buf_str(&buf), &read, &err), TIDE_OK);
    assert_memory_equal(&read, &example, sizeof(read));
}

static void read_truncated_is_corrupt(void **state)
{
    (void)state;
    struct tide_pg_state read;
    struct tide_error err;
    for (size_t len = 0; len < sizeof(written) - 1; len++) {
        assert_int_equal(tide_pg_state_read(tide_str_of(written, len), &read, &err), TIDE_CORRUPT);
    }
}

static void read_other_forms_is_corrupt(void **state)
{
    static const char *const cases[] = {
        "null",
        "{}",
        "[1,2,3,4,5]",
        "{\"system_identifier\":7,\"timeline\":3,\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":\"3\",\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":4294967296,\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"a\\u0000b\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"1\"}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"0123456789012345678901234567890123"
        "456789012345678901234567890123\",\"publication\":\"a\",\"consistent_point\":\"0/1\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_pg_state read;
        struct tide_error err;
        assert_int_equal(tide_pg_state_read(tide_str_from(cases[i]), &read, &err), TIDE_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_then_read_gives_the_same),
        cmocka_unit_test(read_truncated_is_corrupt),
        cmocka_unit_test(read_other_forms_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
