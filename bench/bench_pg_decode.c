/*
 * Speed of decoding what PostgreSQL sends, on one core, from its bytes to values of the model: an
 * insert of the stream (copied into an arena first, as the stream does) and a line of COPY. Timed
 * by the processor's own time, as there is nothing to wait for.
 *
 *     bench_pg_decode [SECONDS]     how long each measurement takes; 1 when left out
 */
#include "source/postgres/pg_copy_text.h"
#include "source/postgres/pg_value.h"
#include "source/postgres/pgoutput.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COLUMNS_MAX 10
#define BATCH       1000 /* rows between two resets of the arena */

struct shape {
    const char *name;
    size_t count;

    struct {
        uint32_t oid;
        const char *text;
    } columns[COLUMNS_MAX];
};

static const struct shape shapes[] = {
    {"4_columns",
     4,
     {{23, "1234567"},
      {23, "12"},
      {23, "-4711"},
      {1042,
       "                                                                                    "}}},
    {"10_columns",
     10,
     {{20, "1234567"},
      {25, "customer 1234567"},
      {25, "Hamburg"},
      {1700, "1234567.50"},
      {25, "a short note about row 1234567"},
      {16, "t"},
      {701, "0.1234567"},
      {1184, "2026-11-29 13:40:55.567+00"},
      {23, "1234577"},
      {3802, "{\"tags\": [\"new\", \"old\"], \"price\": 19.90}"}}},
    {"array_and_bytea",
     3,
     {{20, "1234567"},
      {1009, "{one,two,\"three and\",NULL,\"a \\\"quoted\\\" word\"}"},
      {17, "\\x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"}}},
};

struct bench {
    const struct shape *shape;
    struct tide_pg_rule rules[COLUMNS_MAX];
    struct tide_buf message; /* an insert */
    struct tide_buf line;    /* the row as COPY has it */
    struct tide_arena arena;
    struct tide_pg_scratch scratch;
};

static void put_u32be(struct tide_buf *buf, size_t value)
{
    uint32_t swapped = __builtin_bswap32((uint32_t)value);
    tide_buf_append(buf, &swapped, sizeof(swapped));
}

static void put_copy_text(struct tide_buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\') {
            tide_buf_append_char(buf, '\\');
        }
        tide_buf_append_char(buf, *text);
    }
}

static void make_row(struct bench *bench, const struct shape *shape)
{
    *bench = (struct bench){.shape = shape};
    tide_buf_append_char(&bench->message, 'I');
    put_u32be(&bench->message, 16384);
    tide_buf_append(&bench->message, "N\0", 2);
    tide_buf_append_char(&bench->message, (char)shape->count);
    for (size_t i = 0; i < shape->count; i++) {
        const char *text = shape->columns[i].text;
        bench->rules[i] = tide_pg_rule_of(shape->columns[i].oid, i == 0);
        tide_buf_append_char(&bench->message, 't');
        put_u32be(&bench->message, strlen(text));
        tide_buf_append_str(&bench->message, tide_str_from(text));
        put_copy_text(&bench->line, text);
        tide_buf_append_char(&bench->line, i + 1 < shape->count ? '\t' : '\n');
    }
}

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

static void make_values(struct bench *bench, const struct tide_pg_field *fields)
{
    struct tide_error err;
    size_t index = 0;
    size_t count = bench->shape->count;
    struct tide_value *values = tide_arena_alloc(&bench->arena, count, sizeof(*values));
    must(tide_pg_row_values(bench->rules, fields, count, &bench->arena, &bench->scratch, values,
                            &index, &err),
         &err);
}

static void decode_insert(struct bench *bench)
{
    struct tide_pgoutput message;
    struct tide_error err;
    tide_str body = tide_arena_str(&bench->arena, tide_buf_str(&bench->message));
    must(tide_pgoutput_decode(body, &bench->arena, &message, &err), &err);
    make_values(bench, message.change.new_tuple.fields);
}

static void decode_line(struct bench *bench)
{
    struct tide_pg_field fields[COLUMNS_MAX];
    struct tide_error err;
    tide_str line = tide_arena_str(&bench->arena, tide_buf_str(&bench->line));
    must(tide_pg_copy_line(line, bench->shape->count, &bench->arena, fields, &err), &err);
    make_values(bench, fields);
}

static void measure(struct bench *bench, const char *what, size_t row_bytes,
                    void (*decode)(struct bench *), double seconds)
{
    size_t rows = 0;
    double took = 0;
    clock_t start = clock();
    while (took < seconds) {
        for (size_t i = 0; i < BATCH; i++) {
            decode(bench);
        }
        rows += BATCH;
        tide_arena_reset(&bench->arena);
        took = (double)(clock() - start) / CLOCKS_PER_SEC;
    }
    (void)printf("pg_decode_%s_%s %.0f ns, %.0f MB/s, %zu bytes\n", what, bench->shape->name,
                 took / (double)rows * 1e9, (double)(rows * row_bytes) / took / 1e6, row_bytes);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct bench bench;
        make_row(&bench, &shapes[i]);
        measure(&bench, "insert", bench.message.len, decode_insert, seconds);
        measure(&bench, "copy", bench.line.len, decode_line, seconds);
        tide_buf_done(&bench.message);
        tide_buf_done(&bench.line);
        tide_pg_scratch_done(&bench.scratch);
        tide_arena_done(&bench.arena);
    }
    return 0;
}
