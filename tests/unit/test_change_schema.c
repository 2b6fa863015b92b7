#include "cmocka_prelude.h"

#include "archive/change_plan.h"
#include "base/alloc.h"
#include "change_maker.h"

static void decode_of_random_tables_encodes_to_the_same_json(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf again TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_change_schema schema = change_maker_schema(&maker);
        struct tide_change_schema read = {0};
        struct tide_error err = {0};
        change_maker_json(&schema, &json);
        assert_int_equal(tide_change_schema_decode(tide_buf_str(&json), &maker.arena, &read, &err),
                         TIDE_OK);
        change_maker_json(&read, &again);
        assert_int_equal(json.len, again.len);
        assert_memory_equal(json.ptr, again.ptr, json.len);
        for (size_t len = 0; len < json.len; len += 3) {
            char *copy TIDE_CLEANUP(tide_free_ptr) = tide_strndup(json.ptr, len);
            assert_int_equal(
                tide_change_schema_decode(tide_str_of(copy, len), &maker.arena, &read, &err),
                TIDE_CORRUPT);
        }
    }
}

#define HEAD                                                                                       \
    "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\",\"position_kind\":\"lsn\","
#define COLUMN_A "{\"name\":\"a\",\"type\":\"\",\"hidden\":false}"

static void decode_of_what_is_no_table_is_refused(void **state)
{
    static const struct {
        const char *json;
        tide_status want;
    } cases[] = {
        {HEAD "\"columns\":[" COLUMN_A "],\"key\":[\"a\"]}", TIDE_OK},
        {HEAD "\"columns\":[" COLUMN_A "],\"key\":[]}", TIDE_OK},
        {HEAD "\"columns\":[],\"key\":[]}", TIDE_CORRUPT},
        {HEAD "\"columns\":[" COLUMN_A "," COLUMN_A "],\"key\":[]}", TIDE_CORRUPT},
        {HEAD "\"columns\":[" COLUMN_A "],\"key\":[\"b\"]}", TIDE_CORRUPT},
        {HEAD "\"columns\":[" COLUMN_A "],\"key\":[\"a\",\"a\"]}", TIDE_CORRUPT},
        {HEAD "\"columns\":[" COLUMN_A "]}", TIDE_CORRUPT},
        {HEAD "\"columns\":[{}],\"key\":[]}", TIDE_CORRUPT},
        {"{\"version\":2,\"store\":\"\",\"schema\":\"\",\"table\":\"\",\"position_kind\":\"\","
         "\"columns\":[],\"key\":[]}",
         TIDE_UNSUPPORTED},
        {"", TIDE_CORRUPT},
        {"[[[[[[]]]]]]", TIDE_CORRUPT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
        struct tide_change_schema schema = {0};
        struct tide_error err = {0};
        assert_int_equal(
            tide_change_schema_decode(tide_str_from(cases[i].json), &arena, &schema, &err),
            cases[i].want);
    }
}

/* Names of ours and of other columns are not taken twice, in any letters. */
static void plan_gives_colliding_columns_other_names(void **state)
{
    static const struct tide_column columns[] = {
        {.name = {"_time", 5}, .type = {"INT", 3}},   {.name = {"_OP", 3}, .type = {"INT", 3}},
        {.name = {"a", 1}, .type = {"INT", 3}},       {.name = {"A#OTHER", 7}, .type = {"INT", 3}},
        {.name = {"b#kind", 6}, .type = {"INT", 3}},  {.name = {"b", 1}, .type = {"TEXT", 4}},
        {.name = {"_time_", 6}, .type = {"TEXT", 4}},
    };
    static const char *const want[] = {"_time_",  "_time_#other", "_OP_",     "_OP_#other",
                                       "a",       "a#other",      "A#OTHER_", "A#OTHER_#other",
                                       "b#kind",  "b#kind#other", "b_",       "b_#kind",
                                       "_time__", "_time__#kind"};
    const struct tide_change_schema schema = {
        .position_kind = TIDE_STR("integer"), .columns = columns, .column_count = 7};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_change_plan plan;
    struct tide_error err = {0};
    (void)state;
    tide_change_plan_make(&schema, &arena, &plan);
    assert_int_equal(plan.parquet_count, TIDE_META_COUNT + 14);
    for (size_t i = 0; i < 14; i++) {
        assert_string_equal(tide_arena_cstr(&arena, plan.parquet[TIDE_META_COUNT + i].name),
                            want[i]);
    }
    assert_int_equal(tide_change_plan_check(&plan, plan.parquet, plan.parquet_count, &err),
                     TIDE_OK);
    plan.parquet[3].name = TIDE_STR("x");
    struct tide_change_plan fresh;
    tide_change_plan_make(&schema, &arena, &fresh);
    assert_int_equal(tide_change_plan_check(&fresh, plan.parquet, plan.parquet_count, &err),
                     TIDE_CORRUPT);
}

static void series_of_long_names_are_cut_and_differ(void **state)
{
    char name[8000];
    struct tide_buf long_one TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf another TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf short_one TIDE_CLEANUP(tide_buf_done) = {0};
    (void)state;
    memset(name, 'x', sizeof(name));
    for (size_t i = 3999; i < sizeof(name) - 1; i += 2) { /* a character across the cut */
        name[i] = (char)0xc3;
        name[i + 1] = (char)0xa4;
    }
    tide_change_series_name_append(&short_one, tide_str_of(name, 3999));
    assert_int_equal(short_one.len, 3999);
    assert_memory_equal(short_one.ptr, name, 3999);
    tide_change_series_name_append(&long_one, tide_str_of(name, 4001));
    assert_int_equal(long_one.len, 3999 + 17);
    assert_memory_equal(long_one.ptr, name, 3999);
    assert_int_equal(long_one.ptr[3999], '~');
    assert_true(tide_str_is_utf8(tide_buf_str(&long_one)));
    tide_change_series_name_append(&another, tide_str_of(name, 4003));
    assert_int_equal(another.len, long_one.len);
    assert_false(tide_str_equal(tide_buf_str(&another), tide_buf_str(&long_one)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_of_random_tables_encodes_to_the_same_json),
        cmocka_unit_test(decode_of_what_is_no_table_is_refused),
        cmocka_unit_test(plan_gives_colliding_columns_other_names),
        cmocka_unit_test(series_of_long_names_are_cut_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
