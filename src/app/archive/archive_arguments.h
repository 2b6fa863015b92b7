/* What commands of archives are given alike: the archive, maybe a second place, a table, --json. */
#pragma once

#include "app/archive/archive_tables.h"

#include <argp.h>

struct tide_archive_arguments {
    const char *to_wanted; /* what the second argument is ("a DIR"); NULL: there is none */
    const char *place;     /* as the user has it */
    const char *path;      /* of the file */
    const char *to;
    struct tide_archive_choice choice;
    bool is_json;
};

/* Keys of the options below; those of the commands themselves begin at 256. */
enum {
    TIDE_ARCHIVE_OPTION_TABLE = 't',
    TIDE_ARCHIVE_OPTION_SOURCE = 's',
    TIDE_ARCHIVE_OPTION_JSON = 512,
};

/* Lines of a command's option table. */
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

#define TIDE_ARCHIVE_JSON_OPTION(what)                                                             \
    {                                                                                              \
        "json", TIDE_ARCHIVE_OPTION_JSON, NULL, 0, what, 0                                         \
    }

/** What a command's parser does with keys that are not its own. At the end of the arguments it says
 * what is missing, which ends the program. */
error_t tide_archive_arguments_take(struct tide_archive_arguments *arguments, int key, char *arg,
                                    struct argp_state *state);

/** The path of an archive as users write it: behind "archive:", or all of it. */
const char *tide_archive_path(const char *place);
