/* What the parts of pg_chunk.h share. */
#pragma once

#include "source/postgres/pg_chunk.h"
#include "source/postgres/pg_chunk_table.h"

#include <stdatomic.h>

struct tide_chunk_reader {
    char *url;
    char *connection;
    atomic_bool is_cancelled;
    struct tide_waker waker;
    struct tide_pg_conn *conn;         /* NULL: none yet, or lost */
    uint64_t horizon;                  /* taken on this connection; 0: still to be taken */
    bool is_past_horizon;              /* a snapshot of this connection was: every later one is */
    struct tide_pg_chunk_table *table; /* NULL: none yet */
    size_t row_bytes;                  /* of its last rows, on average; 0: unknown */
    struct tide_buf sql;
};

/** How long a call on the reader's connection may take; its waker ends the wait. */
struct tide_pg_wait tide_pg_chunk_wait(struct tide_chunk_reader *reader, int64_t delay_us);

/** Frees what is kept of the table, with what was learnt of its rows. */
void tide_pg_chunk_forget_table(struct tide_chunk_reader *reader);

/**
 * As tide_pg_chunk_read, on a connection that is there and has its horizon. After a failure what is
 * in the chunk does not count, and the connection may be broken.
 */
tide_status tide_pg_chunk_read_once(struct tide_chunk_reader *reader,
                                    const struct tide_chunk_request *request,
                                    struct tide_chunk *chunk, struct tide_error *err);

/**
 * Takes out of a chunk, which holds nothing yet but rows that were read again, those whose key is
 * none of the request's, only one that SQL holds equal: they are other rows.
 */
void tide_pg_chunk_keep_exact(const struct tide_chunk_request *request, struct tide_chunk *chunk);
