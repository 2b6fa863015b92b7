/* What `tidemark archive cat` prints: a table as it was, or its changes. */
#pragma once

#include "app/archive/archive_moment.h"
#include "app/archive/archive_tables.h"
#include "app/row_lines.h"
#include "archive/container.h"

struct tide_archive_cat {
    const char *path;
    struct tide_archive_choice choice;
    enum tide_row_format format;
    struct tide_archive_moment as_of; /* not given: as of now */
    struct tide_archive_moment from;  /* of changes */
    struct tide_archive_moment to;
};

/**
 * Prints the rows of the series chosen, snapshots and changes. TIDE_CLOSED when standard output
 * takes no more.
 */
tide_status tide_archive_cat_changes(struct tide_archive *archive,
                                     const struct tide_archive_cat *cat, struct tide_error *err);

/**
 * Prints the table as it was. TIDE_END there is no complete copy of that moment, `err` says from
 * when on; TIDE_CLOSED as above. `ret_is_whole`: nothing that is printed is in doubt; what is has
 * been said on standard error.
 */
tide_status tide_archive_cat_state(struct tide_archive *archive, const struct tide_archive_cat *cat,
                                   bool *ret_is_whole, struct tide_error *err);
