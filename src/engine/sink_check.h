/* What would keep a pipeline's state and sinks from being opened, found out from outside. */
#pragma once

#include "engine/pipeline.h"

/**
 * Appends what would keep the source from being gone on with from the newest checkpoint: it is
 * another one, or an older or altered state of itself. One that cannot be opened is no finding.
 * Changes nothing, also while the pipeline runs.
 * Errors: TIDE_IO and such of looking at a source that was opened.
 */
tide_status tide_pipeline_check_source(const struct tide_pipeline_options *options,
                                       struct tide_findings *findings, struct tide_error *err);

/**
 * Appends what is wrong with the state directory and with each sink, as the next run would find
 * them: going on from the checkpoint, or anew. Changes nothing, takes no lock, opens no source.
 * Errors: those of a sink's check.
 */
tide_status tide_pipeline_check_sinks(const struct tide_pipeline_options *options,
                                      struct tide_findings *findings, struct tide_error *err);
