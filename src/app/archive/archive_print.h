/* What `tidemark archive` says: lines for people, or JSON. */
#pragma once

#include "archive/catalogue.h"
#include "archive/verify.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What info says. */
struct tide_archive_about {
    const char *path;
    uint64_t file_bytes;
    uint64_t log_bytes; /* of what is not folded into the file yet */
    const struct tide_archive_catalogue *catalogue;
    const enum tide_archive_life *lives; /* of each source */
};

/** Appends a line or two a source and one a series, times in UTC. */
void tide_archive_print_info(struct tide_buf *buf, const struct tide_archive_about *about);

/** The same as one line of JSON. Times are nanoseconds, as strings where they pass 2^53. */
void tide_archive_print_info_json(struct tide_buf *buf, const struct tide_archive_about *about);

/** Appends a line a finding, and one that says whether the archive is sound. */
void tide_archive_print_findings(struct tide_buf *buf, const char *path,
                                 const struct tide_archive_findings *findings);

/** The same as one line of JSON. */
void tide_archive_print_findings_json(struct tide_buf *buf, const char *path,
                                      const struct tide_archive_findings *findings);
