/* The kinds of rules behind struct tide_pg_rule: private to pg_value.c, pg_rule.c, pg_array.c. */
#pragma once

#include "source/postgres/pg_value.h"

#include <stdbool.h>

enum tide_pg_rule_kind {
    TIDE_PG_RULE_TEXT = 0,
    TIDE_PG_RULE_BOOL,
    TIDE_PG_RULE_INTEGER,
    TIDE_PG_RULE_DECIMAL,
    TIDE_PG_RULE_REAL,
    TIDE_PG_RULE_JSON,
    TIDE_PG_RULE_BYTES,
    TIDE_PG_RULE_TIMESTAMP, /* with and without time zone */
    TIDE_PG_RULE_ARRAY,
};

/* Of values inside a record of a frame, with room for the dimensions of an array. */
#define TIDE_PG_JSON_DEPTH_MAX (TIDE_JSON_DEPTH_MAX - 2 - TIDE_PG_ARRAY_DEPTH_MAX)

/* The server's MAXDIM. */
#define TIDE_PG_ARRAY_DEPTH_MAX 6

/**
 * The value of a text by any rule but ARRAY. `bytes` is where decoded BYTES (text.len / 2 of them)
 * and rewritten timestamps (text.len) go; it may be text.ptr itself.
 */
tide_status tide_pg_scalar_value(enum tide_pg_rule_kind kind, tide_str text, char *bytes,
                                 struct tide_value *ret_value, struct tide_error *err);

/** The value of an array's text: a JSON array in `arena`, or `text` as TEXT. */
tide_status tide_pg_array_value(struct tide_pg_rule rule, tide_str text, struct tide_arena *arena,
                                struct tide_pg_scratch *scratch, struct tide_value *ret_value,
                                struct tide_error *err);
