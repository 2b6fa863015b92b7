#include "app/pipeline/progress.h"

#include "base/clock.h"

#include <string.h>
#include <unistd.h>

#define TERMINAL_EVERY_US 200000
#define LINE_EVERY_US     10000000
#define BAR_WIDTH         24

void tide_format_count(char ret_text[32], uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            ret_text[at++] = ',';
        }
        ret_text[at++] = digits[i];
    }
    ret_text[at] = '\0';
}

void tide_format_bytes(char ret_text[32], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    uint64_t tenths = bytes * 10;
    while (tenths >= 10240 && unit < 4) {
        tenths /= 1024;
        unit++;
    }
    if (unit == 0) {
        (void)snprintf(ret_text, 32, "%llu B", (unsigned long long)bytes);
    } else {
        (void)snprintf(ret_text, 32, "%llu.%llu %s", (unsigned long long)(tenths / 10),
                       (unsigned long long)(tenths % 10), units[unit]);
    }
}

void tide_format_duration(char ret_text[32], int64_t duration_us)
{
    long long tenths = duration_us / 100000;
    if (tenths < 600) {
        (void)snprintf(ret_text, 32, "%lld.%lld s", tenths / 10, tenths % 10);
    } else if (tenths < 36000) {
        (void)snprintf(ret_text, 32, "%lld m %lld s", tenths / 600, tenths / 10 % 60);
    } else {
        (void)snprintf(ret_text, 32, "%lld h %lld m", tenths / 36000, tenths / 600 % 60);
    }
}

void tide_progress_view_init(struct tide_progress_view *view, const struct tide_pipeline *pipeline,
                             bool is_quiet)
{
    int64_t now = tide_clock_monotonic_us();
    *view = (struct tide_progress_view){
        .is_terminal = isatty(STDERR_FILENO) == 1,
        .is_quiet = is_quiet,
        .started_us = now,
        .shown_us = now,
        .rate_us = now,
        .rate_rows = atomic_load(&tide_pipeline_stats(pipeline)->rows_published),
    };
}

static int64_t every_us(const struct tide_progress_view *view)
{
    return view->is_terminal ? TERMINAL_EVERY_US : LINE_EVERY_US;
}

int64_t tide_progress_view_deadline(const struct tide_progress_view *view)
{
    return view->is_quiet ? tide_clock_deadline_us(LINE_EVERY_US) : view->shown_us + every_us(view);
}

static void update_rate(struct tide_progress_view *view, uint64_t rows, int64_t now)
{
    int64_t passed = now - view->rate_us;
    if (passed <= 0) {
        return;
    }
    double rate = (double)(rows - view->rate_rows) * 1e6 / (double)passed;
    view->rows_per_s = view->rows_per_s == 0.0 ? rate : view->rows_per_s * 0.7 + rate * 0.3;
    view->rate_us = now;
    view->rate_rows = rows;
}

/* [########----------------] by rows where the source could estimate them, else by tables. */
static void draw_bar(char *text, uint64_t done, uint64_t total)
{
    uint64_t filled = total == 0 ? 0 : done >= total ? BAR_WIDTH : done * BAR_WIDTH / total;
    text[0] = '[';
    for (uint64_t i = 0; i < BAR_WIDTH; i++) {
        text[1 + i] = i < filled ? '#' : '-';
    }
    text[1 + BAR_WIDTH] = ']';
    text[2 + BAR_WIDTH] = '\0';
}

static void show_line(struct tide_progress_view *view, struct tide_pipeline *pipeline)
{
    const struct tide_ingest_stats *stats = tide_pipeline_stats(pipeline);
    uint64_t done = atomic_load(&stats->copies_done) + atomic_load(&stats->copies_failed);
    uint64_t total = atomic_load(&stats->copies_total);
    uint64_t rows = atomic_load(&stats->rows_published);
    uint64_t estimate = tide_pipeline_estimated_rows(pipeline);
    char bar[BAR_WIDTH + 3];
    char rows_text[32];
    char changes_text[32];
    char rate_text[32];
    bool by_rows = estimate >= rows && estimate > 0;
    draw_bar(bar, by_rows ? rows : done, by_rows ? estimate : total);
    if (total > 0 && done == total) {
        draw_bar(bar, 1, 1);
    }
    tide_format_count(rows_text, rows);
    tide_format_count(changes_text, atomic_load(&stats->changes_published));
    tide_format_count(rate_text, (uint64_t)view->rows_per_s);
    (void)fprintf(stderr, "%s%s tables %llu/%llu  rows %s (%s/s)  changes %s%s",
                  view->is_terminal ? "\r" : "", bar, (unsigned long long)done,
                  (unsigned long long)total, rows_text, rate_text, changes_text,
                  view->is_terminal ? "\033[K" : "\n");
    (void)fflush(stderr);
    view->has_line = view->is_terminal;
}

void tide_progress_view_show(struct tide_progress_view *view, struct tide_pipeline *pipeline)
{
    int64_t now = tide_clock_monotonic_us();
    if (view->is_quiet || now < view->shown_us + every_us(view)) {
        return;
    }
    view->shown_us = now;
    update_rate(view, atomic_load(&tide_pipeline_stats(pipeline)->rows_published), now);
    show_line(view, pipeline);
}

void tide_progress_view_clear(struct tide_progress_view *view)
{
    if (view->has_line) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        view->has_line = false;
    }
}
