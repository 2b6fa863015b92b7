#include "cmocka_prelude.h"

#include "archive/change_encoder.h"
#include "archive/change_read.h"
#include "archive/change_segment.h"
#include "base/alloc.h"
#include "change_maker.h"

#include <stdio.h>
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

static struct tide_change_row group_row(size_t i, size_t group_rows, struct tide_value *value,
                                        char text[32])
{
    bool is_first = i < group_rows;
    int len = snprintf(text, 32, "%zu", i);
    *value = (struct tide_value){text, (uint32_t)len, TIDE_VALUE_INTEGER};
    return (struct tide_change_row){
        .kind = TIDE_ROW_CHANGE,
        .op = is_first ? TIDE_OP_UPDATE : TIDE_OP_DELETE,
        .place = {{0, is_first ? 1111111 : 2222222}, i, true},
        .key = value,
        .values = is_first ? value : NULL,
    };
}

/* What is remembered of one row group does not hold for the next. */
static void segment_of_two_row_groups_gives_the_same_rows(void **state)
{
    (void)state;

    enum {
        GROUP_ROWS = 128 * 1024,
        ROWS = GROUP_ROWS + 1000
    };

    static const uint32_t key[] = {0};
    const struct tide_column column = {TIDE_STR("id"), TIDE_STR("INTEGER"), false};
    const struct tide_change_schema schema = {
        TIDE_STR("shop.t"), TIDE_STR(""), TIDE_STR("t"), TIDE_STR("integer"), &column, 1, key, 1};
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    struct tide_change_reader *reader TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
    struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf file TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    struct tide_change_row row;
    struct tide_value value;
    char text[32];
    int64_t ts = 0;
    change_maker_json(&schema, &json);
    assert_int_equal(
        tide_change_segment_new(TIDE_STR("shop.t"), tide_buf_str(&json), &segment, &err), TIDE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        row = group_row(i, GROUP_ROWS, &value, text);
        assert_int_equal(tide_change_segment_add(segment, (int64_t)i, &row, &err), TIDE_OK);
    }
    assert_int_equal(tide_change_segment_finish(segment, &file, &err), TIDE_OK);
    assert_int_equal(tide_change_reader_new(tide_buf_str(&file), &reader, &err), TIDE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        struct tide_change_row want = group_row(i, GROUP_ROWS, &value, text);
        assert_int_equal(tide_change_reader_next(reader, &ts, &row, &err), TIDE_OK);
        assert_true(row.op == want.op && tide_place_compare(row.place, want.place) == 0);
        assert_true(tide_value_equal(row.key[0], value));
    }
    assert_int_equal(tide_change_reader_next(reader, &ts, &row, &err), TIDE_END);
}

/* Rows so long that a row group has fewer of them than are read at a time. */
static void segment_of_long_rows_gives_the_same_rows(void **state)
{
    (void)state;

    enum {
        ROWS = 70,
        LEN = 1024 * 1024
    };
    const struct tide_column column = {TIDE_STR("t"), TIDE_STR("TEXT"), false};
    const struct tide_change_schema schema = {
        TIDE_STR("shop.t"), TIDE_STR(""), TIDE_STR("t"), TIDE_STR("integer"), &column, 1, NULL, 0};
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    struct tide_change_reader *reader TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
    struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf file TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    char *text = tide_alloc(1, LEN);
    struct tide_value value = {text, LEN, TIDE_VALUE_TEXT};
    struct tide_change_row row = {.place = {.known = true}, .values = &value};
    int64_t ts = 0;
    memset(text, 'x', LEN);
    change_maker_json(&schema, &json);
    assert_int_equal(
        tide_change_segment_new(TIDE_STR("shop.t"), tide_buf_str(&json), &segment, &err), TIDE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        text[0] = (char)('0' + i);
        assert_int_equal(tide_change_segment_add(segment, (int64_t)i, &row, &err), TIDE_OK);
    }
    assert_int_equal(tide_change_segment_finish(segment, &file, &err), TIDE_OK);
    assert_int_equal(tide_change_reader_new(tide_buf_str(&file), &reader, &err), TIDE_OK);
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(tide_change_reader_next(reader, &ts, &row, &err), TIDE_OK);
        text[0] = (char)('0' + i);
        assert_true(tide_value_equal(row.values[0], value));
    }
    free(text);
}

/* What a head says of a row, and a stub's key. */
static void expect_head(const struct tide_change_row *head, const struct tide_change_row *row,
                        size_t key_count)
{
    bool is_stub = row->kind == TIDE_ROW_STUB;
    assert_true(head->kind == row->kind && head->op == row->op && head->seq == row->seq &&
                head->attempt == row->attempt && head->incarnation == row->incarnation &&
                head->commit_us == row->commit_us && head->bytes == row->bytes);
    assert_true(tide_place_compare(head->place, row->place) == 0 &&
                head->place.known == row->place.known);
    assert_string_equal(head->snapshot_id, row->snapshot_id);
    assert_true((head->starts != NULL) == (row->starts != NULL));
    assert_memory_equal(head->starts == NULL ? "" : (const void *)head->starts,
                        row->starts == NULL ? "" : (const void *)row->starts,
                        row->starts == NULL ? 0 : row->attempt * sizeof(*row->starts));
    assert_true((head->key != NULL) == (is_stub && row->key != NULL));
    for (size_t i = 0; head->key != NULL && i < key_count; i++) {
        assert_true(tide_value_equal(head->key[i], row->key[i]));
    }
    assert_null(head->values);
}

