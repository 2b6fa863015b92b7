/*
 * Reads tables from the catalogue. Everything is qualified and compared for equality; nothing
 * depends on search_path.
 */
#pragma once

#include "source/postgres/pg_conn.h"
#include "source/postgres/pg_table.h"

struct tide_pg_tables {
    struct tide_pg_table **items; /* by schema and name, bytewise */
    size_t count;
};

/** Frees the tables; `{0}` is fine. For TIDE_CLEANUP too. */
void tide_pg_tables_done(struct tide_pg_tables *tables);

/** Frees a table and drops its reference to the relation; NULL is fine. */
void tide_pg_table_free(struct tide_pg_table *table);

/**
 * Whether any of `globs` chooses the table: matches its name or "schema.name", case-sensitively.
 * `*` any bytes, `?` one character. None at all: every table. Pure.
 * `ret_is_named` (may be NULL): a glob without `*` and `?` did.
 */
bool tide_pg_globs_choose(const tide_str *globs, size_t glob_count, tide_str schema, tide_str name,
                          bool *ret_is_named);

/**
 * What `globs` choose, also what cannot be followed (see `problem`). Views, foreign tables and
 * partitions only when they are named; never what is temporary or the system's.
 * Errors: TIDE_INVALID a glob that chooses nothing; others as tide_pg_query.
 */
tide_status tide_pg_tables_read(struct tide_pg_conn *conn, tide_str connection,
                                const tide_str *globs, size_t glob_count, struct tide_pg_wait wait,
                                struct tide_pg_tables *ret_tables, struct tide_error *err);

/**
 * TIDE_INVALID for the first table with a problem that is named, or that lacks a right, saying the
 * reason and the remedy, and when no table without a problem is left; TIDE_OK else.
 */
tide_status tide_pg_tables_refuse(const struct tide_pg_tables *tables, struct tide_error *err);

/** Whether a table of this object id is among them and can be followed. */
bool tide_pg_tables_have(const struct tide_pg_tables *tables, uint32_t oid);

/** One table as it is now, seen by the transaction that is open on `conn`, if any. TIDE_UNSUPPORTED
 * when there is none of that oid. */
tide_status tide_pg_table_read(struct tide_pg_conn *conn, tide_str connection, uint32_t oid,
                               struct tide_pg_wait wait, struct tide_pg_table **ret_table,
                               struct tide_error *err);

/** A type by its oid and modifier, as a Relation message of the stream names it; the name is
 * copied into `arena`. A type that is gone: TIDE_UNSUPPORTED. */
tide_status tide_pg_type_read(struct tide_pg_conn *conn, uint32_t oid, int32_t modifier,
                              struct tide_pg_wait wait, struct tide_arena *arena,
                              struct tide_pg_type *ret_type, struct tide_error *err);
