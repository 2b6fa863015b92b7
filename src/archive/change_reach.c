#include "archive/change_reach.h"

static struct tide_change_place place_of(const struct tide_change_row *row)
{
    return (struct tide_change_place){row->incarnation, row->place};
}

static void reach_to(struct tide_change_place *to, struct tide_change_place place)
{
    if (tide_change_place_compare(place, *to) > 0) {
        *to = place;
    }
}

static void begin(struct tide_change_reach *reach)
{
    if (reach->is_begun) {
        return;
    }
    reach->is_begun = true;
    reach->newest = reach->place = reach->base->changes_from;
    reach->utc_us = reach->base->completed_us;
    reach_to(&reach->place, reach->base->newest_row);
    reach_to(&reach->place, reach->base->changes_to);
}

/* A time counts as users see it, in milliseconds. */
static bool is_beyond(const struct tide_change_reach *reach)
{
    const struct tide_change_moment *moment = &reach->moment;
    if (!moment->is_position) {
        return moment->utc_us / 1000 > reach->utc_us / 1000;
    }
    if (moment->place.incarnation != reach->place.incarnation) {
        return moment->place.incarnation > reach->place.incarnation;
    }
    return tide_position_compare(moment->place.place.position, reach->place.place.position) > 0;
}

static void doubt_moment(struct tide_change_doubts *doubts, const struct tide_change_reach *reach)
{
    if (!doubts->is_beyond) {
        doubts->is_beyond = true;
        doubts->reach = reach->place;
        doubts->reach_us = reach->utc_us;
    }
}

/* Whether a change is missing that the moment has: by its place, or as one of the transaction whose
 * first changes came. Behind all of a transaction there is none: the place only says that some may
 * be missing. */
static bool is_missed(const struct tide_change_reach *reach, struct tide_change_place missing)
{
    const struct tide_change_moment *moment = &reach->moment;
    if (!missing.place.known || missing.place.index >= TIDE_INDEX_LAST) {
        return false;
    }
    if (moment->is_position) {
        return tide_change_place_compare(missing, moment->place) <= 0;
    }
    return missing.incarnation == reach->newest.incarnation && reach->newest.place.known &&
           tide_position_compare(missing.place.position, reach->newest.place.position) == 0 &&
           reach->utc_us <= moment->utc_us;
}

/* What comes next does not lead on from the newest change. Missing is, where that is known, the
 * change at `missing`. */
static void break_off(struct tide_change_reach *reach, struct tide_change_place missing)
{
    if (is_missed(reach, missing) || is_beyond(reach)) {
        doubt_moment(&reach->doubts, reach);
    }
}

static bool is_of_log(const struct tide_change_reach *reach, const struct tide_change_row *row)
{
    return reach->newest.incarnation == row->incarnation;
}

/* What came before, or did not, matters no more. */
static void empty(struct tide_change_reach *reach)
{
    reach->doubts.gaps = 0;
    reach->doubts.is_beyond = reach->is_open = false;
}

static void take_change(struct tide_change_reach *reach, const struct tide_change_row *row,
                        bool counts)
{
    struct tide_change_place prev = {row->incarnation, row->prev};
    bool is_ahead = tide_change_place_compare(prev, reach->newest) > 0;
    if (counts && is_ahead && is_of_log(reach, row)) {
        struct tide_change_doubts *doubts = &reach->doubts;
        doubts->first_gap = doubts->gaps == 0 ? place_of(row) : doubts->first_gap;
        doubts->gaps++;
    } else if (!counts && is_ahead) {
        break_off(reach, prev);
    }
    bool is_newer = tide_change_place_compare(place_of(row), reach->newest) > 0;
    if (counts && is_newer && row->op == TIDE_OP_TRUNCATE) {
        empty(reach);
    }
    reach->is_open = reach->is_open && !is_newer;
    reach_to(&reach->newest, place_of(row));
    reach_to(&reach->place, place_of(row));
    reach->utc_us = row->commit_us > reach->utc_us ? row->commit_us : reach->utc_us;
}

/*
 * A run that goes on names the place where the log was, which may be far behind the change before:
 * whether there is one in between, the next change tells, or the copy's end. But where a table was
 * altered while nobody followed, its changes of that time are lost, and they do not know of it.
 */
static void take_opening(struct tide_change_reach *reach, const struct tide_change_row *row,
                         bool is_reformed)
{
    struct tide_change_place from = place_of(row);
    if (tide_change_place_compare(from, reach->newest) <= 0) {
        return;
    }
    if (!is_reformed && is_of_log(reach, row) && from.place.index >= TIDE_INDEX_LAST) {
        reach->is_open = true;
        return;
    }
    break_off(reach, from);
    reach->newest = from;
}

/* Names the newest change of all. */
static void take_end(struct tide_change_reach *reach, const struct tide_change_row *row)
{
    reach->is_open = false;
    if (row->place.known && is_of_log(reach, row) &&
        tide_change_place_compare(place_of(row), reach->newest) > 0) {
        break_off(reach, place_of(row));
        reach->newest = place_of(row);
    }
}

void tide_change_reach_take(struct tide_change_reach *reach, const struct tide_change_row *row,
                            bool counts, bool is_reformed)
{
    begin(reach);
    if (row->kind == TIDE_ROW_CHANGE) {
        take_change(reach, row, counts);
    } else if (row->kind == TIDE_ROW_BEGIN || row->kind == TIDE_ROW_RESUME) {
        take_opening(reach, row, is_reformed);
    } else if (row->kind == TIDE_ROW_END) {
        take_end(reach, row);
    }
}

struct tide_change_doubts tide_change_reach_doubts(const struct tide_change_reach *reach)
{
    struct tide_change_doubts doubts = reach->doubts;
    if (reach->is_open && is_beyond(reach)) {
        doubt_moment(&doubts, reach);
    }
    return doubts;
}
