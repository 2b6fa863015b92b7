#include "app/verify/verify_print.h"

#include "format/json_writer.h"

#include <inttypes.h>

static const char *status_name(enum tide_snapshot_status status)
{
    static const char *const names[] = {
        [TIDE_SNAPSHOT_UNKNOWN] = "unknown",         [TIDE_SNAPSHOT_OPEN] = "open",
        [TIDE_SNAPSHOT_COMPLETE] = "complete",       [TIDE_SNAPSHOT_TRUNCATED] = "truncated",
        [TIDE_SNAPSHOT_CONFLICTING] = "conflicting",
    };
    return names[status];
}

static void append_conflict(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    uint64_t seq = report->conflict_seq;
    switch (report->conflict) {
    case TIDE_CONFLICT_NONE:
        break;
    case TIDE_CONFLICT_TWO_STORES:
        tide_buf_printf(buf, "its frames name two stores");
        break;
    case TIDE_CONFLICT_TWO_COUNTS:
        tide_buf_printf(buf, "two ends with different counts, %" PRIu64 " and %" PRIu64,
                        report->expected, seq);
        break;
    case TIDE_CONFLICT_TWO_STARTS:
        tide_buf_printf(buf, "two different lists of starts of one attempt");
        break;
    case TIDE_CONFLICT_TOTAL:
        tide_buf_printf(buf, "its begin says a total of %" PRIu64 ", its end %" PRIu64, seq,
                        report->expected);
        break;
    case TIDE_CONFLICT_ROW_AND_STUB:
        tide_buf_printf(buf, "seq %" PRIu64 " came as a row and as a stub", seq);
        break;
    case TIDE_CONFLICT_TWO_RECORDS:
        tide_buf_printf(buf, "seq %" PRIu64 " came with two different records", seq);
        break;
    case TIDE_CONFLICT_PAST_THE_END:
        tide_buf_printf(buf, "seq %" PRIu64 " is past the row count of %" PRIu64, seq,
                        report->expected);
        break;
    case TIDE_CONFLICT_BEFORE_START:
        tide_buf_printf(buf, "seq %" PRIu64 " lies before the start of its attempt", seq);
        break;
    }
}

static void append_age(struct tide_buf *buf, int64_t last_frame_us, int64_t now_us)
{
    int64_t seconds = (now_us - last_frame_us) / 1000000;
    seconds = seconds < 0 ? 0 : seconds;
    if (seconds < 120) {
        tide_buf_printf(buf, "%" PRId64 " s ago", seconds);
    } else if (seconds < 2 * 3600) {
        tide_buf_printf(buf, "%" PRId64 " min ago", seconds / 60);
    } else if (seconds < 2 * 86400) {
        tide_buf_printf(buf, "%" PRId64 " h ago", seconds / 3600);
    } else {
        tide_buf_printf(buf, "%" PRId64 " days ago", seconds / 86400);
    }
}

static void append_ranges(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    uint64_t shown = 0;
    for (size_t i = 0; i < report->missing_range_count; i++) {
        struct tide_interval range = report->missing_ranges[i];
        tide_buf_printf(buf, "%s%" PRIu64, i == 0 ? "" : ", ", range.first);
        if (range.last > range.first) {
            tide_buf_printf(buf, "-%" PRIu64, range.last);
        }
        shown += range.last - range.first + 1;
    }
    tide_buf_append_str(buf, shown < report->missing ? TIDE_STR(", ...") : TIDE_STR(""));
}

static void append_hole(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    tide_buf_append_str(buf, TIDE_STR("changes are missing after "));
    tide_ordered_place_append(buf, &report->covered);
    tide_buf_append_str(buf, TIDE_STR(" and up to "));
    tide_ordered_place_append(buf, &report->hole_to);
    if (report->begin_is_lost) {
        tide_buf_append_str(buf, TIDE_STR(" (its begin, which says where they start, is missing)"));
    }
}

static void append_truncation(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    if (report->missing > 0) {
        tide_buf_printf(buf, "%" PRIu64 " of %" PRIu64 " seqs are missing: ", report->missing,
                        report->expected);
        append_ranges(buf, report);
    }
    if (report->has_changes && !report->changes_are_whole) {
        tide_buf_append_str(buf, report->missing > 0 ? TIDE_STR("; ") : TIDE_STR(""));
        append_hole(buf, report);
    }
}

/* Why it is not complete; nothing when it is. */
static void append_reason(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    switch (report->status) {
    case TIDE_SNAPSHOT_OPEN:
        tide_buf_append_str(buf, TIDE_STR("no end yet"));
        break;
    case TIDE_SNAPSHOT_TRUNCATED:
        append_truncation(buf, report);
        break;
    case TIDE_SNAPSHOT_CONFLICTING:
        append_conflict(buf, report);
        break;
    case TIDE_SNAPSHOT_UNKNOWN:
    case TIDE_SNAPSHOT_COMPLETE:
        break;
    }
}

/* A store's name as it is, but for the bytes that would break the line. */
static void append_store(struct tide_buf *buf, tide_str store)
{
    for (size_t i = 0; i < store.len; i++) {
        char c = store.ptr[i];
        tide_buf_append_char(buf, (unsigned char)c < 0x20 || c == 0x7f ? '?' : c);
    }
}

