/* Source and sink apart: a copy must never be written over the database that it is made of. */
#pragma once

#include "engine/pipeline.h"

/**
 * TIDE_INVALID when a sink or the state would write to a file of the source's database: the same
 * file by whatever name (symbolic or hard link), or a name that SQLite uses beside it. Looks only;
 * nothing is opened or made.
 */
tide_status tide_check_apart(const struct tide_pipeline_options *options, struct tide_error *err);