static void heads_say_what_the_rows_do(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2100; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
        struct tide_change_reader *all TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
        struct tide_change_reader *heads TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
        struct tide_error err = {0};
        struct rows *rows TIDE_CLEANUP(rows_free) = make_rows(&maker, 300);
        encode(rows, 0, rows->count, &draft);
        tide_str bytes = tide_buf_str(&draft.bytes);
        assert_int_equal(tide_change_reader_new(bytes, &all, &err), TIDE_OK);
        assert_int_equal(tide_change_reader_new(bytes, &heads, &err), TIDE_OK);
        tide_change_reader_want_heads(heads);
        for (size_t i = 0; i <= rows->count; i++) {
            struct tide_change_row row;
            struct tide_change_row head;
            int64_t ts = 0;
            int64_t head_ts = 0;
            tide_status want = i == rows->count ? TIDE_END : TIDE_OK;
            assert_int_equal(tide_change_reader_next(all, &ts, &row, &err), want);
            assert_int_equal(tide_change_reader_next(heads, &head_ts, &head, &err), want);
            if (want == TIDE_OK) {
                assert_true(ts == head_ts);
                expect_head(&head, &row, tide_change_reader_schema(all)->key_count);
            }
        }
    }
}

enum {
    WIDE_COLUMNS = 1000,
    WIDE_ROWS = 150
};

/* Values that suit their columns, some NULL: nothing is beside them. */
static void make_wide_row(struct change_maker *maker, struct tide_value *values,
                          char texts[WIDE_COLUMNS][32])
{
    for (size_t i = 0; i < WIDE_COLUMNS; i++) {
        int64_t number = (int64_t)(change_maker_below(maker, UINT64_MAX) >> (i % 64)) *
                         (change_maker_below(maker, 2) == 0 ? 1 : -1);
        int len = snprintf(texts[i], sizeof(texts[i]), "%lld", (long long)number);
        values[i] = (struct tide_value){texts[i], (uint32_t)len,
                                        i % 2 == 0 ? TIDE_VALUE_INTEGER : TIDE_VALUE_TEXT};
        if (i > 1 && (i % 7 == 0 || change_maker_below(maker, 20) == 0)) {
            values[i] = (struct tide_value){.kind = TIDE_VALUE_NULL};
        }
    }
}

/* So many columns that values are read for a part of the rows at a time. */
static void segment_of_a_wide_table_gives_the_same_bytes(void **state)
{
    (void)state;
    static const uint32_t key[] = {0};
    static char texts[WIDE_COLUMNS][32];
    static char names[WIDE_COLUMNS][16];
    struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = 7};
    struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
    struct rows *rows TIDE_CLEANUP(rows_free) = tide_alloc(1, sizeof(*rows));
    struct tide_column columns[WIDE_COLUMNS];
    struct tide_value values[WIDE_COLUMNS];
    size_t starts[WIDE_ROWS + 1] = {0};
    for (size_t i = 0; i < WIDE_COLUMNS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "c%zu", i);
        columns[i] = (struct tide_column){
            tide_str_from(names[i]), i % 2 == 0 ? TIDE_STR("INTEGER") : TIDE_STR("TEXT"), false};
    }
    const struct tide_change_schema schema = {TIDE_STR("shop.t"),
                                              TIDE_STR(""),
                                              TIDE_STR("t"),
                                              TIDE_STR("integer"),
                                              columns,
                                              WIDE_COLUMNS,
                                              key,
                                              1};
    change_maker_json(&schema, &rows->json);
    for (rows->count = 0; rows->count < WIDE_ROWS; rows->count++) {
        const struct tide_change_row row = {.kind = TIDE_ROW_SNAPSHOT,
                                            .place = {.known = true},
                                            .snapshot_id = "0196f1c2-0000-7000-8000-000000000000",
                                            .seq = rows->count,
                                            .values = values};
        make_wide_row(&maker, values, texts);
        tide_change_row_encode(&row, WIDE_COLUMNS, 1, &rows->bytes);
        starts[rows->count + 1] = rows->bytes.len;
        rows->items[rows->count].ts = (int64_t)rows->count;
    }
    for (size_t i = 0; i < rows->count; i++) {
        rows->items[i].bytes = tide_str_of(rows->bytes.ptr + starts[i], starts[i + 1] - starts[i]);
    }
    encode(rows, 0, rows->count, &draft);
    expect_rows(&draft, rows, 0, rows->count);
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
        cmocka_unit_test(segment_of_a_wide_table_gives_the_same_bytes),
        cmocka_unit_test(segment_of_two_row_groups_gives_the_same_rows),
        cmocka_unit_test(segment_of_long_rows_gives_the_same_rows),
        cmocka_unit_test(heads_say_what_the_rows_do),
        cmocka_unit_test(merge_of_segments_holds_the_rows_of_all),
        cmocka_unit_test(encode_stops_where_the_columns_change),
        cmocka_unit_test(encode_without_columns_is_corrupt),
        cmocka_unit_test(decode_of_every_cut_is_corrupt),
        cmocka_unit_test(decode_of_changed_bytes_stays_within_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
