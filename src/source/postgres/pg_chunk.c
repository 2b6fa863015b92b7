#include "source/postgres/pg_chunk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/map.h"
#include "source/postgres/pg_chunk_rows.h"
#include "source/postgres/pg_position.h"
#include "source/postgres/pg_snapshot.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a table's first chunk, as long as nothing is known of their size. */
#define FIRST_ROWS ((size_t)2000)
/* Keys in one statement: each makes the server's plan longer. */
#define AGAIN_KEYS ((size_t)500)

/*
 * A chunk must go by the key's index, whatever the planner knows of the table: a sort would cost
 * the whole table for every chunk. A missing right to see all rows must be an error, not fewer
 * rows. `local`: our message must not wait for a standby, and must ask for the log to be flushed.
 */
#define SETTINGS                                                                                   \
    "SET lock_timeout = '1s'; SET synchronous_commit = local; SET row_security = off;"             \
    "SET enable_seqscan = off; SET enable_sort = off; SET enable_incremental_sort = off;"          \
    "SET max_parallel_workers_per_gather = 0; SET jit = off"

#define MESSAGE "SELECT pg_logical_emit_message(true, 'tidemark', '')"

struct tide_chunk_reader {
    char *url;
    char *connection;
    atomic_bool is_cancelled;
    struct tide_waker waker;
    struct tide_pg_conn *conn;         /* NULL: none yet, or lost */
    uint64_t horizon;                  /* of this connection; 0: still to be taken */
    struct tide_pg_chunk_table *table; /* NULL: none yet */
    size_t row_bytes;                  /* of the table's last rows, on average; 0: unknown */
    struct tide_buf sql;
};

struct tide_chunk_reader *tide_pg_chunk_reader_new(tide_str url, tide_str connection)
{
    struct tide_chunk_reader *reader = tide_alloc(1, sizeof(*reader));
    reader->url = tide_strndup(url.ptr, url.len);
    reader->connection = tide_strndup(connection.ptr, connection.len);
    tide_waker_init(&reader->waker);
    return reader;
}

static void disconnect(struct tide_chunk_reader *reader)
{
    tide_pg_close(reader->conn);
    reader->conn = NULL;
    reader->horizon = 0;
}

static void forget_table(struct tide_chunk_reader *reader)
{
    tide_pg_chunk_table_free(reader->table);
    reader->table = NULL;
    reader->row_bytes = 0;
}

void tide_pg_chunk_reader_free(struct tide_chunk_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    disconnect(reader);
    forget_table(reader);
    tide_waker_done(&reader->waker);
    tide_buf_done(&reader->sql);
    free(reader->url);
    free(reader->connection);
    free(reader);
}

void tide_pg_chunk_cancel(struct tide_chunk_reader *reader)
{
    atomic_store(&reader->is_cancelled, true);
    tide_waker_wake(&reader->waker);
}

static struct tide_pg_wait wait_for(struct tide_chunk_reader *reader, int64_t delay_us)
{
    return (struct tide_pg_wait){.waker = &reader->waker,
                                 .deadline_us = tide_clock_deadline_us(delay_us)};
}

static tide_status connect_once(struct tide_chunk_reader *reader, struct tide_error *err)
{
    if (reader->conn != NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_pg_open(tide_str_from(reader->url), TIDE_PG_NORMAL,
                          wait_for(reader, TIDE_PG_CONNECT_US), &reader->conn, err));
    return tide_pg_exec(reader->conn, SETTINGS, "prepare to read chunks",
                        wait_for(reader, TIDE_PG_QUERY_US), err);
}

/* An id of its own, not only a snapshot's bounds: those do not count ids that were handed out and
 * have not ended, nor commits that are in the log and not yet to be seen. */
