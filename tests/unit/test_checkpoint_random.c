/* Seeded random checkpoints come back as they were. */
#include "cmocka_prelude.h"

#include "format/checkpoint.h"

#include <stdio.h>
#include <string.h>

struct maker {
    uint64_t seed;
    struct tide_arena arena;
};

static uint64_t next(struct maker *maker, uint64_t below)
{
    maker->seed = maker->seed * 6364136223846793005u + 1442695040888963407u;
    return (maker->seed >> 24) % below;
}

static bool flip(struct maker *maker)
{
    return next(maker, 2) == 1;
}

/* Small and extreme numbers alike. */
static uint64_t any_u64(struct maker *maker)
{
    static const uint64_t some[] = {0, 1, 7, UINT32_MAX, INT64_MAX, UINT64_MAX};
    return flip(maker) ? some[next(maker, 6)] : next(maker, 1000);
}

static tide_str pick(struct maker *maker, const tide_str *texts, size_t count)
{
    return tide_arena_str(&maker->arena, texts[next(maker, count)]);
}

#define PICK(maker, texts) pick(maker, texts, sizeof(texts) / sizeof((texts)[0]))

static tide_str any_text(struct maker *maker)
{
    static const tide_str texts[] = {
        {"", 0},
        {"users", 5},
        {"s.t", 3},
        {"\xc3\xa9\"\\/\x01\n\x7f", 8},
        {"a\0b", 3},
        {"[1]", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"null", 4},
    };
    return PICK(maker, texts);
}

static tide_str any_json(struct maker *maker)
{
    static const tide_str texts[] = {
        {"null", 4},
        {"5", 1},
        {"\"2A/1949850\"", 12},
        {"{\"a\":[1.50,\" \"]}", 16},
        {"12345678901234567890123", 23},
        {"[]", 2},
    };
    return PICK(maker, texts);
}

static const tide_str *any_texts(struct maker *maker, size_t *ret_count)
{
    size_t count = next(maker, 4);
    tide_str *texts = tide_arena_alloc(&maker->arena, count, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        texts[i] = any_text(maker);
    }
    *ret_count = count;
    return texts;
}

static struct tide_value value_of(struct tide_value value, tide_str text)
{
    value.ptr = text.ptr;
    value.len = (uint32_t)text.len;
    return value;
}

static struct tide_value any_value(struct maker *maker)
{
    static const tide_str bools[] = {{"true", 4}, {"false", 5}};
    static const tide_str integers[] = {
        {"0", 1},
        {"-1", 2},
        {"9223372036854775807", 19},
        {"-9223372036854775808", 20},
        {"18446744073709551615", 20},
        {"-9223372036854775809", 20},
    };
    static const tide_str decimals[] = {
        {"0", 1},
        {"-0.00", 5},
        {"123.4500", 8},
        {"NaN", 3},
        {"-Infinity", 9},
        {"1e5", 3},
        {"12345678901234567890123456789012345678", 38},
        {"123456789012345678901234567890123456789", 39},
    };
    static const tide_str reals[] = {
        {"1.5", 3},      {"-0.0", 4}, {"1e300", 5}, {"5e-324", 6},
        {"Infinity", 8}, {"NaN", 3},  {"3", 1},     {"1e999", 5},
    };
    static const tide_str raws[] = {{"\xff", 1}, {"a\xc3", 2}, {"\x80\x00\xfe", 3}, {"", 0}};
    struct tide_value value = {.kind = (uint8_t)next(maker, TIDE_VALUE_JSON + 1)};
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_BOOL:
        return value_of(value, PICK(maker, bools));
    case TIDE_VALUE_INTEGER:
        return value_of(value, PICK(maker, integers));
    case TIDE_VALUE_DECIMAL:
        return value_of(value, PICK(maker, decimals));
    case TIDE_VALUE_REAL:
        return value_of(value, PICK(maker, reals));
    case TIDE_VALUE_TEXT:
        return value_of(value, any_text(maker));
    case TIDE_VALUE_RAW_TEXT:
    case TIDE_VALUE_BYTES:
        return value_of(value, PICK(maker, raws));
    case TIDE_VALUE_JSON:
        return value_of(value, any_json(maker));
    case TIDE_VALUE_NULL:
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
        break;
    }
    return value;
}

