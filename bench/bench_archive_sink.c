/*
 * How fast changes go into an archive, durably, in batches of 256: against plain SQLite that is
 * given the very bytes, in the same batches, without a key.
 *
 *     bench_archive_sink      in TMPDIR, or /tmp: on the disk that is to be measured
 */
#include "archive/change_row.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "paired.h"
#include "sink/archive/archive_sink.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH   ((size_t)256)
#define BATCHES ((size_t)512) /* a little more than two segments */
#define COLUMNS ((size_t)6)

static char root[256];

static const char *in_root(const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "bench_archive_sink: %s\n", err->message);
        exit(1);
    }
}

static struct tide_relation *make_relation(void)
{
    static const uint32_t key[] = {0};
    static const struct tide_column columns[COLUMNS] = {
        {.name = {"id", 2}, .type = {"INTEGER", 7}},
        {.name = {"customer", 8}, .type = {"INTEGER", 7}},
        {.name = {"status", 6}, .type = {"TEXT", 4}},
        {.name = {"total", 5}, .type = {"REAL", 4}},
        {.name = {"placed", 6}, .type = {"TEXT", 4}},
        {.name = {"note", 4}, .type = {"TEXT", 4}},
    };
    return tide_relation_new(&(struct tide_relation_spec){.connection = TIDE_STR("shop"),
                                                          .name = TIDE_STR("orders"),
                                                          .columns = columns,
                                                          .column_count = COLUMNS,
                                                          .key_columns = key,
                                                          .key_count = 1});
}

static struct tide_value text(struct tide_arena *arena, enum tide_value_kind kind, const char *s)
{
    tide_str copy = tide_arena_str(arena, tide_str_from(s));
    return (struct tide_value){.ptr = copy.ptr, .len = (uint32_t)copy.len, .kind = (uint8_t)kind};
}

static const struct tide_value *make_row(struct tide_arena *arena, size_t number)
{
    char buf[200];
    struct tide_value *row = tide_arena_alloc(arena, COLUMNS, sizeof(*row));
    (void)snprintf(buf, sizeof(buf), "%zu", number);
    row[0] = text(arena, TIDE_VALUE_INTEGER, buf);
    (void)snprintf(buf, sizeof(buf), "%zu", number * 7919 % 10007);
    row[1] = text(arena, TIDE_VALUE_INTEGER, buf);
    row[2] = text(arena, TIDE_VALUE_TEXT, number % 3 == 0 ? "paid" : "open");
    (void)snprintf(buf, sizeof(buf), "%zu.25", number % 1000);
    row[3] = text(arena, TIDE_VALUE_REAL, buf);
    row[4] = text(arena, TIDE_VALUE_TEXT, "2026-03-09 11:12:13");
    (void)snprintf(buf, sizeof(buf),
                   "order %zu, to be left at the door of the neighbour, who is "
                   "in all day but for lunch; ring twice",
                   number);
    row[5] = text(arena, TIDE_VALUE_TEXT, buf);
    return row;
}

static struct tide_batch *make_batch(const struct tide_relation *relation, size_t number)
{
    struct tide_batch *batch = tide_batch_new();
    batch->has_position = true;
    batch->position = (struct tide_position){.lo = number + 1};
    batch->changes = tide_alloc(BATCH, sizeof(*batch->changes));
    batch->change_count = BATCH;
    tide_batch_use_relation(batch, relation);
    for (size_t i = 0; i < BATCH; i++) {
        const struct tide_value *row = make_row(&batch->arena, number * BATCH + i);
        batch->changes[i] = (struct tide_change){
            .op = TIDE_OP_INSERT,
            .relation = relation,
            .place = {.position = batch->position, .index = i, .known = true},
            .commit_us = tide_clock_utc_us(),
            .key = row,
            .values = row,
        };
    }
    return batch;
}

