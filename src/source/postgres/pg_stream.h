/*
 * The replication connection: START_REPLICATION, frames in, status updates out. One frame is taken
 * at a time, and nothing is taken from libpq before it is asked for: what has been read of the
 * socket has not been seen yet.
 *
 * Belongs to one thread.
 */
#pragma once

#include "source/postgres/pg_conn.h"
#include "source/postgres/pgoutput.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_pg_stream;

/* Whom the connection reached: asked for on that same connection, before it streams. */
struct tide_pg_stream_server {
    uint64_t system_identifier;
    uint32_t timeline;
    int64_t started_us;  /* postmaster's start, microseconds since 1970 */
    uint64_t next_tx_id; /* 64-bit transaction id that comes after every finished one */
};

/**
 * Connects, and asks who is there; streams nothing yet.
 * Errors: as tide_pg_open and tide_pg_query.
 */
tide_status tide_pg_stream_open(tide_str url, struct tide_pg_wait wait,
                                struct tide_pg_stream **ret_stream,
                                struct tide_pg_stream_server *ret_server, struct tide_error *err);

/**
 * Starts to stream what has commit records from `lsn` on: pgoutput, protocol version 1, text.
 * Errors: as tide_pg_query; a slot in use is TIDE_IO, retriable.
 */
tide_status tide_pg_stream_start(struct tide_pg_stream *stream, const char *slot,
                                 const char *publication, uint64_t lsn, struct tide_pg_wait wait,
                                 struct tide_error *err);

/** Ends the connection; NULL is fine. The slot is free once the server has noticed. */
void tide_pg_stream_close(struct tide_pg_stream *stream);

/**
 * The next frame; its body is borrowed until the next call. Status updates that are due or asked
 * for by the server are sent on the way.
 * Errors: TIDE_TIMEOUT the deadline passed (0: nothing is at hand) or the waker was woken; TIDE_IO
 * retriable the connection is lost or has been silent for too long; TIDE_CORRUPT.
 */
tide_status tide_pg_stream_next(struct tide_pg_stream *stream, struct tide_pg_wait wait,
                                struct tide_pg_frame *ret_frame, struct tide_error *err);

/**
 * Says whether what was last taken had waited in the server's log. Then the sender is busy, one
 * send for each change: when nothing is at hand a short nap lets some gather, which saves both
 * sides most of their wake-ups. What comes as it happens never waits.
 */
void tide_pg_stream_set_behind(struct tide_pg_stream *stream, bool is_behind);

/** The server may forget everything before `lsn`; told at once. Never goes back. Does not block. */
tide_status tide_pg_stream_confirm(struct tide_pg_stream *stream, uint64_t lsn,
                                   struct tide_error *err);

/** Sends the status update that is due, if any: at least this keeps the connection alive while
 * frames are not taken. Does not block. */
tide_status tide_pg_stream_tick(struct tide_pg_stream *stream, struct tide_error *err);
