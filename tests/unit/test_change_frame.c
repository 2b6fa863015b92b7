#include "cmocka_prelude.h"

#include "archive/change_frame.h"
#include "archive/change_position.h"
#include "archive/change_value.h"

#define JSON                                                                                       \
    "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\",\"position_kind\":"          \
    "\"integer\",\"columns\":[{\"name\":\"k\",\"type\":\"INTEGER\",\"hidden\":false},"             \
    "{\"name\":\"v\",\"type\":\"TEXT\",\"hidden\":false}],\"key\":[\"k\"]}"
#define ID    "01a228eb-5f90-72ef-b871-ac0f0a43b83a" /* of 2026-11-29T20:07:23.792Z */
#define BEGUN INT64_C(1795982843792000)
#define AT    "2026-11-29T20:07:23.792Z"
#define HEAD                                                                                       \
    "\"snapshot_id\":\"" ID "\",\"snapshot_at\":\"" AT "\",\"timestamp\":\"" AT                    \
    "\",\"store\":\"s.t\",\"seq\":"
#define CHANGE "\"timestamp\":\"" AT "\",\"store\":\"s.t\",\"position\":7,\"index\":1,"

static const struct tide_value key[] = {{"5", 1, TIDE_VALUE_INTEGER}};
static const struct tide_value old_key[] = {{"4", 1, TIDE_VALUE_INTEGER}};
static const struct tide_value values[] = {{"5", 1, TIDE_VALUE_INTEGER}, {"a", 1, TIDE_VALUE_TEXT}};
static const struct tide_value unsent[] = {{"5", 1, TIDE_VALUE_INTEGER},
                                           {NULL, 0, TIDE_VALUE_UNCHANGED}};
static const uint64_t starts[] = {3};

#define PLACE                                                                                      \
    {                                                                                              \
        {0, 7}, 1, true                                                                            \
    }
#define AFTER                                                                                      \
    {                                                                                              \
        {0, 7}, TIDE_INDEX_AFTER_ALL, true                                                         \
    }

static const struct {
    struct tide_change_row row;
    const char *want; /* NULL: corrupt */
} cases[] = {
    {{.kind = TIDE_ROW_BEGIN, .commit_us = BEGUN, .snapshot_id = ID},
     "{\"kind\":\"begin\"," HEAD "0,\"changes_from\":null}"},
    {{.kind = TIDE_ROW_BEGIN, .commit_us = BEGUN, .snapshot_id = ID, .attempt = 1}, NULL},
    {{.kind = TIDE_ROW_SNAPSHOT, .place = AFTER, .snapshot_id = ID, .seq = 2, .values = values},
     "{\"kind\":\"row\"," HEAD "2,\"record\":{\"k\":5,\"v\":\"a\"},\"position\":7}"},
    {{.kind = TIDE_ROW_STUB, .place = AFTER, .snapshot_id = ID, .seq = 3, .bytes = 9, .key = key},
     "{\"kind\":\"oversize\"," HEAD "3,\"bytes\":9,\"row_key\":\"[5]\"}"},
    {{.kind = TIDE_ROW_STUB, .place = AFTER, .snapshot_id = ID, .seq = 3, .bytes = 9},
     "{\"kind\":\"oversize\"," HEAD "3,\"bytes\":9}"},
    {{.kind = TIDE_ROW_RESUME,
      .place = PLACE,
      .commit_us = BEGUN,
      .snapshot_id = ID,
      .attempt = 1,
      .seq = 3,
      .starts = starts},
     "{\"kind\":\"resume\"," HEAD "3,\"changes_from\":[7,1],\"starts\":[3],\"attempt\":1}"},
    {{.kind = TIDE_ROW_END, .commit_us = BEGUN + 5000, .snapshot_id = ID, .seq = 4},
     "{\"kind\":\"end\"," HEAD "4,\"row_count\":4,\"completed_at\":\"2026-11-29T20:07:23.797Z\","
     "\"changes_to\":null}"},
    {{.kind = TIDE_ROW_END, .commit_us = BEGUN - 1, .snapshot_id = ID, .seq = 4}, NULL},
    {{.op = TIDE_OP_INSERT, .place = PLACE, .commit_us = BEGUN, .key = key, .values = values},
     "{\"kind\":\"change\",\"op\":\"insert\"," CHANGE
     "\"prev\":null,\"key\":{\"k\":5},\"record\":{\"k\":5,\"v\":\"a\"}}"},
    {{.op = TIDE_OP_UPDATE,
      .place = PLACE,
      .prev = AFTER,
      .commit_us = BEGUN,
      .key = key,
      .moved_from = old_key,
      .values = unsent,
      .tx = {"x", 1},
      .incarnation = 2},
     "{\"kind\":\"change\",\"op\":\"update\"," CHANGE
     "\"prev\":[7,18446744073709551615],\"tx\":\"x\",\"key\":{\"k\":5},\"moved_from\":{\"k\":4},"
     "\"record\":{\"k\":5},\"unchanged\":[\"v\"],\"incarnation\":2}"},
    {{.op = TIDE_OP_UPDATE, .place = PLACE, .commit_us = BEGUN, .key = key, .bytes = 77},
     "{\"kind\":\"change\",\"op\":\"update\"," CHANGE
     "\"prev\":null,\"key\":{\"k\":5},\"oversize\":77}"},
    {{.op = TIDE_OP_DELETE, .place = PLACE, .commit_us = BEGUN, .key = key},
     "{\"kind\":\"change\",\"op\":\"delete\"," CHANGE "\"prev\":null,\"key\":{\"k\":5}}"},
    {{.op = TIDE_OP_TRUNCATE, .place = PLACE, .commit_us = BEGUN},
     "{\"kind\":\"change\",\"op\":\"truncate\"," CHANGE "\"prev\":null}"},
};

