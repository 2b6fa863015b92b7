#include "cmocka_prelude.h"

#include "source/postgres/pg_state.h"

static const struct tide_pg_told example_tables[] = {
    {.oid = 16384, .store = TIDE_STR("shop.public.a")},
    {.oid = 4294967295, .store = TIDE_STR("shop.public.\"b")},
};

static const struct tide_pg_state example = {
    .system_identifier = UINT64_C(7390000000000000123),
    .timeline = 3,
    .slot = "tidemark_shop_1a2b3c4d",
    .publication = "tidemark_shop_1a2b3c4d",
    .consistent_lsn = UINT64_C(0x16B374D848),
    .has_tables = true,
    .tables = example_tables,
    .table_count = 2,
};
static const char written[] =
    "{\"system_identifier\":\"7390000000000000123\",\"timeline\":3,"
    "\"slot\":\"tidemark_shop_1a2b3c4d\",\"publication\":\"tidemark_shop_1a2b3c4d\","
    "\"consistent_point\":\"16/B374D848\",\"tables\":[[16384,\"shop.public.a\"],"
    "[4294967295,\"shop.public.\\\"b\"]]}";

static void write_then_read_gives_the_same(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_pg_state read = {0};
    struct tide_error err = {0};
    tide_pg_state_write(&example, &buf);
    assert_string_equal(tide_buf_cstr(&buf), written);
    assert_int_equal(tide_pg_state_read(tide_buf_str(&buf), &arena, &read, &err), TIDE_OK);
    assert_int_equal(read.table_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(read.tables[i].oid, example_tables[i].oid);
        assert_true(tide_str_equal(read.tables[i].store, example_tables[i].store));
    }
    read.tables = example.tables;
    assert_memory_equal(&read, &example, sizeof(read));
}

static void read_of_an_older_program_knows_no_tables(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_pg_state read = {0};
    struct tide_error err = {0};
    tide_str old = TIDE_STR("{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"a\","
                            "\"publication\":\"a\",\"consistent_point\":\"0/1\"}");
    assert_int_equal(tide_pg_state_read(old, &arena, &read, &err), TIDE_OK);
    assert_false(read.has_tables);
}

static void read_truncated_is_corrupt(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_pg_state read;
    struct tide_error err;
    for (size_t len = 0; len < sizeof(written) - 1; len++) {
        assert_int_equal(tide_pg_state_read(tide_str_of(written, len), &arena, &read, &err),
                         TIDE_CORRUPT);
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
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\",\"tables\":[[4294967296,\"a\"]]}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"a\",\"publication\":\"a\","
        "\"consistent_point\":\"0/1\",\"tables\":[[1]]}",
        "{\"system_identifier\":\"7\",\"timeline\":3,\"slot\":\"0123456789012345678901234567890123"
        "456789012345678901234567890123\",\"publication\":\"a\",\"consistent_point\":\"0/1\"}",
    };
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_pg_state read;
        struct tide_error err;
        assert_int_equal(tide_pg_state_read(tide_str_from(cases[i]), &arena, &read, &err),
                         TIDE_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_then_read_gives_the_same),
        cmocka_unit_test(read_of_an_older_program_knows_no_tables),
        cmocka_unit_test(read_truncated_is_corrupt),
        cmocka_unit_test(read_other_forms_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
