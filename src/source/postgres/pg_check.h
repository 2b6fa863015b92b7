/* What keeps a PostgreSQL database from being followed, and remarks. */
#pragma once

#include "port/source.h"
#include "source/postgres/pg_conn.h"

/**
 * Appends findings about the server, our role, the tables that `options` choose and what is there
 * of ours. Reads only, on a normal connection; opens one replication connection to `options->place`
 * to see whether that works.
 */
tide_status tide_pg_check(struct tide_pg_conn *conn, const struct tide_source_options *options,
                          struct tide_findings *findings, struct tide_error *err);
