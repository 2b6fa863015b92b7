/* Whether a table can be read and followed by somebody who is not its application. */
#pragma once

#include "source/sqlite/sqlite_table.h"

#include <sqlite3.h>

/** Where that is not so, sets `problem` and the identity to NOT_FOLLOWED. The table has its
 * columns, indexes and key already, and no number. Only prepares statements; needs no lock. */
void tide_sqlite_probe(sqlite3 *db, struct tide_sqlite_table *table);
