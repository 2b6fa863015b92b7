/* A moment of an archive as users write it: a time, an age, or a position of the source's log. */
#pragma once

#include "archive/change_row.h"
#include "base/str.h"

#include <argp.h>
#include <stdbool.h>

#define TIDE_ARCHIVE_MOMENT_HELP                                                                   \
    "a time (2026-11-29T13:40:55Z, \"2026-11-29 13:40\", 2026-11-29; UTC where no zone is "        \
    "named), an age (90s, 15m, 12h, 30d, 2w), or a position of the source's log (4711, "           \
    "16/B374D848; of an earlier log 0:4711)"

struct tide_archive_moment {
    bool is_given;
    bool is_position;
    bool is_lsn;
    bool has_incarnation; /* else the newest there is */
    uint32_t incarnation;
    struct tide_position position;
    int64_t utc_us;
    int64_t end_us; /* the last microsecond of it: a time to the millisecond is all of that */
};

/** False when the text is none. */
bool tide_archive_moment_parse(const char *text, int64_t now_us,
                               struct tide_archive_moment *ret_moment);

/** Takes the argument of an option; what is no moment ends the program. */
void tide_archive_moment_take(struct tide_archive_moment *moment, const char *option,
                              const char *arg, struct argp_state *state);

/** Whether nothing can be from the one on and up to the other. */
bool tide_archive_moments_are_reversed(const struct tide_archive_moment *from,
                                       const struct tide_archive_moment *to);

/** TIDE_INVALID when it is a position of another kind than that of the table's source. */
tide_status tide_archive_moment_check(const struct tide_archive_moment *moment, tide_str kind,
                                      struct tide_error *err);
