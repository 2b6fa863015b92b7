#include "archive/change_plan.h"

#include "archive/change_form.h"
#include "base/attr.h"
#include "base/map.h"

/* clang-format off */
static const struct tide_parquet_column meta_columns[TIDE_META_COUNT] = {
    [TIDE_META_TIME] = {.name = {"_time", 5}, .type = TIDE_PARQUET_TIMESTAMP,
                        .unit = TIDE_PARQUET_NS, .is_utc = true},
    [TIDE_META_OP] = {.name = {"_op", 3}, .type = TIDE_PARQUET_STRING},
    [TIDE_META_COMMIT_TIME] = {.name = {"_commit_time", 12}, .type = TIDE_PARQUET_TIMESTAMP,
                               .unit = TIDE_PARQUET_US, .is_utc = true, .is_nullable = true},
    [TIDE_META_TX] = {.name = {"_tx", 3}, .type = TIDE_PARQUET_STRING, .is_nullable = true},
    [TIDE_META_POSITION] = {.name = {"_position", 9}, .type = TIDE_PARQUET_STRING,
                            .is_nullable = true},
    [TIDE_META_INDEX] = {.name = {"_index", 6}, .type = TIDE_PARQUET_UINT64, .is_nullable = true},
    [TIDE_META_PREV_POSITION] = {.name = {"_prev_position", 14}, .type = TIDE_PARQUET_STRING,
                                 .is_nullable = true},
    [TIDE_META_PREV_INDEX] = {.name = {"_prev_index", 11}, .type = TIDE_PARQUET_UINT64,
                              .is_nullable = true},
    [TIDE_META_INCARNATION] = {.name = {"_incarnation", 12}, .type = TIDE_PARQUET_UINT32,
                               .is_nullable = true},
    [TIDE_META_SNAPSHOT_ID] = {.name = {"_snapshot_id", 12}, .type = TIDE_PARQUET_STRING,
                               .is_nullable = true},
    [TIDE_META_SEQ] = {.name = {"_seq", 4}, .type = TIDE_PARQUET_UINT64, .is_nullable = true},
    [TIDE_META_ATTEMPT] = {.name = {"_attempt", 8}, .type = TIDE_PARQUET_UINT32,
                           .is_nullable = true},
    [TIDE_META_STARTS] = {.name = {"_starts", 7}, .type = TIDE_PARQUET_UINT64,
                          .is_nullable = true, .is_list = true},
    [TIDE_META_BYTES] = {.name = {"_bytes", 6}, .type = TIDE_PARQUET_UINT64, .is_nullable = true},
    [TIDE_META_UNCHANGED] = {.name = {"_unchanged", 10}, .type = TIDE_PARQUET_STRING,
                             .is_nullable = true, .is_list = true},
    [TIDE_META_MOVED_FROM] = {.name = {"_moved_from", 11}, .type = TIDE_PARQUET_STRING,
                              .is_nullable = true, .is_list = true},
    [TIDE_META_KEY] = {.name = {"_key", 4}, .type = TIDE_PARQUET_STRING, .is_nullable = true,
                       .is_list = true},
};

/* clang-format on */

/* Names that are taken, in small letters, as DuckDB and others see them. */
struct names {
    struct tide_map taken;
    struct tide_buf folded;
};

static void names_done(struct names *names)
{
    tide_map_done(&names->taken);
    tide_buf_done(&names->folded);
}

