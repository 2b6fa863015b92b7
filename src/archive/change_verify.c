#include "archive/change_verify.h"

#include <inttypes.h>

#include "archive/catalogue.h"
#include "archive/change_encoder.h"
#include "archive/change_history.h"
#include "archive/change_position.h"
#include "archive/change_scan.h"
#include "archive/change_sink_held.h"

/* What the changes so far have proved to be whole. */
struct chain {
    bool is_any;
    struct tide_change_place newest;
    bool has_begin; /* of a copy, since the newest change: from its changes_from on */
    struct tide_change_place begin;
};

struct check {
    const struct tide_archive_series_info *series;
    struct tide_change_history *history; /* of its copies */
    struct tide_progress held;           /* by a sink: how far each copy has come */
    struct tide_arena *arena;
    struct tide_archive_findings *findings;
    struct chain chain;
};

static const char *place_text(struct tide_buf *buf, const struct tide_change_seen *seen,
                              const struct tide_place *place)
{
    tide_buf_reset(buf);
    if (place->known) {
        tide_change_position_append(buf, seen->columns->position_kind, place->position);
        tide_buf_printf(buf, ", %" PRIu64, place->index);
    } else {
        tide_buf_append_str(buf, TIDE_STR("none"));
    }
    return tide_buf_cstr(buf);
}

static void report(const struct check *check, const struct tide_change_seen *seen, bool is_harmless,
                   const char *what)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf before = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf place = {0};
    tide_archive_findings_add(
        check->findings, check->arena, is_harmless,
        "source %" PRId64 ", %.*s: %s between the changes at %s and at %s", check->series->source,
        (int)(check->series->name.len < 200 ? check->series->name.len : 200),
        check->series->name.ptr, what, place_text(&before, seen, &check->chain.newest.place),
        place_text(&place, seen, &seen->row.place));
}

/* A change that was delivered again may be cut otherwise, and then names an earlier one as before
 * it; one that names none is the first of a copy's own log of changes. One that names a place where
 * no change can be says that the source's changes may not all have come; then a copy is made. */
static const char *doubt_of(const struct chain *chain, const struct tide_change_seen *seen,
                            bool *ret_is_harmless)
{
    struct tide_change_place prev = {seen->row.incarnation, seen->row.prev};
    bool is_covered = chain->has_begin && tide_change_place_compare(prev, chain->begin) <= 0;
    bool is_told = prev.place.known && prev.place.index >= TIDE_INDEX_LAST;
    *ret_is_harmless = is_covered || is_told || !prev.place.known;
    if (!prev.place.known) {
        return "it is not known whether changes are missing";
    }
    if (tide_change_place_compare(prev, chain->newest) <= 0) {
        return NULL;
    }
    if (is_told) {
        return "the table was not followed, or made anew: changes may be missing";
    }
    return is_covered ? "changes are missing, which a later copy makes up for,"
                      : "changes are missing";
}

static void follow(struct check *check, const struct tide_change_seen *seen)
{
    struct chain *chain = &check->chain;
    struct tide_change_place place = {seen->row.incarnation, seen->row.place};
    bool is_of_log = chain->is_any && chain->newest.incarnation == place.incarnation;
    bool is_harmless = false;
    const char *doubt = is_of_log ? doubt_of(chain, seen, &is_harmless) : NULL;
    if (chain->is_any && tide_change_place_compare(place, chain->newest) <= 0) {
        report(check, seen, false, "the order is wrong");
    } else if (doubt != NULL) {
        report(check, seen, is_harmless, doubt);
    }
    chain->is_any = true;
    chain->newest = place;
    chain->has_begin = false;
}

/* Up to where a sink has held it; 0: it does not say. */
static uint64_t held_to(const struct check *check, const struct tide_change_snapshot *snapshot)
{
    for (size_t i = 0; i < check->held.snapshot_count; i++) {
        const struct tide_held_snapshot *held = &check->held.snapshots[i];
        if (strcmp(held->id, snapshot->id) == 0 && held->attempt == snapshot->attempt) {
            return held->next_seq;
        }
    }
    return 0;
}

