/*
 * Connections to a PostgreSQL server: pinned settings, deadlines, our errors, queries, quoting.
 *
 * A connection belongs to one thread; only tide_pg_cancel may be called by another. libpq runs in
 * non-blocking mode: everything that may block waits in poll() for the socket, the waker and the
 * deadline (host names are the exception: libpq resolves them as long as the resolver takes).
 * libpq's types stay inside this folder. Messages never hold a password or a URL, only host, port
 * and database.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "base/thread.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

enum tide_pg_conn_kind {
    TIDE_PG_NORMAL,
    TIDE_PG_REPLICATION, /* replication=database: walsender commands and simple queries only */
};

struct tide_pg_canceller;

struct tide_pg_conn {
    PGconn *pg;
    struct tide_pg_canceller *canceller;
    enum tide_pg_conn_kind kind;
    char place[256];  /* "host:port/database", for messages */
    char sqlstate[6]; /* of the last failure by the server; empty: it did not come from there */
    bool is_broken;   /* what ran could not be ended: nothing more may be asked */
};

/* How long a call may wait. `waker` NULL: cannot be woken. */
struct tide_pg_wait {
    struct tide_waker *waker;
    int64_t deadline_us; /* absolute, monotonic; TIDE_NO_DEADLINE allowed */
};

/* What connecting and a small query may take. */
#define TIDE_PG_CONNECT_US ((int64_t)15000000)
#define TIDE_PG_QUERY_US   ((int64_t)30000000)

/* Bytes of one message that is sent in a stream, at most. */
#define TIDE_PG_SEND_MAX ((size_t)65536)

/** A wait without a waker, `delay_us` from now. */
struct tide_pg_wait tide_pg_wait_for(int64_t delay_us);

/** TIDE_INVALID the URL is not well-formed; what is wrong is said without any part of it. */
tide_status tide_pg_url_valid(tide_str url, struct tide_error *err);

/**
 * Connects to `url` (postgres:// or postgresql://; libpq's environment and files hold) and pins
 * what the server's texts depend on, the same for both kinds, so that a value reads the same from
 * a chunk and from the stream.
 * Errors: TIDE_INVALID bad URL, or settings in it; TIDE_IO not let in: password, role, database,
 * pg_hba.conf; TIDE_IO retriable cannot be reached, or starting up or shutting down; TIDE_TIMEOUT
 * retriable; TIDE_CANCELLED woken.
 */
tide_status tide_pg_open(tide_str url, enum tide_pg_conn_kind kind, struct tide_pg_wait wait,
                         struct tide_pg_conn **ret_conn, struct tide_error *err);

/** As tide_pg_open; where it fails, `ret_sqlstate` says what the server gave as the reason, or is
 * empty. */
tide_status tide_pg_open_told(tide_str url, enum tide_pg_conn_kind kind, struct tide_pg_wait wait,
                              struct tide_pg_conn **ret_conn, char ret_sqlstate[6],
                              struct tide_error *err);

/** Closes; NULL is fine. The server ends what was running when it notices. */
void tide_pg_close(struct tide_pg_conn *conn);

/** For TIDE_CLEANUP on a `struct tide_pg_conn *` and a `PGresult *`. */
void tide_pg_conn_done(struct tide_pg_conn **conn);
void tide_pg_result_done(PGresult **result);

/** True while the connection is not known to be broken. */
bool tide_pg_is_alive(const struct tide_pg_conn *conn);

/** Asks the server to cancel what runs on the connection. Any thread, as long as the connection is
 * not being closed; does not wait. Nothing running: nothing happens. */
void tide_pg_cancel(struct tide_pg_conn *conn);

/**
 * Sets `err` to "PostgreSQL <place>: <doing>: <primary message> (SQLSTATE x)" from `result`, or
 * from the connection when it is NULL; see tide_pg_sqlstate_status for the status.
 */
tide_status tide_pg_fail(struct tide_pg_conn *conn, const PGresult *result, const char *doing,
                         struct tide_error *err);

