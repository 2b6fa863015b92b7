/* Whether the rows of an archive's tables can be read, and nothing is missing between them. */
#pragma once

#include "archive/verify.h"

/**
 * Decodes every row of every series and follows the changes: each names the one before it. Adds to
 * findings of tide_archive_verify. Rows of other encoders are not opened, which is a note.
 * Errors: what keeps it from reading at all.
 */
tide_status tide_change_verify(struct tide_archive *archive, struct tide_arena *arena,
                               struct tide_archive_findings *findings, struct tide_error *err);
