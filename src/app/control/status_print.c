#include "app/control/status_print.h"

#include "app/pipeline/progress.h"
#include "app/safe_text.h"
#include "app/text_table.h"

/* Past so many snapshots those that are done are counted, not listed. */
#define SNAPSHOTS_LISTED_MAX 40

static bool is(tide_str text, const char *word)
{
    return tide_str_equal(text, tide_str_from(word));
}

static void begin_line(struct tide_buf *buf, const char *name)
{
    tide_buf_printf(buf, "%-12s", name);
}

static void append_count(struct tide_buf *buf, uint64_t count, const char *noun)
{
    char digits[32];
    tide_format_count(digits, count);
    tide_buf_printf(buf, "%s %s%s", digits, noun, count == 1 ? "" : "s");
}

static void append_bytes(struct tide_buf *buf, uint64_t bytes)
{
    char text[32];
    tide_format_bytes(text, bytes);
    tide_buf_append_str(buf, tide_str_from(text));
}

static void print_head(struct tide_buf *buf, const struct tide_status_report *report)
{
    begin_line(buf, "pipeline");
    tide_append_safe(buf, report->pipeline);
    tide_buf_append_str(buf, TIDE_STR(": "));
    tide_append_safe(buf, report->state);
    if (is(report->state, "stalled") && report->stalled_seconds.len > 0) {
        tide_buf_append_str(buf, TIDE_STR(" for "));
        tide_append_safe(buf, report->stalled_seconds);
        tide_buf_append_str(buf, TIDE_STR(" s"));
    }
    if (report->reason.len > 0) {
        tide_buf_append_str(buf, TIDE_STR(": "));
        tide_append_safe(buf, report->reason);
    }
    tide_buf_append_char(buf, '\n');
    begin_line(buf, "runs since");
    tide_append_safe(buf, report->started_at);
    tide_buf_append_char(buf, '\n');
    begin_line(buf, "source");
    tide_append_safe(buf, report->source);
    tide_buf_append_char(buf, '\n');
}

static void print_lag(struct tide_buf *buf, const struct tide_status_report *report)
{
    if (!report->has_lag_bytes && report->lag_seconds.len == 0) {
        return;
    }
    begin_line(buf, "lag");
    if (report->has_lag_bytes) {
        append_bytes(buf, report->lag_bytes);
    }
    if (report->lag_seconds.len > 0) {
        tide_buf_append_str(buf, report->has_lag_bytes ? TIDE_STR(", ") : TIDE_STR(""));
        tide_append_safe(buf, report->lag_seconds);
        tide_buf_append_str(buf, TIDE_STR(" s"));
    }
    tide_buf_append_char(buf, '\n');
}

static void append_position(struct tide_buf *buf, tide_str json)
{
    bool is_text = json.len >= 2 && json.ptr[0] == '"';
    tide_append_safe(buf, is_text ? tide_str_of(json.ptr + 1, json.len - 2) : json);
}

static void print_positions(struct tide_buf *buf, const struct tide_status_report *report)
{
    begin_line(buf, "watermark");
    append_position(buf, report->held);
    tide_buf_append_str(buf, TIDE_STR(" held by every sink, of "));
    append_position(buf, report->position);
    if (report->confirmed.len > 0) {
        tide_buf_append_str(buf, TIDE_STR("; confirmed up to "));
        append_position(buf, report->confirmed);
    }
    tide_buf_append_char(buf, '\n');
    begin_line(buf, "checkpoint");
    tide_buf_append_u64(buf, report->checkpoint_sequence);
    if (report->checkpoint_seconds_ago.len > 0) {
        tide_buf_append_str(buf, TIDE_STR(", saved "));
        tide_append_safe(buf, report->checkpoint_seconds_ago);
        tide_buf_append_str(buf, TIDE_STR(" s ago"));
    }
    tide_buf_append_char(buf, '\n');
}

static void print_counts(struct tide_buf *buf, const struct tide_status_report *report)
{
    begin_line(buf, "published");
    append_count(buf, report->rows, "row");
    tide_buf_append_str(buf, TIDE_STR(", "));
    append_count(buf, report->changes, "change");
    tide_buf_append_str(buf, TIDE_STR(", "));
    append_count(buf, report->dead_letters, "dead letter");
    tide_buf_append_char(buf, '\n');
    if (report->has_memory) {
        begin_line(buf, "memory");
        append_bytes(buf, report->memory_used);
        tide_buf_append_str(buf, TIDE_STR(" of "));
        append_bytes(buf, report->memory_limit);
        tide_buf_append_char(buf, '\n');
    }
}

static void add_count(struct tide_text_table *table, uint64_t count)
{
    char text[32];
    tide_format_count(text, count);
    tide_text_table_add(table, tide_str_from(text));
}

