#include "source/postgres/pg_chunk_rows.h"

#include "base/clock.h"
#include "base/limits.h"
#include "source/postgres/pg_conn_private.h"
#include "source/postgres/pg_copy_text.h"

#include <poll.h>
#include <string.h>

#define DOING "read a chunk"
/* The server may search long for the next row, among many that were deleted. */
#define SILENCE_US ((int64_t)300000000)
/* An error is the last thing but one that the server says. */
#define DRAIN_US ((int64_t)1000000)
#define WINDOW   (64 * TIDE_KIB)
/* What is sooner read to its end than cancelled, which takes a connection of its own. */
#define FEW_BYTES (256 * TIDE_KIB)

static struct tide_pg_wait wait_of(const struct tide_pg_chunk_rows *rows)
{
    return (struct tide_pg_wait){.waker = rows->waker,
                                 .deadline_us = tide_clock_deadline_us(SILENCE_US)};
}

tide_status tide_pg_chunk_send(struct tide_pg_chunk_rows *rows, const char *sql,
                               struct tide_error *err)
{
    return tide_pg_send(rows->conn, sql, NULL, -1, DOING, wait_of(rows), err);
}

/* What the next statement answers; NULL: there is none. */
static tide_status next_answer(struct tide_pg_chunk_rows *rows, PGresult **ret_result,
                               struct tide_error *err)
{
    TIDE_TRY(tide_pg_await_result(rows->conn, DOING, wait_of(rows), err));
    PGresult *result = PQgetResult(rows->conn->pg);
    if (result == NULL || PQresultStatus(result) != PGRES_FATAL_ERROR) {
        *ret_result = result;
        return TIDE_OK;
    }
    tide_status failed = tide_pg_fail(rows->conn, result, DOING, err);
    PQclear(result);
    bool is_ours = rows->is_called_off && strcmp(rows->conn->sqlstate, "57014") == 0;
    return is_ours ? TIDE_END : failed;
}

static tide_status not_due(struct tide_pg_chunk_rows *rows, ExecStatusType came,
                           struct tide_error *err)
{
    rows->conn->is_broken = true;
    return tide_fail_retriable(err, TIDE_REMOTE,
                               "PostgreSQL %s: " DOING ": the server's answer %s was not due",
                               rows->conn->place, PQresStatus(came));
}

static tide_status expect_answer(struct tide_pg_chunk_rows *rows, ExecStatusType wanted,
                                 struct tide_error *err)
{
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    TIDE_TRY(next_answer(rows, &result, err));
    ExecStatusType came = PQresultStatus(result);
    return came == wanted ? TIDE_OK : not_due(rows, came, err);
}

/* Room behind the line that is coming, which moves when its window has none left. */
static tide_status make_room(struct tide_pg_chunk_rows *rows, struct tide_error *err)
{
    if (rows->line_len < rows->window_left) {
        return TIDE_OK;
    }
    if (rows->line_len > TIDE_PG_MESSAGE_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "PostgreSQL %s: " DOING ": a row of over 1 GiB",
                         rows->conn->place);
    }
    size_t size = rows->line_len < WINDOW / 2 ? WINDOW : 2 * rows->line_len;
    char *window = tide_arena_bytes(&rows->chunk->arena, size);
    if (rows->line_len > 0) {
        memcpy(window, rows->line, rows->line_len);
    }
    rows->line = window;
    rows->window_left = size;
    return TIDE_OK;
}

/* More of the line that is coming: `ret_is_whole` all of it is there. TIDE_END: no line comes. */
static tide_status take_bytes(struct tide_pg_chunk_rows *rows, bool *ret_is_whole,
                              struct tide_error *err)
{
    TIDE_TRY(make_room(rows, err));
    size_t room = rows->window_left - rows->line_len;
    int size = room > INT32_MAX ? INT32_MAX : (int)room;
    int came = PQgetlineAsync(rows->conn->pg, rows->line + rows->line_len, size);
    if (came < 0) {
        return TIDE_END;
    }
    if (came == 0) {
        TIDE_TRY(tide_pg_await(rows->conn, POLLIN, wait_of(rows), err));
        if (PQconsumeInput(rows->conn->pg) == 0) {
            return tide_pg_fail(rows->conn, NULL, DOING, err);
        }
        return TIDE_OK;
    }
    rows->line_len += (size_t)came;
    *ret_is_whole = rows->line[rows->line_len - 1] == '\n'; /* no other stands in a line */
    return TIDE_OK;
}

