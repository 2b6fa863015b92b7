/*
 * Sealing and reading back: bytes of live rows a second of one core's time, of a table as shops
 * have them (a key, texts of few and of many values, a number, a decimal, times), in PostgreSQL's
 * types and in SQLite's; and the size of a segment against that of its rows.
 */
#include "archive/change_encoder.h"
#include "archive/change_row.h"
#include "archive/change_schema.h"
#include "base/alloc.h"
#include "base/attr.h"
#include "paired.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS     ((size_t)64 * 1024)
#define COLUMNS  9
#define TEXT_MAX 64

/* What the columns are and what is in them. */
struct table {
    const char *name;
    const char *positions;
    const char *types[COLUMNS];
    const char *time_end;
};

static const struct table tables[] = {
    {"PostgreSQL",
     "lsn",
     {"bigint", "bigint", "character varying(20)", "text", "numeric(10,2)", "double precision",
      "boolean", "timestamp with time zone", "jsonb"},
     "+00"},
    {"SQLite",
     "integer",
     {"INTEGER", "INTEGER", "TEXT", "TEXT", "DECIMAL(10,2)", "REAL", "BOOLEAN", "TEXT", "TEXT"},
     "Z"},
};

static const char *const names[COLUMNS] = {"id",    "customer", "status",  "note", "price",
                                           "score", "is_paid",  "created", "extra"};

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

static struct tide_relation relation_of(const struct table *table, struct tide_column *columns,
                                        uint32_t *key)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = (struct tide_column){.name = tide_str_from(names[i]),
                                          .type = tide_str_from(table->types[i])};
    }
    return (struct tide_relation){.store = TIDE_STR("shop.orders"),
                                  .name = TIDE_STR("orders"),
                                  .column_count = COLUMNS,
                                  .columns = columns,
                                  .key_count = 1,
                                  .key_columns = key};
}

static struct tide_value put(char text[TEXT_MAX], enum tide_value_kind kind, int len)
{
    return (struct tide_value){.ptr = text, .len = (uint32_t)len, .kind = (uint8_t)kind};
}

static void make_values(const struct table *table, size_t n, char texts[COLUMNS][TEXT_MAX],
                        struct tide_value values[COLUMNS])
{
    static const char *const states[] = {"new", "paid", "packed", "sent", "returned"};
    bool is_pg = table->time_end[0] == '+';
    unsigned random = (unsigned)n * 2654435761u;
    unsigned seconds = (unsigned)n % 60;
    unsigned cents = random % 9 * 10 + random % 9 + 1; /* no zero at its end */
    values[0] = put(texts[0], TIDE_VALUE_INTEGER, snprintf(texts[0], TEXT_MAX, "%zu", n));
    values[1] =
        put(texts[1], TIDE_VALUE_INTEGER, snprintf(texts[1], TEXT_MAX, "%u", random % 5000));
    values[2] =
        put(texts[2], TIDE_VALUE_TEXT, snprintf(texts[2], TEXT_MAX, "%s", states[random % 5]));
    values[3] = put(texts[3], TIDE_VALUE_TEXT,
                    snprintf(texts[3], TEXT_MAX, "to be left at door %u, ring twice", random));
    values[4] = put(texts[4], is_pg ? TIDE_VALUE_DECIMAL : TIDE_VALUE_REAL,
                    snprintf(texts[4], TEXT_MAX, "%u.%02u", random % 1000, cents));
    values[5] = put(texts[5], TIDE_VALUE_REAL,
                    snprintf(texts[5], TEXT_MAX, "%u.%05u1", random % 100, random % 100000));
    values[6] = is_pg ? put(texts[6], TIDE_VALUE_BOOL, snprintf(texts[6], TEXT_MAX, "true"))
                      : put(texts[6], TIDE_VALUE_INTEGER, snprintf(texts[6], TEXT_MAX, "1"));
    values[7] = put(texts[7], TIDE_VALUE_TEXT,
                    snprintf(texts[7], TEXT_MAX, "2026-11-29T13:40:%02u.%05u1%s", seconds,
                             random % 100000, table->time_end));
    values[8] = put(texts[8], is_pg ? TIDE_VALUE_JSON : TIDE_VALUE_TEXT,
                    snprintf(texts[8], TEXT_MAX, "{\"gift\": %s, \"boxes\": %u}",
                             random % 2 == 0 ? "true" : "false", random % 9));
}

