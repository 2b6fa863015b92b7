/*
 * What a chunk reader keeps of the table it reads, from chunk to chunk: the catalogue's view, the
 * operators of its key, how its values are read.
 */
#pragma once

#include "source/postgres/pg_chunk_sql.h"
#include "source/postgres/pg_conn.h"
#include "source/postgres/pg_field.h"
#include "source/postgres/pg_value.h"

struct tide_pg_chunk_table {
    struct tide_arena arena;
    tide_str shape;                          /* TIDE_PG_BEGIN_SHAPE when it was read */
    const struct tide_relation *relation;    /* the one asked for; one reference */
    struct tide_pg_table *table;             /* as it is now */
    struct tide_pg_key_operators *operators; /* for each column of the key */
    uint64_t *collations;                    /* likewise: oids, 0: none */
    struct tide_pg_rule *rules;              /* for each column of the table */
    struct tide_pg_field *fields;            /* room for one row */
    struct tide_pg_scratch scratch;
};

/** NULL is fine. */
void tide_pg_chunk_table_free(struct tide_pg_chunk_table *table);

/**
 * Reads the table in the transaction that is open on `conn` and has locked it; `shape` is copied.
 * Errors: TIDE_UNSUPPORTED it has other columns or another key than `relation`; others as
 * tide_pg_query.
 */
tide_status tide_pg_chunk_table_read(struct tide_pg_conn *conn, tide_str connection,
                                     const struct tide_relation *relation, tide_str shape,
                                     struct tide_pg_wait wait,
                                     struct tide_pg_chunk_table **ret_table,
                                     struct tide_error *err);

/**
 * A key of rows read under `before` (NULL: unknown) still has its place in the order of rows under
 * `table`. TIDE_UNSUPPORTED else: a key column's type or collation has changed.
 */
tide_status tide_pg_chunk_table_keeps_order(const struct tide_pg_chunk_table *table,
                                            const struct tide_pg_chunk_table *before,
                                            struct tide_error *err);
