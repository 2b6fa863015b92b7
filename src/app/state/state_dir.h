/* Where a copy without --state keeps its state. */
#pragma once

#include "base/buf.h"

/** Appends `.tidemark/<source>-to-<sink>-<hash>`: the same for the same two places. */
void tide_state_dir_default(struct tide_buf *buf, const char *source, const char *sink);
