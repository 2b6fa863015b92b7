/* The parts of a pipeline apart on disk: nothing is ever written over the database that it is made
 * of, over its configuration or its state, or where another of its sinks writes.
 */
#pragma once

#include "engine/pipeline.h"

/**
 * TIDE_INVALID when a sink or the state would write to a file of the source's database, or a sink
 * to the configuration, into the state directory or where another sink writes: the same file by
 * whatever name (symbolic or hard link), also one that would be made later (beside a database, for
 * a table). Looks only; nothing is opened or made.
 *
 * Input:   `configuration` is the file's path as of now; NULL for none.
 */
tide_status tide_check_apart(const struct tide_pipeline_options *options, const char *configuration,
                             struct tide_error *err);

/**
 * The same, all that is wrong as findings. `ret_is_refused` has an element for each sink: whether
 * one is about it.
 */
void tide_check_each_apart(const struct tide_pipeline_options *options, const char *configuration,
                           struct tide_findings *findings, bool *ret_is_refused);