static tide_status take_horizon(struct tide_chunk_reader *reader, struct tide_error *err)
{
    if (reader->horizon != 0) {
        return TIDE_OK;
    }
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    TIDE_TRY(tide_pg_query(reader->conn, "SELECT pg_current_xact_id()", "take an id",
                           wait_for(reader, TIDE_PG_QUERY_US), &result, err));
    reader->horizon = tide_pg_result_u64(result, 0, 0);
    TIDE_ASSERT(reader->horizon != 0);
    return TIDE_OK;
}

static tide_status reach(struct tide_chunk_reader *reader, struct tide_error *err)
{
    TIDE_TRY(connect_once(reader, err));
    return take_horizon(reader, err);
}

/* After every call: leaves the connection fit for the next one, or none. */
static tide_status end_call(struct tide_chunk_reader *reader, tide_status status,
                            struct tide_error *err)
{
    if (reader->conn != NULL && status != TIDE_OK) {
        tide_pg_rollback(reader->conn);
        if (!tide_pg_is_alive(reader->conn)) {
            disconnect(reader);
        }
    }
    if (atomic_exchange(&reader->is_cancelled, false)) {
        (void)tide_waker_wait(&reader->waker, 0);
        return tide_fail(err, TIDE_CANCELLED, "reading a chunk was cancelled");
    }
    return status;
}

tide_status tide_pg_chunk_remember(struct tide_chunk_reader *reader,
                                   const struct tide_relation *relation, struct tide_error *err)
{
    (void)relation; /* ids are the server's, whatever the table */
    reader->horizon = 0;
    return end_call(reader, reach(reader, err), err);
}

/* One reader_read. */
struct reading {
    struct tide_chunk_reader *reader;
    const struct tide_chunk_request *request;
    struct tide_chunk *chunk;
    struct tide_pg_chunk_rows rows;
    size_t limit;
    size_t range_from; /* rows before it are those read again */
    bool needs_message;
};

static tide_status take_beginning(struct reading *reading, const PGresult *result,
                                  struct tide_error *err)
{
    const struct tide_relation *relation = reading->request->relation;
    struct tide_chunk *chunk = reading->chunk;
    uint64_t insert_lsn = 0;
    uint64_t flush_lsn = 0;
    if (PQntuples(result) != 1 ||
        !tide_lsn_parse(tide_pg_result_str(result, 0, TIDE_PG_BEGIN_INSERT_LSN), &insert_lsn) ||
        !tide_lsn_parse(tide_pg_result_str(result, 0, TIDE_PG_BEGIN_FLUSH_LSN), &flush_lsn)) {
        return tide_fail(err, TIDE_REMOTE, "PostgreSQL %s: begin a chunk: no position came",
                         reading->reader->conn->place);
    }
    TIDE_TRY(tide_pg_snapshot_parse(tide_pg_result_str(result, 0, TIDE_PG_BEGIN_SNAPSHOT),
                                    &chunk->arena, &chunk->visibility, err));
    if (tide_pg_result_u64(result, 0, TIDE_PG_BEGIN_OID) != relation->id) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s.%.*s is another one than when its copy was begun; start its "
                         "copy anew",
                         TIDE_STR_ARG(relation->schema), TIDE_STR_ARG(relation->name));
    }
    chunk->position = tide_pg_position_up_to(insert_lsn);
    chunk->epoch = tide_pg_result_u64(result, 0, TIDE_PG_BEGIN_STARTED_US);
    chunk->is_trusted = chunk->visibility.xmin > reading->reader->horizon;
    reading->needs_message = flush_lsn < insert_lsn;
    return TIDE_OK;
}

