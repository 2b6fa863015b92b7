/* Joining small segments that lie next to each other into larger ones. */
#pragma once

#include "archive/container.h"
#include "archive/encoder.h"
#include "base/status.h"
#include "base/str.h"

#include <stdint.h>

/**
 * Joins runs of adjacent segments of one form, as long as they have at most `rows_target` rows
 * together; each run in one transaction. An archive opened for editing or writing. Gives free pages
 * back. `ret_merged`: how many segments have become part of another.
 * Errors: TIDE_INVALID the encoder cannot join, or made something else of a run; what it fails
 * with. Runs that were joined before stay so.
 */
tide_status tide_archive_compact(struct tide_archive *archive,
                                 const struct tide_archive_encoder *encoder, int64_t source,
                                 tide_str series, int64_t rows_target, int64_t *ret_merged,
                                 struct tide_error *err);
