/* Runs an ingest engine in the calling thread, with a chunk reader's thread beside it. */
#pragma once

#include "engine/ingest.h"

/**
 * Pulls, copies, publishes and confirms until stopped. With `is_one_shot` it ends by itself, with
 * TIDE_END, once every request is done and all changes up to that moment are held.
 * TIDE_CANCELLED: tide_ingest_stop was called. Others: what went wrong; a new run resumes.
 */
tide_status tide_ingest_run(struct tide_ingest *ingest, const struct tide_source_ops *ops,
                            struct tide_source *source, bool is_one_shot, struct tide_error *err);
