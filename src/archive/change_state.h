/* Rows that a fold holds, and the columns they are of. Pure. Private to change_fold.c. */
#pragma once

#include "archive/change_history.h"
#include "archive/change_schema.h"
#include "base/buf.h"
#include "model/value.h"

/* The columns that rows are of; a fold has few of them. */
struct tide_change_version {
    tide_str json;
    struct tide_change_schema schema;
    uint32_t *places; /* of the newest version's columns in this one; NO_PLACE: it has none */
    uint32_t number;  /* among all versions */
};

#define TIDE_CHANGE_NO_PLACE UINT32_MAX

/** Sets the places of `to`'s columns in `of`, by their names; in `arena`. */
void tide_change_version_place(struct tide_change_version *of, const struct tide_change_version *to,
                               struct tide_arena *arena);

/* A key of the table; one piece of memory, freed with free(). */
struct tide_change_held {
    struct tide_change_place place;
    bool is_change;  /* the place is a change's */
    bool is_deleted; /* kept for its place */
    bool is_stale;
    bool is_seen; /* by the snapshot that the fold is based on */
    uint32_t version;
    uint64_t bytes;
    struct tide_value *key;
    struct tide_value *values; /* NULL: not known, or deleted */
};

/** With copies of the key and, unless NULL, the values. Everything else is zero. */
struct tide_change_held *tide_change_held_new(const struct tide_value *key, size_t key_count,
                                              const struct tide_value *values, size_t count);

/** The value of the newest version's column `i`, or ABSENT. */
struct tide_value tide_change_held_value(const struct tide_change_held *held,
                                         const struct tide_change_version *version, size_t i);
