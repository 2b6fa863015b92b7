#include "cmocka_prelude.h"

#include "archive/change_encoder.h"
#include "base/alloc.h"
#include "change_maker.h"

#include <stdlib.h>

#define ROWS_MAX 1500

/* Rows of one schema as the live tail has them. */
struct rows {
    struct tide_archive_live_row items[ROWS_MAX];
    size_t count;
    struct tide_buf bytes;
    struct tide_buf json;
};

static void rows_free(struct rows **rows)
{
    tide_buf_done(&(*rows)->bytes);
    tide_buf_done(&(*rows)->json);
    free(*rows);
}

static struct rows *make_rows(struct change_maker *maker, size_t count)
{
    struct rows *rows = tide_alloc(1, sizeof(*rows));
    struct tide_change_schema schema = change_maker_schema(maker);
    size_t starts[ROWS_MAX + 1] = {0};
    change_maker_json(&schema, &rows->json);
    int64_t ts = (int64_t)change_maker_below(maker, UINT64_MAX) / 4;
    for (size_t i = 0; i < count; i++) {
        struct tide_change_row row = change_maker_row(maker, &schema);
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &rows->bytes);
        starts[i + 1] = rows->bytes.len;
        rows->items[i].ts = ts += 1 + (int64_t)change_maker_below(maker, 1000);
    }
    for (size_t i = 0; i < count; i++) {
        rows->items[i].bytes = tide_str_of(rows->bytes.ptr + starts[i], starts[i + 1] - starts[i]);
    }
    rows->count = count;
    return rows;
}

struct compare {
    const struct tide_archive_live_row *items;
    size_t count;
    size_t at;
};

static tide_status take(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct compare *compare = context;
    (void)err;
    assert_true(compare->at < compare->count);
    const struct tide_archive_live_row *want = &compare->items[compare->at++];
    assert_true(ts == want->ts);
    assert_int_equal(bytes.len, want->bytes.len);
    assert_memory_equal(bytes.ptr, want->bytes.ptr, bytes.len);
    return TIDE_OK;
}

static void encode(const struct rows *rows, size_t start, size_t count,
                   struct tide_archive_draft *draft)
{
    struct tide_error err = {0};
    const struct tide_archive_caller_row schema = {.ts = INT64_MIN,
                                                   .bytes = tide_buf_str(&rows->json)};
    const struct tide_archive_encode_input input = {.series = TIDE_STR("shop.t"),
                                                    .rows = rows->items + start,
                                                    .row_count = count,
                                                    .caller_rows = &schema,
                                                    .caller_row_count = 1};
    tide_status status = tide_change_encoder.encode(NULL, &input, draft, &err);
    if (status != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(tide_archive_draft_check(&tide_change_encoder, &input, draft, &err), TIDE_OK);
}

static struct tide_archive_segment segment_of(const struct tide_archive_draft *draft)
{
    return (struct tide_archive_segment){.rows = draft->rows,
                                         .first_ts = draft->first_ts,
                                         .last_ts = draft->last_ts,
                                         .bytes = tide_buf_str(&draft->bytes)};
}

static void expect_rows(const struct tide_archive_draft *draft, const struct rows *rows,
                        size_t start, size_t count)
{
    struct tide_error err = {0};
    struct compare compare = {rows->items + start, count, 0};
    const struct tide_archive_row_taker taker = {take, &compare};
    struct tide_archive_segment segment = segment_of(draft);
    tide_status status =
        tide_change_encoder.decode(NULL, TIDE_STR("shop.t"), &segment, &taker, &err);
    if (status != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(compare.at, count);
}

static void segment_of_random_rows_gives_the_same_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct rows *rows TIDE_CLEANUP(rows_free) =
            make_rows(&maker, seed % 40 == 0 ? ROWS_MAX : 1 + change_maker_below(&maker, 60));
        encode(rows, 0, rows->count, &draft);
        assert_int_equal(draft.rows, rows->count);
        expect_rows(&draft, rows, 0, rows->count);
    }
}

static void merge_of_segments_holds_the_rows_of_all(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1050; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_archive_draft first TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct tide_archive_draft second TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct tide_archive_draft both TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct tide_error err = {0};
        struct rows *rows TIDE_CLEANUP(rows_free) = make_rows(&maker, 60);
        size_t half = 1 + change_maker_below(&maker, 58);
        encode(rows, 0, half, &first);
        encode(rows, half, rows->count - half, &second);
        const struct tide_archive_segment segments[] = {segment_of(&first), segment_of(&second)};
        assert_true(tide_change_encoder.may_merge(NULL, &segments[0], &segments[1]));
        assert_int_equal(
            tide_change_encoder.merge(NULL, TIDE_STR("shop.t"), segments, 2, &both, &err), TIDE_OK);
        assert_int_equal(both.rows, rows->count);
        assert_true(both.first_ts == rows->items[0].ts);
        assert_true(both.last_ts == rows->items[rows->count - 1].ts);
        expect_rows(&both, rows, 0, rows->count);
    }
}

