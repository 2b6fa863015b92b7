/*
 * The archive against plain SQLite: durable writes in batches of 256 rows of 200 bytes, in the
 * folder TMPDIR (/tmp); then the catalogue of a file with 5,000 segments, its time and its memory.
 */
#include "archive/container.h"
#include "archive/writer.h"
#include "paired.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH    ((size_t)256)
#define BATCHES  ((size_t)400)
#define ROW      ((size_t)200)
#define SEGMENTS 5000
#define SERIES   50

static char root[256];

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

static const char *in_root(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void fill(char bytes[ROW], size_t number)
{
    memset(bytes, 'x', ROW);
    (void)snprintf(bytes, ROW, "{\"id\":%zu,\"text\":\"", number);
}

static void plain(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
}

struct bare_table {
    const char *make_sql;
    const char *insert_sql; /* ?1 is the row, ?2 its time */
};

/* The least that SQLite can do with the bytes, and what it does with them in a table of this key.
 */
static const struct bare_table no_key = {"CREATE TABLE t (row BLOB, ts INTEGER)",
                                         "INSERT INTO t VALUES (?1, ?2)"};
static const struct bare_table same_key = {
    "CREATE TABLE t (source_id INTEGER NOT NULL, stream TEXT NOT NULL, ts INTEGER NOT NULL, "
    "wall_offset INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (source_id, stream, ts))",
    "INSERT INTO t VALUES (1, 'shop.orders', ?2, 0, ?1)"};

static void write_bare(const struct bare_table *table, struct paired *paired)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char bytes[ROW];
    (void)unlink(in_root("bare.db"));
    TIDE_ASSERT(sqlite3_open(in_root("bare.db"), &db) == SQLITE_OK);
    plain(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    plain(db, table->make_sql);
    TIDE_ASSERT(sqlite3_prepare_v2(db, table->insert_sql, -1, &stmt, NULL) == SQLITE_OK);
    paired_start(paired);
    for (size_t i = 0; i < BATCHES; i++) {
        plain(db, "BEGIN IMMEDIATE");
        for (size_t j = 0; j < BATCH; j++) {
            fill(bytes, i * BATCH + j);
            TIDE_ASSERT(sqlite3_bind_blob(stmt, 1, bytes, ROW, SQLITE_STATIC) == SQLITE_OK);
            TIDE_ASSERT(sqlite3_bind_int64(stmt, 2, (int64_t)(i * BATCH + j)) == SQLITE_OK);
            TIDE_ASSERT(sqlite3_step(stmt) == SQLITE_DONE);
            (void)sqlite3_reset(stmt);
        }
        plain(db, "COMMIT");
    }
    paired_stop(paired);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}

static struct tide_archive_writer *open_writer(const char *name, int64_t *ret_source)
{
    struct tide_error err;
    struct tide_archive_writer *writer = NULL;
    struct tide_archive_writer_options options = {0};
    struct tide_archive_new_source source = {0};
    must(tide_archive_create(in_root(name), &err), &err);
    must(tide_archive_writer_open(in_root(name), &options, &writer, &err), &err);
    must(tide_archive_add_source(writer, &source, ret_source, &err), &err);
    return writer;
}

static void write_archive(struct paired *paired)
{
    static char bytes[BATCH][ROW];
    static struct tide_archive_row rows[BATCH];
    struct tide_error err;
    int64_t source = 0;
    struct tide_archive_series *series = NULL;
    (void)unlink(in_root("a.tide"));
    struct tide_archive_writer *writer = open_writer("a.tide", &source);
    must(tide_archive_series_open(writer, source, TIDE_STR("shop.orders"), &series, &err), &err);
    paired_start(paired);
    for (size_t i = 0; i < BATCHES; i++) {
        for (size_t j = 0; j < BATCH; j++) {
            fill(bytes[j], i * BATCH + j);
            rows[j] = (struct tide_archive_row){series, (int64_t)(i * BATCH + j), 0,
                                                tide_str_of(bytes[j], ROW)};
        }
        struct tide_archive_tick tick = {.rows = rows, .row_count = BATCH};
        must(tide_archive_write(writer, &tick, &err), &err);
    }
    paired_stop(paired);
    tide_archive_writer_close(writer);
}

static void make_segments(void)
{
    int64_t source = 0;
    sqlite3 *db = NULL;
    char sql[512];
    (void)unlink(in_root("many.tide"));
    tide_archive_writer_close(open_writer("many.tide", &source));
    TIDE_ASSERT(sqlite3_open(in_root("many.tide"), &db) == SQLITE_OK);
    (void)snprintf(sql, sizeof(sql),
                   "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                   "INSERT INTO segments SELECT %" PRId64 ", 'shop.table' || (i %% %d), i / %d, "
                   "1000, i * 1000, i * 1000 + 999, randomblob(20000 + i), NULL FROM n",
                   SEGMENTS - 1, source, SERIES, SERIES);
    plain(db, sql);
    (void)sqlite3_close(db);
}

/* In a process of its own, so that its memory is that of the catalogue alone. */
static void measure_catalogue(void)
{
    struct tide_error err;
    struct tide_arena arena = {0};
    struct tide_archive *archive = NULL;
    struct tide_archive_catalogue found;
    struct rusage usage;
    double start = paired_processor();
    int64_t start_us = tide_clock_monotonic_us();
    must(tide_archive_open(in_root("many.tide"), TIDE_ARCHIVE_READ, &archive, &err), &err);
    must(tide_archive_catalogue_read(archive, &arena, &found, &err), &err);
    int64_t took_us = tide_clock_monotonic_us() - start_us;
    TIDE_ASSERT(found.series_count == SERIES);
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("catalogue of %d segments: %.1f ms, %.1f ms of CPU, %.1f MiB\n", SEGMENTS,
           (double)took_us / 1e3, (paired_processor() - start) * 1e3,
           (double)usage.ru_maxrss / 1024);
    tide_archive_close(archive);
    tide_arena_done(&arena);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        (void)snprintf(root, sizeof(root), "%s", argv[1]);
        measure_catalogue();
        return 0;
    }
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(root, sizeof(root), "%s/tide_bench_archive_XXXXXX", tmp == NULL ? "/tmp" : tmp);
    TIDE_ASSERT(mkdtemp(root) != NULL);
    struct paired bare = {0};
    struct paired keyed = {0};
    struct paired archive = {0};
    for (int i = 0; i < PAIRED_ROUNDS; i++) {
        write_bare(&no_key, &bare);
        write_bare(&same_key, &keyed);
        write_archive(&archive);
    }
    double rows = (double)(BATCH * BATCHES);
    paired_print("bare SQLite, no key", &bare, NULL, rows);
    paired_print("bare SQLite, the same key", &keyed, &bare, rows);
    paired_print("archive", &archive, &bare, rows);
    make_segments();
    (void)fflush(stdout);
    char command[1024];
    (void)snprintf(command, sizeof(command), "'%s' '%s'; rm -rf '%s'", argv[0], root, root);
    return system(command);
}
