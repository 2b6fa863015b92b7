/* Running a pipeline for a user: what `tidemark copy` and `tidemark run` share. */
#pragma once

#include "app/pipeline/copy_report.h"
#include "engine/pipeline.h"

/**
 * Opens the pipeline, runs it until it ends, fails or a stop signal comes, waits for what was
 * published to be held (a second signal cuts that short), and notes it all in `report`. What an
 * ended copy has left in the source is removed instead.
 *
 * Input:   `options->stream` is taken over. A one-shot copy that is complete is detached unless
 *          `report->is_keeping`. `configuration` is its file's path as of now; NULL for none.
 * Threads: blocks the stop signals; once a process, before it starts threads.
 */
tide_status tide_run_pipeline(const struct tide_pipeline_options *options,
                              const char *configuration, bool is_quiet,
                              struct tide_copy_report *report, struct tide_error *err);