static void write_archive(struct tide_batch **batches, uint64_t seal_rows, uint64_t *ret_bytes,
                          struct paired *paired)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    const struct tide_sink_ops *ops = &tide_archive_sink_ops;
    struct tide_sink_options options = {
        .place = tide_str_from(in_root("a.tide")),
        .pipeline = TIDE_STR("bench"),
        .identity = TIDE_STR("\"bench\""),
        .position_kind = &tide_position_integer,
        .existing = TIDE_EXISTING_OVERWRITE,
        .record_bytes_max = 921600,
        .segments = {.rows_max = seal_rows, .bytes_max = (uint64_t)1 << 40},
    };
    struct tide_sink_counts counts;
    must(ops->open(&options, &sink, &err), &err);
    paired_start(paired);
    for (size_t i = 0; i < BATCHES; i++) {
        must(ops->write_batch(sink, batches[i], 0, &err), &err);
        must(ops->flush(sink, false, &err), &err);
    }
    paired_stop(paired);
    ops->counts(sink, &counts);
    *ret_bytes = counts.bytes;
    ops->close(sink);
}

/* The rows as the sink would write them. */
static void encode(struct tide_batch *const *batches, struct tide_buf *bytes, size_t *ends)
{
    for (size_t i = 0; i < BATCHES * BATCH; i++) {
        const struct tide_change *change = &batches[i / BATCH]->changes[i % BATCH];
        const struct tide_change_row row = {.kind = TIDE_ROW_CHANGE,
                                            .op = change->op,
                                            .place = change->place,
                                            .commit_us = change->commit_us,
                                            .key = change->key,
                                            .values = change->values};
        tide_change_row_encode(&row, COLUMNS, 1, bytes);
        ends[i] = bytes->len;
    }
}

static void plain(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
}

static void write_bare(const struct tide_buf *bytes, const size_t *ends, struct paired *paired)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    (void)unlink(in_root("bare.db"));
    TIDE_ASSERT(sqlite3_open(in_root("bare.db"), &db) == SQLITE_OK);
    plain(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    plain(db, "CREATE TABLE t (row BLOB)");
    TIDE_ASSERT(sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?1)", -1, &stmt, NULL) == SQLITE_OK);
    paired_start(paired);
    for (size_t i = 0; i < BATCHES * BATCH; i++) {
        size_t start = i == 0 ? 0 : ends[i - 1];
        if (i % BATCH == 0) {
            plain(db, "BEGIN IMMEDIATE");
        }
        (void)sqlite3_bind_blob(stmt, 1, bytes->ptr + start, (int)(ends[i] - start), SQLITE_STATIC);
        TIDE_ASSERT(sqlite3_step(stmt) == SQLITE_DONE);
        (void)sqlite3_reset(stmt);
        if (i % BATCH == BATCH - 1) {
            plain(db, "COMMIT");
        }
    }
    paired_stop(paired);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}

static void measure(struct tide_batch **batches)
{
    struct tide_buf bytes = {0};
    size_t *ends = tide_alloc(BATCH * BATCHES, sizeof(*ends));
    uint64_t written = 0;
    struct paired bare = {0};
    struct paired live = {0};
    struct paired sealed = {0};
    encode(batches, &bytes, ends);
    for (int i = 0; i < PAIRED_ROUNDS; i++) {
        write_bare(&bytes, ends, &bare);
        write_archive(batches, (uint64_t)1 << 40, &written, &live);
        TIDE_ASSERT(written == bytes.len);
        write_archive(batches, 0, &written, &sealed);
    }
    double rows = (double)(BATCH * BATCHES);
    printf("%d rounds of %.0f rows of %zu bytes\n", PAIRED_ROUNDS, rows,
           bytes.len / (BATCH * BATCHES));
    paired_print("bare SQLite, the same bytes", &bare, NULL, rows);
    paired_print("archive, nothing sealed", &live, &bare, rows);
    paired_print("archive, sealed all the time", &sealed, &bare, rows);
    tide_buf_done(&bytes);
    free(ends);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(root, sizeof(root), "%s/tide_bench_archive_sink_XXXXXX",
                   tmp == NULL ? "/tmp" : tmp);
    TIDE_ASSERT(mkdtemp(root) != NULL);
    struct tide_relation *relation = make_relation();
    struct tide_batch **batches = tide_alloc(BATCHES, sizeof(struct tide_batch *));
    for (size_t i = 0; i < BATCHES; i++) {
        batches[i] = make_batch(relation, i);
    }
    measure(batches);
    for (size_t i = 0; i < BATCHES; i++) {
        tide_batch_unref(batches[i]);
    }
    free(batches);
    tide_relation_unref(relation);
    (void)unlink(in_root("a.tide"));
    (void)unlink(in_root("bare.db"));
    (void)rmdir(root);
    return 0;
}