/* The table of the request, looked at anew when its shape may have changed. */
static tide_status take_table(struct reading *reading, tide_str shape, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    const struct tide_relation *relation = reading->request->relation;
    if (reader->table != NULL && reader->table->relation != relation) {
        forget_table(reader);
    }
    if (reader->table != NULL && tide_str_equal(reader->table->shape, shape)) {
        return TIDE_OK;
    }
    struct tide_pg_chunk_table *table = NULL;
    TIDE_TRY(tide_pg_chunk_table_read(reader->conn, tide_str_from(reader->connection), relation,
                                      shape, wait_for(reader, TIDE_PG_QUERY_US), &table, err));
    tide_status status = TIDE_OK;
    if (reading->request->after_key != NULL) {
        status = tide_pg_chunk_table_keeps_order(table, reader->table, err);
    }
    if (status != TIDE_OK) {
        tide_pg_chunk_table_free(table);
        return status;
    }
    size_t row_bytes = reader->row_bytes;
    forget_table(reader);
    reader->row_bytes = row_bytes;
    reader->table = table;
    return TIDE_OK;
}

static tide_status begin(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    tide_buf_reset(&reader->sql);
    tide_pg_chunk_begin_sql(reading->request->relation, &reader->sql);
    TIDE_TRY(tide_pg_query(reader->conn, tide_buf_cstr(&reader->sql), "begin a chunk",
                           wait_for(reader, TIDE_PG_QUERY_US), &result, err));
    TIDE_TRY(take_beginning(reading, result, err));
    if (!reading->chunk->is_trusted) {
        return TIDE_OK;
    }
    return take_table(reading, tide_pg_result_str(result, 0, TIDE_PG_BEGIN_SHAPE), err);
}

/* So many rows that they seldom pass bytes_max. */
static size_t choose_limit(const struct reading *reading)
{
    const struct tide_chunk_request *request = reading->request;
    size_t row_bytes = reading->reader->row_bytes;
    size_t limit = row_bytes == 0 ? FIRST_ROWS : request->bytes_max / 8 * 7 / row_bytes;
    limit = limit > request->rows_max ? request->rows_max : limit;
    return limit == 0 ? 1 : limit;
}

static size_t again_in_group(const struct reading *reading, size_t from)
{
    size_t left = reading->request->again_count - from;
    return left > AGAIN_KEYS ? AGAIN_KEYS : left;
}

/* All that is left to do, as one simple query: each part answers for itself. */
static tide_status build_sql(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    const struct tide_chunk_request *request = reading->request;
    struct tide_pg_chunk_from from = {.table = reader->table->table,
                                      .operators = reader->table->operators};
    struct tide_buf *sql = &reader->sql;
    tide_buf_reset(sql);
    for (size_t i = 0; i < request->again_count; i += AGAIN_KEYS) {
        TIDE_TRY(tide_pg_chunk_again_sql(&from, &request->again[i], again_in_group(reading, i), sql,
                                         err));
        tide_buf_append_str(sql, TIDE_STR("; "));
    }
    if (!request->range_is_done) {
        TIDE_TRY(tide_pg_chunk_range_sql(&from, request->after_key, reading->limit, sql, err));
        tide_buf_append_str(sql, TIDE_STR("; "));
    }
    tide_buf_append_str(sql, TIDE_STR("COMMIT"));
    if (reading->needs_message) {
        tide_buf_append_str(sql, TIDE_STR("; " MESSAGE));
    }
    return TIDE_OK;
}

/* The form by which keys are told apart: their texts alone, as a checkpoint may have brought them
 * back as another kind. */
static void encode_key(struct tide_value *key, size_t count, struct tide_buf *buf)
{
    for (size_t i = 0; i < count; i++) {
        key[i].kind = TIDE_VALUE_TEXT;
    }
    tide_buf_reset(buf);
    tide_values_encode(buf, key, count);
}

/* Keeps of the rows that were read again those with the very key, not one that SQL only holds
 * equal. */
static void keep_exact(struct reading *reading, const struct tide_map *keys, struct tide_buf *key)
{
    struct tide_chunk *chunk = reading->chunk;
    const struct tide_relation *relation = reading->request->relation;
    struct tide_value *values = tide_alloc(relation->key_count, sizeof(*values));
    size_t kept = 0;
    for (size_t i = 0; i < chunk->row_count; i++) {
        tide_relation_key_of(relation, chunk->rows[i], values);
        encode_key(values, relation->key_count, key);
        if (tide_map_get(keys, tide_buf_str(key)) != NULL) {
            chunk->rows[kept++] = chunk->rows[i];
        }
    }
    chunk->row_count = kept;
    free(values);
}

