#include "app/archive/archive_state.h"

#include "archive/caller_rows.h"
#include "archive/change_position.h"
#include "archive/change_sink_held.h"
#include "base/clock.h"
#include "base/log.h"
#include "format/record.h"

#include <inttypes.h>

/* Of the rows in doubt, those that are named. */
#define STALE_SHOWN_MAX 10
#define STALE_BYTES_MAX ((size_t)1000)

static struct tide_change_moment moment_of(const struct tide_archive_moment *as_of,
                                           const struct tide_change_summary *summary)
{
    uint32_t incarnation = as_of->has_incarnation ? as_of->incarnation : summary->incarnation;
    struct tide_change_moment moment = {
        .is_position = as_of->is_position,
        .utc_us = as_of->is_given ? as_of->end_us : INT64_MAX,
        .place = {.incarnation = incarnation,
                  .place = {as_of->position, TIDE_INDEX_AFTER_ALL, true}},
    };
    return moment;
}

/* Up to where a sink has written the source's changes; not known without a record of it. */
static tide_status read_held_place(struct tide_archive *archive, int64_t source,
                                   struct tide_place *ret_place, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_progress_done) struct tide_progress progress = {0};
    struct tide_owner ignored;
    bool is_any = false;
    TIDE_TRY(
        tide_change_sink_held_read(archive, source, &arena, &is_any, &ignored, &progress, err));
    *ret_place = progress.place;
    return TIDE_OK;
}

/*
 * A numbered change that the archive does not hold is still to come: its state would be another
 * one tomorrow. A place in PostgreSQL's log is mostly one at which no table of ours changed.
 */
static tide_status check_position(struct tide_archive *archive, int64_t source,
                                  const struct tide_change_summary *summary,
                                  const struct tide_change_moment *moment, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    struct tide_change_place held = {.incarnation = summary->incarnation};
    if (!moment->is_position || moment->place.incarnation < summary->incarnation ||
        summary->position_kind != &tide_position_integer) {
        return TIDE_OK;
    }
    TIDE_TRY(read_held_place(archive, source, &held.place, err));
    held = tide_change_place_compare(held, summary->newest) > 0 ? held : summary->newest;
    held.place.index = moment->place.place.index;
    if (tide_change_place_compare(moment->place, held) <= 0) {
        return TIDE_OK;
    }
    tide_change_position_append(&text, summary->position_kind, held.place.position);
    return tide_fail(err, TIDE_END,
                     "the archive has not come to that position yet: what it holds goes up to %.*s",
                     TIDE_STR_ARG(tide_buf_str(&text)));
}

static void note_late(const char *where)
{
    tide_log(TIDE_LOG_INFO,
             "what the archive holds of that source goes up to %s: what was committed between "
             "then and the moment asked for, if anything, is not in it",
             where);
}

tide_status tide_archive_state_note_late(struct tide_archive *archive, int64_t source,
                                         const struct tide_archive_moment *as_of,
                                         struct tide_error *err)
{
    bool is_any = false;
    int64_t newest_ns = 0;
    char text[TIDE_RFC3339_MS_LEN + 1];
    struct tide_place held = {0};
    if (as_of->is_given && as_of->is_position && as_of->is_lsn) {
        TIDE_TRY(read_held_place(archive, source, &held, err));
        if (held.known && tide_position_compare(as_of->position, held.position) > 0) {
            TIDE_CLEANUP(tide_buf_done) struct tide_buf lsn = {0};
            tide_lsn_append(&lsn, held.position.lo);
            note_late(tide_buf_cstr(&lsn));
        }
    } else if (as_of->is_given && !as_of->is_position) {
        TIDE_TRY(tide_archive_newest_row(archive, source, &is_any, &newest_ns, err));
        if (is_any && as_of->utc_us > newest_ns / 1000) {
            tide_rfc3339_ms(newest_ns / 1000, text);
            note_late(text);
        }
    }
    return TIDE_OK;
}

/* The newest caller row has them, where no row of the state does. */
static tide_status find_columns(struct tide_archive *archive,
                                const struct tide_archive_series_info *series,
                                struct tide_archive_state *state, struct tide_error *err)
{
    struct tide_archive_caller_row *callers = NULL;
    size_t count = 0;
    state->schema = tide_change_fold_schema(state->fold);
    if (state->schema != NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_caller_rows_in_force(archive, series->source, series->name, INT64_MAX,
                                               INT64_MAX, &state->arena, &callers, &count, err));
    if (count > 0) {
        TIDE_TRY(tide_change_schema_decode(callers[count - 1].bytes, &state->arena, &state->newest,
                                           err));
        state->schema = &state->newest;
    }
    return TIDE_OK;
}