/* Caller rows: columns `a` up to a time, then others. */
static void encode_stops_where_the_columns_change(void **state)
{
    static const char a[] = "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
                            "\"position_kind\":\"integer\",\"columns\":[{\"name\":\"a\",\"type\":"
                            "\"INTEGER\",\"hidden\":false}],\"key\":[\"a\"]}";
    static const char b[] = "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
                            "\"position_kind\":\"integer\",\"columns\":[{\"name\":\"b\",\"type\":"
                            "\"INTEGER\",\"hidden\":false}],\"key\":[\"b\"]}";
    const tide_str other = TIDE_STR(b);
    const tide_str ours = TIDE_STR(a);

    const struct {
        struct tide_archive_caller_row schemas[4];
        size_t count;
        int64_t want;
    } cases[] = {
        {{{0, ours}}, 1, 5},
        {{{0, other}, {10, ours}}, 2, 5},
        {{{10, ours}, {12, ours}, {13, ours}}, 3, 5},
        {{{10, ours}, {12, other}}, 2, 2},
        {{{10, ours}, {15, other}}, 2, 5},
        {{{10, ours}, {12, other}, {12, ours}}, 3, 5},
        {{{10, ours}, {12, ours}, {12, other}, {13, ours}}, 4, 2},
        {{{10, other}, {10, ours}, {11, other}}, 3, 1},
    };
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    const struct tide_change_row row = {.op = TIDE_OP_TRUNCATE, .place = {{0, 5}, 0, true}};
    struct tide_archive_live_row rows[5];
    (void)state;
    tide_change_row_encode(&row, 1, 1, &bytes);
    for (size_t i = 0; i < 5; i++) {
        rows[i] =
            (struct tide_archive_live_row){.ts = 10 + (int64_t)i, .bytes = tide_buf_str(&bytes)};
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct tide_error err = {0};
        const struct tide_archive_encode_input input = {.series = TIDE_STR("s.t"),
                                                        .rows = rows,
                                                        .row_count = 5,
                                                        .caller_rows = cases[i].schemas,
                                                        .caller_row_count = cases[i].count};
        assert_int_equal(tide_change_encoder.encode(NULL, &input, &draft, &err), TIDE_OK);
        assert_int_equal(draft.rows, cases[i].want);
        assert_int_equal(draft.last_ts, 9 + cases[i].want);
    }
}

static void encode_without_columns_is_corrupt(void **state)
{
    struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = 7};
    struct rows *rows TIDE_CLEANUP(rows_free) = make_rows(&maker, 2);
    struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
    struct tide_error err = {0};
    const struct tide_archive_caller_row late = {.ts = rows->items[1].ts,
                                                 .bytes = tide_buf_str(&rows->json)};
    struct tide_archive_encode_input input = {
        .series = TIDE_STR("shop.t"), .rows = rows->items, .row_count = 2};
    (void)state;
    assert_int_equal(tide_change_encoder.encode(NULL, &input, &draft, &err), TIDE_CORRUPT);
    input.caller_rows = &late;
    input.caller_row_count = 1;
    assert_int_equal(tide_change_encoder.encode(NULL, &input, &draft, &err), TIDE_CORRUPT);
    assert_int_equal(draft.bytes.len, 0);
}

static tide_status count_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    (void)ts;
    (void)bytes;
    (void)err;
    ++*(size_t *)context;
    return TIDE_OK;
}

static void decode_of_every_cut_is_corrupt(void **state)
{
    struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = 11};
    struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
    struct rows *rows TIDE_CLEANUP(rows_free) = make_rows(&maker, 20);
    (void)state;
    encode(rows, 0, rows->count, &draft);
    for (size_t len = 0; len < draft.bytes.len; len++) {
        struct tide_error err = {0};
        size_t count = 0;
        const struct tide_archive_row_taker taker = {count_row, &count};
        char *copy TIDE_CLEANUP(tide_free_ptr) = tide_strndup(draft.bytes.ptr, len);
        const struct tide_archive_segment segment = {.bytes = {copy, len}};
        assert_int_equal(
            tide_change_encoder.decode(NULL, TIDE_STR("shop.t"), &segment, &taker, &err),
            TIDE_CORRUPT);
    }
}

/* A byte changed anywhere: whatever comes of it, nothing is read out of bounds. */
static void decode_of_changed_bytes_stays_within_them(void **state)
{
    (void)state;
    for (uint64_t seed = 50; seed < 60; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct rows *rows TIDE_CLEANUP(rows_free) = make_rows(&maker, 20);
        encode(rows, 0, rows->count, &draft);
        for (size_t i = 0; i < 300; i++) {
            struct tide_error err = {0};
            size_t count = 0;
            const struct tide_archive_row_taker taker = {count_row, &count};
            char *at = &draft.bytes.ptr[change_maker_below(&maker, draft.bytes.len)];
            char before = *at;
            *at = (char)change_maker_below(&maker, 256);
            const struct tide_archive_segment segment = segment_of(&draft);
            (void)tide_change_encoder.decode(NULL, TIDE_STR("shop.t"), &segment, &taker, &err);
            *at = before;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_of_random_rows_gives_the_same_bytes),
        cmocka_unit_test(merge_of_segments_holds_the_rows_of_all),
        cmocka_unit_test(encode_stops_where_the_columns_change),
        cmocka_unit_test(encode_without_columns_is_corrupt),
        cmocka_unit_test(decode_of_every_cut_is_corrupt),
        cmocka_unit_test(decode_of_changed_bytes_stays_within_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
