/*
 * What `check` finds out about an SQLite database: tables that cannot be followed, tables that
 * VACUUM renumbers, what makes writers wait, what of ours is there already.
 */
#pragma once

#include "base/status.h"
#include "port/source.h"

#include <sqlite3.h>

/**
 * Appends findings about the database at `path` for a copy of the tables that `options` chooses.
 * Only reads. Errors: as tide_sqlite_tables_read (a glob that matches nothing is a finding).
 */
tide_status tide_sqlite_check(sqlite3 *db, const char *path,
                              const struct tide_source_options *options,
                              struct tide_findings *findings, struct tide_error *err);