static void add_lane(struct tide_text_table *table, const struct tide_status_sink *sink)
{
    struct tide_buf cell TIDE_CLEANUP(tide_buf_done) = {0};
    append_bytes(&cell, sink->lane_bytes);
    tide_buf_append_str(&cell, TIDE_STR(" in "));
    tide_buf_append_u64(&cell, sink->lane_items);
    tide_text_table_add(table, tide_buf_str(&cell));
}

static void add_header(struct tide_text_table *table, const char *const *names)
{
    for (size_t i = 0; i < table->column_count; i++) {
        tide_text_table_add(table, tide_str_from(names[i]));
    }
}

static void add_sink(struct tide_text_table *table, const struct tide_status_sink *sink)
{
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    tide_text_table_add(table, sink->name);
    tide_text_table_add(table, sink->state);
    add_lane(table, sink);
    add_count(table, sink->rows);
    add_count(table, sink->stubs);
    add_count(table, sink->changes);
    append_bytes(&bytes, sink->bytes);
    tide_text_table_add(table, tide_buf_str(&bytes));
    add_count(table, sink->restarts);
}

static void print_error(struct tide_buf *buf, const struct tide_status_sink *sink)
{
    if (sink->error.len == 0) {
        return;
    }
    bool is_over = !is(sink->state, "waiting") && !is(sink->state, "failed");
    tide_append_safe(buf, sink->name);
    tide_buf_append_str(buf, is_over ? TIDE_STR(" met, and went on: ") : TIDE_STR(": "));
    tide_append_safe(buf, sink->error);
    if (sink->retry_seconds.len > 0) {
        tide_buf_append_str(buf, TIDE_STR("; tried again in "));
        tide_append_safe(buf, sink->retry_seconds);
        tide_buf_append_str(buf, TIDE_STR(" s"));
    }
    tide_buf_append_char(buf, '\n');
}

static void print_sinks(struct tide_buf *buf, const struct tide_status_report *report)
{
    static const char *const names[] = {"SINK",  "STATE",   "LANE",  "ROWS",
                                        "STUBS", "CHANGES", "BYTES", "RESTARTS"};
    struct tide_text_table table TIDE_CLEANUP(tide_text_table_done) = {
        .column_count = sizeof(names) / sizeof(names[0])};
    add_header(&table, names);
    for (size_t i = 0; i < report->sink_count; i++) {
        add_sink(&table, &report->sinks[i]);
    }
    tide_buf_append_char(buf, '\n');
    tide_text_table_print(&table, buf);
    for (size_t i = 0; i < report->sink_count; i++) {
        print_error(buf, &report->sinks[i]);
    }
}

static void add_snapshot(struct tide_text_table *table, const struct tide_status_snapshot *snapshot)
{
    struct tide_buf cell TIDE_CLEANUP(tide_buf_done) = {0};
    tide_text_table_add(table, snapshot->store);
    for (size_t i = 0; i < snapshot->sink_count; i++) {
        tide_buf_append_str(&cell, i == 0 ? TIDE_STR("") : TIDE_STR(", "));
        tide_buf_append_str(&cell, snapshot->sinks[i]);
    }
    tide_text_table_add(table, tide_buf_str(&cell));
    tide_buf_reset(&cell);
    tide_buf_append_str(&cell, snapshot->state);
    if (snapshot->attempt > 1) {
        tide_buf_printf(&cell, ", attempt %llu", (unsigned long long)snapshot->attempt);
    }
    if (snapshot->reason.len > 0) {
        tide_buf_append_str(&cell, TIDE_STR(": "));
        tide_buf_append_str(&cell, snapshot->reason);
    }
    add_count(table, snapshot->rows);
    tide_text_table_add(table, tide_buf_str(&cell));
}

static void print_snapshots(struct tide_buf *buf, const struct tide_status_report *report)
{
    static const char *const names[] = {"SNAPSHOT", "FOR", "ROWS", "STATE"};
    struct tide_text_table table TIDE_CLEANUP(tide_text_table_done) = {
        .column_count = sizeof(names) / sizeof(names[0])};
    size_t passed = 0;
    add_header(&table, names);
    for (size_t i = 0; i < report->snapshot_count; i++) {
        bool is_done = is(report->snapshots[i].state, "done");
        if (is_done && report->snapshot_count > SNAPSHOTS_LISTED_MAX) {
            passed++;
        } else {
            add_snapshot(&table, &report->snapshots[i]);
        }
    }
    tide_buf_append_char(buf, '\n');
    if (report->snapshot_count > passed) {
        tide_text_table_print(&table, buf);
    }
    if (passed > 0) {
        append_count(buf, passed, passed == report->snapshot_count ? "snapshot" : "more snapshot");
        tide_buf_append_str(buf, passed == 1 ? TIDE_STR(" is done\n") : TIDE_STR(" are done\n"));
    }
}

void tide_status_print(struct tide_buf *buf, const struct tide_status_report *report)
{
    print_head(buf, report);
    print_lag(buf, report);
    print_positions(buf, report);
    print_counts(buf, report);
    print_sinks(buf, report);
    if (report->snapshot_count > 0) {
        print_snapshots(buf, report);
    }
}
