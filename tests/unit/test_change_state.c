#include "cmocka_prelude.h"

#include "archive/change_order.h"
#include "archive/change_state.h"
#include "base/alloc.h"
#include "base/buf.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 4
#define KEYS    5000

static uint64_t draw(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % limit;
}

/* A table of four columns whose third one is the key. */
struct table {
    struct tide_change_rows rows;
    struct tide_arena arena;
    struct tide_change_version version;
    struct tide_buf key;
};

static void table_done(struct table *table)
{
    tide_change_rows_done(&table->rows);
    tide_arena_done(&table->arena);
    tide_buf_done(&table->key);
}

static void table_init(struct table *table)
{
    static const uint32_t key_columns[] = {2};
    *table = (struct table){0};
    table->version.schema.column_count = COLUMNS;
    table->version.schema.key_columns = key_columns;
    table->version.schema.key_count = 1;
    tide_change_version_mark_key(&table->version, &table->arena);
}

static struct tide_value text_value(const char *ptr, size_t len)
{
    return (struct tide_value){ptr, (uint32_t)len, TIDE_VALUE_TEXT};
}

static tide_str encode_key(struct table *table, struct tide_value key)
{
    tide_buf_reset(&table->key);
    tide_values_encode(&table->key, &key, 1);
    return tide_buf_str(&table->key);
}

/* What is to be read of a key. */
struct want {
    bool is_there;
    bool has_values;
    size_t len;
    char fill;
};

static const size_t lens[] = {0, 1, 254, 255, 256, 3000, 70000, 300000};

static void put(struct table *table, uint64_t number, const struct want *want, const char *text)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
    struct tide_value key = text_value(name, (size_t)len);
    struct tide_value values[COLUMNS] = {text_value(text, want->len),
                                         {.kind = TIDE_VALUE_NULL},
                                         key,
                                         {.kind = TIDE_VALUE_UNCHANGED}};
    size_t at = tide_change_rows_put(&table->rows, encode_key(table, key), &table->version,
                                     want->has_values ? values : NULL);
    table->rows.items[at].bytes = number;
}

static void expect(struct table *table, uint64_t number, const struct want *want)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
    struct tide_value key = text_value(name, (size_t)len);
    struct tide_value read = {0};
    struct tide_value values[COLUMNS] = {0};
    size_t at = tide_change_rows_find(&table->rows, encode_key(table, key));
    assert_int_equal(at != TIDE_CHANGE_NO_ROW, want->is_there);
    if (!want->is_there) {
        return;
    }
    const struct tide_change_held *held = &table->rows.items[at];
    assert_int_equal(held->bytes, number);
    tide_change_held_read_key(held, &read, 1);
    assert_true(tide_value_equal(read, key));
    assert_int_equal(held->has_values, want->has_values);
    if (want->has_values) {
        tide_change_held_read(held, &table->version, values);
        assert_int_equal(values[0].kind, TIDE_VALUE_TEXT);
        assert_int_equal(values[0].len, want->len);
        assert_true(want->len == 0 ||
                    (values[0].ptr[0] == want->fill && values[0].ptr[want->len - 1] == want->fill));
        assert_int_equal(values[1].kind, TIDE_VALUE_NULL);
        assert_int_equal(values[3].kind, TIDE_VALUE_UNCHANGED);
    }
}

static void rows_give_back_what_was_put_last(void **state)
{
    (void)state;
    char *text = tide_alloc(1, lens[7]);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        TIDE_CLEANUP(table_done) struct table table;
        struct want *wants = tide_alloc(KEYS, sizeof(*wants));
        uint64_t random = seed;
        table_init(&table);
        for (size_t i = 0; i < 20000; i++) {
            bool is_rising =
                seed % 2 == 0 && i < KEYS / 2; /* as from a copy that reads by the key */
            uint64_t number = is_rising ? i * 2 : draw(&random, i < 10000 ? KEYS / 3 : KEYS);
            size_t rare = draw(&random, 100) == 0 ? 8 : 6;
            struct want want = {.is_there = true,
                                .has_values = draw(&random, 10) > 0,
                                .len = lens[draw(&random, i % 50 == 0 ? rare : 5)],
                                .fill = (char)('a' + draw(&random, 26))};
            memset(text, want.fill, want.len);
            wants[number] = want;
            put(&table, number, &want, text);
            if (i % 1000 == 999) {
                number = draw(&random, KEYS);
                expect(&table, number, &wants[number]);
            }
        }
        for (uint64_t number = 0; number < KEYS; number++) {
            expect(&table, number, &wants[number]);
        }
        free(wants);
    }
    free(text);
}

