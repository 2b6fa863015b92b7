#include "base/clock.h"
#include "source/postgres/pg_conn_private.h"

#include <poll.h>

tide_status tide_pg_copy_start(struct tide_pg_conn *conn, const char *sql, const char *doing,
                               struct tide_pg_wait wait, struct tide_error *err)
{
    tide_status status = tide_pg_send(conn, sql, NULL, -1, doing, wait, err);
    if (status == TIDE_OK) {
        status = tide_pg_await_result(conn, doing, wait, err);
    }
    if (status != TIDE_OK) {
        return tide_pg_end_failed(conn, doing, err);
    }
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = PQgetResult(conn->pg);
    ExecStatusType answer = PQresultStatus(result);
    if (answer == PGRES_COPY_OUT || answer == PGRES_COPY_BOTH) {
        return TIDE_OK;
    }
    TIDE_ASSERT(answer == PGRES_FATAL_ERROR); /* the statement is none that copies */
    status = tide_pg_fail(conn, result, doing, err);
    tide_pg_give_up(conn, tide_clock_deadline_us(TIDE_PG_QUERY_US));
    return status;
}

/* The result behind the last row: the copy is whole only when it says so. */
static tide_status take_end(struct tide_pg_conn *conn, const char *doing, struct tide_error *err)
{
    struct tide_pg_wait wait = tide_pg_wait_for(TIDE_PG_QUERY_US);
    bool is_whole = false;
    for (;;) {
        tide_status status = tide_pg_await_result(conn, doing, wait, err);
        if (status != TIDE_OK) {
            return tide_pg_end_failed(conn, doing, err);
        }
        TIDE_CLEANUP(tide_pg_result_done) PGresult *result = PQgetResult(conn->pg);
        ExecStatusType answer = PQresultStatus(result);
        if (result == NULL) {
            break;
        }
        if (answer != PGRES_COMMAND_OK) {
            status =
                answer == PGRES_FATAL_ERROR ? tide_pg_fail(conn, result, doing, err) : TIDE_CLOSED;
            if (status != TIDE_CLOSED) {
                return status;
            }
            break; /* of a stream: the server has said its last */
        }
        is_whole = conn->kind == TIDE_PG_NORMAL;
    }
    if (is_whole) {
        return TIDE_END;
    }
    conn->is_broken = true;
    return tide_fail_retriable(err, TIDE_IO, "PostgreSQL %s: %s: the server ended it", conn->place,
                               doing);
}

/* Waits for more of the copy; what could not be sent before goes out as well. */
static tide_status await_more(struct tide_pg_conn *conn, const char *doing,
                              struct tide_pg_wait wait, struct tide_error *err)
{
    int held = PQflush(conn->pg);
    if (held < 0) {
        return tide_pg_fail(conn, NULL, doing, err);
    }
    short events = held > 0 ? POLLIN | POLLOUT : POLLIN;
    tide_status status = tide_pg_await(conn, events, wait, err);
    if (status == TIDE_CANCELLED || status == TIDE_TIMEOUT) {
        return tide_fail(err, TIDE_TIMEOUT, "PostgreSQL %s: %s: nothing came yet", conn->place,
                         doing);
    }
    TIDE_TRY(status);
    if (PQconsumeInput(conn->pg) == 0) {
        return tide_pg_fail(conn, NULL, doing, err);
    }
    return TIDE_OK;
}

tide_status tide_pg_copy_next(struct tide_pg_conn *conn, const char *doing,
                              struct tide_pg_wait wait, char **ret_row, size_t *ret_len,
                              struct tide_error *err)
{
    conn->sqlstate[0] = '\0';
    if (conn->is_broken) {
        return tide_fail_retriable(err, TIDE_IO, "PostgreSQL %s: %s: the connection was lost",
                                   conn->place, doing);
    }
    for (;;) {
        char *row = NULL;
        int len = PQgetCopyData(conn->pg, &row, 1);
        if (len > 0) {
            *ret_row = row;
            *ret_len = (size_t)len;
            return TIDE_OK;
        }
        if (len == -1) {
            return take_end(conn, doing, err);
        }
        if (len != 0) {
            return tide_pg_fail(conn, NULL, doing, err);
        }
        TIDE_TRY(await_more(conn, doing, wait, err));
    }
}

tide_status tide_pg_copy_send(struct tide_pg_conn *conn, const void *bytes, size_t len,
                              struct tide_pg_wait wait, struct tide_error *err)
{
    const char *doing = "send the standby's status";
    conn->sqlstate[0] = '\0';
    TIDE_ASSERT(len > 0 && len < TIDE_PG_SEND_MAX);
    int rc = PQputCopyData(conn->pg, bytes, (int)len);
    if (rc <= 0) {
        return tide_pg_fail(conn, NULL, doing, err);
    }
    tide_status status = tide_pg_flush(conn, doing, wait, err);
    /* libpq keeps what did not fit and copy_next sends it. */
    return status == TIDE_TIMEOUT || status == TIDE_CANCELLED ? TIDE_OK : status;
}

void tide_pg_copy_abandon(struct tide_pg_conn *conn, struct tide_pg_wait wait)
{
    if (tide_pg_is_alive(conn) && PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE) {
        tide_pg_give_up(conn, wait.deadline_us);
    }
}
