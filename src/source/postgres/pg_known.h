/*
 * Which tables the engine has been told of, by their object ids: what a checkpoint keeps, so that a
 * table that is new to a pipeline, also one made anew under an old name, is told of exactly when
 * the checkpoint does not know it yet. Pure. Belongs to the ingest thread.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "source/postgres/pg_catalogue.h"

struct tide_pg_known {
    uint32_t *oids; /* told */
    size_t count;
    size_t cap;
    const struct tide_pg_table **fresh; /* to be told, borrowed */
    size_t fresh_count;
    size_t fresh_at;
};

/** Frees the lists; `{0}` knows nothing. */
void tide_pg_known_done(struct tide_pg_known *known);

/** Knows all of the tables that can be followed: a pipeline begins. */
void tide_pg_known_begin(struct tide_pg_known *known, const struct tide_pg_tables *tables);

/**
 * Goes on: knows those of `oids` that are still among `tables`, which must stay; the others of
 * `tables` are fresh.
 */
void tide_pg_known_go_on(struct tide_pg_known *known, const uint32_t *oids, size_t count,
                         const struct tide_pg_tables *tables);

/** The next fresh table, which is known from then on; NULL: none is left. */
const struct tide_pg_table *tide_pg_known_take_fresh(struct tide_pg_known *known);
