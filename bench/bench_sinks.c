/*
 * Speed of the sinks that write frames, on one core: rows of a snapshot, a flush each 64 batches.
 *
 *     bench_sinks [SECONDS [FILE]]     how long each measurement takes (1), where the file sink
 *                                      writes (a new file, removed at the end)
 */
#include "base/clock.h"
#include "sink/file/file_sink.h"
#include "sink/null/null_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMN_COUNT    10
#define ROW_COUNT       1000
#define BATCHES_A_FLUSH 64
#define US_A_SECOND     1000000

static const char *const names[COLUMN_COUNT] = {"id",     "name",       "city",   "price",
                                                "note",   "is_open",    "weight", "created_at",
                                                "amount", "description"};

static const struct tide_value *make_row(struct tide_arena *arena, unsigned number)
{
    static const char *const texts[COLUMN_COUNT] = {"100",
                                                    "customer 100",
                                                    "Hamburg",
                                                    "100.50",
                                                    "a short note about a row",
                                                    "true",
                                                    "0.25",
                                                    "2026-11-29T13:40:55.567Z",
                                                    "77",
                                                    "someone@example.org"};
    struct tide_value *row = tide_arena_alloc(arena, COLUMN_COUNT, sizeof(*row));
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char digits[16];
        (void)snprintf(digits, sizeof(digits), "%u", 100000 + number);
        tide_str text = tide_arena_str(arena, tide_str_from(i == 0 ? digits : texts[i]));
        bool is_number = i == 0 || i == 3 || i == 6 || i == 8;
        row[i] = (struct tide_value){.ptr = text.ptr,
                                     .len = (uint32_t)text.len,
                                     .kind = is_number ? TIDE_VALUE_DECIMAL
                                             : i == 5  ? TIDE_VALUE_BOOL
                                                       : TIDE_VALUE_TEXT};
    }
    return row;
}

static const struct tide_relation *make_relation(void)
{
    static const uint32_t key[] = {0};
    struct tide_column columns[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        columns[i].name = tide_str_from(names[i]);
    }
    return tide_relation_new(&(struct tide_relation_spec){.connection = TIDE_STR("bench"),
                                                          .name = TIDE_STR("customers"),
                                                          .columns = columns,
                                                          .column_count = COLUMN_COUNT,
                                                          .key_columns = key,
                                                          .key_count = 1});
}

static struct tide_batch *make_batch(void)
{
    struct tide_batch *batch = tide_batch_new();
    struct tide_arena *arena = &batch->arena;
    const struct tide_relation *relation = make_relation();
    const struct tide_value **rows =
        tide_arena_alloc(arena, ROW_COUNT, sizeof(const struct tide_value *));
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        rows[i] = make_row(arena, i);
    }
    struct tide_snapshot_part *part = tide_arena_alloc(arena, 1, sizeof(*part));
    *part = (struct tide_snapshot_part){.relation = relation, .rows = rows, .row_count = ROW_COUNT};
    (void)snprintf(part->head.id, sizeof(part->head.id), "019acfd5-0b4f-7000-8000-000000000001");
    batch->snapshot = part;
    tide_batch_use_relation(batch, relation);
    tide_relation_unref(relation);
    return batch;
}

static int stop(const struct tide_error *err)
{
    (void)fprintf(stderr, "bench_sinks: %s\n", err->message);
    return 1;
}

static int measure(const struct tide_sink_ops *ops, const char *place, int64_t duration_us)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = {
        .place = tide_str_from(place),
        .pipeline = TIDE_STR("bench"),
        .identity = TIDE_STR("\"bench\""),
        .position_kind = &tide_position_integer,
        .record_bytes_max = 921600,
    };
    if (ops->open(&options, &sink, &err) != TIDE_OK) {
        return stop(&err);
    }
    struct tide_batch *batch = make_batch();
    int64_t start_us = tide_clock_monotonic_us();
    tide_status status = TIDE_OK;
    for (unsigned i = 1; status == TIDE_OK && tide_clock_monotonic_us() - start_us < duration_us;
         i++) {
        status = ops->write_batch(sink, batch, 0, &err);
        if (status == TIDE_OK && i % BATCHES_A_FLUSH == 0) {
            status = ops->flush(sink, false, &err);
        }
    }
    double seconds = (double)(tide_clock_monotonic_us() - start_us) / US_A_SECOND;
    struct tide_sink_counts counts;
    ops->counts(sink, &counts);
    (void)printf("%-5s %10.0f rows/s %8.1f MB/s %6.1f bytes a frame\n", ops->scheme,
                 (double)counts.rows / seconds, (double)counts.bytes / seconds / 1e6,
                 (double)counts.bytes / (double)counts.rows);
    tide_batch_unref(batch);
    ops->close(sink);
    return status == TIDE_OK ? 0 : stop(&err);
}

int main(int argc, char **argv)
{
    int64_t duration_us = (argc > 1 ? atoi(argv[1]) : 1) * (int64_t)US_A_SECOND;
    const char *path = argc > 2 ? argv[2] : "bench_sinks.ndjson";
    if (measure(&tide_null_sink_ops, "", duration_us) != 0) {
        return 1;
    }
    if (access(path, F_OK) == 0) {
        (void)fprintf(stderr, "bench_sinks: %s is there; name a new file\n", path);
        return 1;
    }
    int failed = measure(&tide_file_sink_ops, path, duration_us);
    char record[4200];
    const char *slash = strrchr(path, '/');
    int dir_len = slash == NULL ? 0 : (int)(slash - path) + 1;
    (void)snprintf(record, sizeof(record), "%.*s.%s.tidemark", dir_len, path, path + dir_len);
    (void)unlink(record);
    (void)unlink(path);
    return failed;
}