static void drop_inexact(struct reading *reading)
{
    const struct tide_chunk_request *request = reading->request;
    if (reading->chunk->row_count == 0) {
        return;
    }
    struct tide_map keys TIDE_CLEANUP(tide_map_done) = {0};
    struct tide_buf key TIDE_CLEANUP(tide_buf_done) = {0};
    size_t count = request->relation->key_count;
    struct tide_value *values = tide_alloc(count, sizeof(*values));
    for (size_t i = 0; i < request->again_count; i++) {
        memcpy(values, request->again[i], count * sizeof(*values));
        encode_key(values, count, &key);
        (void)tide_map_put(&keys, tide_buf_str(&key), NULL);
    }
    free(values);
    keep_exact(reading, &keys, &key);
}

static tide_status take_again(struct reading *reading, struct tide_error *err)
{
    for (size_t i = 0; i < reading->request->again_count; i += AGAIN_KEYS) {
        TIDE_TRY(tide_pg_chunk_take_copy(&reading->rows, SIZE_MAX, SIZE_MAX, err));
    }
    drop_inexact(reading);
    reading->range_from = reading->chunk->row_count;
    return TIDE_OK;
}

/* What the range brought. Also after the server ended it because we asked for that. */
static void note_range(struct reading *reading)
{
    struct tide_chunk *chunk = reading->chunk;
    const struct tide_pg_chunk_rows *rows = &reading->rows;
    size_t taken = chunk->row_count - reading->range_from;
    chunk->is_last = rows->came < reading->limit && !rows->has_left_out;
    if (taken == 0) {
        return;
    }
    const struct tide_relation *relation = reading->request->relation;
    struct tide_value *key = tide_arena_alloc(&chunk->arena, relation->key_count, sizeof(*key));
    tide_relation_key_of(relation, chunk->rows[chunk->row_count - 1], key);
    chunk->last_key = key;
    reading->reader->row_bytes = rows->bytes / taken;
}

static tide_status take_range(struct reading *reading, struct tide_error *err)
{
    const struct tide_chunk_request *request = reading->request;
    if (request->range_is_done) {
        reading->chunk->is_last = true;
        return TIDE_OK;
    }
    tide_status status =
        tide_pg_chunk_take_copy(&reading->rows, reading->limit, request->bytes_max, err);
    if (status == TIDE_OK || status == TIDE_END) {
        note_range(reading);
    }
    return status;
}

/* They come first, so that the range alone can be cut off, and go last. */
static void put_again_rows_last(struct reading *reading)
{
    struct tide_chunk *chunk = reading->chunk;
    size_t range_count = chunk->row_count - reading->range_from;
    if (reading->range_from == 0 || range_count == 0) {
        return;
    }
    const struct tide_value **rows =
        tide_arena_alloc(&chunk->arena, chunk->row_count, sizeof(*rows));
    memcpy((void *)rows, (const void *)(chunk->rows + reading->range_from),
           range_count * sizeof(*rows));
    memcpy((void *)(rows + range_count), (const void *)chunk->rows,
           reading->range_from * sizeof(*rows));
    chunk->rows = rows;
    chunk->row_cap = chunk->row_count;
}

static tide_status take_answers(struct reading *reading, struct tide_error *err)
{
    TIDE_TRY(tide_pg_chunk_send(&reading->rows, tide_buf_cstr(&reading->reader->sql), err));
    TIDE_TRY(take_again(reading, err));
    TIDE_TRY(take_range(reading, err));
    return tide_pg_chunk_take_rest(&reading->rows, err);
}