static void report_copy(const struct check *check, const struct tide_change_snapshot *snapshot,
                        size_t number)
{
    const struct tide_archive_series_info *series = check->series;
    int len = (int)(series->name.len < 200 ? series->name.len : 200);
    uint64_t next_seq = held_to(check, snapshot);
    bool has_ended = next_seq == TIDE_SEQ_ENDED;
    struct tide_change_lack lack =
        tide_change_history_lack(check->history, number, has_ended ? 0 : next_seq);
    if (has_ended && !snapshot->has_end) {
        tide_archive_findings_add(check->findings, check->arena, false,
                                  "source %" PRId64 ", %.*s: the end of copy %s is missing",
                                  series->source, len, series->name.ptr, snapshot->id);
    }
    if (lack.rows > 0) {
        tide_archive_findings_add(check->findings, check->arena, false,
                                  "source %" PRId64 ", %.*s: rows of copy %s are missing: %" PRIu64
                                  ", from seq %" PRIu64 " on",
                                  series->source, len, series->name.ptr, snapshot->id, lack.rows,
                                  lack.first_seq);
    } else if (!snapshot->has_begin) {
        tide_archive_findings_add(check->findings, check->arena, true,
                                  "source %" PRId64 ", %.*s: the begin of copy %s is not there, "
                                  "as when it was forgotten as old",
                                  series->source, len, series->name.ptr, snapshot->id);
    }
}

static void report_copies(const struct check *check)
{
    size_t count = 0;
    const struct tide_change_snapshot *snapshots =
        tide_change_history_snapshots(check->history, &count);
    for (size_t i = 0; i < count; i++) {
        report_copy(check, &snapshots[i], i);
    }
}

static void take(struct check *check, const struct tide_change_seen *seen)
{
    tide_change_history_add(check->history, seen->ts, &seen->row);
    if (seen->row.kind == TIDE_ROW_CHANGE) {
        follow(check, seen);
    } else if (seen->row.kind == TIDE_ROW_BEGIN) {
        check->chain.has_begin = true;
        check->chain.begin = (struct tide_change_place){seen->row.incarnation, seen->row.place};
    }
}

static tide_status check_series(struct tide_archive *archive, struct check *check,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_archive_range range = {.source = check->series->source,
                                             .series = check->series->name,
                                             .start_ts = INT64_MIN,
                                             .end_ts = INT64_MAX};
    TIDE_CLEANUP(tide_change_history_free_ptr)
    struct tide_change_history *history = tide_change_history_new(NULL);
    struct tide_change_seen seen;
    tide_status status = tide_change_scan_open(archive, &range, &scan, err);
    check->history = history;
    while (status == TIDE_OK) {
        status = tide_change_scan_next(scan, &seen, err);
        if (status == TIDE_OK) {
            take(check, &seen);
        }
    }
    TIDE_TRY(status == TIDE_END ? TIDE_OK : status);
    report_copies(check);
    return TIDE_OK;
}

static bool is_ours(const struct tide_archive_catalogue *catalogue, int64_t source,
                    tide_str *ret_encoder)
{
    for (size_t i = 0; i < catalogue->source_count; i++) {
        if (catalogue->sources[i].id == source) {
            *ret_encoder = tide_archive_pairs_get(&catalogue->sources[i].metadata,
                                                  TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER));
        }
    }
    return tide_str_equal(*ret_encoder, tide_str_from(tide_change_encoder.version));
}

static tide_status check_all(struct tide_archive *archive, struct tide_arena *arena,
                             const struct tide_archive_catalogue *catalogue,
                             struct tide_archive_findings *findings, struct tide_error *err)
{
    for (size_t i = 0; i < catalogue->series_count; i++) {
        struct check check = {
            .series = &catalogue->series[i], .arena = arena, .findings = findings};
        tide_str encoder = TIDE_STR("");
        int64_t source = check.series->source;
        if (!is_ours(catalogue, source, &encoder)) {
            if (i == 0 || catalogue->series[i - 1].source != source) {
                tide_archive_findings_add(findings, arena, true,
                                          "source %" PRId64
                                          ": its rows are not opened: their encoder is %.*s",
                                          source, encoder.len > 100 ? 100 : (int)encoder.len,
                                          encoder.len == 0 ? "" : encoder.ptr);
            }
            continue;
        }
        struct tide_owner ignored;
        bool is_any = false;
        tide_status status =
            tide_change_sink_held_read(archive, source, arena, &is_any, &ignored, &check.held, err);
        status = status == TIDE_OK ? check_series(archive, &check, err) : status;
        tide_progress_done(&check.held);
        if (status == TIDE_CORRUPT) {
            tide_archive_findings_add(findings, arena, false, "%s", err->message);
        } else if (status != TIDE_OK) {
            return status;
        }
    }
    return TIDE_OK;
}

tide_status tide_change_verify(struct tide_archive *archive, struct tide_arena *arena,
                               struct tide_archive_findings *findings, struct tide_error *err)
{
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    tide_status status = tide_archive_catalogue_read(held, arena, &catalogue, err);
    if (status == TIDE_CORRUPT) {
        return TIDE_OK; /* which is a finding already */
    }
    return status == TIDE_OK ? check_all(held, arena, &catalogue, findings, err) : status;
}
