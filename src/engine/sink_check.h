/* What would keep a pipeline's state and sinks from being opened, found out from outside. */
#pragma once

#include "engine/pipeline.h"

/**
 * Appends what is wrong with the state directory and with each sink, as the next run would find
 * them: going on from the checkpoint, or anew. Changes nothing, takes no lock, opens no source.
 * Errors: those of a sink's check.
 */
tide_status tide_pipeline_check_sinks(const struct tide_pipeline_options *options,
                                      struct tide_findings *findings, struct tide_error *err);