/* Half of them are rows of a snapshot, half inserts. */
static void make_rows(const struct table *table, struct tide_archive_live_row *rows,
                      struct tide_buf *bytes)
{
    size_t *ends = tide_alloc(ROWS, sizeof(*ends));
    for (size_t n = 0; n < ROWS; n++) {
        char texts[COLUMNS][TEXT_MAX];
        struct tide_value values[COLUMNS];
        make_values(table, n, texts, values);
        struct tide_change_row row = {.place = {{0, 1000000 + n / 10}, n % 10, true},
                                      .values = values};
        if (n < ROWS / 2) {
            row.kind = TIDE_ROW_SNAPSHOT;
            row.place.index = TIDE_INDEX_AFTER_ALL;
            row.seq = n;
            (void)snprintf(row.snapshot_id, sizeof(row.snapshot_id), "%s",
                           "01900000-0000-7000-8000-0000000000ff");
        } else {
            row.op = TIDE_OP_INSERT;
            row.key = values;
            row.tx = TIDE_STR("771234");
            row.prev = (struct tide_place){{0, 1000000 + n / 10}, n % 10 - 1, true};
            row.commit_us = 1790000000000000 + (int64_t)n;
        }
        tide_change_row_encode(&row, COLUMNS, 1, bytes);
        ends[n] = bytes->len;
    }
    for (size_t n = 0; n < ROWS; n++) {
        size_t start = n == 0 ? 0 : ends[n - 1];
        rows[n] = (struct tide_archive_live_row){.ts = (int64_t)n * 1000,
                                                 .bytes = {bytes->ptr + start, ends[n] - start}};
    }
    free(ends);
}

static tide_status take(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    (void)ts;
    (void)err;
    *(size_t *)context += bytes.len;
    return TIDE_OK;
}

static void measure(const struct table *table)
{
    struct tide_column columns[COLUMNS];
    uint32_t key = 0;
    struct tide_relation relation = relation_of(table, columns, &key);
    struct tide_buf json TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_archive_draft draft TIDE_CLEANUP(tide_archive_draft_done) = {0};
    struct tide_error err = {0};
    struct tide_archive_live_row *rows = tide_alloc(ROWS, sizeof(*rows));
    tide_change_schema_encode(&relation, tide_str_from(table->positions), &json);
    make_rows(table, rows, &bytes);
    const struct tide_archive_caller_row schema = {.bytes = tide_buf_str(&json)};
    const struct tide_archive_encode_input input = {TIDE_STR("shop.orders"), rows, ROWS, &schema,
                                                    1};
    struct paired sealed = {0};
    struct paired read = {0};
    for (size_t round = 0; round < PAIRED_ROUNDS; round++) {
        size_t size = 0;
        const struct tide_archive_row_taker taker = {take, &size};
        tide_archive_draft_reset(&draft);
        paired_start(&sealed);
        must(tide_change_encoder.encode(NULL, &input, &draft, &err), &err);
        paired_stop(&sealed);
        const struct tide_archive_segment segment = {.bytes = tide_buf_str(&draft.bytes)};
        paired_start(&read);
        must(tide_change_encoder.decode(NULL, input.series, &segment, &taker, &err), &err);
        paired_stop(&read);
        TIDE_ASSERT(size == bytes.len);
    }
    free(rows);
    double megabytes = (double)bytes.len / 1e6;
    (void)printf(
        "%-10s %zu bytes a row, sealed %.0f MB/s, read back %.0f MB/s, %.1f %% of its size\n",
        table->name, bytes.len / ROWS, megabytes / paired_least(sealed.processor, sealed.count),
        megabytes / paired_least(read.processor, read.count),
        100.0 * (double)draft.bytes.len / (double)bytes.len);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        measure(&tables[i]);
    }
    return 0;
}
