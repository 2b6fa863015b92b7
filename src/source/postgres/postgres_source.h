/* The source port for PostgreSQL 14 and later: logical replication with pgoutput. */
#pragma once

#include "port/source.h"

/** The place is the whole URL, postgres:// or postgresql://. */
extern const struct tide_source_ops tide_postgres_source_ops;