void tide_verify_append_text(struct tide_buf *buf, const struct tide_snapshot_report *report,
                             int64_t last_frame_us, int64_t now_us)
{
    tide_buf_printf(buf, "%-11s ", status_name(report->status));
    append_store(buf, report->store);
    tide_buf_append_char(buf, ' ');
    tide_buf_append_str(buf, report->snapshot_id);
    tide_buf_printf(buf, ": %" PRIu64 " rows, %" PRIu64 " stubs", report->rows, report->stubs);
    if (report->attempts > 1) {
        tide_buf_printf(buf, ", %" PRIu64 " attempts", report->attempts);
    }
    if (report->status == TIDE_SNAPSHOT_COMPLETE && report->is_emptied) {
        tide_buf_append_str(buf, TIDE_STR("; no end, but the table was emptied or dropped at "));
        tide_ordered_place_append(buf, &report->emptied_at);
    }
    if (report->status != TIDE_SNAPSHOT_COMPLETE) {
        tide_buf_append_str(buf, TIDE_STR("; "));
        append_reason(buf, report);
    }
    if (report->status == TIDE_SNAPSHOT_OPEN && last_frame_us > 0) {
        tide_buf_append_str(buf, TIDE_STR(", the last frame came "));
        append_age(buf, last_frame_us, now_us);
    } else if (report->status == TIDE_SNAPSHOT_OPEN && report->at_us > 0) {
        tide_buf_append_str(buf, TIDE_STR(", it began "));
        append_age(buf, report->at_us, now_us);
    }
    if (report->duplicates > 0) {
        tide_buf_printf(buf, "; %" PRIu64 " seqs came more than once%s", report->duplicates,
                        report->is_compared ? "" : ", not compared");
    }
}

static void append_key_u64(struct tide_buf *buf, const char *name, uint64_t value)
{
    tide_buf_printf(buf, ",\"%s\":%" PRIu64, name, value);
}

static void append_key_text(struct tide_buf *buf, const char *name, tide_str text)
{
    tide_buf_printf(buf, ",\"%s\":", name);
    if (text.ptr == NULL) {
        tide_buf_append_str(buf, TIDE_STR("null"));
    } else {
        tide_json_append_string(buf, text);
    }
}

static void append_missing(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    tide_buf_append_str(buf, TIDE_STR(",\"missing\":["));
    for (size_t i = 0; i < report->missing_range_count; i++) {
        struct tide_interval range = report->missing_ranges[i];
        tide_buf_printf(buf, "%s[%" PRIu64 ",%" PRIu64 "]", i == 0 ? "" : ",", range.first,
                        range.last);
    }
    tide_buf_append_char(buf, ']');
    append_key_u64(buf, "missing_count", report->missing);
}

static void append_changes(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    tide_buf_append_str(buf, TIDE_STR(",\"changes\":"));
    if (!report->has_changes) {
        tide_buf_append_str(buf, TIDE_STR("null"));
        return;
    }
    tide_buf_printf(buf, "{\"whole\":%s,\"from\":", report->changes_are_whole ? "true" : "false");
    tide_ordered_place_append(buf, &report->changes_from);
    tide_buf_append_str(buf, TIDE_STR(",\"to\":"));
    tide_ordered_place_append(buf, &report->changes_to);
    tide_buf_append_str(buf, TIDE_STR(",\"hole\":"));
    if (report->changes_are_whole) {
        tide_buf_append_str(buf, TIDE_STR("null"));
    } else {
        tide_buf_append_char(buf, '[');
        tide_ordered_place_append(buf, &report->covered);
        tide_buf_append_char(buf, ',');
        tide_ordered_place_append(buf, &report->hole_to);
        tide_buf_append_char(buf, ']');
    }
    tide_buf_printf(buf, ",\"seen\":%" PRIu64 "}", report->changes_seen);
}

static void append_duplicates(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    append_key_u64(buf, "duplicates", report->duplicates);
    tide_buf_printf(buf, ",\"compared\":%s", report->is_compared ? "true" : "false");
}

static void append_json_reason(struct tide_buf *buf, const struct tide_snapshot_report *report)
{
    struct tide_buf reason TIDE_CLEANUP(tide_buf_done) = {0};
    append_reason(&reason, report);
    append_key_text(buf, "reason", reason.len > 0 ? tide_buf_str(&reason) : (tide_str){0});
}

void tide_verify_append_json(struct tide_buf *buf, const struct tide_snapshot_report *report,
                             int64_t last_frame_us, int64_t now_us)
{
    tide_buf_append_str(buf, TIDE_STR("{\"store\":"));
    tide_json_append_string(buf, report->store);
    append_key_text(buf, "snapshot_id", report->snapshot_id);
    append_key_text(buf, "status", tide_str_from(status_name(report->status)));
    append_key_u64(buf, "rows", report->rows);
    append_key_u64(buf, "stubs", report->stubs);
    if (report->has_end) {
        append_key_u64(buf, "expected", report->expected);
    } else {
        tide_buf_append_str(buf, TIDE_STR(",\"expected\":null"));
    }
    append_missing(buf, report);
    append_key_u64(buf, "attempts", report->attempts);
    append_key_text(buf, "began", report->snapshot_at);
    append_key_text(buf, "completed", report->completed_at);
    append_changes(buf, report);
    tide_buf_append_str(buf, TIDE_STR(",\"emptied_at\":"));
    if (report->is_emptied) {
        tide_ordered_place_append(buf, &report->emptied_at);
    } else {
        tide_buf_append_str(buf, TIDE_STR("null"));
    }
    append_duplicates(buf, report);
    if (report->status == TIDE_SNAPSHOT_OPEN && last_frame_us > 0) {
        int64_t age = (now_us - last_frame_us) / 1000000;
        append_key_u64(buf, "last_frame_seconds_ago", age < 0 ? 0 : (uint64_t)age);
    }
    append_json_reason(buf, report);
    tide_buf_append_char(buf, '}');
}
