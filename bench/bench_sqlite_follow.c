/*
 * Speed of following against SQLite alone: the changes of a transaction that touched every row of a
 * table of ten columns, through the source, and the change log joined with the table.
 *
 *     bench_sqlite_follow [ROWS]     1000000 when left out
 */
#include "base/clock.h"
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

static void insert_rows(sqlite3 *db, long rows)
{
    char sql[640];
    (void)snprintf(sql, sizeof(sql),
                   "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %ld)"
                   " INSERT INTO t SELECT i, 'customer ' || i, 'Hamburg', i + 0.5,"
                   " 'a short note about row ' || i, i %% 2, i / 7.0,"
                   " '2026-11-29T13:40:55.567Z', i * 77, 'someone' || i || '@example.org' FROM n",
                   rows);
    run(db, sql);
}

/* Rows a second. */
static double step_join(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db,
                           "SELECT l.id, l.op, l.k1, t.* FROM _tidemark_changes AS l"
                           " LEFT JOIN t ON t.id = l.k1 ORDER BY l.id",
                           -1, &stmt, NULL) != SQLITE_OK) {
        die("join", sqlite3_errmsg(db));
    }
    int64_t start_us = tide_clock_monotonic_us();
    long rows = 0;
    size_t bytes = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        for (int i = 0; i < COLUMN_COUNT + 3; i++) {
            bytes += sqlite3_column_text(stmt, i) != NULL ? 1 : 0;
            bytes += (size_t)sqlite3_column_bytes(stmt, i);
        }
        rows++;
    }
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    (void)sqlite3_finalize(stmt);
    return bytes == 0 ? 0 : (double)rows * 1e6 / (double)took_us;
}

static double follow(struct tide_source *source, struct tide_position start)
{
    struct tide_error err;
    struct tide_event event = {.kind = TIDE_EVENT_CHANGE};
    struct tide_arena arena = {0};
    if (tide_sqlite_source_ops.stream(source, start, &err) != TIDE_OK) {
        die("stream", err.message);
    }
    int64_t start_us = tide_clock_monotonic_us();
    long rows = 0;
    for (; event.kind == TIDE_EVENT_CHANGE; rows++) {
        if (rows % 1000 == 0) {
            tide_arena_reset(&arena);
        }
        if (tide_sqlite_source_ops.next(source, &arena, NULL, TIDE_NO_DEADLINE, &event, &err) !=
            TIDE_OK) {
            die("next", err.message);
        }
    }
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    tide_arena_done(&arena);
    return (double)rows * 1e6 / (double)took_us;
}

static struct tide_source *open_source(const char *path, struct tide_position *ret_start)
{
    struct tide_source_options options = {.place = tide_str_from(path), .pipeline = TIDE_STR("p")};
    struct tide_source *source = NULL;
    struct tide_error err;
    if (tide_sqlite_source_ops.open(&options, &source, &err) != TIDE_OK ||
        tide_sqlite_source_ops.prepare(source, NULL, (struct tide_position){0}, ret_start, &err) !=
            TIDE_OK) {
        die("open", err.message);
    }
    return source;
}

int main(int argc, char **argv)
{
    long rows = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    char path[] = "/tmp/tidemark_bench_XXXXXX";
    sqlite3 *db = NULL;
    int fd = mkstemp(path);
    if (fd < 0 || rows < 1 || sqlite3_open(path, &db) != SQLITE_OK) {
        die(path, "cannot be made");
    }
    (void)close(fd);
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, city TEXT, price REAL, note TEXT,"
            " is_open INT, weight REAL, created_at TEXT, amount INT, email TEXT)");
    struct tide_position start;
    struct tide_source *source = open_source(path, &start);
    insert_rows(db, rows);
    double best_join = 0;
    double best_follow = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double join = step_join(db);
        double followed = follow(source, start);
        best_join = join > best_join ? join : best_join;
        best_follow = followed > best_follow ? followed : best_follow;
    }
    (void)printf("log joined with its table      %8.0f rows/s\n", best_join);
    (void)printf("following                      %8.0f rows/s  %.2f of it\n", best_follow,
                 best_follow / best_join);
    tide_sqlite_source_ops.close(source);
    (void)sqlite3_close(db);
    (void)unlink(path);
    return 0;
}
