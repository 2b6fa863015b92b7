/* The text of a pg_snapshot: which transactions a statement sees. Pure; any thread. */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "model/chunk.h"

/**
 * Reads `xmin:xmax:xip,…` as pg_current_snapshot() writes it: `xip` ascending, each in
 * xmin..xmax-1, maybe none.
 *
 * Owns:   the list lives in `arena`.
 * Errors: TIDE_CORRUPT anything else.
 */
tide_status tide_pg_snapshot_parse(tide_str text, struct tide_arena *arena,
                                   struct tide_visibility *ret_visibility, struct tide_error *err);
