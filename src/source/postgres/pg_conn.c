#include "source/postgres/pg_conn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/postgres/pg_cancel.h"
#include "source/postgres/pg_conn_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* How long the server may take to end what was cancelled. */
#define GIVE_UP_US ((int64_t)5000000)

struct tide_pg_wait tide_pg_wait_for(int64_t delay_us)
{
    return (struct tide_pg_wait){.deadline_us = tide_clock_deadline_us(delay_us)};
}

bool tide_pg_is_alive(const struct tide_pg_conn *conn)
{
    return !conn->is_broken && PQstatus(conn->pg) == CONNECTION_OK;
}

void tide_pg_conn_done(struct tide_pg_conn **conn)
{
    tide_pg_close(*conn);
}

void tide_pg_result_done(PGresult **result)
{
    PQclear(*result);
}

void tide_pg_cancel(struct tide_pg_conn *conn)
{
    if (conn->canceller != NULL) {
        tide_pg_canceller_ask(conn->canceller);
    }
}

/* Waits until nothing that was asked to be cancelled before can hit what runs next. */
static bool is_settled(struct tide_pg_conn *conn, int64_t deadline_us)
{
    int64_t own_us = tide_clock_deadline_us(GIVE_UP_US);
    if (conn->canceller != NULL &&
        !tide_pg_canceller_settle(conn->canceller, own_us < deadline_us ? own_us : deadline_us)) {
        conn->is_broken = true;
    }
    return !conn->is_broken;
}

/* The first line of a message of libpq, which explains at length. */
static tide_str first_line(const char *message)
{
    return tide_str_of(message, strcspn(message, "\n"));
}

static void keep_sqlstate(struct tide_pg_conn *conn, const PGresult *result)
{
    const char *sqlstate = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    conn->sqlstate[0] = '\0';
    if (sqlstate != NULL && strlen(sqlstate) == sizeof(conn->sqlstate) - 1) {
        memcpy(conn->sqlstate, sqlstate, sizeof(conn->sqlstate));
    }
}

tide_status tide_pg_fail(struct tide_pg_conn *conn, const PGresult *result, const char *doing,
                         struct tide_error *err)
{
    keep_sqlstate(conn, result);
    bool is_retriable = false;
    tide_status status = tide_pg_sqlstate_status(conn->sqlstate, &is_retriable);
    if (conn->sqlstate[0] == '\0') {
        const char *why = result == NULL ? PQerrorMessage(conn->pg) : PQresultErrorMessage(result);
        tide_str line = first_line(why[0] == '\0' ? "the connection was lost" : why);
        return tide_fail_retriable(err, status, "PostgreSQL %s: %s: %.*s", conn->place, doing,
                                   TIDE_STR_ARG(line));
    }
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    status = tide_fail(err, status, "PostgreSQL %s: %s: %s (SQLSTATE %s)", conn->place, doing,
                       primary == NULL ? "no message" : primary, conn->sqlstate);
    err->retriable = is_retriable;
    return status;
}

static int left_ms(int64_t deadline_us)
{
    if (deadline_us == TIDE_NO_DEADLINE) {
        return 60000;
    }
    int64_t left_us = deadline_us - tide_clock_monotonic_us();
    int64_t left = left_us <= 0 ? 0 : (left_us + 999) / 1000;
    return left > 60000 ? 60000 : (int)left;
}

