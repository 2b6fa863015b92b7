#include "source/postgres/pg_chunk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/postgres/pg_chunk_reader.h"

#include <stdlib.h>
#include <string.h>

/*
 * A chunk must go by the key's index, whatever the planner knows of the table: a sort would cost
 * the whole table for every chunk.
 */
#define SETTINGS                                                                                   \
    "SET lock_timeout = '1s'; SET max_parallel_workers_per_gather = 0;"                            \
    "SET enable_seqscan = off; SET enable_sort = off; SET enable_incremental_sort = off"

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
    reader->is_past_horizon = false;
}

void tide_pg_chunk_forget_table(struct tide_chunk_reader *reader)
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
    tide_pg_chunk_forget_table(reader);
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

struct tide_pg_wait tide_pg_chunk_wait(struct tide_chunk_reader *reader, int64_t delay_us)
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
                          tide_pg_chunk_wait(reader, TIDE_PG_CONNECT_US), &reader->conn, err));
    tide_status status = tide_pg_exec(reader->conn, SETTINGS, "prepare to read chunks",
                                      tide_pg_chunk_wait(reader, TIDE_PG_QUERY_US), err);
    if (status != TIDE_OK) {
        disconnect(reader); /* without them it must not be used */
    }
    return status;
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
                           tide_pg_chunk_wait(reader, TIDE_PG_QUERY_US), &result, err));
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
    reader->is_past_horizon = false;
    return end_call(reader, reach(reader, err), err);
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

static tide_status explain(const struct tide_chunk_reader *reader,
                           const struct tide_relation *relation, tide_status status,
                           struct tide_error *err)
{
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
    tide_status status = reach(reader, err);
    if (status == TIDE_OK) {
        reader->conn->sqlstate[0] = '\0';
        status = tide_pg_chunk_read_once(reader, request, ret_chunk, err);
        if (status != TIDE_OK) {
            status = explain(reader, request->relation, status, err);
        }
    }
    status = end_call(reader, status, err);
    if (status != TIDE_OK) {
        tide_chunk_done(ret_chunk);
    }
    return status;
}
