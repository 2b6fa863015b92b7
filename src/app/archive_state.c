#include "app/archive_state.h"

#include "archive/caller_rows.h"
#include "base/log.h"

#include <inttypes.h>

static struct tide_change_moment moment_of(const struct tide_archive_moment *as_of,
                                           const struct tide_change_summary *summary)
{
    uint32_t incarnation = as_of->has_incarnation ? as_of->incarnation : summary->incarnation;
    struct tide_change_moment moment = {
        .is_position = as_of->is_position,
        .utc_us = as_of->is_given ? as_of->utc_us : INT64_MAX,
        .place = {.incarnation = incarnation,
                  .place = {as_of->position, TIDE_INDEX_AFTER_ALL, true}},
    };
    return moment;
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
    tide_status status = tide_change_series_fold(archive, series, ret_state->history, &moment,
                                                 &ret_state->fold, err);
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

bool tide_archive_state_warn(const struct tide_archive_state *state,
                             const struct tide_archive_series_info *series, uint64_t stale)
{
    struct tide_change_doubts doubts = tide_change_fold_doubts(state->fold);
    if (doubts.gaps > 0) {
        tide_log(TIDE_LOG_WARN,
                 "%.*s: changes are missing in the archive at %" PRIu64
                 " places before that moment: rows may be others, or missing",
                 TIDE_STR_ARG(series->name), doubts.gaps);
    }
    if (doubts.has_keyless_stub) {
        tide_log(TIDE_LOG_WARN,
                 "%.*s: a row that was too long has no key in the archive: it is missing, and rows "
                 "that were deleted may still be there",
                 TIDE_STR_ARG(series->name));
    }
    if (stale > 0) {
        tide_log(TIDE_LOG_WARN,
                 "%.*s: %" PRIu64
                 " rows were too long for the archive: they are older than that moment, or their "
                 "keys alone",
                 TIDE_STR_ARG(series->name), stale);
    }
    return doubts.gaps == 0 && !doubts.has_keyless_stub && stale == 0;
}
