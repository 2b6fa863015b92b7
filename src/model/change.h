/* One change of one row (or the truncation of a table), as the source's log has it. */
#pragma once

#include "base/str.h"
#include "model/position.h"
#include "model/relation.h"
#include "model/value.h"

#include <stdbool.h>
#include <stdint.h>

enum tide_op {
    TIDE_OP_INSERT,
    TIDE_OP_UPDATE,
    TIDE_OP_DELETE,
    TIDE_OP_TRUNCATE
};

struct tide_change {
    enum tide_op op;
    bool is_partial; /* some value of `values` is UNCHANGED */
    const struct tide_relation *relation;
    struct tide_place place;
    struct tide_place prev; /* the change of the same store published before it; set by ingest */
    uint64_t tx_id;    /* what visibility is asked about: a transaction id, or SQLite's log id */
    int64_t commit_us; /* UTC */
    tide_str tx;       /* empty: the source has none */
    const struct tide_value *key;        /* relation->key_count values; NULL on truncate */
    const struct tide_value *moved_from; /* the old key when the key changed, else NULL */
    const struct tide_value *values;     /* relation->column_count; NULL on delete and truncate */
    const struct tide_value *before;     /* the old row when the source sends it, else NULL */
};

/** "insert", "update", "delete" or "truncate". */
const char *tide_op_name(enum tide_op op);