/* Where the range was cut off, the transaction failed and nothing behind it ran. */
static tide_status finish_cut(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    reading->rows.is_called_off = false;
    TIDE_TRY(tide_pg_chunk_take_rest(&reading->rows, err));
    tide_pg_rollback(reader->conn);
    if (!reading->needs_message) {
        return TIDE_OK;
    }
    return tide_pg_exec(reader->conn, MESSAGE, "send a message", wait_for(reader, TIDE_PG_QUERY_US),
                        err);
}

static tide_status read_rows(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    reading->rows = (struct tide_pg_chunk_rows){.conn = reader->conn,
                                                .waker = &reader->waker,
                                                .table = reader->table,
                                                .chunk = reading->chunk};
    reading->limit = choose_limit(reading);
    TIDE_TRY(build_sql(reading, err));
    tide_status status = take_answers(reading, err);
    if (status == TIDE_END) {
        status = finish_cut(reading, err);
    } else if (status != TIDE_OK) {
        /* What else is on its way is not waited for: the next chunk takes a new connection. */
        reader->conn->is_broken = true;
        return status;
    }
    put_again_rows_last(reading);
    return status;
}

static tide_status read_chunk(struct reading *reading, struct tide_error *err)
{
    TIDE_TRY(begin(reading, err));
    if (!reading->chunk->is_trusted) {
        return tide_pg_exec(reading->reader->conn, "COMMIT", "look at the snapshot",
                            wait_for(reading->reader, TIDE_PG_QUERY_US), err);
    }
    return read_rows(reading, err);
}

/* Failures that are this table's alone: it is not there, may not be read, is damaged. */
static bool is_of_table(const struct tide_chunk_reader *reader, tide_status status)
{
    static const char *const classes[] = {"0A", "22", "23", "2B", "3F", "42", "XX"};
    const char *sqlstate = reader->conn->sqlstate;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strncmp(sqlstate, classes[i], 2) == 0) {
            return true;
        }
    }
    return status == TIDE_UNSUPPORTED;
}

static tide_status explain(const struct reading *reading, tide_status status,
                           struct tide_error *err)
{
    const struct tide_chunk_reader *reader = reading->reader;
    const struct tide_relation *relation = reading->request->relation;
    char why[sizeof(err->message)];
    memcpy(why, err->message, sizeof(why));
    if (strcmp(reader->conn->sqlstate, "42P01") == 0) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s.%.*s is gone or has another name; start its copy anew where "
                         "it is now (%.300s)",
                         TIDE_STR_ARG(relation->schema), TIDE_STR_ARG(relation->name), why);
    }
    if (reader->conn->sqlstate[0] != '\0' && is_of_table(reader, status)) {
        return tide_fail(
            err, TIDE_UNSUPPORTED,
            "table %.*s.%.*s cannot be read; mend that and start its copy anew (%.300s)",
            TIDE_STR_ARG(relation->schema), TIDE_STR_ARG(relation->name), why);
    }
    if (status == TIDE_CANCELLED) { /* not by us: an administrator, a time limit */
        return tide_fail_retriable(err, TIDE_IO, "%.500s", why);
    }
    return status;
}

tide_status tide_pg_chunk_read(struct tide_chunk_reader *reader,
                               const struct tide_chunk_request *request,
                               struct tide_chunk *ret_chunk, struct tide_error *err)
{
    TIDE_ASSERT(request->rows_max > 0 && ret_chunk->row_count == 0);
    struct reading reading = {.reader = reader, .request = request, .chunk = ret_chunk};
    tide_status status = reach(reader, err);
    if (status == TIDE_OK) {
        reader->conn->sqlstate[0] = '\0';
        status = read_chunk(&reading, err);
        if (status != TIDE_OK) {
            status = explain(&reading, status, err);
        }
    }
    status = end_call(reader, status, err);
    if (status != TIDE_OK) {
        tide_chunk_done(ret_chunk);
    }
    return status;
}
