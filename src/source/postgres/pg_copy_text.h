/*
 * Lines of COPY … TO STDOUT in text format: columns parted by tabs, `\N` for NULL, and backslash
 * escapes for what would end a column or a line. Pure; any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "source/postgres/pg_field.h"

#include <stddef.h>

/**
 * Splits one line into its columns.
 *
 * Input:  `line` is what one PQgetCopyData gave, with or without its line feed. `count` columns are
 *         expected: 1 or more (a query of no columns has nothing to split).
 * Owns:   texts without an escape are slices of `line`, others are in `arena`.
 * Shape:  all `count` fields are written, NULL or TEXT.
 * Errors: TIDE_CORRUPT another number of columns, a backslash at the end of the line, a line feed
 *         inside it, the end mark `\.`; fields may have been written then.
 */
tide_status tide_pg_copy_line(tide_str line, size_t count, struct tide_arena *arena,
                              struct tide_pg_field *ret_fields, struct tide_error *err);
