#include "app/archive/archive_moment.h"

#include "app/time_argument.h"
#include "base/clock.h"

static bool parse_position(tide_str text, struct tide_archive_moment *moment)
{
    moment->is_position = true;
    if (tide_str_to_u64(text, &moment->position.lo)) {
        return true;
    }
    moment->is_lsn = tide_lsn_parse(text, &moment->position.lo);
    return moment->is_lsn;
}

/* Times are shown cut to three digits, and what is shown can be given back. */
static bool is_in_milliseconds(tide_str text)
{
    const char *point = memchr(text.ptr, '.', text.len);
    size_t digits = 0;
    for (const char *at = point; at != NULL && ++at < text.ptr + text.len;) {
        if (*at < '0' || *at > '9') {
            break;
        }
        digits++;
    }
    return digits > 0 && digits <= 3;
}

bool tide_archive_moment_parse(const char *text, int64_t now_us,
                               struct tide_archive_moment *ret_moment)
{
    struct tide_archive_moment moment = {.is_given = true};
    tide_str all = tide_str_from(text);
    const char *colon = strchr(text, ':');
    uint64_t incarnation = 0;
    if (parse_position(all, &moment)) {
        *ret_moment = moment;
        return true;
    }
    if (colon != NULL && tide_str_to_u64(tide_str_of(text, (size_t)(colon - text)), &incarnation) &&
        incarnation <= UINT32_MAX && parse_position(tide_str_from(colon + 1), &moment)) {
        moment.has_incarnation = true;
        moment.incarnation = (uint32_t)incarnation;
        *ret_moment = moment;
        return true;
    }
    moment = (struct tide_archive_moment){.is_given = true};
    if (!tide_time_argument_parse(all, now_us, &moment.utc_us)) {
        return false;
    }
    moment.end_us = moment.utc_us + (is_in_milliseconds(all) ? 999 : 0);
    *ret_moment = moment;
    return true;
}

void tide_archive_moment_take(struct tide_archive_moment *moment, const char *option,
                              const char *arg, struct argp_state *state)
{
    if (!tide_archive_moment_parse(arg, tide_clock_utc_us(), moment)) {
        argp_error(state, "%s wants " TIDE_ARCHIVE_MOMENT_HELP ", not \"%s\"", option, arg);
    }
}

bool tide_archive_moments_are_reversed(const struct tide_archive_moment *from,
                                       const struct tide_archive_moment *to)
{
    if (!from->is_given || !to->is_given || from->is_position != to->is_position) {
        return false;
    }
    if (!from->is_position) {
        return from->utc_us > to->end_us;
    }
    if (from->has_incarnation && to->has_incarnation && from->incarnation != to->incarnation) {
        return from->incarnation > to->incarnation;
    }
    return from->has_incarnation == to->has_incarnation &&
           tide_position_compare(from->position, to->position) > 0;
}

tide_status tide_archive_moment_check(const struct tide_archive_moment *moment, tide_str kind,
                                      struct tide_error *err)
{
    bool is_lsn = tide_str_equal(kind, TIDE_STR("lsn"));
    if (!moment->is_position || moment->is_lsn == is_lsn) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID, "the positions of this table's source are %s",
                     is_lsn ? "places in PostgreSQL's log, such as 16/B374D848"
                            : "numbers, such as 4711");
}
