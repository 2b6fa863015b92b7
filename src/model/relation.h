/*
 * A table as it was at a point in the log: columns and key. Immutable and counted; the source
 * makes a new one when the table changes. Any thread may read, ref and unref.
 */
#pragma once

#include "base/str.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_column {
    tide_str name;
    tide_str type;  /* as declared at the source; may be empty */
    bool is_hidden; /* not of the table (a rowid): in `key`, and in `record` unless ABSENT */
};

struct tide_relation {
    _Atomic uint32_t refs;
    uint64_t id; /* the source's own number for the table; stays over renames and new versions */
    tide_str schema; /* empty where the source has none */
    tide_str name;
    tide_str store; /* "<connection>.<table>" or "<connection>.<schema>.<table>" */
    size_t column_count;
    struct tide_column *columns; /* in table order; hidden ones last */
    size_t key_count;            /* 0: rows are matched by nothing */
    uint32_t *key_columns;       /* indexes into columns, in key order */
};

/* What tide_relation_new copies. `key_columns` are indexes into `columns`. */
struct tide_relation_spec {
    uint64_t id;
    tide_str connection;
    tide_str schema;
    tide_str name;
    const struct tide_column *columns;
    size_t column_count;
    const uint32_t *key_columns;
    size_t key_count;
};

/** A relation with one reference, everything copied. */
struct tide_relation *tide_relation_new(const struct tide_relation_spec *spec);

/* The pointers are const for users; counting is the only thing that changes. NULL is allowed in
 * unref. */
const struct tide_relation *tide_relation_ref(const struct tide_relation *relation);
void tide_relation_unref(const struct tide_relation *relation);

/** Same names, types, hidden flags and key. */
bool tide_relation_same_shape(const struct tide_relation *a, const struct tide_relation *b);

/** Same column names in the same order, hidden or not, and the same key: rows of one fit the other.
 */
bool tide_relation_same_columns(const struct tide_relation *a, const struct tide_relation *b);

/** Puts the key's values, in key order, into `ret_key` (relation->key_count elements). */
struct tide_value;
void tide_relation_key_of(const struct tide_relation *relation, const struct tide_value *values,
                          struct tide_value *ret_key);