static struct tide_checkpoint_key any_key(struct maker *maker)
{
    struct tide_checkpoint_key key = {.count = next(maker, 4)};
    key.values = tide_arena_alloc(&maker->arena, key.count, sizeof(*key.values));
    for (size_t i = 0; i < key.count; i++) {
        key.values[i] = any_value(maker);
    }
    return key;
}

static void begin_copy(struct maker *maker, struct tide_checkpoint_copy *copy)
{
    copy->is_begun = true;
    copy->snapshot_at_us = (int64_t)next(maker, INT64_C(1) << 50);
    tide_uuid_v7_from(copy->snapshot_at_us, (const uint8_t *)"0123456789", copy->snapshot_id);
    copy->attempt = (uint32_t)next(maker, 4);
    uint64_t *starts = tide_arena_alloc(&maker->arena, copy->attempt, sizeof(*starts));
    for (size_t i = 0; i < copy->attempt; i++) {
        starts[i] = any_u64(maker);
    }
    copy->starts = starts;
    copy->next_seq = any_u64(maker);
    copy->last_pk = any_key(maker);
    copy->read_again_count = next(maker, 4);
    copy->read_again =
        tide_arena_alloc(&maker->arena, copy->read_again_count, sizeof(*copy->read_again));
    for (size_t i = 0; i < copy->read_again_count; i++) {
        copy->read_again[i] = any_key(maker);
    }
}

static const struct tide_checkpoint_copy *any_copies(struct maker *maker, size_t *ret_count)
{
    size_t count = next(maker, 5);
    struct tide_checkpoint_copy *copies = tide_arena_alloc(&maker->arena, count, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i] = (struct tide_checkpoint_copy){.request_id = any_u64(maker)};
        copies[i].sinks = any_texts(maker, &copies[i].sink_count);
        copies[i].table = any_text(maker);
        copies[i].store = any_text(maker);
        copies[i].key_columns = any_texts(maker, &copies[i].key_column_count);
        copies[i].is_done = flip(maker);
        if (next(maker, 4) != 0) {
            begin_copy(maker, &copies[i]);
        }
    }
    *ret_count = count;
    return copies;
}

static void make(struct maker *maker, struct tide_checkpoint *c)
{
    *c = (struct tide_checkpoint){.has_tidemark = true,
                                  .position_json = any_json(maker),
                                  .sequence = any_u64(maker) / 2,
                                  .pipeline = any_text(maker),
                                  .identity_json = any_json(maker),
                                  .source_state_json = any_json(maker),
                                  .incarnation = (uint32_t)next(maker, UINT64_C(1) << 32),
                                  .is_creating = flip(maker),
                                  .is_closed = flip(maker)};
    c->store_count = next(maker, 4);
    struct tide_checkpoint_store *stores =
        tide_arena_alloc(&maker->arena, c->store_count, sizeof(*stores));
    for (size_t i = 0; i < c->store_count; i++) {
        stores[i] = (struct tide_checkpoint_store){.store = any_text(maker)};
        if (flip(maker)) {
            stores[i].place = (struct tide_place){
                .position.lo = next(maker, INT64_MAX), .index = any_u64(maker), .known = true};
        }
    }
    c->stores = stores;
    c->sink_count = next(maker, 4);
    struct tide_checkpoint_sink *sinks =
        tide_arena_alloc(&maker->arena, c->sink_count, sizeof(*sinks));
    for (size_t i = 0; i < c->sink_count; i++) {
        sinks[i] = (struct tide_checkpoint_sink){.name = any_text(maker),
                                                 .is_seeded = flip(maker),
                                                 .is_detached = flip(maker),
                                                 .is_paused = flip(maker)};
        sinks[i].failed_tables = any_texts(maker, &sinks[i].failed_count);
    }
    c->sinks = sinks;
    c->copies = any_copies(maker, &c->copy_count);
    c->request_count = next(maker, 3);
    struct tide_checkpoint_request *requests =
        tide_arena_alloc(&maker->arena, c->request_count, sizeof(*requests));
    for (size_t i = 0; i < c->request_count; i++) {
        requests[i] =
            (struct tide_checkpoint_request){.id = any_u64(maker), .sink = any_text(maker)};
        requests[i].tables = any_texts(maker, &requests[i].table_count);
    }
    c->requests = requests;
}

static void assert_str(tide_str a, tide_str b)
{
    assert_true(tide_str_equal(a, b));
}

static void assert_strs(const tide_str *a, size_t a_count, const tide_str *b, size_t b_count)
{
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_str(a[i], b[i]);
    }
}

