/* Whether the writers of an archive's sources live. */
#pragma once

#include "archive/catalogue.h"

/**
 * Looks at each source until it is known how it is, or for `wait_us` at most: `ret_lives` gets one
 * for each of the catalogue. TIDE_ARCHIVE_UNKNOWN where a heartbeat neither moved nor stood still
 * for long enough, or where there is none. `is_open`: somebody had the archive open before we did.
 */
tide_status tide_archive_health(struct tide_archive *archive,
                                const struct tide_archive_catalogue *catalogue, bool is_open,
                                int64_t wait_us, enum tide_archive_life *ret_lives,
                                struct tide_error *err);

/** Whether anybody may have the archive open: asked before it is opened. */
bool tide_archive_may_be_open(const char *path);

/** "live", "complete", "stopped" or "unknown". */
const char *tide_archive_life_name(enum tide_archive_life life);
