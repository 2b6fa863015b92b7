/*
 * Whether a fold has all that was committed by its moment: each change names the one before it,
 * and a copy says after which change it began and ended. Pure. Private to change_fold.c.
 */
#pragma once

#include "archive/change_fold.h"
#include "archive/change_history.h"
#include "archive/change_row.h"

/* Begins as `{.moment, .base}`; what follows is private, but the doubts. */
struct tide_change_reach {
    struct tide_change_moment moment;
    const struct tide_change_snapshot *base;
    struct tide_change_doubts doubts;
    bool is_begun;
    struct tide_change_place newest; /* all up to it came, or is counted as missing */
    struct tide_change_place place;  /* of the newest change or row that came */
    int64_t utc_us;                  /* of all these */
    bool is_open; /* a copy has begun of which it is not known whether it leads on from newest */
};

/** Takes the next row of the series: changes, and of any copy the begins and ends. `counts`: it is
 * by the moment. `is_reformed`: the row before had other columns. */
void tide_change_reach_take(struct tide_change_reach *reach, const struct tide_change_row *row,
                            bool counts, bool is_reformed);

/** The doubts after all rows so far. */
struct tide_change_doubts tide_change_reach_doubts(const struct tide_change_reach *reach);
