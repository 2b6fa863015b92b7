#include "archive/change_retain.h"

#include "base/limits.h"

static bool is_the_one(void *context, tide_str series)
{
    const struct tide_change_retention *retention = context;
    return tide_str_equal(retention->series, series);
}

/* The columns of the oldest row that stays are kept, too. Others that are written meanwhile are
 * later ones. */
static int64_t keep_callers_from(void *context, tide_str series, bool has_rows, int64_t oldest_ts)
{
    const struct tide_change_retention *retention = context;
    int64_t from = INT64_MIN;
    (void)series;
    for (size_t i = 0; has_rows && i < retention->caller_count; i++) {
        if (retention->callers[i].ts <= oldest_ts) {
            from = retention->callers[i].ts;
        }
    }
    return from;
}

tide_status tide_change_retention_init(struct tide_archive *archive,
                                       const struct tide_archive_series_info *series,
                                       int64_t keep_from_ts,
                                       struct tide_change_retention *ret_retention,
                                       struct tide_error *err)
{
    ret_retention->series = series->name;
    ret_retention->retention = (struct tide_archive_retention){
        .source = series->source,
        .cutoff_ts = keep_from_ts,
        .is_removed = is_the_one,
        .keep_from = keep_callers_from,
        .context = ret_retention,
    };
    return tide_archive_caller_rows_read(archive, series->source, series->name, INT64_MIN,
                                         INT64_MAX, &ret_retention->arena, &ret_retention->callers,
                                         &ret_retention->caller_count, err);
}

void tide_change_retention_done(struct tide_change_retention *retention)
{
    tide_arena_done(&retention->arena);
}

tide_status tide_change_forget(struct tide_archive *archive,
                               const struct tide_archive_series_info *series, int64_t keep_from_ts,
                               struct tide_archive_retained *ret_retained, struct tide_error *err)
{
    struct tide_archive_retained all = {0};
    int64_t cutoff_ts = INT64_MIN;
    while (cutoff_ts < keep_from_ts) {
        TIDE_CLEANUP(tide_change_retention_done) struct tide_change_retention retention = {0};
        struct tide_archive_retained done = {0};
        TIDE_TRY(tide_archive_retain_step(archive, series->source, series->name, keep_from_ts,
                                          TIDE_ARCHIVE_RETAIN_BYTES, &cutoff_ts, err));
        TIDE_TRY(tide_change_retention_init(archive, series, cutoff_ts, &retention, err));
        TIDE_TRY(tide_archive_retain_in(archive, &retention.retention, &done, err));
        all.segments += done.segments;
        all.wal_rows += done.wal_rows;
        all.live_rows += done.live_rows;
        all.caller_rows += done.caller_rows;
    }
    *ret_retained = all;
    return TIDE_OK;
}
