/*
 * Speed of chunk reading against SQLite alone: a table of ten columns through the source's chunk
 * reader, and the same table stepped through with every column taken as text.
 *
 *     bench_sqlite_chunk [ROWS]     1000000 when left out
 */
#include "base/clock.h"
#include "base/limits.h"
#include "source/sqlite/sqlite_source.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COLUMN_COUNT 10
#define ROUNDS       3

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        die(sql, sqlite3_errmsg(db));
    }
}

static void make_table(const char *path, long rows)
{
    sqlite3 *db = NULL;
    char sql[640];
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        die(path, sqlite3_errmsg(db));
    }
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, city TEXT, price REAL, note TEXT,"
            " is_open INT, weight REAL, created_at TEXT, amount INT, email TEXT)");
    (void)snprintf(sql, sizeof(sql),
                   "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %ld)"
                   " INSERT INTO t SELECT i, 'customer ' || i, 'Hamburg', i + 0.5,"
                   " 'a short note about row ' || i, i %% 2, i / 7.0,"
                   " '2026-11-29T13:40:55.567Z', i * 77, 'someone' || i || '@example.org' FROM n",
                   rows);
    run(db, sql);
    (void)sqlite3_close(db);
}

/* Rows a second. */
static double step_all(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT * FROM t ORDER BY id", -1, &stmt, NULL) != SQLITE_OK) {
        die(path, sqlite3_errmsg(db));
    }
    int64_t start_us = tide_clock_monotonic_us();
    long rows = 0;
    size_t bytes = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        for (int i = 0; i < COLUMN_COUNT; i++) {
            bytes += sqlite3_column_text(stmt, i) != NULL ? 1 : 0;
            bytes += (size_t)sqlite3_column_bytes(stmt, i);
        }
        rows++;
    }
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return bytes == 0 ? 0 : (double)rows * 1e6 / (double)took_us;
}

static double read_chunks(struct tide_source *source, const struct tide_relation *relation)
{
    struct tide_error err;
    struct tide_chunk_reader *reader = NULL;
    struct tide_chunk chunk = {0};
    struct tide_arena arena = {0}; /* of the key to go on from */
    const struct tide_value *after = NULL;
    if (tide_sqlite_source_ops.reader_open(source, &reader, &err) != TIDE_OK) {
        die("reader", err.message);
    }
    int64_t start_us = tide_clock_monotonic_us();
    size_t rows = 0;
    for (bool is_last = false; !is_last;) {
        struct tide_chunk_request request = {.relation = relation,
                                             .after_key = after,
                                             .rows_max = TIDE_CHUNK_ROWS_DEFAULT,
                                             .bytes_max = TIDE_CHUNK_BYTES_DEFAULT};
        if (tide_sqlite_source_ops.reader_read(reader, &request, &chunk, &err) != TIDE_OK) {
            die("read", err.message);
        }
        rows += chunk.row_count;
        is_last = chunk.is_last;
        tide_arena_reset(&arena);
        if (chunk.last_key != NULL) {
            after = tide_values_copy(&arena, chunk.last_key, relation->key_count);
        }
        tide_chunk_done(&chunk);
    }
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    tide_arena_done(&arena);
    tide_sqlite_source_ops.reader_close(reader);
    return (double)rows * 1e6 / (double)took_us;
}

static struct tide_source *open_source(const char *path)
{
    struct tide_source_options options = {.place = tide_str_from(path), .pipeline = TIDE_STR("p")};
    struct tide_source *source = NULL;
    struct tide_position start;
    struct tide_error err;
    if (tide_sqlite_source_ops.open(&options, &source, &err) != TIDE_OK ||
        tide_sqlite_source_ops.prepare(source, NULL, (struct tide_position){0}, &start, &err) !=
            TIDE_OK) {
        die("open", err.message);
    }
    return source;
}

int main(int argc, char **argv)
{
    long rows = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    char path[] = "/tmp/tidemark_bench_XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || rows < 1) {
        die(path, "cannot be made");
    }
    (void)close(fd);
    make_table(path, rows);
    struct tide_source *source = open_source(path);
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    struct tide_error err;
    if (tide_sqlite_source_ops.tables(source, &tables, &count, &err) != TIDE_OK) {
        die("tables", err.message);
    }
    double best_step = 0;
    double best_read = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double step = step_all(path);
        double read = read_chunks(source, tables[0]);
        best_step = step > best_step ? step : best_step;
        best_read = read > best_read ? read : best_read;
    }
    (void)printf("sqlite3_step, columns as text  %8.0f rows/s\n", best_step);
    (void)printf("chunk reader                   %8.0f rows/s  %.2f of it\n", best_read,
                 best_read / best_step);
    tide_sqlite_source_ops.close(source);
    (void)unlink(path);
    return 0;
}