static void assert_key(const struct tide_checkpoint_key *a, const struct tide_checkpoint_key *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_true(tide_value_equal(a->values[i], b->values[i]));
    }
}

static void assert_copy(const struct tide_checkpoint_copy *a, const struct tide_checkpoint_copy *b)
{
    assert_int_equal(a->request_id, b->request_id);
    assert_strs(a->sinks, a->sink_count, b->sinks, b->sink_count);
    assert_str(a->table, b->table);
    assert_str(a->store, b->store);
    assert_strs(a->key_columns, a->key_column_count, b->key_columns, b->key_column_count);
    assert_int_equal(a->is_begun, b->is_begun);
    assert_int_equal(a->is_done, b->is_done);
    assert_string_equal(a->snapshot_id, b->snapshot_id);
    assert_int_equal(a->snapshot_at_us, b->snapshot_at_us);
    assert_int_equal(a->attempt, b->attempt);
    for (size_t i = 0; i < a->attempt; i++) {
        assert_int_equal(a->starts[i], b->starts[i]);
    }
    assert_int_equal(a->next_seq, b->next_seq);
    assert_key(&a->last_pk, &b->last_pk);
    assert_int_equal(a->read_again_count, b->read_again_count);
    for (size_t i = 0; i < a->read_again_count; i++) {
        assert_key(&a->read_again[i], &b->read_again[i]);
    }
}

static void assert_checkpoint(const struct tide_checkpoint *a, const struct tide_checkpoint *b)
{
    assert_true(b->has_tidemark);
    assert_str(a->position_json, b->position_json);
    assert_int_equal(a->sequence, b->sequence);
    assert_str(a->pipeline, b->pipeline);
    assert_str(a->identity_json, b->identity_json);
    assert_str(a->source_state_json, b->source_state_json);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->is_creating, b->is_creating);
    assert_int_equal(a->is_closed, b->is_closed);
    assert_int_equal(a->store_count, b->store_count);
    for (size_t i = 0; i < a->store_count; i++) {
        assert_str(a->stores[i].store, b->stores[i].store);
        assert_int_equal(tide_place_compare(a->stores[i].place, b->stores[i].place), 0);
    }
    assert_int_equal(a->sink_count, b->sink_count);
    for (size_t i = 0; i < a->sink_count; i++) {
        assert_str(a->sinks[i].name, b->sinks[i].name);
        assert_int_equal(a->sinks[i].is_seeded, b->sinks[i].is_seeded);
        assert_int_equal(a->sinks[i].is_detached, b->sinks[i].is_detached);
        assert_int_equal(a->sinks[i].is_paused, b->sinks[i].is_paused);
        assert_strs(a->sinks[i].failed_tables, a->sinks[i].failed_count, b->sinks[i].failed_tables,
                    b->sinks[i].failed_count);
    }
    assert_int_equal(a->copy_count, b->copy_count);
    for (size_t i = 0; i < a->copy_count; i++) {
        assert_copy(&a->copies[i], &b->copies[i]);
    }
    assert_int_equal(a->request_count, b->request_count);
    for (size_t i = 0; i < a->request_count; i++) {
        assert_int_equal(a->requests[i].id, b->requests[i].id);
        assert_str(a->requests[i].sink, b->requests[i].sink);
        assert_strs(a->requests[i].tables, a->requests[i].table_count, b->requests[i].tables,
                    b->requests[i].table_count);
    }
}

/* `tables` is as the copies say, found the slow way; and others can read its keys. */
static void assert_tables(const struct tide_checkpoint *c, struct tide_arena *arena)
{
    for (size_t i = 0; i < c->table_count; i++) {
        bool is_done = true;
        struct tide_error err;
        struct tide_checkpoint_key key;
        for (size_t k = 0; k < i; k++) {
            assert_false(tide_str_equal(c->tables[i].name, c->tables[k].name));
        }
        for (size_t k = 0; k < c->copy_count; k++) {
            bool is_same = tide_str_equal(c->tables[i].name, c->copies[k].table);
            is_done = is_done && (!is_same || c->copies[k].is_done);
        }
        assert_int_equal(c->tables[i].done, is_done);
        assert_int_equal(tide_checkpoint_key_decode(c->tables[i].last_pk, arena, &key, &err),
                         TIDE_OK);
    }
    for (size_t k = 0; k < c->copy_count; k++) {
        size_t found = 0;
        for (size_t i = 0; i < c->table_count; i++) {
            found += tide_str_equal(c->tables[i].name, c->copies[k].table);
        }
        assert_int_equal(found, 1);
    }
}

