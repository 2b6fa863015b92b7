/*
 * What following needs in the server, as a whole: made for a new copy, found to be what a
 * checkpoint belongs to, taken away. All calls take a normal connection and wait no longer than
 * minutes.
 */
#pragma once

#include "port/source.h"
#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_conn.h"
#include "source/postgres/pg_setup.h"
#include "source/postgres/pg_state.h"

/* Making a slot waits for transactions that write: who ends the wait, and who is told of it. */
struct tide_pg_patience {
    struct tide_waker *waker;      /* may be NULL */
    void (*say)(const char *what); /* may be NULL */
};

/**
 * Removes what an earlier attempt under `name` left, then makes the publication and the slot; a
 * slot that cannot be made leaves a publication, which the next attempt removes.
 * Errors: TIDE_UNSUPPORTED a standby; TIDE_TIMEOUT transactions that write did not end, or
 * TIDE_CANCELLED the waker was woken before, both naming the oldest; of pg_setup.h.
 */
tide_status tide_pg_prepare_new(struct tide_pg_conn *conn, const char *name,
                                const struct tide_pg_tables *tables,
                                const struct tide_pg_patience *patience,
                                struct tide_pg_state *ret_state, struct tide_error *err);

/**
 * TIDE_STALE unless server, slot, publication and log are those of `state` at `position`. Those of
 * `tables` that the publication lacks are added; `ret_oids`, in `arena`, are those it had before.
 * Errors: TIDE_TIMEOUT, TIDE_CANCELLED while a transaction that has written to such a table runs.
 */
tide_status tide_pg_prepare_saved(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                  struct tide_position position,
                                  const struct tide_pg_tables *tables,
                                  const struct tide_pg_patience *patience, struct tide_arena *arena,
                                  uint32_t **ret_oids, size_t *ret_count, struct tide_error *err);

/** The same, only looking: nothing is added, and a slot in use is fine. */
tide_status tide_pg_prepare_check(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                  struct tide_position position, struct tide_arena *arena,
                                  struct tide_error *err);

/** TIDE_STALE when the server is another one, or on another timeline. */
tide_status tide_pg_prepare_same_server(const struct tide_pg_state *state,
                                        uint64_t system_identifier, uint32_t timeline,
                                        struct tide_error *err);

/** TIDE_STALE when the slot is gone, lost, another one, or past `position`; TIDE_IO retriable when
 * it stays in use longer than `patience_us`. */
tide_status tide_pg_prepare_slot(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                 struct tide_position position, int64_t patience_us,
                                 struct tide_error *err);

/** Removes slot and publication of `pipeline`, or with an empty one all of ours in this database,
 * and says what it did. What is in use stays and is a problem. */
tide_status tide_pg_detach(struct tide_pg_conn *conn, tide_str pipeline,
                           struct tide_findings *findings, struct tide_error *err);
