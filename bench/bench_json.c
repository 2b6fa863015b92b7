/*
 * Speed of JSON on one core: passing over frame lines, and writing rows of ten columns.
 *
 *     bench_json [SECONDS]     how long each measurement takes; 1 when left out
 */
#include "base/clock.h"
#include "format/envelope.h"
#include "format/json_reader.h"

#include <stdio.h>
#include <stdlib.h>

#define COLUMN_COUNT 10
#define ROW_COUNT    1000

struct table {
    struct tide_arena arena;
    struct tide_relation relation;
    struct tide_column columns[COLUMN_COUNT];
    uint32_t key_columns[1];
    const struct tide_value *rows[ROW_COUNT];
    struct tide_snapshot_part part;
};

static const struct {
    const char *name;
    uint8_t kind;
    const char *format; /* given the row's number */
} column_plan[COLUMN_COUNT] = {
    {"id", TIDE_VALUE_INTEGER, "%u"},
    {"name", TIDE_VALUE_TEXT, "customer %u"},
    {"city", TIDE_VALUE_TEXT, "Hamburg"},
    {"price", TIDE_VALUE_DECIMAL, "%u.50"},
    {"note", TIDE_VALUE_TEXT, "a short note about row %u"},
    {"is_open", TIDE_VALUE_BOOL, "true"},
    {"weight", TIDE_VALUE_REAL, "0.%u"},
    {"created_at", TIDE_VALUE_TEXT, "2026-11-29T13:40:55.567Z"},
    {"amount", TIDE_VALUE_INTEGER, "%u77"},
    {"email", TIDE_VALUE_TEXT, "someone%u@example.org"},
};

static struct tide_value make_value(struct tide_arena *arena, size_t column, unsigned number)
{
    struct tide_buf text = {0};
    const char *format = column_plan[column].format;
    const char *mark = strstr(format, "%u");
    size_t plain = mark == NULL ? strlen(format) : (size_t)(mark - format);
    tide_buf_append(&text, format, plain);
    if (mark != NULL) {
        tide_buf_append_u64(&text, number);
        tide_buf_append_str(&text, tide_str_from(mark + 2));
    }
    tide_str kept = tide_arena_str(arena, tide_buf_str(&text));
    tide_buf_done(&text);
    return (struct tide_value){kept.ptr, (uint32_t)kept.len, column_plan[column].kind};
}

static void make_table(struct table *table)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        table->columns[i].name = tide_str_from(column_plan[i].name);
    }
    table->relation = (struct tide_relation){.store = TIDE_STR("shop.orders"),
                                             .column_count = COLUMN_COUNT,
                                             .columns = table->columns,
                                             .key_count = 1,
                                             .key_columns = table->key_columns};
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        struct tide_value *row = tide_arena_alloc(&table->arena, COLUMN_COUNT, sizeof(*row));
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            row[column] = make_value(&table->arena, column, 100000 + i);
        }
        table->rows[i] = row;
    }
    table->part = (struct tide_snapshot_part){
        .relation = &table->relation,
        .head = {.id = "01a22789-8c8f-7abc-8def-0123456789ab", .at_us = INT64_C(1795959655567000)},
        .rows = table->rows,
        .row_count = ROW_COUNT,
    };
}

static void write_rows(const struct table *table, const struct tide_envelope_options *options,
                       struct tide_buf *buf)
{
    struct tide_envelope_rows rows;
    size_t oversize = 0;
    tide_buf_reset(buf);
    tide_envelope_rows_init(&rows, options, &table->part);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        tide_envelope_rows_append(buf, &rows, i, &oversize, NULL);
        tide_buf_append_char(buf, '\n');
    }
    tide_envelope_rows_done(&rows);
}

/* The rows as updates, each with a commit time of its own. */
static void write_changes(const struct table *table, const struct tide_envelope_options *options,
                          struct tide_buf *buf)
{
    size_t oversize = 0;
    tide_buf_reset(buf);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct tide_change change = {
            .op = TIDE_OP_UPDATE,
            .relation = &table->relation,
            .place = {.position = {.lo = i + 1}, .known = true},
            .prev = {.position = {.lo = i}, .known = i > 0},
            .commit_us = INT64_C(1795959655567000) + (int64_t)i * 1000,
            .key = table->rows[i],
            .values = table->rows[i],
        };
        tide_envelope_append_change(buf, options, &change, &oversize, NULL);
        tide_buf_append_char(buf, '\n');
    }
}

static void skip_lines(tide_str lines)
{
    struct tide_error err = {0};
    const char *end = lines.ptr + lines.len;
    for (const char *p = lines.ptr; p < end;) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        TIDE_ASSERT(line_end != NULL);
        tide_status status = tide_json_check(tide_str_of(p, (size_t)(line_end - p)), 8, &err);
        TIDE_ASSERT(status == TIDE_OK);
        p = line_end + 1;
    }
}

static double seconds_since(int64_t start_us)
{
    return (double)(tide_clock_monotonic_us() - start_us) / 1e6;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    struct tide_envelope_options options = {.position_kind = &tide_position_integer,
                                            .record_bytes_max = TIDE_RECORD_BYTES_DEFAULT};
    static struct table table;
    struct tide_buf buf = {0};
    make_table(&table);

    size_t rounds = 0;
    int64_t start_us = tide_clock_monotonic_us();
    double took = 0;
    for (; took < seconds; rounds++, took = seconds_since(start_us)) {
        write_rows(&table, &options, &buf);
    }
    (void)printf("json_write_rows %.2f million rows/s, %.0f MB/s, %zu bytes a frame\n",
                 (double)(rounds * ROW_COUNT) / took / 1e6, (double)(rounds * buf.len) / took / 1e6,
                 buf.len / ROW_COUNT);

    rounds = 0;
    start_us = tide_clock_monotonic_us();
    for (took = 0; took < seconds; rounds++, took = seconds_since(start_us)) {
        write_changes(&table, &options, &buf);
    }
    (void)printf("json_write_changes %.2f million changes/s, %.0f MB/s\n",
                 (double)(rounds * ROW_COUNT) / took / 1e6,
                 (double)(rounds * buf.len) / took / 1e6);

    write_rows(&table, &options, &buf);
    rounds = 0;
    start_us = tide_clock_monotonic_us();
    for (took = 0; took < seconds; rounds++, took = seconds_since(start_us)) {
        skip_lines(tide_buf_str(&buf));
    }
    (void)printf("json_skip %.0f MB/s, %.2f million lines/s\n",
                 (double)(rounds * buf.len) / took / 1e6,
                 (double)(rounds * ROW_COUNT) / took / 1e6);
    tide_buf_done(&buf);
    tide_arena_done(&table.arena);
    return 0;
}
