/* What `tidemark copy` and `tidemark run` say before and after the run. */
#pragma once

#include "engine/pipeline.h"

#include <stdio.h>

struct tide_copy_report {
    const char *command;       /* "copy" or "run" */
    const char *configuration; /* its file; NULL: none */
    const char *source;        /* as the user wrote them */
    const char *sink;          /* or the names of several */
    size_t sink_count;
    const char *state_dir;
    bool is_following;
    bool is_keeping; /* a complete one-shot copy leaves its things in the source */
    FILE *to;        /* the summary; standard error when frames go to standard output */
    bool was_opened;
    enum tide_pipeline_found found;
    char pipeline[256];
    bool has_capture; /* its things are in the source */
    bool has_ended;   /* the run came as far as counting */
    bool is_complete;
    bool is_detached;
    struct tide_findings removed;
    int64_t duration_us;
    uint64_t tables;
    uint64_t tables_failed;
    uint64_t tables_unfollowed; /* were chosen, but cannot be followed */
    struct tide_sink_counts counts;
};

/** Lines found while opening, on standard error. */
void tide_copy_report_notes(struct tide_copy_report *report, tide_str notes);

/** Where the state is and whether the copy begins or goes on, on standard error. */
void tide_copy_report_opened(struct tide_copy_report *report, struct tide_pipeline *pipeline);

/** Counts what the run did. */
void tide_copy_report_ended(struct tide_copy_report *report, struct tide_pipeline *pipeline);

/** The summary, what is left in the source and how to go on or remove it; returns the exit status.
 */
int tide_copy_report_end(struct tide_copy_report *report, tide_status status,
                         const struct tide_error *err);
