/* Roughly how many rows tables have, without counting them. */
#pragma once

#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>
#include <stdint.h>

/**
 * The sum of the highest rowids of the tables that have some: quick, too high where rows were
 * deleted, without the tables that have none. 0 when nothing can be said.
 */
uint64_t tide_sqlite_estimate_rows(sqlite3 *db, const struct tide_sqlite_tables *tables);