static size_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Sanitizers have a heap of their own, of which malloc tells nothing. */
static void rows_that_are_replaced_take_no_memory(void **state)
{
    (void)state;
    TIDE_CLEANUP(table_done) struct table table;
    struct want want = {.is_there = true, .has_values = true, .len = 3000, .fill = 'x'};
    char text[3000];
    size_t before = memory_in_use();
    memset(text, 'x', sizeof(text));
    table_init(&table);
    for (uint64_t i = 0; i < 200000; i++) { /* 600 MB, of which 0.6 MB stay */
        put(&table, i * 7919 % 200, &want, text);
    }
    assert_true(memory_in_use() < before + 4 * 1024 * 1024);
    for (uint64_t number = 0; number < 200; number++) {
        expect(&table, number, &want);
    }
}

static void put_takes_values_from_the_row_itself(void **state)
{
    (void)state;
    TIDE_CLEANUP(table_done) struct table table;
    struct want want = {.is_there = true, .has_values = true, .len = 70000, .fill = 'y'};
    char *text = tide_alloc(1, want.len);
    memset(text, want.fill, want.len);
    table_init(&table);
    put(&table, 5, &want, text);
    free(text);
    for (size_t i = 0; i < 50; i++) {
        struct tide_value values[COLUMNS] = {0};
        tide_change_held_read(&table.rows.items[0], &table.version, values);
        put(&table, 5, &want, values[0].ptr);
    }
    expect(&table, 5, &want);
}

static void expect_order(struct table *table, size_t count)
{
    uint32_t *numbers = tide_alloc(count + 1, sizeof(*numbers));
    uint8_t *seen = tide_alloc(count + 1, 1);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)i;
    }
    tide_change_order(&table->rows, numbers, count);
    for (size_t i = 0; i < count; i++) {
        seen[numbers[i]]++;
        assert_true(i == 0 ||
                    tide_str_compare(tide_change_held_key(&table->rows.items[numbers[i - 1]]),
                                     tide_change_held_key(&table->rows.items[numbers[i]])) < 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen[i], 1);
    }
    free(numbers);
    free(seen);
}

/* Some in order, the rest at random; keys that differ behind their first bytes alone. */
static void order_is_that_of_the_keys(void **state)
{
    static const char *const prefixes[] = {"", "a prefix of many bytes, ", "x"};
    (void)state;
    for (size_t count = 0; count < 400; count = count * 3 / 2 + 1) {
        for (size_t form = 0; form < 3; form++) {
            TIDE_CLEANUP(table_done) struct table table;
            uint64_t random = count + 1;
            table_init(&table);
            size_t sorted = draw(&random, count + 1);
            for (size_t i = 0; i < count; i++) {
                char name[64];
                uint64_t number = i < sorted ? i * 1000 : draw(&random, 1000000) * 2 + 1;
                int len = snprintf(name, sizeof(name), "%s%0*llu", prefixes[form], (int)form * 4,
                                   (unsigned long long)number);
                struct tide_value key = text_value(name, (size_t)len);
                (void)tide_change_rows_put(&table.rows, encode_key(&table, key), &table.version,
                                           NULL);
            }
            expect_order(&table, table.rows.count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_back_what_was_put_last),
        cmocka_unit_test(rows_that_are_replaced_take_no_memory),
        cmocka_unit_test(put_takes_values_from_the_row_itself),
        cmocka_unit_test(order_is_that_of_the_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
