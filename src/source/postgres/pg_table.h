/*
 * A table of a PostgreSQL database as the catalogue shows it at one moment. Immutable, on the heap,
 * one owner (tide_pg_table_free in pg_catalogue.h); the relation in it is counted and may live on.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "model/relation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_pg_type {
    uint32_t oid;
    int32_t modifier;     /* atttypmod; -1: none */
    tide_str name;        /* format_type(oid, modifier), e.g. numeric(10,2); a cast takes it back */
    uint32_t value_oid;   /* oid, or for a domain the type under all its domains */
    uint32_t element_oid; /* for an array the value_oid of its elements; else 0 */
    char kind;            /* typtype of value_oid: b base, c composite, e enum, r range, m … */
};

struct tide_pg_column {
    tide_str name;
    int16_t attnum;
    struct tide_pg_type type;
    bool is_not_null;
};

/* How updates and deletes tell their row in the log: pg_class.relreplident. */
enum tide_pg_identity {
    TIDE_PG_IDENTITY_KEY = 'd',     /* the primary key */
    TIDE_PG_IDENTITY_NOTHING = 'n', /* not at all */
    TIDE_PG_IDENTITY_FULL = 'f',    /* all columns, old values */
    TIDE_PG_IDENTITY_INDEX = 'i',   /* the columns of another unique index */
};

struct tide_pg_table {
    struct tide_arena arena; /* holds all that follows */
    uint32_t oid;
    tide_str schema;
    tide_str name;
    /* The columns that are copied: not generated, not dropped, by attnum. Element i is
     * relation->columns[i]; key columns are relation->key_columns, in primary-key order. */
    struct tide_pg_column *columns;
    size_t column_count;
    tide_str *generated; /* names of the columns that are left out */
    size_t generated_count;
    enum tide_pg_identity identity;       /* INDEX on the primary key itself counts as KEY */
    bool has_key;                         /* a primary key that is not deferrable */
    const struct tide_relation *relation; /* one reference; NULL where `problem` is set */
    int64_t rows;                         /* pg_class.reltuples, rough; negative: never counted */
    char kind;                            /* pg_class.relkind: r, p, v, m, f */
    bool is_partition;                    /* of another table */
    bool is_named;         /* a glob without `*` and `?` chose it: a problem is a refusal */
    bool is_right_missing; /* the problem is a right of ours, which is a refusal always */
    tide_str problem;      /* why it cannot be followed: a clause after "table x "; empty: it can */
    tide_str remedy;       /* SQL that mends it; may be empty */
};
