/* Which state directory a command is about, and whether a pipeline runs with it. */
#pragma once

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>

/**
 * Appends the state directory that `file` names: a configuration's, or itself. NULL: the only one
 * in `.tidemark` of the working directory. A configuration's need not be there yet.
 * Errors: TIDE_INVALID there is none, or several, which are listed on standard error.
 */
tide_status tide_state_find(const char *file, struct tide_buf *dir, struct tide_error *err);

/** Whether a process holds the directory's lock. Does not touch it: nobody is kept out by the
 * question. */
bool tide_state_is_held(const char *dir);