tide_status tide_archive_state_fold(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    const struct tide_archive_moment *as_of,
                                    struct tide_archive_state *ret_state, struct tide_error *err)
{
    struct tide_change_summary summary;
    TIDE_TRY(tide_change_series_look(archive, series, &summary, &ret_state->history, err));
    if (summary.position_kind != NULL) {
        TIDE_TRY(tide_archive_moment_check(as_of, tide_str_from(summary.position_kind->name), err));
    }
    const struct tide_change_moment moment = moment_of(as_of, &summary);
    tide_status status = check_position(archive, series->source, &summary, &moment, err);
    status = status == TIDE_OK ? tide_change_series_fold(archive, series, ret_state->history,
                                                         &moment, &ret_state->fold, err)
                               : status;
    if (status != TIDE_OK) {
        (void)tide_fail_context(err, "%.*s", TIDE_STR_ARG(series->name));
    }
    if (status == TIDE_OK) {
        return find_columns(archive, series, ret_state, err);
    }
    /* Sound questions, answered by no: as of too early, of a table without a key. */
    return status == TIDE_INVALID || status == TIDE_UNSUPPORTED ? TIDE_END : status;
}

void tide_archive_state_done(struct tide_archive_state *state)
{
    tide_change_fold_free(state->fold);
    tide_change_history_free(state->history);
    tide_arena_done(&state->arena);
    *state = (struct tide_archive_state){0};
}

static void warn_gaps(const struct tide_archive_state *state,
                      const struct tide_archive_series_info *series,
                      const struct tide_change_doubts *doubts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    tide_change_history_name_place(state->history, doubts->first_gap, &text);
    tide_log(TIDE_LOG_WARN,
             "%.*s: changes are missing in the archive at %" PRIu64
             " places before that moment, first before the change at %s: rows may be others, or "
             "missing",
             TIDE_STR_ARG(series->name), doubts->gaps, tide_buf_cstr(&text));
}

/* Up to where it is known, by position where there is one. */
static void warn_beyond(const struct tide_archive_state *state,
                        const struct tide_archive_series_info *series,
                        const struct tide_change_doubts *doubts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    char time[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(doubts->reach_us, time);
    if (doubts->reach.place.known) {
        tide_buf_append_str(&text, TIDE_STR(", position "));
        tide_change_history_name_place(state->history, doubts->reach, &text);
    }
    tide_log(
        TIDE_LOG_WARN,
        "%.*s: that moment is in a gap of the archive: what was committed behind %s%s, until "
        "a copy began anew or changes came again, may be missing in it, so rows may be others, "
        "or missing. States up to there are certain, and those from the end of the next "
        "complete copy on",
        TIDE_STR_ARG(series->name), time, tide_buf_cstr(&text));
}

/* Which they are: keys of the first ones, as far as a line has room. */
static void append_stale(struct tide_archive_state *state, struct tide_buf *text)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_relation relation = tide_change_relation_of(state->schema, &arena);
    struct tide_change_state row;
    size_t count = 0;
    tide_change_fold_rewind(state->fold);
    while (tide_change_fold_next(state->fold, &row)) {
        if (!row.is_stale && row.values != NULL) {
            continue;
        }
        if (text->len > STALE_BYTES_MAX || count == STALE_SHOWN_MAX) {
            tide_buf_append_str(text, TIDE_STR(", …"));
            return;
        }
        tide_buf_append_str(text, count++ == 0 ? TIDE_STR("") : TIDE_STR(", "));
        tide_record_append_key(text, &relation, row.key);
    }
}

bool tide_archive_state_warn(struct tide_archive_state *state,
                             const struct tide_archive_series_info *series, uint64_t stale)
{
    struct tide_change_doubts doubts = tide_change_fold_doubts(state->fold);
    if (doubts.gaps > 0) {
        warn_gaps(state, series, &doubts);
    }
    if (doubts.is_beyond) {
        warn_beyond(state, series, &doubts);
    }
    if (doubts.has_keyless_stub) {
        tide_log(TIDE_LOG_WARN,
                 "%.*s: a row that was too long has no key in the archive: it is missing, and rows "
                 "that were deleted may still be there",
                 TIDE_STR_ARG(series->name));
    }
    if (stale > 0) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf keys = {0};
        append_stale(state, &keys);
        tide_log(TIDE_LOG_WARN,
                 "%.*s: %" PRIu64
                 " rows were too long for the archive: they are older than that moment, or their "
                 "keys alone: %s",
                 TIDE_STR_ARG(series->name), stale, tide_buf_cstr(&keys));
    }
    return doubts.gaps == 0 && !doubts.is_beyond && !doubts.has_keyless_stub && stale == 0;
}
