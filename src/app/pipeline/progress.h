/* What a running copy says: a bar on a terminal, a line every ten seconds elsewhere, on standard
 * error. */
#pragma once

#include "engine/pipeline.h"

#include <stdint.h>
#include <stdio.h>

struct tide_progress_view {
    bool is_terminal;
    bool is_quiet;
    int64_t started_us;
    int64_t shown_us;
    int64_t rate_us; /* when rows were counted last */
    uint64_t rate_rows;
    double rows_per_s; /* for people; smoothed */
    bool has_line;     /* a bar stands on the terminal's last line */
};

/** What is shown from now on: bars on a terminal, lines elsewhere, nothing when quiet. */
void tide_progress_view_init(struct tide_progress_view *view, const struct tide_pipeline *pipeline,
                             bool is_quiet);

/** When `show` has something to do next. */
int64_t tide_progress_view_deadline(const struct tide_progress_view *view);

/** Shows where the copy is, when it is time. */
void tide_progress_view_show(struct tide_progress_view *view, struct tide_pipeline *pipeline);

/** Takes the bar away, so that other output starts on a line of its own. */
void tide_progress_view_clear(struct tide_progress_view *view);

/** "1,234,567" */
void tide_format_count(char ret_text[32], uint64_t count);
/** "12.3 MiB" */
void tide_format_bytes(char ret_text[32], uint64_t bytes);
/** "1 m 23 s" */
void tide_format_duration(char ret_text[32], int64_t duration_us);