static tide_str fold(struct names *names, tide_str name)
{
    tide_buf_reset(&names->folded);
    char *to = tide_buf_reserve(&names->folded, name.len + 1);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        to[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    return tide_str_of(to, name.len);
}

static bool is_taken(struct names *names, tide_str name)
{
    return tide_map_get(&names->taken, fold(names, name)) != NULL;
}

/* Sets the names of a column and of what stands beside it: the first that are free. */
static void name_columns(struct names *names, struct tide_arena *arena, tide_str name,
                         tide_str suffix, struct tide_parquet_column *pair)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    tide_str main = name;
    tide_str beside = name;
    do {
        if (text.len > 0) {
            text.len = main.len;
            tide_buf_append_char(&text, '_');
        } else {
            tide_buf_append_str(&text, name);
        }
        main.len = text.len;
        tide_buf_append_str(&text, suffix);
        main = tide_str_of(text.ptr, main.len);
        beside = tide_buf_str(&text);
    } while (is_taken(names, main) || is_taken(names, beside));
    pair[0].name = tide_arena_str(arena, main);
    pair[1].name = tide_arena_str(arena, beside);
    (void)tide_map_put(&names->taken, fold(names, main), NULL);
    (void)tide_map_put(&names->taken, fold(names, beside), NULL);
}

/* Without meta columns their names are free for the table's. */
static void make(const struct tide_change_schema *schema, bool has_meta, struct tide_arena *arena,
                 struct tide_change_plan *ret_plan)
{
    struct names names TIDE_CLEANUP(names_done) = {0};
    struct tide_change_plan plan = {.schema = schema,
                                    .parquet_count = tide_change_plan_main(schema->column_count)};
    plan.parquet = tide_arena_alloc(arena, plan.parquet_count, sizeof(*plan.parquet));
    plan.columns = tide_arena_alloc(arena, schema->column_count, sizeof(*plan.columns));
    for (size_t i = 0; i < TIDE_META_COUNT; i++) {
        plan.parquet[i] = meta_columns[i];
        if (has_meta) {
            (void)tide_map_put(&names.taken, meta_columns[i].name, NULL);
        }
    }
    for (size_t i = 0; i < schema->column_count; i++) {
        plan.columns[i] = (struct tide_change_column){.is_hidden = schema->columns[i].is_hidden};
    }
    for (size_t i = 0; i < schema->key_count; i++) {
        plan.columns[schema->key_columns[i]].key_place = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < schema->column_count; i++) {
        struct tide_parquet_column *pair = &plan.parquet[tide_change_plan_main(i)];
        pair[0] = tide_change_form_of(schema, i, &plan.columns[i]);
        pair[1] = (struct tide_parquet_column){.type = TIDE_PARQUET_STRING, .is_nullable = true};
        bool is_string = plan.columns[i].form == TIDE_FORM_STRING;
        name_columns(&names, arena, schema->columns[i].name,
                     is_string ? TIDE_STR("#kind") : TIDE_STR("#other"), pair);
    }
    *ret_plan = plan;
}

void tide_change_plan_make(const struct tide_change_schema *schema, struct tide_arena *arena,
                           struct tide_change_plan *ret_plan)
{
    make(schema, true, arena, ret_plan);
}

void tide_change_plan_make_bare(const struct tide_change_schema *schema, struct tide_arena *arena,
                                struct tide_change_plan *ret_plan)
{
    make(schema, false, arena, ret_plan);
}

static bool is_same(const struct tide_parquet_column *a, const struct tide_parquet_column *b)
{
    return tide_str_equal(a->name, b->name) && a->type == b->type && a->unit == b->unit &&
           a->is_utc == b->is_utc && a->precision == b->precision && a->scale == b->scale &&
           a->is_nullable == b->is_nullable && a->is_list == b->is_list &&
           a->is_element_nullable == b->is_element_nullable && a->refused == NULL;
}

tide_status tide_change_plan_check(const struct tide_change_plan *plan,
                                   const struct tide_parquet_column *columns, size_t count,
                                   struct tide_error *err)
{
    if (count != plan->parquet_count) {
        return tide_fail(err, TIDE_CORRUPT,
                         "a segment of %zu columns, where its table asks for %zu", count,
                         plan->parquet_count);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_same(&columns[i], &plan->parquet[i])) {
            return tide_fail(err, TIDE_CORRUPT, "column %zu of a segment is not its table's %.*s",
                             i, TIDE_STR_ARG(plan->parquet[i].name));
        }
    }
    return TIDE_OK;
}
