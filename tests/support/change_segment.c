/*
 * Makes segments of changes, for other programs to read.
 *
 *     change_segment shop PATH          a table of PostgreSQL, with one row of each kind
 *     change_segment random SEED PATH   rows of a random table
 *     change_segment print PATH         a segment's rows: the time and the bytes in hex, a line
 * each change_segment seeds FOLDER       inputs for the fuzzers of rows, schemas and segments
 */
#include "change_maker.h"

#include "archive/change_encoder.h"
#include "archive/change_segment.h"
#include "base/attr.h"

#include <stdio.h>
#include <stdlib.h>

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

static void save(const char *path, tide_str bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.ptr, 1, bytes.len, file) != bytes.len || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static const struct tide_column shop_columns[] = {
    {.name = {"id", 2}, .type = {"bigint", 6}},
    {.name = {"name", 4}, .type = {"text", 4}},
    {.name = {"price", 5}, .type = {"numeric(10,2)", 13}},
    {.name = {"weight", 6}, .type = {"double precision", 16}},
    {.name = {"is_new", 6}, .type = {"boolean", 7}},
    {.name = {"since", 5}, .type = {"date", 4}},
    {.name = {"sold", 4}, .type = {"timestamp with time zone", 24}},
    {.name = {"tag", 3}, .type = {"uuid", 4}},
    {.name = {"extra", 5}, .type = {"jsonb", 5}},
    {.name = {"photo", 5}, .type = {"bytea", 5}},
};

#define SHOP_COLUMNS (sizeof(shop_columns) / sizeof(shop_columns[0]))

#define VALUE(value_kind, text)                                                                    \
    {                                                                                              \
        .ptr = (text), .len = sizeof(text) - 1, .kind = (value_kind)                               \
    }

static const struct tide_value shop_first[SHOP_COLUMNS] = {
    VALUE(TIDE_VALUE_INTEGER, "1"),
    VALUE(TIDE_VALUE_TEXT, "gr\u00fcn"),
    VALUE(TIDE_VALUE_DECIMAL, "19.90"),
    VALUE(TIDE_VALUE_REAL, "0.1"),
    VALUE(TIDE_VALUE_BOOL, "true"),
    VALUE(TIDE_VALUE_TEXT, "2026-11-29"),
    VALUE(TIDE_VALUE_TEXT, "2026-11-29T13:40:55.5+00"),
    VALUE(TIDE_VALUE_TEXT, "b3d0a1f2-0000-4000-8000-00000000000a"),
    VALUE(TIDE_VALUE_JSON, "{\"a\": [1, 2]}"),
    VALUE(TIDE_VALUE_BYTES, "\x01\xff"),
};

/* What the columns' types cannot hold, and what was not sent. */
static const struct tide_value shop_second[SHOP_COLUMNS] = {
    VALUE(TIDE_VALUE_INTEGER, "2"),
    {.kind = TIDE_VALUE_UNCHANGED},
    VALUE(TIDE_VALUE_DECIMAL, "NaN"),
    VALUE(TIDE_VALUE_REAL, "Infinity"),
    {.kind = TIDE_VALUE_NULL},
    VALUE(TIDE_VALUE_TEXT, "0044-03-15 BC"),
    VALUE(TIDE_VALUE_TEXT, "infinity"),
    {.kind = TIDE_VALUE_NULL},
    VALUE(TIDE_VALUE_TEXT, "\"\\ud800\""),
    {.kind = TIDE_VALUE_UNCHANGED},
};

static const char id[TIDE_UUID_LEN + 1] = "01900000-0000-7000-8000-0000000000ff";

/* A row's place is its number. */
static void add(struct tide_change_segment *segment, struct tide_change_row row, uint64_t number)
{
    struct tide_error err = {0};
    row.place = (struct tide_place){{0, 0x1600000000 + number}, 3, true};
    if (row.kind != TIDE_ROW_CHANGE) {
        memcpy(row.snapshot_id, id, sizeof(id));
        row.place.index = row.kind <= TIDE_ROW_STUB ? TIDE_INDEX_AFTER_ALL : 3;
    } else {
        row.tx = TIDE_STR("771");
        row.prev = (struct tide_place){{0, 0x1600000000}, 0, number > 3};
    }
    if (row.kind == TIDE_ROW_CHANGE || row.kind > TIDE_ROW_STUB) {
        row.commit_us = 1796000000000000 + (int64_t)number;
    }
    must(tide_change_segment_add(segment, (int64_t)(1796000000000000000 + number), &row, &err),
         &err);
}

