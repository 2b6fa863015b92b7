/*
 * The statements of a chunk, as text. Pure; any thread.
 *
 * Names are quoted and qualified, columns always named by the alias `x` (a bare name in ORDER BY
 * would be an output column). Keys stand in the text as literals that are cast to the column's own
 * type. They are compared by the operators of the primary key's index, named with their schema
 * where that is not pg_catalog: any other `>` may have another order than the index, as with
 * citext, and rows would be lost in silence.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "model/chunk.h"
#include "source/postgres/pg_table.h"

#include <stddef.h>

/* How the index on the key compares one of its columns: operators as they stand in SQL, e.g. `>` or
 * `OPERATOR(public.>)`. */
struct tide_pg_key_operators {
    tide_str greater;
    tide_str at_least;
    tide_str equal;
};

/* What a chunk is read of. `operators` has an element for each column of the key, in its order. */
struct tide_pg_chunk_from {
    const struct tide_pg_table *table;
    const struct tide_pg_key_operators *operators;
};

/* Columns of the row that the last statement of tide_pg_chunk_begin_sql gives. */
enum tide_pg_chunk_begin_column {
    TIDE_PG_BEGIN_SNAPSHOT,   /* pg_snapshot */
    TIDE_PG_BEGIN_INSERT_LSN, /* where the log ended, written or not */
    TIDE_PG_BEGIN_STARTED_US, /* the server's start, microseconds since 1970 */
    TIDE_PG_BEGIN_OID,        /* of the table that has the name */
    TIDE_PG_BEGIN_SHAPE,      /* changes when columns or the key may have changed */
};

/** Begins the transaction, locks the table, and only then looks: one row. */
void tide_pg_chunk_begin_sql(const struct tide_relation *relation, struct tide_buf *sql);

/* Has the log flushed, and so the stream reach what a chunk saw, on an idle server too. */
#define TIDE_PG_CHUNK_MESSAGE "SELECT pg_logical_emit_message(true, 'tidemark', '')"

/** Ends the transaction, and sends the message when the log is not flushed up to where it ended
 * when the transaction looked. */
void tide_pg_chunk_end_sql(struct tide_buf *sql);

/**
 * One row for each column of the key of the table `oid`, in key order: the oid of its collation,
 * then the three operators.
 */
void tide_pg_chunk_operators_sql(uint32_t oid, struct tide_buf *sql);

/**
 * COPY of at most `limit` rows after `after_key` (NULL: from the first), in key order.
 * Errors: TIDE_CORRUPT a value of the key is none that a key can have; TIDE_UNSUPPORTED one is text
 * that is no UTF-8 (of a database in SQL_ASCII), which no statement can carry.
 */
tide_status tide_pg_chunk_range_sql(const struct tide_pg_chunk_from *from,
                                    const struct tide_value *after_key, size_t limit,
                                    struct tide_buf *sql, struct tide_error *err);

/** COPY of the rows with one of the `count` keys (at least one), in no order. Errors as above. */
tide_status tide_pg_chunk_again_sql(const struct tide_pg_chunk_from *from,
                                    const struct tide_value *const *keys, size_t count,
                                    struct tide_buf *sql, struct tide_error *err);
