/* What `tidemark archive` says: lines for people, or JSON. */
#pragma once

#include "archive/catalogue.h"
#include "archive/verify.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/** Appends a line a source and one a series, times in UTC. */
void tide_archive_print_info(struct tide_buf *buf, const char *path, uint64_t file_bytes,
                             const struct tide_archive_catalogue *catalogue);

/** The same as one line of JSON. Times are nanoseconds, as strings where they pass 2^53. */
void tide_archive_print_info_json(struct tide_buf *buf, const char *path, uint64_t file_bytes,
                                  const struct tide_archive_catalogue *catalogue);

/** Appends a line a finding, and one that says whether the archive is sound. */
void tide_archive_print_findings(struct tide_buf *buf, const char *path,
                                 const struct tide_archive_findings *findings);

/** The same as one line of JSON. */
void tide_archive_print_findings_json(struct tide_buf *buf, const char *path,
                                      const struct tide_archive_findings *findings);
