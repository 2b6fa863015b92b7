/* Remembers a table's rows as the archive has them. One sink thread uses it. */
#pragma once

#include "base/status.h"
#include "sink/archive/archive_fill.h"

/**
 * Reads all of `series`, the table's, as it has been written by now, and notes the last version of
 * its rows, as far as `fill` has room. `columns` is the relation's caller row: of rows with other
 * columns nothing is taken.
 */
tide_status tide_archive_recall(const char *path, int64_t source, tide_str series,
                                const struct tide_relation *relation, tide_str columns,
                                struct tide_archive_fill *fill, struct tide_error *err);
