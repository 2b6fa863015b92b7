#include "cmocka_prelude.h"

#include "archive/change_row.h"
#include "base/alloc.h"
#include "change_maker.h"

static tide_status decode(tide_str bytes, const struct tide_change_schema *schema,
                          struct tide_arena *arena, struct tide_change_row *row)
{
    struct tide_error err = {0};
    return tide_change_row_decode(bytes, schema->column_count, schema->key_count, arena, row, &err);
}

/* Rows are equal when their bytes are: each row has one form. */
static void decode_of_random_rows_encodes_to_the_same_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf again TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_change_schema schema = change_maker_schema(&maker);
        struct tide_change_row row = change_maker_row(&maker, &schema);
        struct tide_change_row read = {0};
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &bytes);
        assert_int_equal(decode(tide_buf_str(&bytes), &schema, &maker.arena, &read), TIDE_OK);
        assert_int_equal(read.kind, row.kind);
        assert_int_equal(read.op, row.op);
        assert_int_equal(read.seq, row.seq);
        assert_int_equal(read.attempt, row.attempt);
        assert_int_equal(read.incarnation, row.incarnation);
        assert_true(read.commit_us == row.commit_us);
        assert_true(read.place.known == row.place.known);
        assert_int_equal(tide_place_compare(read.place, row.place), 0);
        assert_int_equal(tide_place_compare(read.prev, row.prev), 0);
        assert_string_equal(read.snapshot_id, row.snapshot_id);
        assert_true((read.values != NULL) == (row.values != NULL));
        tide_change_row_encode(&read, schema.column_count, schema.key_count, &again);
        assert_int_equal(again.len, bytes.len);
        assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
    }
}

static void decode_of_every_cut_is_corrupt(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_change_schema schema = change_maker_schema(&maker);
        struct tide_change_row row = change_maker_row(&maker, &schema);
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &bytes);
        for (size_t len = 0; len < bytes.len; len++) {
            char *copy TIDE_CLEANUP(tide_free_ptr) = tide_strndup(bytes.ptr, len);
            assert_int_equal(decode(tide_str_of(copy, len), &schema, &maker.arena, &row),
                             TIDE_CORRUPT);
        }
        tide_buf_append_char(&bytes, '\0');
        assert_int_equal(decode(tide_buf_str(&bytes), &schema, &maker.arena, &row), TIDE_CORRUPT);
    }
}

/* Whatever is read is written as it was: no row has two forms. */
static void decode_of_changed_bytes_is_corrupt_or_another_row(void **state)
{
    size_t accepted = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf again TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_change_schema schema = change_maker_schema(&maker);
        struct tide_change_row row = change_maker_row(&maker, &schema);
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &bytes);
        for (size_t i = 0; i < 20; i++) {
            bytes.ptr[change_maker_below(&maker, bytes.len)] =
                (char)change_maker_below(&maker, 256);
            if (decode(tide_buf_str(&bytes), &schema, &maker.arena, &row) == TIDE_OK) {
                accepted++;
                tide_buf_reset(&again);
                tide_change_row_encode(&row, schema.column_count, schema.key_count, &again);
                assert_int_equal(again.len, bytes.len);
                assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
            }
        }
    }
    assert_true(accepted > 100);
}

static void mistake_names_what_does_not_belong(void **state)
{
    static const struct tide_value value = {.kind = TIDE_VALUE_NULL};
    static const char id[] = "01900000-0000-7000-8000-0000000000ff";
    struct tide_change_row cases[] = {
        {.op = TIDE_OP_INSERT, .key = &value},                               /* no record */
        {.op = TIDE_OP_INSERT, .values = &value},                            /* no key */
        {.op = TIDE_OP_INSERT, .key = &value, .values = &value, .bytes = 1}, /* both */
        {.op = TIDE_OP_DELETE, .key = &value, .values = &value},
        {.op = TIDE_OP_DELETE, .key = &value, .moved_from = &value},
        {.op = TIDE_OP_TRUNCATE, .key = &value},
        {.op = TIDE_OP_DELETE, .key = &value, .seq = 1},
        {.op = TIDE_OP_DELETE, .key = &value, .tx = {"\xff", 1}},
        {.kind = TIDE_ROW_SNAPSHOT, .values = &value}, /* no id */
        {.kind = TIDE_ROW_SNAPSHOT},
        {.kind = TIDE_ROW_STUB},
        {.kind = TIDE_ROW_BEGIN, .bytes = 1},
        {.kind = TIDE_ROW_END, .prev = {.known = true}},
        {.kind = TIDE_ROW_END, .attempt = UINT32_MAX},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cases[i].place.known = true;
        if (i > 8) {
            memcpy(cases[i].snapshot_id, id, sizeof(id));
        }
        assert_non_null(tide_change_row_mistake(&cases[i], 1));
    }
    struct tide_change_row good = {.op = TIDE_OP_DELETE, .place = {.known = true}, .key = &value};
    assert_null(tide_change_row_mistake(&good, 1));
    good.place.known = false;
    assert_non_null(tide_change_row_mistake(&good, 1));
    struct tide_change_row keyless = {
        .place = {.known = true}, .op = TIDE_OP_INSERT, .values = &value};
    assert_null(tide_change_row_mistake(&keyless, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_of_random_rows_encodes_to_the_same_bytes),
        cmocka_unit_test(decode_of_every_cut_is_corrupt),
        cmocka_unit_test(decode_of_changed_bytes_is_corrupt_or_another_row),
        cmocka_unit_test(mistake_names_what_does_not_belong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
