/* The tables of an archive, as users name them. */
#pragma once

#include "archive/catalogue.h"

/* Which are meant. */
struct tide_archive_choice {
    const char *table; /* NULL: all, or the only one */
    bool has_source;
    int64_t source;
};

/** Whether the choice means this series. */
bool tide_archive_choice_has(const struct tide_archive_choice *choice,
                             const struct tide_archive_series_info *series);

/**
 * The one series that is meant.
 * Errors: TIDE_INVALID none or several, naming those there are.
 */
tide_status tide_archive_choice_find(const struct tide_archive_choice *choice, const char *path,
                                     const struct tide_archive_catalogue *catalogue,
                                     const struct tide_archive_series_info **ret_series,
                                     struct tide_error *err);

/** TIDE_INVALID when none is meant. */
tide_status tide_archive_choice_check(const struct tide_archive_choice *choice, const char *path,
                                      const struct tide_archive_catalogue *catalogue,
                                      struct tide_error *err);
