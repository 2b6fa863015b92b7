/*
 * The source port for SQLite files, by triggers that log keys (see sqlite_install.h, sqlite_log.h,
 * sqlite_chunk.h). The place is a path; store names begin with the file's name without directory
 * and extension, unless a connection name is given.
 */
#pragma once

#include "port/source.h"

extern const struct tide_source_ops tide_sqlite_source_ops;
