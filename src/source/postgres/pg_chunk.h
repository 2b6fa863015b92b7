/*
 * Chunk readers: rows of a table in the order of its primary key, each chunk in one short
 * read-only transaction that also tells what it sees and how far the log goes.
 *
 *     BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
 *     LOCK TABLE ONLY s.t IN ACCESS SHARE MODE            before any snapshot
 *     SELECT snapshot, end of the log, server's start, shape of the table
 *     COPY (read-again keys), COPY (range), COMMIT
 *     SELECT pg_logical_emit_message(…)                   when the log's end is not flushed
 *
 * From a table's second chunk on all of it is one question to the server, before that two: what is
 * to be read depends on what the third statement says.
 *
 * A reader has a connection of its own, made when it is first needed and again after it was lost;
 * it belongs to one thread. Only cancel may come from another.
 */
#pragma once

#include "port/source.h"

/** A reader for the server of `url`; nothing is connected yet. Both strings are copied. Cannot
 * fail. */
struct tide_chunk_reader *tide_pg_chunk_reader_new(tide_str url, tide_str connection);

/** Closes the connection; NULL is fine. */
void tide_pg_chunk_reader_free(struct tide_chunk_reader *reader);

/**
 * Takes the horizon: a transaction id past every one that was handed out before. A chunk is
 * trusted when its snapshot sees all up to it. After a lost connection it is taken anew, which is
 * only stricter.
 */
tide_status tide_pg_chunk_remember(struct tide_chunk_reader *reader,
                                   const struct tide_relation *relation, struct tide_error *err);

/**
 * See reader_read in port/source.h; remember has been called. `epoch` is the start time of the
 * server in microseconds since 1970, as tide_pg_server has it.
 * Errors: TIDE_UNSUPPORTED the table is gone, has other columns or another key, or may not be
 * read; retriable: the connection was lost, the table is locked, somebody cancelled the statement.
 */
tide_status tide_pg_chunk_read(struct tide_chunk_reader *reader,
                               const struct tide_chunk_request *request,
                               struct tide_chunk *ret_chunk, struct tide_error *err);

/** Makes a running call return soon with TIDE_CANCELLED, or the next one. Any thread. */
void tide_pg_chunk_cancel(struct tide_chunk_reader *reader);
