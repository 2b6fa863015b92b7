/* What the parts of pg_conn.h share. */
#pragma once

#include "source/postgres/pg_conn.h"

/**
 * Waits in poll() until the connection's socket has what `events` (POLLIN, POLLOUT) ask for, or an
 * error of its own. `TIDE_TIMEOUT` the deadline passed; TIDE_CANCELLED woken, which takes the wake.
 * `err` is filled without a word of what was being done.
 */
tide_status tide_pg_await(struct tide_pg_conn *conn, short events, struct tide_pg_wait wait,
                          struct tide_error *err);

/** Cancels what runs and takes its results; a connection that does not end in time is broken. */
void tide_pg_give_up(struct tide_pg_conn *conn, int64_t deadline_us);

/** Waits until PQgetResult will not block. Errors as tide_pg_await, and a lost connection. */
tide_status tide_pg_await_result(struct tide_pg_conn *conn, const char *doing,
                                 struct tide_pg_wait wait, struct tide_error *err);

/** Sends what libpq holds. Errors as tide_pg_await_result. */
tide_status tide_pg_flush(struct tide_pg_conn *conn, const char *doing, struct tide_pg_wait wait,
                          struct tide_error *err);

/** Sends a statement (the extended protocol when `param_count` >= 0) and flushes. */
tide_status tide_pg_send(struct tide_pg_conn *conn, const char *sql, const char *const *params,
                         int param_count, const char *doing, struct tide_pg_wait wait,
                         struct tide_error *err);

/** Ends a call that failed: what runs is given up when the wait ended, so that the connection can
 * be used again. Returns the status of `err`. */
tide_status tide_pg_end_failed(struct tide_pg_conn *conn, const char *doing,
                               struct tide_error *err);