static void encode_random_reads_back_the_same(void **state)
{
    (void)state;
    struct maker maker = {.seed = 11};
    for (unsigned round = 0; round < 3000; round++) {
        struct tide_error err = {0};
        struct tide_checkpoint made;
        struct tide_checkpoint read = {0};
        struct tide_buf first = {0};
        struct tide_buf second = {0};
        make(&maker, &made);
        tide_checkpoint_encode(&made, &tide_position_integer, &first);
        tide_status status = tide_checkpoint_decode(tide_buf_str(&first), &tide_position_integer,
                                                    &maker.arena, &read, &err);
        if (status != TIDE_OK) {
            fail_msg("round %u: %s: %s", round, err.message, tide_buf_cstr(&first));
        }
        assert_checkpoint(&made, &read);
        assert_tables(&read, &maker.arena);
        tide_checkpoint_encode(&read, &tide_position_integer, &second);
        assert_str(tide_buf_str(&first), tide_buf_str(&second));
        tide_buf_done(&first);
        tide_buf_done(&second);
        tide_arena_reset(&maker.arena);
    }
    tide_arena_done(&maker.arena);
}

/* A byte changed anywhere: refused, or read as something that is written and read the same. */
static void decode_mutated_is_refused_or_stable(void **state)
{
    (void)state;
    struct maker maker = {.seed = 5};
    size_t refused = 0;
    size_t taken = 0;
    for (unsigned round = 0; round < 20000; round++) {
        struct tide_error err = {0};
        struct tide_checkpoint made;
        struct tide_checkpoint read;
        struct tide_buf buf = {0};
        make(&maker, &made);
        tide_checkpoint_encode(&made, &tide_position_integer, &buf);
        buf.ptr[next(&maker, buf.len)] = "\"{}[],:0129-e nt\x01\xff"[next(&maker, 18)];
        tide_status status = tide_checkpoint_decode(tide_buf_str(&buf), &tide_position_integer,
                                                    &maker.arena, &read, &err);
        if (status == TIDE_OK) {
            struct tide_checkpoint again;
            struct tide_buf second = {0};
            tide_checkpoint_encode(&read, &tide_position_integer, &second);
            assert_int_equal(tide_checkpoint_decode(tide_buf_str(&second), &tide_position_integer,
                                                    &maker.arena, &again, &err),
                             TIDE_OK);
            if (read.has_tidemark) {
                assert_checkpoint(&read, &again);
            }
            tide_buf_done(&second);
            taken++;
        } else {
            assert_true(status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
            refused++;
        }
        tide_buf_done(&buf);
        tide_arena_reset(&maker.arena);
    }
    assert_true(refused > 1000 && taken > 100);
    tide_arena_done(&maker.arena);
}

/* Several unfinished copies of a table: no key can be given, for one of them is behind it. */
static void encode_tables_of_shared_copies(void **state)
{
    (void)state;
    struct tide_value id = {"5", 1, TIDE_VALUE_INTEGER};
    struct tide_checkpoint_copy copies[] = {
        {.table = TIDE_STR("a"), .is_begun = true, .last_pk = {&id, 1}},
        {.table = TIDE_STR("b"), .is_begun = true, .last_pk = {&id, 1}, .is_done = true},
        {.table = TIDE_STR("a"), .is_begun = true, .is_done = true},
        {.table = TIDE_STR("c"), .is_begun = true, .last_pk = {&id, 1}},
        {.table = TIDE_STR("c")},
    };
    struct tide_checkpoint checkpoint = {
        .position_json = TIDE_STR("7"), .copies = copies, .copy_count = 5};
    struct tide_buf buf = {0};
    tide_checkpoint_encode(&checkpoint, NULL, &buf);
    assert_string_equal(
        tide_buf_cstr(&buf),
        "{\"reconciliation_pos\":7,\"tables\":["
        "{\"name\":\"a\",\"last_pk\":[{\"type\":\"Int64\",\"value\":5}],\"done\":false},"
        "{\"name\":\"b\",\"last_pk\":null,\"done\":true},"
        "{\"name\":\"c\",\"last_pk\":null,\"done\":false}]}");
    tide_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encode_random_reads_back_the_same),
        cmocka_unit_test(decode_mutated_is_refused_or_stable),
        cmocka_unit_test(encode_tables_of_shared_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
