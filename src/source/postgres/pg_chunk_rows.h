/*
 * Takes what a simple query answers that holds COPY … TO STDOUT among other statements. Lines go
 * from libpq's buffer straight into a chunk's arena and are read where they lie; no memory is
 * reserved for a single row.
 *
 *     window in the arena:  | lines read | line that is coming | free |
 *                           window       line                  line + line_len
 */
#pragma once

#include "source/postgres/pg_chunk_table.h"

struct tide_pg_chunk_rows {
    struct tide_pg_conn *conn;
    struct tide_waker *waker;
    struct tide_pg_chunk_table *table;
    struct tide_chunk *chunk;
    /* of the COPY that was taken last */
    size_t came;        /* lines, those left out included */
    size_t bytes;       /* of the rows that were taken */
    bool has_left_out;  /* some row that came, or did not come any more, was not taken */
    bool is_called_off; /* we asked the server to cancel it */
    /* private */
    char *line;
    size_t line_len;
    size_t window_left; /* bytes from `line` on */
};

/** Sends the statements. Errors: TIDE_CANCELLED woken; others as tide_pg_query. */
tide_status tide_pg_chunk_send(struct tide_pg_chunk_rows *rows, const char *sql,
                               struct tide_error *err);

/**
 * Takes the whole answer of the next statement, a COPY of at most `limit` rows, and adds its rows
 * to the chunk, up to and with the one that passes `bytes_max` (SIZE_MAX: all). When much is left
 * then, the statement is cancelled, and with it those behind it.
 * Errors: TIDE_END it ended so: what was taken counts, no answer of another statement comes;
 * TIDE_CORRUPT a line that is none of this table's; TIDE_CANCELLED woken; others as tide_pg_fail.
 */
tide_status tide_pg_chunk_take_copy(struct tide_pg_chunk_rows *rows, size_t limit, size_t bytes_max,
                                    struct tide_error *err);

/** Takes what statements answer up to the first that gives rows: those, for PQclear. Errors as
 * above.
 */
tide_status tide_pg_chunk_take_result(struct tide_pg_chunk_rows *rows, PGresult **ret_result,
                                      struct tide_error *err);

/** Takes what is left, to the end; no COPY is among it. Errors as above. */
tide_status tide_pg_chunk_take_rest(struct tide_pg_chunk_rows *rows, struct tide_error *err);

/** After a failure: takes what the server still says of it. A connection on which more than that
 * may be on its way is broken. */
void tide_pg_chunk_drain(struct tide_pg_conn *conn);
