/*
 * The followed tables, each with its relation in force: what the last Relation message of the
 * stream said, not what the catalogue says now. A message that tells nothing new keeps the relation
 * as it is; relations that were replaced live on until all is freed.
 *
 * Belongs to one thread.
 */
#pragma once

#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_value.h"
#include "source/postgres/pgoutput.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers what a type is; called for types that no known column has. */
struct tide_pg_type_lookup {
    /** As tide_pg_type_read: TIDE_UNSUPPORTED when the type is gone. */
    tide_status (*look)(void *context, uint32_t oid, int32_t modifier, struct tide_arena *arena,
                        struct tide_pg_type *ret_type, struct tide_error *err);
    void *context;
};

struct tide_pg_followed {
    uint32_t oid;
    bool is_described; /* by a Relation message of this session */
    bool is_full;      /* its identity is the whole old row */
    const struct tide_relation *relation;
    const struct tide_pg_rule *rules; /* relation->column_count */
};

struct tide_pg_relations;

/** The tables without a problem, as the catalogue has them. Everything needed is copied. */
struct tide_pg_relations *tide_pg_relations_new(tide_str connection,
                                                const struct tide_pg_tables *tables,
                                                struct tide_pg_type_lookup lookup);

/** Frees all, drops the references to relations; NULL is fine. */
void tide_pg_relations_free(struct tide_pg_relations *relations);

/** A new session of the stream begins: every table is described again before its changes. */
void tide_pg_relations_restart(struct tide_pg_relations *relations);

/**
 * Takes a Relation message; of a table that is not followed: nothing happens.
 * Errors: TIDE_UNSUPPORTED the primary key or the replica identity is no longer what the copy was
 * begun with; of the lookup.
 */
tide_status tide_pg_relations_describe(struct tide_pg_relations *relations,
                                       const struct tide_pgoutput_relation *message,
                                       struct tide_error *err);

/** The followed table, or NULL. Valid until the next describe. */
const struct tide_pg_followed *tide_pg_relations_find(struct tide_pg_relations *relations,
                                                      uint32_t oid);