/* Each for itself: a row whose begin was not seen says its snapshot's instant all the same. */
static void append_of_each_kind_is_the_frame_it_came_from(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_buf frame TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_change_columns columns = {.json = TIDE_STR(JSON)};
    struct tide_error err = {0};
    assert_int_equal(tide_change_schema_decode(columns.json, &arena, &columns.schema, &err),
                     TIDE_OK);
    columns.relation = tide_change_relation_of(&columns.schema, &arena);
    columns.position_kind = tide_change_position_kind(columns.schema.position_kind);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_change_framer framer = {0};
        struct tide_change_seen seen = {.columns = &columns, .row = cases[i].row};
        tide_buf_reset(&frame);
        tide_status status = tide_change_frame_append(&framer, &seen, &frame, &err);
        assert_int_equal(status, cases[i].want == NULL ? TIDE_CORRUPT : TIDE_OK);
        assert_string_equal(tide_buf_cstr(&frame), cases[i].want == NULL ? "" : cases[i].want);
    }
    columns.position_kind = NULL;
    struct tide_change_framer framer = {0};
    struct tide_change_seen seen = {.columns = &columns, .row = cases[0].row};
    assert_int_equal(tide_change_frame_append(&framer, &seen, &frame, &err), TIDE_UNSUPPORTED);
}

static void values_are_sound_when_they_are_what_their_kind_says(void **state)
{
    (void)state;

    static const struct {
        uint8_t kind;
        const char *text;
        bool want;
    } texts[] = {
        {TIDE_VALUE_NULL, "", true},
        {TIDE_VALUE_BOOL, "true", true},
        {TIDE_VALUE_BOOL, "t", false},
        {TIDE_VALUE_INTEGER, "-12", true},
        {TIDE_VALUE_INTEGER, "0", true},
        {TIDE_VALUE_INTEGER, "", false},
        {TIDE_VALUE_INTEGER, "-", false},
        {TIDE_VALUE_INTEGER, "012", false},
        {TIDE_VALUE_INTEGER, "1,2", false},
        {TIDE_VALUE_REAL, "-1.50e-7", true},
        {TIDE_VALUE_REAL, "1E+300", true},
        {TIDE_VALUE_REAL, "NaN", true},
        {TIDE_VALUE_REAL, "1.", false},
        {TIDE_VALUE_REAL, "1e", false},
        {TIDE_VALUE_REAL, ".5", false},
        {TIDE_VALUE_DECIMAL, "-Infinity", true},
        {TIDE_VALUE_DECIMAL, "nan", false},
        {TIDE_VALUE_TEXT, "Zo\xc3\xab", true},
        {TIDE_VALUE_TEXT, "Zo\xeb", false},
        {TIDE_VALUE_RAW_TEXT, "Zo\xeb", true},
        {TIDE_VALUE_JSON, "{\"a\":[1]}", true},
        {TIDE_VALUE_JSON, "{\"a\":[1]", false},
        {TIDE_VALUE_JSON, "", false},
        {TIDE_VALUE_JSON + 1, "", false},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct tide_value pair[2] = {{"x", 1, TIDE_VALUE_TEXT}};
        pair[1] =
            (struct tide_value){texts[i].text, (uint32_t)strlen(texts[i].text), texts[i].kind};
        assert_int_equal(tide_change_values_are_sound(pair, 2), texts[i].want);
    }
    assert_true(tide_change_values_are_sound(NULL, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_of_each_kind_is_the_frame_it_came_from),
        cmocka_unit_test(values_are_sound_when_they_are_what_their_kind_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
