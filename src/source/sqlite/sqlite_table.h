/*
 * A table of an SQLite database as capture and reading see it: its columns, how one of its rows is
 * told from the others, which of its indexes may make REPLACE remove a row, and the relation that
 * its changes point to. Filled by sqlite_schema.h, then immutable but for `number`, which mending
 * sets.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "model/relation.h"
#include "port/ways_on.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What we put into the user's database. */
#define TIDE_SQLITE_LOG       "_tidemark_changes"
#define TIDE_SQLITE_TABLES    "_tidemark_tables"
#define TIDE_SQLITE_STATE     "_tidemark_state"
#define TIDE_SQLITE_PIPELINES "_tidemark_pipelines"
#define TIDE_SQLITE_CANARY    "_tidemark_canary"
#define TIDE_SQLITE_PREFIX    "_tidemark_"

/* Hexadecimal digits of a digest, a nonce and a source's id, without NUL. */
#define TIDE_SQLITE_HEX_LEN 32

/* The way out of what ends a copy: its state and what its target holds go on belonging to it. */
#define TIDE_SQLITE_ANEW        TIDE_ANEW
#define TIDE_SQLITE_DETACH_ANEW "run `tidemark detach`, then " TIDE_SQLITE_ANEW

/* The column `op` of the log. */
enum tide_sqlite_op {
    TIDE_SQLITE_OP_NONE = 0, /* the entry that keeps the log from being empty; its t is 0 */
    TIDE_SQLITE_OP_INSERT = 1,
    TIDE_SQLITE_OP_UPDATE = 2,
    TIDE_SQLITE_OP_DELETE = 3,
    TIDE_SQLITE_OP_CANDIDATE = 4, /* this row may be gone: look */
    /* About a table, whose name is k1; written where its triggers are made or given up. */
    TIDE_SQLITE_OP_TRUNCATE = 5, /* all its rows are gone */
    TIDE_SQLITE_OP_COPY = 6,     /* it is to be copied; r says why */
    TIDE_SQLITE_OP_JOIN = 7,     /* the same, for the pipeline r alone */
    TIDE_SQLITE_OP_GONE = 8,     /* it is not followed any more; r says why */
};

enum tide_sqlite_affinity {
    TIDE_SQLITE_BLOB, /* none: values keep their storage class */
    TIDE_SQLITE_TEXT,
    TIDE_SQLITE_NUMERIC,
    TIDE_SQLITE_INTEGER,
    TIDE_SQLITE_REAL,
};

enum tide_sqlite_generated {
    TIDE_SQLITE_ORDINARY,
    TIDE_SQLITE_VIRTUAL,
    TIDE_SQLITE_STORED,
};

struct tide_sqlite_column {
    tide_str name;
    tide_str type; /* as declared; may be empty */
    enum tide_sqlite_affinity affinity;
    tide_str collation; /* as declared; BINARY when nothing is */
    enum tide_sqlite_generated generated;
    bool is_not_null;
    tide_str default_text;  /* SQL that gives the default; ptr NULL: none, or NULL */
    uint32_t primary_place; /* 1 for the first column of the PRIMARY KEY; 0: not in it */
};

/* What a term of an index is, in `column` of tide_sqlite_part. */
#define TIDE_SQLITE_PART_ROWID      (-1)
#define TIDE_SQLITE_PART_EXPRESSION (-2)

struct tide_sqlite_part {
    int32_t column; /* index into the table's columns, or one of the above */
    tide_str collation;
    tide_str expression;          /* source text without COLLATE, ASC, DESC; else empty */
    const uint32_t *column_names; /* columns whose names appear in the expression */
    size_t column_name_count;
};

struct tide_sqlite_index {
    tide_str name;
    bool is_primary; /* made by the PRIMARY KEY clause */
    tide_str where;  /* text of the WHERE clause; ptr NULL: a full index */
    struct tide_sqlite_part *parts;
    size_t part_count;
};

/* How a row is told from the others. */
enum tide_sqlite_identity {
    TIDE_SQLITE_NOT_FOLLOWED = 0, /* `problem` says why */
    TIDE_SQLITE_INTEGER_KEY,      /* the column that is another name of the rowid */
    TIDE_SQLITE_PRIMARY_KEY,
    TIDE_SQLITE_UNIQUE_KEY, /* a full UNIQUE index of NOT NULL columns */
    TIDE_SQLITE_ROWID,      /* no key; key_count is 0 */
};

struct tide_sqlite_table {
    struct tide_arena arena; /* owns everything below */
    tide_str connection;     /* first part of the relation's store name */
    tide_str name;           /* as the schema spells it */
    bool is_virtual; /* or the inner (shadow) table of one; never followed, columns not read */
    bool is_shadow;
    bool is_without_rowid;
    bool is_strict;
    bool has_index; /* any index, also not unique: VACUUM then keeps the rowids */

    struct tide_sqlite_column *columns; /* in table order, generated ones too */
    size_t column_count;
    struct tide_sqlite_index *indexes; /* the UNIQUE ones */
    size_t index_count;

    enum tide_sqlite_identity identity;
    tide_str problem; /* one sentence when it cannot be followed, else empty */
    /* The columns of the key in SQL, in key order (indexes into `columns`), each with the collation
     * of the key's index: what `=` and ORDER BY must use to go by that index. */
    uint32_t *key_columns;
    tide_str *key_collations;
    size_t key_count;
    int32_t key_index; /* index into `indexes`, or -1 */
    /* A key column may be NULL: rows where one is are told apart by key and rowid (the log's `r`).
     */
    bool is_nullable;
    /* Keys that `=` holds equal have the same bytes (but -0.0 = 0.0). */
    bool is_exact;
    /* A name by which SQL reaches the rowid: the key column of INTEGER_KEY, else one of _rowid_,
     * rowid, oid that is no column. Empty: WITHOUT ROWID, or all three are columns. */
    tide_str rowid_name;

    /*
     * The relation of the table's changes; NULL when it cannot be followed. Its columns are
     * `columns` in the same order; identity by rowid and nullable keys have one more, last and
     * hidden, of type INTEGER, named by rowid_name, which is the last key column (for ROWID the
     * only one). For nullable keys its value is ABSENT where no key column is NULL.
     */
    const struct tide_relation *relation;
    tide_str spec; /* what the triggers are made from: see sqlite_spec.h */

    int64_t number; /* the log's `t`, from _tidemark_tables; 0: it has no triggers */
};

/** True when rows need the rowid to be told apart: the relation then has the hidden column. */
static inline bool tide_sqlite_table_has_hidden_rowid(const struct tide_sqlite_table *table)
{
    return table->identity == TIDE_SQLITE_ROWID || table->is_nullable;
}

/** True when VACUUM gives new rowids to rows that are told apart by them. */
static inline bool tide_sqlite_table_is_renumbered(const struct tide_sqlite_table *table)
{
    return tide_sqlite_table_has_hidden_rowid(table) && !table->has_index;
}

/** How many of the log's k columns an entry of this table fills: k1 to kN. (The rowid of ROWID
 * identity is k1; the rowid of nullable keys is `r`.) */
static inline size_t tide_sqlite_table_log_width(const struct tide_sqlite_table *table)
{
    return table->identity == TIDE_SQLITE_ROWID ? 1 : table->key_count;
}

/** Sets `number`, and makes the relation anew with the number as its id. References to the former
 * one stay good. */
void tide_sqlite_table_set_number(struct tide_sqlite_table *table, int64_t number);

/** Frees the table and drops its reference to the relation. NULL is fine. */
void tide_sqlite_table_free(struct tide_sqlite_table *table);
