/*
 * Parquet on one core: a table of a million rows written and read, in MB/s of the values' bytes,
 * and the file's size.
 *
 *     bench_parquet [ROWS [FILE]]     writes the zstd file to FILE, for bench_parquet.py
 */
#include "format/parquet/reader.h"
#include "format/parquet/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COLUMN_COUNT 12
#define STEP         1000

static const struct tide_parquet_column columns[COLUMN_COUNT] = {
    {.name = {"id", 2}, .type = TIDE_PARQUET_INT64},
    {.name = {"customer", 8}, .type = TIDE_PARQUET_INT32},
    {.name = {"amount", 6}, .type = TIDE_PARQUET_DECIMAL, .precision = 12, .scale = 2},
    {.name = {"state", 5}, .type = TIDE_PARQUET_STRING, .is_nullable = true},
    {.name = {"city", 4}, .type = TIDE_PARQUET_STRING, .is_nullable = true},
    {.name = {"note", 4}, .type = TIDE_PARQUET_STRING, .is_nullable = true},
    {.name = {"email", 5}, .type = TIDE_PARQUET_STRING, .is_nullable = true},
    {.name = {"placed", 6}, .type = TIDE_PARQUET_TIMESTAMP, .is_utc = true},
    {.name = {"day", 3}, .type = TIDE_PARQUET_DATE, .is_nullable = true},
    {.name = {"is_open", 7}, .type = TIDE_PARQUET_BOOL},
    {.name = {"weight", 6}, .type = TIDE_PARQUET_DOUBLE, .is_nullable = true},
    {.name = {"uid", 3}, .type = TIDE_PARQUET_UUID},
};

/* Of this process, which has one thread: other programs on the machine do not count. */
static int64_t cpu_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A row's values, drawn before the clock starts. */
struct row {
    int64_t id;
    int64_t placed;
    double weight;
    int64_t amount;
    int32_t customer;
    int32_t day;
    tide_str state, city, note, email;
    char uid[16];
    bool is_open, has_note, has_day;
};

struct table {
    struct tide_arena arena;
    struct row *rows;
    size_t count;
    size_t bytes; /* of all values */
};

static uint64_t random_next(uint64_t *state)
{
    uint64_t value = *state += 0x9e3779b97f4a7c15U;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

static tide_str text_of(struct tide_arena *arena, const char *before, unsigned number,
                        const char *after)
{
    char text[128];
    int len = snprintf(text, sizeof(text), "%s%u%s", before, number, after);
    return tide_arena_str(arena, tide_str_of(text, (size_t)len));
}

static struct row make_row(struct tide_arena *arena, uint64_t *state, size_t number)
{
    static const tide_str states[] = {{"new", 3}, {"paid", 4}, {"sent", 4}, {"returned", 8}};
    static const tide_str cities[] = {{"Hamburg", 7}, {"Paris", 5},  {"Lisboa", 6}, {"Oslo", 4},
                                      {"Wien", 4},    {"Madrid", 6}, {"Roma", 4},   {"Praha", 5}};
    uint64_t one = random_next(state);
    uint64_t two = random_next(state);
    struct row row = {
        .id = (int64_t)number,
        .placed = 1790000000000000 + (int64_t)number * 1000003 + (int64_t)(one % 900000),
        .weight = (double)(two % 100000) / 1000,
        .amount = (int64_t)(one % 500000),
        .customer = (int32_t)(two % 50000),
        .day = (int32_t)(20000 + number / 5000),
        .state = states[one >> 20 & 3],
        .city = cities[one >> 24 & 7],
        .is_open = one >> 30 & 1,
        .has_note = one >> 31 & 3,
        .has_day = one >> 40 & 15,
    };
    uint64_t uid[2] = {random_next(state), random_next(state)};
    memcpy(row.uid, uid, sizeof(uid));
    row.note = text_of(arena, "please ring at door ", (unsigned)(two >> 20) % 10000,
                       " before leaving the parcel");
    row.email = text_of(arena, "someone", (unsigned)(two >> 40), "@example.org");
    return row;
}

static void make_table(struct table *table, size_t count)
{
    uint64_t state = 1;
    table->count = count;
    table->rows = tide_arena_alloc(&table->arena, count, sizeof(*table->rows));
    for (size_t i = 0; i < count; i++) {
        struct row row = make_row(&table->arena, &state, i);
        table->bytes += 8 + 4 + 8 + 8 + 4 + 1 + 8 + 16;
        table->bytes += row.state.len + row.city.len + row.email.len;
        table->bytes += row.has_note ? row.note.len : 0;
        table->rows[i] = row;
    }
}

static void add_row(struct tide_parquet_writer *writer, const struct row *row)
{
    tide_parquet_add_i64(writer, 0, row->id);
    tide_parquet_add_i32(writer, 1, row->customer);
    tide_parquet_add_i128(writer, 2, row->amount);
    tide_parquet_add_bytes(writer, 3, row->state);
    tide_parquet_add_bytes(writer, 4, row->city);
    if (row->has_note) {
        tide_parquet_add_bytes(writer, 5, row->note);
    } else {
        tide_parquet_add_null(writer, 5);
    }
    tide_parquet_add_bytes(writer, 6, row->email);
    tide_parquet_add_i64(writer, 7, row->placed);
    if (row->has_day) {
        tide_parquet_add_i32(writer, 8, row->day);
    } else {
        tide_parquet_add_null(writer, 8);
    }
    tide_parquet_add_bool(writer, 9, row->is_open);
    tide_parquet_add_double(writer, 10, row->weight);
    tide_parquet_add_bytes(writer, 11, tide_str_of(row->uid, sizeof(row->uid)));
}

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(3);
    }
}

