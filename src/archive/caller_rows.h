/* Bytes kept against (source, series, time) for whoever writes the rows; several may share a time.
 */
#pragma once

#include "archive/container.h"
#include "archive/encoder.h"
#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>

/** Those from `start` to `end`, both included, by time, then as they were written; in `arena`. */
tide_status tide_archive_caller_rows_read(struct tide_archive *archive, int64_t source,
                                          tide_str series, int64_t start, int64_t end,
                                          struct tide_arena *arena,
                                          struct tide_archive_caller_row **ret_rows,
                                          size_t *ret_count, struct tide_error *err);

/** Those in force from `first` to `last`: the newest at or before `first`, and all up to `last`. */
tide_status tide_archive_caller_rows_in_force(struct tide_archive *archive, int64_t source,
                                              tide_str series, int64_t first, int64_t last,
                                              struct tide_arena *arena,
                                              struct tide_archive_caller_row **ret_rows,
                                              size_t *ret_count, struct tide_error *err);
