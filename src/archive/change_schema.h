/*
 * A table's columns as an archive keeps them: a caller row of its series, a JSON object, written
 * before the first row that needs it, again whenever it changes, and in full at each sealing.
 *
 *     {"version":1,"store":"shop.users","schema":"","table":"users","position_kind":"integer",
 *      "columns":[{"name":"id","type":"INTEGER","hidden":false},…],"key":["id"]}
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "model/relation.h"

/* Everything lives in the arena that decoding was given. */
struct tide_change_schema {
    tide_str store;
    tide_str schema;
    tide_str table;
    tide_str position_kind; /* name of the source's positions: "integer", "lsn" */
    const struct tide_column *columns;
    size_t column_count;
    const uint32_t *key_columns;
    size_t key_count;
};

/** Appends the name of the series that a table's rows are in: its store's name. One of more than
 * 4,000 bytes is cut, and gets `~` and a hash, so that it is no other's; the whole is in the
 * object.
 */
void tide_change_series_name_append(struct tide_buf *buf, tide_str store);

/** Appends the object; the same for the same relation. */
void tide_change_schema_encode(const struct tide_relation *relation, tide_str position_kind,
                               struct tide_buf *buf);

/** TIDE_CORRUPT, TIDE_UNSUPPORTED another version. Duplicate column names, keys that are no column
 * and counts over the limits are TIDE_CORRUPT. */
tide_status tide_change_schema_decode(tide_str json, struct tide_arena *arena,
                                      struct tide_change_schema *ret_schema,
                                      struct tide_error *err);
