/* The tables of an archive, as users name them. */
#pragma once

#include "archive/catalogue.h"

#include <argp.h>

/* Which are meant. */
struct tide_archive_choice {
    const char *table; /* NULL: all, or the only one */
    bool has_source;
    int64_t source;
};

/* The options of every command that takes a choice, and their keys. */
enum {
    TIDE_ARCHIVE_OPTION_TABLE = 't',
    TIDE_ARCHIVE_OPTION_SOURCE = 's',
};

#define TIDE_ARCHIVE_CHOICE_OPTIONS                                                                \
    {"table",                                                                                      \
     TIDE_ARCHIVE_OPTION_TABLE,                                                                    \
     "TABLE",                                                                                      \
     0,                                                                                            \
     "Of this table: its name, or as much of its end as is needed to tell it (orders, "            \
     "shop.orders)",                                                                               \
     0},                                                                                           \
    {                                                                                              \
        "source", TIDE_ARCHIVE_OPTION_SOURCE, "NUMBER", 0,                                         \
            "Of this source of the archive, as info numbers them", 0                               \
    }

/** Takes such an option; false when it is another. */
bool tide_archive_choice_parse(struct tide_archive_choice *choice, int key, const char *arg,
                               struct argp_state *state);

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
