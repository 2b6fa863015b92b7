/*
 * The encoder of tables' series for archives: rows of change_row.h, of the columns that the
 * series' caller rows give (change_schema.h), as Parquet files and back, byte for byte.
 *
 * A segment has rows of one schema: those after the next change of columns are left for the next.
 */
#pragma once

#include "archive/encoder.h"

/** Has no context; any number of threads may use it. */
extern const struct tide_archive_encoder tide_change_encoder;