tide_status tide_pg_await(struct tide_pg_conn *conn, short events, struct tide_pg_wait wait,
                          struct tide_error *err)
{
    struct pollfd fds[2] = {{.fd = PQsocket(conn->pg), .events = events}};
    nfds_t count = 1;
    if (fds[0].fd < 0) {
        return TIDE_OK; /* closed by libpq: its next call says why */
    }
    if (wait.waker != NULL) {
        fds[count++] = (struct pollfd){.fd = wait.waker->fd, .events = POLLIN};
    }
    for (;;) {
        int rc = poll(fds, count, left_ms(wait.deadline_us));
        TIDE_ASSERT(rc >= 0 || errno == EINTR);
        if (rc > 0 && fds[0].revents != 0) {
            return TIDE_OK;
        }
        if (rc > 0 && tide_waker_wait(wait.waker, 0)) {
            return tide_fail(err, TIDE_CANCELLED, "it was called off");
        }
        if (tide_clock_monotonic_us() >= wait.deadline_us) {
            return tide_fail_retriable(err, TIDE_TIMEOUT, "it took too long");
        }
    }
}

tide_status tide_pg_flush(struct tide_pg_conn *conn, const char *doing, struct tide_pg_wait wait,
                          struct tide_error *err)
{
    for (;;) {
        int rc = PQflush(conn->pg);
        if (rc == 0) {
            return TIDE_OK;
        }
        if (rc < 0) {
            return tide_pg_fail(conn, NULL, doing, err);
        }
        TIDE_TRY(tide_pg_await(conn, POLLIN | POLLOUT, wait, err));
        /* The server may be unable to take more before what it said has been read. */
        if (PQconsumeInput(conn->pg) == 0) {
            return tide_pg_fail(conn, NULL, doing, err);
        }
    }
}

tide_status tide_pg_await_result(struct tide_pg_conn *conn, const char *doing,
                                 struct tide_pg_wait wait, struct tide_error *err)
{
    TIDE_TRY(tide_pg_flush(conn, doing, wait, err));
    while (PQisBusy(conn->pg)) {
        TIDE_TRY(tide_pg_await(conn, POLLIN, wait, err));
        if (PQconsumeInput(conn->pg) == 0) {
            return tide_pg_fail(conn, NULL, doing, err);
        }
    }
    return TIDE_OK;
}

/* Takes all rows of a COPY OUT that are still to come; false: it takes too long. */
static bool drain_copy(struct tide_pg_conn *conn, struct tide_pg_wait wait)
{
    struct tide_error err;
    for (;;) {
        char *row = NULL;
        int rc = PQgetCopyData(conn->pg, &row, 1);
        PQfreemem(row);
        if (rc < 0) {
            return true;
        }
        if (rc == 0 &&
            (tide_pg_await(conn, POLLIN, wait, &err) != TIDE_OK || PQconsumeInput(conn->pg) == 0)) {
            return false;
        }
        if (tide_clock_monotonic_us() >= wait.deadline_us) {
            return false;
        }
    }
}

void tide_pg_give_up(struct tide_pg_conn *conn, int64_t deadline_us)
{
    struct tide_pg_wait wait = {.deadline_us = deadline_us};
    struct tide_error err;
    tide_pg_cancel(conn);
    while (tide_pg_await_result(conn, "cancel", wait, &err) == TIDE_OK) {
        PGresult *result = PQgetResult(conn->pg);
        if (result == NULL) {
            conn->is_broken =
                conn->canceller != NULL && !tide_pg_canceller_settle(conn->canceller, deadline_us);
            return;
        }
        ExecStatusType status = PQresultStatus(result);
        PQclear(result);
        /* A replication stream ends only with its connection. */
        if (status == PGRES_COPY_BOTH || status == PGRES_COPY_IN ||
            (status == PGRES_COPY_OUT && !drain_copy(conn, wait))) {
            break;
        }
    }
    conn->is_broken = true;
}

tide_status tide_pg_end_failed(struct tide_pg_conn *conn, const char *doing, struct tide_error *err)
{
    tide_status status = err->status;
    /* Where the server itself says one of these two, nothing runs any more. */
    if (conn->sqlstate[0] == '\0' && (status == TIDE_TIMEOUT || status == TIDE_CANCELLED)) {
        tide_pg_give_up(conn, tide_clock_deadline_us(GIVE_UP_US));
        status = tide_fail_context(err, "PostgreSQL %s: %s", conn->place, doing);
    }
    return status;
}

