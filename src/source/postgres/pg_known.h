/*
 * Which tables the engine has been told of, by object id and name: what a checkpoint keeps, so that
 * a table that is new to a pipeline, also one made anew under an old name, and one that was
 * renamed, is told of exactly when the checkpoint does not know it yet. Pure. Belongs to the ingest
 * thread.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_state.h"

struct tide_pg_known {
    struct tide_pg_told *told; /* names borrowed from the tables */
    size_t count;
    const struct tide_pg_table **fresh; /* to be told, borrowed */
    size_t fresh_count;
    size_t fresh_at;
};

/** Frees the lists; `{0}` knows nothing. */
void tide_pg_known_done(struct tide_pg_known *known);

/** Knows all of the tables that can be followed, which must stay: a pipeline begins. */
void tide_pg_known_begin(struct tide_pg_known *known, const struct tide_pg_tables *tables);

/**
 * Goes on with what a checkpoint says, or where it names no tables with the object ids of those
 * that were published. The tables must stay.
 */
void tide_pg_known_go_on(struct tide_pg_known *known, const struct tide_pg_state *saved,
                         const uint32_t *published, size_t published_count,
                         const struct tide_pg_tables *tables);

/** The next fresh table, which is known from then on; NULL: none is left. */
const struct tide_pg_table *tide_pg_known_take_fresh(struct tide_pg_known *known);
