/*
 * Random tables and statements on them, for tests that compare a copy with its source. All from one
 * seed. Values, keys and indexes are chosen to collide: REPLACE then removes rows, keys are equal
 * to SQL and differ in bytes.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct sqlite_random {
    uint64_t state;
    size_t kinds[2]; /* of the tables t1 and t2 */
};

/** A number below `limit`. */
size_t random_below(struct sqlite_random *random, size_t limit);

/** CREATE TABLE and CREATE UNIQUE INDEX of t1 (0) or t2 (1). Some cannot be run: make another. */
void random_append_table(struct sqlite_random *random, size_t table, struct tide_buf *sql);

/** One INSERT, UPDATE or DELETE. It may fail. */
void random_append_statement(struct sqlite_random *random, struct tide_buf *sql);
