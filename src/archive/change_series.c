#include "archive/change_series.h"

static tide_status open_scan(struct tide_archive *archive,
                             const struct tide_archive_series_info *series, int64_t start_ts,
                             struct tide_change_scan **ret_scan, struct tide_error *err)
{
    const struct tide_archive_range range = {.source = series->source,
                                             .series = series->name,
                                             .start_ts = start_ts,
                                             .end_ts = INT64_MAX};
    return tide_change_scan_open(archive, &range, ret_scan, err);
}

static void count(struct tide_change_summary *summary, const struct tide_change_seen *seen)
{
    enum tide_change_row_kind kind = seen->row.kind;
    if (summary->rows + summary->changes + summary->marks == 0) {
        summary->position_kind = seen->columns->position_kind;
        summary->first_ts = seen->ts;
    }
    summary->last_ts = seen->ts;
    summary->changes += kind == TIDE_ROW_CHANGE;
    summary->rows += kind == TIDE_ROW_SNAPSHOT || kind == TIDE_ROW_STUB;
    summary->marks += kind >= TIDE_ROW_BEGIN;
    struct tide_change_place place = {seen->row.incarnation, seen->row.place};
    if (kind <= TIDE_ROW_STUB && tide_change_place_compare(place, summary->newest) > 0) {
        summary->newest = place;
    }
    if (seen->row.incarnation > summary->incarnation) {
        summary->incarnation = seen->row.incarnation;
    }
}

static void sum_up(const struct tide_change_history *history, struct tide_change_summary *summary)
{
    size_t snapshots = 0;
    const struct tide_change_snapshot *items = tide_change_history_snapshots(history, &snapshots);
    summary->snapshots = snapshots;
    for (size_t i = 0; i < snapshots; i++) {
        if (!items[i].is_complete) {
            continue;
        }
        summary->complete++;
        if (!summary->has_state || items[i].completed_us < summary->state_from_us) {
            summary->state_from_us = items[i].completed_us;
        }
        if (!summary->has_state || items[i].completed_us > summary->newest_state_us) {
            summary->newest_state_us = items[i].completed_us;
        }
        summary->has_state = true;
    }
}

tide_status tide_change_series_look(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    struct tide_change_summary *ret_summary,
                                    struct tide_change_history **ret_history,
                                    struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    TIDE_CLEANUP(tide_change_history_free_ptr) struct tide_change_history *history = NULL;
    struct tide_change_summary summary = {0};
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(open_scan(archive, series, INT64_MIN, &scan, err));
    tide_change_scan_want_heads(scan);
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        if (history == NULL) {
            history = tide_change_history_new(seen.columns->position_kind);
        }
        count(&summary, &seen);
        tide_change_history_add(history, seen.ts, &seen.row);
    }
    if (status != TIDE_END) {
        return status;
    }
    if (history == NULL) {
        history = tide_change_history_new(NULL);
    }
    sum_up(history, &summary);
    *ret_summary = summary;
    if (ret_history != NULL) {
        *ret_history = history;
        history = NULL;
    }
    return TIDE_OK;
}

tide_status tide_change_series_fold(struct tide_archive *archive,
                                    const struct tide_archive_series_info *series,
                                    const struct tide_change_history *history,
                                    const struct tide_change_moment *moment,
                                    struct tide_change_fold **ret_fold, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    TIDE_CLEANUP(tide_change_fold_free_ptr) struct tide_change_fold *fold = NULL;
    const struct tide_change_columns *columns = NULL;
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(tide_change_fold_new(history, moment, &fold, err));
    TIDE_TRY(open_scan(archive, series, tide_change_fold_start(fold), &scan, err));
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        if (seen.columns != columns) {
            TIDE_TRY(tide_change_fold_set_schema(fold, seen.columns->json, err));
            columns = seen.columns;
        }
        TIDE_TRY(tide_change_fold_add(fold, &seen.row, err));
    }
    if (status != TIDE_END) {
        return status;
    }
    *ret_fold = fold;
    fold = NULL;
    return TIDE_OK;
}
