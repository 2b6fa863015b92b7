/*
 * What a file sink does with what it finds at its place: goes on with its own copy, begins beside
 * or over what is there, or refuses with the ways on.
 */
#pragma once

#include "port/sink.h"
#include "sink/file/file_set.h"

/**
 * Makes an initialised `set` ready for writing. Nothing on disk has changed when it fails with
 * TIDE_INVALID, TIDE_STALE, TIDE_CORRUPT or TIDE_UNSUPPORTED.
 */
tide_status tide_file_set_prepare(struct tide_file_set *set,
                                  const struct tide_sink_options *options, struct tide_error *err);

/** Whether prepare would work, as far as can be seen without changing or locking anything. */
tide_status tide_file_set_look(struct tide_file_set *set, const struct tide_sink_options *options,
                               struct tide_error *err);
