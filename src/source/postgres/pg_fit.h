/* Whether a table can be followed, and if not, why and what mends it. Pure. */
#pragma once

#include "source/postgres/pg_table.h"

/* What the catalogue says beside what struct tide_pg_table holds. */
struct tide_pg_facts {
    bool has_primary;         /* deferrable ones too */
    tide_str primary_name;    /* of the constraint */
    tide_str primary_columns; /* quoted names with commas between */
    tide_str candidate;       /* a unique index that could become the primary key, or empty */
    bool is_key_generated;
    bool is_unlogged;
    bool may_use_schema;
    bool may_read;
    bool may_publish; /* is the owner, or a member of the owning role */
    bool has_policy;  /* row-level security holds for us */
    tide_str owner;
    bool is_owner_superuser; /* whose role is not to be handed out */
    tide_str user;
};

/** Sets `problem`, `remedy` and `is_right_missing` of the table, in its arena, where there is one.
 */
void tide_pg_fit(struct tide_pg_table *table, const struct tide_pg_facts *facts);
