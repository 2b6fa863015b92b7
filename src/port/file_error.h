/* Which errors of files pass by themselves: only those are worth opening a sink again. */
#pragma once

#include "base/status.h"

/**
 * TIDE_IO for the system's `error`: retriable (a disk that has room again, a descriptor that is
 * free, a share that is back) unless only somebody can mend it: a name that is taken or leads
 * nowhere, missing rights, a directory that is gone.
 */
tide_status tide_file_fail(struct tide_error *err, int error, const char *what, const char *path);

/** The same for a TIDE_IO of base/fsio.h: sets `err->retriable`. */
void tide_file_judge(struct tide_error *err, int error);