static void make_shop(const char *path)
{
    static const struct tide_value old_key = VALUE(TIDE_VALUE_INTEGER, "7");
    static const uint64_t starts[] = {1};
    const struct tide_change_schema schema = {.store = TIDE_STR("pg.shop.things"),
                                              .schema = TIDE_STR("shop"),
                                              .table = TIDE_STR("things"),
                                              .position_kind = TIDE_STR("lsn"),
                                              .columns = shop_columns,
                                              .column_count = SHOP_COLUMNS,
                                              .key_columns = (const uint32_t[]){0},
                                              .key_count = 1};
    struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf file TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    struct tide_error err = {0};
    change_maker_json(&schema, &json);
    must(tide_change_segment_new(schema.store, tide_buf_str(&json), &segment, &err), &err);
    const struct tide_change_row rows[] = {
        {.kind = TIDE_ROW_BEGIN},
        {.kind = TIDE_ROW_SNAPSHOT, .values = shop_first},
        {.op = TIDE_OP_INSERT, .key = shop_first, .values = shop_first},
        {.op = TIDE_OP_UPDATE, .key = shop_second, .values = shop_second, .moved_from = &old_key},
        {.op = TIDE_OP_UPDATE, .key = shop_first, .bytes = 1000000},
        {.op = TIDE_OP_DELETE, .key = shop_second},
        {.op = TIDE_OP_TRUNCATE},
        {.kind = TIDE_ROW_RESUME, .attempt = 1, .seq = 1, .starts = starts},
        {.kind = TIDE_ROW_STUB, .attempt = 1, .seq = 1, .bytes = 2000000, .key = shop_second},
        {.kind = TIDE_ROW_END, .attempt = 1, .seq = 2, .starts = starts},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add(segment, rows[i], i);
    }
    must(tide_change_segment_finish(segment, &file, &err), &err);
    save(path, tide_buf_str(&file));
}

static void make_random(uint64_t seed, const char *path, size_t count)
{
    struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
    struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf file TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    struct tide_error err = {0};
    struct tide_change_schema schema = change_maker_schema(&maker);
    change_maker_json(&schema, &json);
    must(tide_change_segment_new(TIDE_STR("t"), tide_buf_str(&json), &segment, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct tide_change_row row = change_maker_row(&maker, &schema);
        must(tide_change_segment_add(segment, (int64_t)i, &row, &err), &err);
    }
    must(tide_change_segment_finish(segment, &file, &err), &err);
    save(path, tide_buf_str(&file));
}

static void make_seeds(const char *folder)
{
    for (unsigned seed = 0; seed < 12; seed++) {
        char path[512];
        struct change_maker maker TIDE_CLEANUP(change_maker_done) = {.state = seed};
        struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_change_schema schema = change_maker_schema(&maker);
        struct tide_change_row row = change_maker_row(&maker, &schema);
        tide_buf_append_char(&bytes, (char)seed);
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &bytes);
        (void)snprintf(path, sizeof(path), "%s/change_row/seed_%02u", folder, seed);
        save(path, tide_buf_str(&bytes));
        tide_buf_reset(&bytes);
        change_maker_json(&schema, &bytes);
        (void)snprintf(path, sizeof(path), "%s/change_schema/seed_%02u", folder, seed);
        save(path, tide_buf_str(&bytes));
        (void)snprintf(path, sizeof(path), "%s/change_segment/seed_%02u", folder, seed);
        make_random(seed, path, seed % 5);
    }
}

static tide_status print_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    (void)context;
    (void)err;
    (void)printf("%lld ", (long long)ts);
    for (size_t i = 0; i < bytes.len; i++) {
        (void)printf("%02x", (unsigned char)bytes.ptr[i]);
    }
    (void)printf("\n");
    return TIDE_OK;
}

static void print(const char *path)
{
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    char part[4096];
    size_t got = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while ((got = fread(part, 1, sizeof(part), file)) > 0) {
        tide_buf_append(&bytes, part, got);
    }
    (void)fclose(file);
    const struct tide_archive_segment segment = {.bytes = tide_buf_str(&bytes)};
    const struct tide_archive_row_taker taker = {print_row, NULL};
    must(tide_change_encoder.decode(NULL, TIDE_STR(""), &segment, &taker, &err), &err);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "shop") == 0) {
        make_shop(argv[2]);
    } else if (argc == 4 && strcmp(argv[1], "random") == 0) {
        make_random(strtoull(argv[2], NULL, 10), argv[3], 200);
    } else if (argc == 3 && strcmp(argv[1], "print") == 0) {
        print(argv[2]);
    } else if (argc == 3 && strcmp(argv[1], "seeds") == 0) {
        make_seeds(argv[2]);
    } else {
        (void)fprintf(stderr,
                      "change_segment shop PATH | random SEED PATH | print PATH | seeds FOLDER\n");
        return 2;
    }
    return 0;
}
