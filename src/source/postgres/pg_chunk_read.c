#include "source/postgres/pg_chunk_reader.h"

#include "base/clock.h"
#include "source/postgres/pg_chunk_rows.h"
#include "source/postgres/pg_conn_private.h"
#include "source/postgres/pg_position.h"
#include "source/postgres/pg_snapshot.h"

#include <string.h>

/* Rows of a table's first chunk, as long as nothing is known of their size. */
#define FIRST_ROWS ((size_t)2000)
/* Keys in one statement: each makes the server's plan longer. */
#define AGAIN_KEYS ((size_t)500)

/* One reader_read. */
struct reading {
    struct tide_chunk_reader *reader;
    const struct tide_chunk_request *request;
    struct tide_chunk *chunk;
    struct tide_pg_chunk_rows rows;
    size_t limit;
    size_t range_from; /* rows before it are those read again */
};

static bool has_table(const struct reading *reading)
{
    const struct tide_pg_chunk_table *table = reading->reader->table;
    return table != NULL && table->relation == reading->request->relation;
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

/* The keys to read again come first, so that the range alone can be cut off. */
static tide_status add_rows_sql(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    const struct tide_chunk_request *request = reading->request;
    struct tide_pg_chunk_from from = {.table = reader->table->table,
                                      .operators = reader->table->operators};
    struct tide_buf *sql = &reader->sql;
    reading->limit = choose_limit(reading);
    for (size_t i = 0; i < request->again_count; i += AGAIN_KEYS) {
        TIDE_TRY(tide_pg_chunk_again_sql(&from, &request->again[i], again_in_group(reading, i), sql,
                                         err));
        tide_buf_append_str(sql, TIDE_STR("; "));
    }
    if (!request->range_is_done) {
        TIDE_TRY(tide_pg_chunk_range_sql(&from, request->after_key, reading->limit, sql, err));
        tide_buf_append_str(sql, TIDE_STR("; "));
    }
    tide_pg_chunk_end_sql(sql);
    return TIDE_OK;
}

static tide_status send(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    reading->rows = (struct tide_pg_chunk_rows){.conn = reader->conn,
                                                .waker = &reader->waker,
                                                .table = reader->table,
                                                .chunk = reading->chunk};
    return tide_pg_chunk_send(&reading->rows, tide_buf_cstr(&reader->sql), err);
}

static tide_status take_moment(struct reading *reading, const PGresult *result,
                               struct tide_error *err)
{
    const struct tide_relation *relation = reading->request->relation;
    struct tide_chunk *chunk = reading->chunk;
    uint64_t lsn = 0;
    if (PQntuples(result) != 1 ||
        !tide_lsn_parse(tide_pg_result_str(result, 0, TIDE_PG_BEGIN_INSERT_LSN), &lsn)) {
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
    chunk->position = tide_pg_position_up_to(lsn);
    chunk->epoch = tide_pg_result_u64(result, 0, TIDE_PG_BEGIN_STARTED_US);
    chunk->is_trusted = chunk->visibility.xmin > reading->reader->horizon;
    reading->reader->is_past_horizon = chunk->is_trusted;
    return TIDE_OK;
}

static void keep_table(struct tide_chunk_reader *reader, struct tide_pg_chunk_table *table)
{
    size_t row_bytes = reader->table == NULL ? 0 : reader->row_bytes;
    tide_pg_chunk_forget_table(reader);
    reader->table = table;
    reader->row_bytes = row_bytes;
}

/* The table of the request, looked at anew when its shape may have changed. */
static tide_status take_table(struct reading *reading, tide_str shape, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    if (!has_table(reading)) {
        tide_pg_chunk_forget_table(reader);
    } else if (tide_str_equal(reader->table->shape, shape)) {
        return TIDE_OK;
    }
    struct tide_pg_chunk_table *table = NULL;
    TIDE_TRY(tide_pg_chunk_table_read(reader->conn, tide_str_from(reader->connection),
                                      reading->request->relation, shape,
                                      tide_pg_chunk_wait(reader, TIDE_PG_QUERY_US), &table, err));
    tide_status status = TIDE_OK;
    if (reading->request->after_key != NULL) {
        status = tide_pg_chunk_table_keeps_order(table, reader->table, err);
    }
    if (status != TIDE_OK) {
        tide_pg_chunk_table_free(table);
        return status;
    }
    keep_table(reader, table);
    return TIDE_OK;
}

static tide_status take_again(struct reading *reading, struct tide_error *err)
{
    for (size_t i = 0; i < reading->request->again_count; i += AGAIN_KEYS) {
        TIDE_TRY(tide_pg_chunk_take_copy(&reading->rows, SIZE_MAX, SIZE_MAX, err));
    }
    tide_pg_chunk_keep_exact(reading->request, reading->chunk);
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

/* Where the range was cut off, the transaction failed and nothing behind it ran. */
static tide_status finish_cut(struct reading *reading, struct tide_error *err)
{
    struct tide_pg_conn *conn = reading->reader->conn;
    tide_pg_chunk_drain(conn);
    tide_pg_rollback(conn);
    return tide_pg_exec(conn, TIDE_PG_CHUNK_MESSAGE, "send a message",
                        tide_pg_chunk_wait(reading->reader, TIDE_PG_QUERY_US), err);
}

static tide_status take_rows(struct reading *reading, struct tide_error *err)
{
    TIDE_TRY(take_again(reading, err));
    tide_status status = take_range(reading, err);
    if (status == TIDE_OK) {
        status = tide_pg_chunk_take_rest(&reading->rows, err);
    }
    if (status == TIDE_END) {
        status = finish_cut(reading, err);
    }
    if (status == TIDE_OK) {
        put_again_rows_last(reading);
    }
    return status;
}

/* First the moment and the table, then what to read of it: two questions. */
static tide_status read_in_two(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    tide_buf_reset(&reader->sql);
    tide_pg_chunk_begin_sql(reading->request->relation, &reader->sql);
    TIDE_TRY(send(reading, err));
    TIDE_TRY(tide_pg_chunk_take_result(&reading->rows, &result, err));
    TIDE_TRY(tide_pg_chunk_take_rest(&reading->rows, err));
    TIDE_TRY(take_moment(reading, result, err));
    if (!reading->chunk->is_trusted) {
        return tide_pg_exec(reader->conn, "COMMIT", "look at the snapshot",
                            tide_pg_chunk_wait(reader, TIDE_PG_QUERY_US), err);
    }
    TIDE_TRY(take_table(reading, tide_pg_result_str(result, 0, TIDE_PG_BEGIN_SHAPE), err));
    tide_buf_reset(&reader->sql);
    TIDE_TRY(add_rows_sql(reading, err));
    TIDE_TRY(send(reading, err));
    return take_rows(reading, err);
}

/*
 * All in one question, for the second chunk of a table on and once a snapshot was past the horizon:
 * then nothing but a change of the table's shape can make the rows of no use. `ret_is_done` false:
 * that has happened, and nothing was taken.
 */
static tide_status read_in_one(struct reading *reading, bool *ret_is_done, struct tide_error *err)
{
    struct tide_chunk_reader *reader = reading->reader;
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    tide_buf_reset(&reader->sql);
    tide_pg_chunk_begin_sql(reading->request->relation, &reader->sql);
    tide_buf_append_str(&reader->sql, TIDE_STR("; "));
    TIDE_TRY(add_rows_sql(reading, err));
    TIDE_TRY(send(reading, err));
    TIDE_TRY(tide_pg_chunk_take_result(&reading->rows, &result, err));
    TIDE_TRY(take_moment(reading, result, err));
    *ret_is_done =
        reading->chunk->is_trusted &&
        tide_str_equal(reader->table->shape, tide_pg_result_str(result, 0, TIDE_PG_BEGIN_SHAPE));
    if (*ret_is_done) {
        return take_rows(reading, err);
    }
    tide_pg_give_up(reader->conn, tide_clock_deadline_us(TIDE_PG_QUERY_US));
    tide_pg_rollback(reader->conn);
    return TIDE_OK;
}

tide_status tide_pg_chunk_read_once(struct tide_chunk_reader *reader,
                                    const struct tide_chunk_request *request,
                                    struct tide_chunk *chunk, struct tide_error *err)
{
    struct reading reading = {.reader = reader, .request = request, .chunk = chunk};
    bool is_done = false;
    tide_status status = TIDE_OK;
    if (reader->is_past_horizon && has_table(&reading)) {
        status = read_in_one(&reading, &is_done, err);
    }
    if (status == TIDE_OK && !is_done) {
        status = read_in_two(&reading, err);
    }
    if (status != TIDE_OK) {
        tide_pg_chunk_drain(reader->conn);
    }
    return status;
}