static tide_status bad_row(struct tide_pg_chunk_rows *rows, size_t column, struct tide_error *err)
{
    const struct tide_pg_table *table = rows->table->table;
    tide_str name = column < table->column_count ? table->columns[column].name : TIDE_STR("?");
    return tide_fail_context(err, "PostgreSQL %s: table %.*s.%.*s, column %.*s", rows->conn->place,
                             TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name),
                             TIDE_STR_ARG(name));
}

static tide_status take_row(struct tide_pg_chunk_rows *rows, struct tide_error *err)
{
    struct tide_pg_chunk_table *table = rows->table;
    struct tide_chunk *chunk = rows->chunk;
    size_t count = table->table->column_count;
    size_t column = count;
    struct tide_value *values = tide_chunk_add_row(chunk, count);
    tide_str line = tide_str_of(rows->line, rows->line_len);
    if (TIDE_UNLIKELY(tide_pg_copy_line(line, count, &chunk->arena, table->fields, err) !=
                      TIDE_OK) ||
        TIDE_UNLIKELY(tide_pg_row_values(table->rules, table->fields, count, &chunk->arena,
                                         &table->scratch, values, &column, err) != TIDE_OK)) {
        return bad_row(rows, column, err);
    }
    rows->bytes += rows->line_len + count * sizeof(*values);
    rows->line += rows->line_len;
    rows->window_left -= rows->line_len;
    return TIDE_OK;
}

/* The row that was just taken is the last: the server need not send many more. */
static void call_off(struct tide_pg_chunk_rows *rows, size_t limit)
{
    size_t left = limit - rows->came;
    if (!rows->is_called_off && left > FEW_BYTES / (rows->bytes / rows->came + 1)) {
        rows->is_called_off = true;
        rows->has_left_out = true;
        tide_pg_cancel(rows->conn);
    }
}

static tide_status take_lines(struct tide_pg_chunk_rows *rows, size_t limit, size_t bytes_max,
                              struct tide_error *err)
{
    rows->line_len = 0;
    for (;;) {
        bool is_whole = false;
        tide_status status = take_bytes(rows, &is_whole, err);
        if (status != TIDE_OK) {
            return status == TIDE_END ? TIDE_OK : status;
        }
        if (!is_whole) {
            continue;
        }
        rows->came++;
        if (rows->bytes <= bytes_max && !rows->has_left_out) {
            TIDE_TRY(take_row(rows, err));
            if (rows->bytes > bytes_max && rows->came < limit) {
                call_off(rows, limit);
            }
        } else {
            rows->has_left_out = true;
        }
        rows->line_len = 0;
    }
}

tide_status tide_pg_chunk_take_copy(struct tide_pg_chunk_rows *rows, size_t limit, size_t bytes_max,
                                    struct tide_error *err)
{
    rows->came = 0;
    rows->bytes = 0;
    rows->has_left_out = false;
    TIDE_TRY(expect_answer(rows, PGRES_COPY_OUT, err));
    TIDE_TRY(take_lines(rows, limit, bytes_max, err));
    return expect_answer(rows, PGRES_COMMAND_OK, err);
}

tide_status tide_pg_chunk_take_result(struct tide_pg_chunk_rows *rows, PGresult **ret_result,
                                      struct tide_error *err)
{
    ExecStatusType came = PGRES_COMMAND_OK;
    while (came == PGRES_COMMAND_OK) {
        PGresult *result = NULL;
        TIDE_TRY(next_answer(rows, &result, err));
        came = PQresultStatus(result);
        if (came == PGRES_TUPLES_OK) {
            *ret_result = result;
            return TIDE_OK;
        }
        PQclear(result);
    }
    return not_due(rows, came, err);
}

tide_status tide_pg_chunk_take_rest(struct tide_pg_chunk_rows *rows, struct tide_error *err)
{
    for (;;) {
        PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
        TIDE_TRY(next_answer(rows, &result, err));
        ExecStatusType came = PQresultStatus(result);
        if (result == NULL) {
            return TIDE_OK;
        }
        if (came != PGRES_COMMAND_OK && came != PGRES_TUPLES_OK) {
            return not_due(rows, came, err);
        }
    }
}

void tide_pg_chunk_drain(struct tide_pg_conn *conn)
{
    struct tide_error err;
    bool has_failed = conn->sqlstate[0] != '\0';
    while (has_failed &&
           tide_pg_await_result(conn, DOING, tide_pg_wait_for(DRAIN_US), &err) == TIDE_OK) {
        PGresult *result TIDE_CLEANUP(tide_pg_result_done) = PQgetResult(conn->pg);
        if (result == NULL || PQresultStatus(result) == PGRES_COPY_OUT) {
            break;
        }
    }
    if (PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE) {
        conn->is_broken = true;
    }
}
