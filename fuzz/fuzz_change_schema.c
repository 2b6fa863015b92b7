/*
 * Any bytes as a table's columns. What must hold: columns that are read are written so that they
 * read as the same, and a segment's columns can be made of them, no name twice.
 */
#include "change_maker.h"

#include "archive/change_plan.h"
#include "base/map.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const struct tide_change_schema *schema, struct tide_arena *arena)
{
    struct tide_change_plan plan;
    struct tide_map names = {0};
    struct tide_error err = {0};
    tide_change_plan_make(schema, arena, &plan);
    for (size_t i = 0; i < plan.parquet_count; i++) {
        bool is_new = false;
        (void)tide_map_put(&names, plan.parquet[i].name, &is_new);
        TIDE_ASSERT(is_new);
    }
    TIDE_ASSERT(tide_parquet_columns_check(plan.parquet, plan.parquet_count, &err) == TIDE_OK);
    tide_map_done(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_arena arena = {0};
    struct tide_change_schema schema = {0};
    struct tide_error err = {0};
    tide_status status = tide_change_schema_decode(tide_str_of(data, size), &arena, &schema, &err);
    TIDE_ASSERT(status == TIDE_OK || status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
    if (status == TIDE_OK) {
        struct tide_buf json = {0};
        struct tide_buf again = {0};
        struct tide_change_schema second = {0};
        change_maker_json(&schema, &json);
        TIDE_ASSERT(tide_change_schema_decode(tide_buf_str(&json), &arena, &second, &err) ==
                    TIDE_OK);
        change_maker_json(&second, &again);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&json), tide_buf_str(&again)));
        check_plan(&schema, &arena);
        tide_buf_done(&json);
        tide_buf_done(&again);
    }
    tide_arena_done(&arena);
    return 0;
}
