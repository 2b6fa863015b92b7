/* Whether a file is a sound archive: SQLite's own check of its pages, and the rules of its tables.
 * No segment is opened. */
#pragma once

#include "archive/container.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define TIDE_ARCHIVE_FINDINGS_MAX 100

struct tide_archive_finding {
    bool is_harmless; /* rows that a kill left behind their segment: the next writer removes them */
    tide_str text;
};

struct tide_archive_findings {
    struct tide_archive_finding *items; /* of TIDE_ARCHIVE_FINDINGS_MAX; the rest is only counted */
    size_t count;
    size_t harmful;
};

/**
 * Looks at all of one moment. `is_full` compares indexes with tables too, which takes much longer.
 * Damage is a finding, also where it ends a check early; findings are in `arena`.
 * Errors: what keeps it from reading at all.
 */
tide_status tide_archive_verify(struct tide_archive *archive, bool is_full,
                                struct tide_arena *arena,
                                struct tide_archive_findings *ret_findings, struct tide_error *err);

/** Adds what others have found, cut where it is too long for a line; `{0}` are no findings. */
void tide_archive_findings_add(struct tide_archive_findings *findings, struct tide_arena *arena,
                               bool is_harmless, const char *fmt, ...) TIDE_PRINTF(4, 5);