static tide_str write_table(const struct table *table, struct tide_parquet_writer *writer)
{
    struct tide_error err = {0};
    tide_str bytes = {0};
    for (size_t i = 0; i < table->count; i++) {
        add_row(writer, &table->rows[i]);
        if (i % STEP == STEP - 1 || i == table->count - 1) {
            must(tide_parquet_writer_end_rows(writer, i % STEP + 1, &err), &err);
        }
    }
    must(tide_parquet_writer_finish(writer, NULL, 0, &bytes, &err), &err);
    return bytes;
}

static void read_table(tide_str bytes)
{
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_reader *reader = NULL;
    struct tide_parquet_values values[COLUMN_COUNT] = {0};
    struct tide_error err = {0};
    must(tide_parquet_reader_new(bytes, &limits, &reader, &err), &err);
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    for (size_t group = 0; group < metadata->group_count; group++) {
        for (size_t column = 0; column < COLUMN_COUNT; column++) {
            must(tide_parquet_reader_read(reader, group, column, &values[column], &err), &err);
        }
    }
    for (size_t column = 0; column < COLUMN_COUNT; column++) {
        tide_parquet_values_done(&values[column]);
    }
    tide_parquet_reader_free(reader);
}

static void save(const char *path, tide_str bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.ptr, 1, bytes.len, file) != bytes.len || fclose(file) != 0) {
        (void)fprintf(stderr, "%s cannot be written\n", path);
        exit(3);
    }
}

static void measure(const struct table *table, const char *name,
                    const struct tide_parquet_options *options, const char *path)
{
    struct tide_parquet_writer *writer = NULL;
    struct tide_error err = {0};
    tide_str bytes = {0};
    double best_write = 0;
    double best_read = 0;
    must(tide_parquet_writer_new(columns, COLUMN_COUNT, options, &writer, &err), &err);
    for (int round = 0; round < 3; round++) {
        tide_parquet_writer_reset(writer);
        int64_t start_us = cpu_us();
        bytes = write_table(table, writer);
        int64_t written_us = cpu_us();
        read_table(bytes);
        int64_t read_us = cpu_us();
        double write = (double)table->bytes / (double)(written_us - start_us);
        double read = (double)table->bytes / (double)(read_us - written_us);
        best_write = write > best_write ? write : best_write;
        best_read = read > best_read ? read : best_read;
    }
    (void)printf("%-22s write %6.0f MB/s   read %6.0f MB/s   %zu bytes of %zu\n", name, best_write,
                 best_read, bytes.len, table->bytes);
    if (path != NULL) {
        save(path, bytes);
    }
    tide_parquet_writer_free(writer);
}

int main(int argc, char **argv)
{
    struct table table = {0};
    struct tide_parquet_options options = tide_parquet_options_default();
    make_table(&table, argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000);
    measure(&table, "zstd", &options, argc > 2 ? argv[2] : NULL);
    options.level = 1;
    measure(&table, "zstd, level 1", &options, NULL);
    options.codec = TIDE_PARQUET_LZ4_RAW;
    measure(&table, "LZ4", &options, NULL);
    options.codec = TIDE_PARQUET_UNCOMPRESSED;
    measure(&table, "none", &options, NULL);
    options.dictionary_bytes_max = 0;
    measure(&table, "none, no dictionaries", &options, NULL);
    tide_arena_done(&table.arena);
    return 0;
}