/**
 * What a SQLSTATE means to us. Pure.
 * TIDE_IO retriable: connection lost (08, also empty), server shutting down or starting (57P),
 * too many connections (53300), out of disk or memory (53); TIDE_CANCELLED 57014;
 * TIDE_TIMEOUT retriable: lock not available, deadlock, serialization (55P03, 40); TIDE_INVALID:
 * no right, no such role, password or database (42501, 28, 3D); TIDE_UNSUPPORTED: no such table or
 * column (42P01, 42703, 3F000); TIDE_REMOTE else.
 */
tide_status tide_pg_sqlstate_status(const char *sqlstate, bool *ret_is_retriable);

/**
 * Runs one or more statements by the simple protocol, the only one that replication connections
 * have; the last result is returned and cleared with PQclear. `doing` goes into messages ("read
 * the tables").
 * Errors: TIDE_TIMEOUT retriable the deadline passed, TIDE_CANCELLED woken; in both cases what ran
 * was cancelled, and the connection is closed to further use (not alive) when that took too long.
 * Others as tide_pg_fail. No COPY here.
 */
tide_status tide_pg_query(struct tide_pg_conn *conn, const char *sql, const char *doing,
                          struct tide_pg_wait wait, PGresult **ret_result, struct tide_error *err);

/** As tide_pg_query, one statement with text parameters $1… (NULL is NULL). Not for replication. */
tide_status tide_pg_query_params(struct tide_pg_conn *conn, const char *sql,
                                 const char *const *params, int param_count, const char *doing,
                                 struct tide_pg_wait wait, PGresult **ret_result,
                                 struct tide_error *err);

/** As tide_pg_query, without a result. */
tide_status tide_pg_exec(struct tide_pg_conn *conn, const char *sql, const char *doing,
                         struct tide_pg_wait wait, struct tide_error *err);

/** Rolls back what is open, within a second; a connection that cannot is no longer alive. */
void tide_pg_rollback(struct tide_pg_conn *conn);

/**
 * Starts a statement that answers with COPY … TO STDOUT, or START_REPLICATION, and waits until the
 * server has begun to answer. Errors as tide_pg_query.
 */
tide_status tide_pg_copy_start(struct tide_pg_conn *conn, const char *sql, const char *doing,
                               struct tide_pg_wait wait, struct tide_error *err);

/**
 * The next row or message of a COPY; libpq's, freed with PQfreemem. `ret_row` has `*ret_len`
 * bytes and a NUL behind.
 * Errors: TIDE_END the clean end of COPY OUT (its result was a success and has been taken);
 * TIDE_TIMEOUT (not retriable, nothing lost: call again) the deadline passed or the waker was
 * woken, and nothing is at hand (deadline 0: only what is at hand); TIDE_IO retriable the server
 * ended a replication stream; others as tide_pg_fail.
 */
tide_status tide_pg_copy_next(struct tide_pg_conn *conn, const char *doing,
                              struct tide_pg_wait wait, char **ret_row, size_t *ret_len,
                              struct tide_error *err);

/** Sends one CopyData message (a standby's status). What the socket does not take within the wait
 * is kept and goes out with the next calls. */
tide_status tide_pg_copy_send(struct tide_pg_conn *conn, const void *bytes, size_t len,
                              struct tide_pg_wait wait, struct tide_error *err);

/** Ends a COPY OUT before its end: cancels it and takes what is left, within `wait`; a connection
 * that cannot is no longer alive. */
void tide_pg_copy_abandon(struct tide_pg_conn *conn, struct tide_pg_wait wait);

/** A field of a result: borrowed from it; ptr NULL for NULL. */
tide_str tide_pg_result_str(const PGresult *result, int row, int column);

/** A field as a number or a truth; NULL and nonsense are 0 and false. */
int64_t tide_pg_result_i64(const PGresult *result, int row, int column);
uint64_t tide_pg_result_u64(const PGresult *result, int row, int column);
bool tide_pg_result_bool(const PGresult *result, int row, int column);

/** Appends `"name"`, with `"` doubled. */
void tide_pg_append_name(struct tide_buf *buf, tide_str name);

/** Appends `"schema"."name"`. */
void tide_pg_append_table(struct tide_buf *buf, tide_str schema, tide_str name);

/** Appends `'text'` with `'` doubled; with a backslash in it ` E'…'` with those doubled too, which
 * reads the same under every setting. Text from outside without NUL, valid UTF-8. */
void tide_pg_append_text(struct tide_buf *buf, tide_str text);
