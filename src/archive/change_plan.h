/*
 * Which columns a table's rows take in a segment, and their types: fixed by the table's columns
 * alone, so that every segment of them is of one form. Pure.
 *
 *     _time, _op, …            what the row is, when and where: enum tide_change_meta
 *     <column>                 a column of the table, in the type that its declared type asks for
 *     <column>#other           what that cannot hold, as `kind:text` (change_label.h)
 *     <column>#kind            instead, where the column is a string: the kind of a value that is
 *                              not the usual one
 *
 * A table's column that is named as one of ours (in any case of letters) gets `_` behind its name.
 */
#pragma once

#include "archive/change_schema.h"
#include "base/arena.h"
#include "base/status.h"
#include "format/parquet/schema.h"

enum tide_change_meta {
    TIDE_META_TIME,
    TIDE_META_OP,
    TIDE_META_COMMIT_TIME,
    TIDE_META_TX,
    TIDE_META_POSITION,
    TIDE_META_INDEX,
    TIDE_META_PREV_POSITION,
    TIDE_META_PREV_INDEX,
    TIDE_META_INCARNATION,
    TIDE_META_SNAPSHOT_ID,
    TIDE_META_SEQ,
    TIDE_META_ATTEMPT,
    TIDE_META_STARTS,
    TIDE_META_BYTES,
    TIDE_META_UNCHANGED,
    TIDE_META_MOVED_FROM,
    TIDE_META_KEY,
    TIDE_META_COUNT,
};

/* How the values of a table's column are held. */
enum tide_change_form {
    TIDE_FORM_STRING, /* values of kind `natural` as they are, of others with `#kind` */
    TIDE_FORM_JSON,   /* from here on: a value that reads back the same, else `#other` */
    TIDE_FORM_BOOL,
    TIDE_FORM_I64,       /* INTEGER */
    TIDE_FORM_DOUBLE,    /* REAL as SQLite's are written */
    TIDE_FORM_DOUBLE_PG, /* REAL as PostgreSQL writes float8 */
    TIDE_FORM_FLOAT_PG,  /* REAL as PostgreSQL writes float4 */
    TIDE_FORM_DECIMAL,   /* DECIMAL with exactly `scale` digits behind the point */
    TIDE_FORM_NUMBER,    /* INTEGER, or REAL, without zeros behind the last digit */
    TIDE_FORM_DATE,      /* TEXT from here on */
    TIDE_FORM_TIME,
    TIDE_FORM_TIMESTAMP,     /* as a clock on the wall shows it */
    TIDE_FORM_TIMESTAMP_UTC, /* with +00 behind it */
    TIDE_FORM_UUID,
    TIDE_FORM_BINARY, /* BYTES */
};

struct tide_change_column {
    enum tide_change_form form;
    uint8_t natural;    /* enum tide_value_kind: of STRING */
    uint8_t scale;      /* of DECIMAL and NUMBER */
    bool is_hidden;     /* null stands for ABSENT, not NULL */
    uint32_t key_place; /* its number in the key, from 1; 0: not of the key */
};

struct tide_change_plan {
    const struct tide_change_schema *schema;
    struct tide_parquet_column *parquet; /* of the file */
    size_t parquet_count;
    struct tide_change_column *columns; /* schema->column_count */
};

/** The parquet column of a table's column, and of what stands beside it. */
static inline size_t tide_change_plan_main(size_t column)
{
    return TIDE_META_COUNT + 2 * column;
}

static inline size_t tide_change_plan_beside(size_t column)
{
    return TIDE_META_COUNT + 2 * column + 1;
}

/** Works it out; everything lives in `arena`, `schema` must stay. */
void tide_change_plan_make(const struct tide_change_schema *schema, struct tide_arena *arena,
                           struct tide_change_plan *ret_plan);

/** The same for files that have none of our columns, only the table's: under their own names. */
void tide_change_plan_make_bare(const struct tide_change_schema *schema, struct tide_arena *arena,
                                struct tide_change_plan *ret_plan);

/** TIDE_CORRUPT when a file's columns are not the plan's. */
tide_status tide_change_plan_check(const struct tide_change_plan *plan,
                                   const struct tide_parquet_column *columns, size_t count,
                                   struct tide_error *err);
