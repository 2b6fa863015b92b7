#include "app/pipeline/copy_report.h"

#include "app/commands.h"
#include "app/pipeline/progress.h"

void tide_copy_report_notes(struct tide_copy_report *report, tide_str notes)
{
    (void)report;
    if (notes.len > 0) {
        (void)fprintf(stderr, "%.*s%s", TIDE_STR_ARG(notes),
                      notes.ptr[notes.len - 1] == '\n' ? "" : "\n");
    }
}

void tide_copy_report_opened(struct tide_copy_report *report, struct tide_pipeline *pipeline)
{
    static const char *const found[] = {
        [TIDE_PIPELINE_NEW] = "starting",
        [TIDE_PIPELINE_RESUMED] = "going on",
        [TIDE_PIPELINE_LEFTOVER] = "clearing up after a copy that had ended",
    };
    report->was_opened = true;
    report->found = tide_pipeline_found(pipeline);
    report->has_capture = report->found == TIDE_PIPELINE_RESUMED;
    (void)snprintf(report->pipeline, sizeof(report->pipeline), "%s", tide_pipeline_name(pipeline));
    (void)fprintf(stderr, "%s to %s: %s; state in %s\n", report->source, report->sink,
                  found[report->found], report->state_dir);
}

static void say_failure(void *context, tide_str store, const char *why)
{
    struct tide_copy_report *report = context;
    report->tables_failed++;
    (void)fprintf(stderr, "table %.*s was not copied: %s\n", TIDE_STR_ARG(store), why);
}

void tide_copy_report_ended(struct tide_copy_report *report, struct tide_pipeline *pipeline)
{
    report->has_ended = true;
    report->tables = tide_pipeline_table_count(pipeline);
    report->tables_unfollowed = tide_pipeline_unfollowed_count(pipeline);
    tide_pipeline_counts(pipeline, &report->counts);
    tide_pipeline_each_failure(pipeline, say_failure, report);
}

static const char *verdict(const struct tide_copy_report *report, tide_status status)
{
    if (status != TIDE_OK) {
        return "failed";
    }
    if (report->is_following) {
        return "followed until stopped";
    }
    return !report->is_complete        ? "stopped before it was complete"
           : report->tables_failed > 0 ? "not complete"
                                       : "complete";
}

/* "1 row", "2,000 rows" */
static void format_noun(char ret_text[48], uint64_t count, const char *noun)
{
    char number[32];
    tide_format_count(number, count);
    (void)snprintf(ret_text, 48, "%s %s%s", number, noun, count == 1 ? "" : "s");
}

static void say_summary(const struct tide_copy_report *report, tide_status status)
{
    char tables[48];
    char rows[48];
    char stubs[48];
    char changes[48];
    char bytes[32];
    char duration[32];
    char sinks[32] = "";
    char unfollowed[96] = "";
    format_noun(tables, report->tables, "table");
    format_noun(rows, report->counts.rows, "row");
    format_noun(stubs, report->counts.stubs, "stub");
    format_noun(changes, report->counts.changes, "change");
    tide_format_bytes(bytes, report->counts.bytes);
    tide_format_duration(duration, report->duration_us);
    if (report->sink_count > 1) {
        (void)snprintf(sinks, sizeof(sinks), " to %zu sinks", report->sink_count);
    }
    if (report->tables_unfollowed > 0) {
        char others[48];
        format_noun(others, report->tables_unfollowed, "table");
        (void)snprintf(unfollowed, sizeof(unfollowed), "; not in it: %s that cannot be followed",
                       others);
    }
    (void)fprintf(report->to, "%s: %s%s,%s %s, %s, %s, %s in %s%s\n", verdict(report, status),
                  tables, sinks, report->found == TIDE_PIPELINE_RESUMED ? " in this run" : "", rows,
                  stubs, changes, bytes, duration, unfollowed);
}

/* Of this run: what its sinks could not take as it is. */
static void say_refused(const struct tide_copy_report *report)
{
    char count[48];
    if (report->counts.dead_letters > 0) {
        format_noun(count, report->counts.dead_letters, "dead letter");
        (void)fprintf(stderr, "%s: `tidemark dead-letters list %s` shows %s\n", count,
                      report->state_dir, report->counts.dead_letters == 1 ? "it" : "them");
    }
    if (report->counts.skipped > 0) {
        format_noun(count, report->counts.skipped, "refused record");
        (void)fprintf(stderr, "%s skipped, as `refused` says\n", count);
    }
}

static void say_what_is_left(const struct tide_copy_report *report, tide_status status)
{
    if (report->is_detached || !report->has_capture) {
        return;
    }
    /* what does not fit together any more cannot be gone on from */
    bool goes_on = status != TIDE_STALE;
    (void)fprintf(stderr, "%s %s%s\n    tidemark detach ",
                  goes_on ? "change capture stays in" : "what may be left in", report->source,
                  goes_on ? ": run the same command again to go on, or" : " is removed by");
    if (report->configuration != NULL) {
        (void)fprintf(stderr, "%s", report->configuration);
    } else {
        (void)fprintf(stderr, "%s --pipeline %s", report->source, report->pipeline);
    }
    (void)fprintf(stderr, "%s\n", goes_on ? "\nto remove it" : "");
}

int tide_copy_report_end(struct tide_copy_report *report, tide_status status,
                         const struct tide_error *err)
{
    if (report->has_ended) {
        say_summary(report, status);
        say_refused(report);
    }
    if (report->found == TIDE_PIPELINE_LEFTOVER && report->was_opened && status == TIDE_OK) {
        (void)fprintf(report->to, "what an ended copy had left in %s has been removed\n",
                      report->source);
        return TIDE_EXIT_DONE;
    }
    int exit_status = tide_command_end(report->command, status, err);
    if (report->has_ended || status != TIDE_OK) {
        say_what_is_left(report, status);
    }
    if (status != TIDE_OK) {
        return exit_status;
    }
    bool is_good = report->is_following || (report->is_complete && report->tables_failed == 0);
    return is_good ? TIDE_EXIT_DONE : TIDE_EXIT_NO;
}