tide_status tide_pg_send(struct tide_pg_conn *conn, const char *sql, const char *const *params,
                         int param_count, const char *doing, struct tide_pg_wait wait,
                         struct tide_error *err)
{
    conn->sqlstate[0] = '\0';
    if (!is_settled(conn, wait.deadline_us) || !tide_pg_is_alive(conn)) {
        return tide_fail_retriable(err, TIDE_IO, "PostgreSQL %s: %s: the connection was lost",
                                   conn->place, doing);
    }
    int sent = param_count < 0
                   ? PQsendQuery(conn->pg, sql)
                   : PQsendQueryParams(conn->pg, sql, param_count, NULL, params, NULL, NULL, 0);
    if (sent == 0) {
        return tide_pg_fail(conn, NULL, doing, err);
    }
    return tide_pg_flush(conn, doing, wait, err);
}

/* Takes results until there is none; the last one, or the first that failed, is returned. */
static tide_status take_results(struct tide_pg_conn *conn, const char *doing,
                                struct tide_pg_wait wait, PGresult **ret_result,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *last = NULL;
    for (;;) {
        TIDE_TRY(tide_pg_await_result(conn, doing, wait, err));
        PGresult *result = PQgetResult(conn->pg);
        if (result == NULL) {
            break;
        }
        ExecStatusType status = PQresultStatus(result);
        TIDE_ASSERT(status != PGRES_COPY_OUT && status != PGRES_COPY_IN &&
                    status != PGRES_COPY_BOTH);
        bool has_failed = last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR;
        PQclear(has_failed ? result : last);
        last = has_failed ? last : result;
    }
    if (last == NULL || PQresultStatus(last) == PGRES_FATAL_ERROR) {
        return tide_pg_fail(conn, last, doing, err);
    }
    *ret_result = last;
    last = NULL;
    return TIDE_OK;
}

static tide_status run(struct tide_pg_conn *conn, const char *sql, const char *const *params,
                       int param_count, const char *doing, struct tide_pg_wait wait,
                       PGresult **ret_result, struct tide_error *err)
{
    tide_status status = tide_pg_send(conn, sql, params, param_count, doing, wait, err);
    if (status == TIDE_OK) {
        PGresult *result = NULL;
        status = take_results(conn, doing, wait, &result, err);
        if (status == TIDE_OK) {
            *ret_result = result;
            return TIDE_OK;
        }
    }
    return tide_pg_end_failed(conn, doing, err);
}

tide_status tide_pg_query(struct tide_pg_conn *conn, const char *sql, const char *doing,
                          struct tide_pg_wait wait, PGresult **ret_result, struct tide_error *err)
{
    return run(conn, sql, NULL, -1, doing, wait, ret_result, err);
}

tide_status tide_pg_query_params(struct tide_pg_conn *conn, const char *sql,
                                 const char *const *params, int param_count, const char *doing,
                                 struct tide_pg_wait wait, PGresult **ret_result,
                                 struct tide_error *err)
{
    TIDE_ASSERT(conn->kind == TIDE_PG_NORMAL && param_count >= 0);
    return run(conn, sql, params, param_count, doing, wait, ret_result, err);
}

tide_status tide_pg_exec(struct tide_pg_conn *conn, const char *sql, const char *doing,
                         struct tide_pg_wait wait, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    return run(conn, sql, NULL, -1, doing, wait, &result, err);
}

void tide_pg_rollback(struct tide_pg_conn *conn)
{
    struct tide_error err;
    if (!tide_pg_is_alive(conn) || PQtransactionStatus(conn->pg) == PQTRANS_IDLE) {
        return;
    }
    if (tide_pg_exec(conn, "ROLLBACK", "roll back", tide_pg_wait_for(1000000), &err) != TIDE_OK) {
        conn->is_broken = true;
    }
}
