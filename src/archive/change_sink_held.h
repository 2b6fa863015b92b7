/* What a sink holds, as its record in the archive says (port/owner.h). */
#pragma once

#include "archive/catalogue.h"
#include "port/owner.h"

/** Reads the record of a source, if it has one; what is known already stays in `progress`. `owner`
 * is in the arena. TIDE_CORRUPT for a record that does not follow its layout. */
tide_status tide_change_sink_held_read(struct tide_archive *archive, int64_t source,
                                       struct tide_arena *arena, bool *ret_is_any,
                                       struct tide_owner *ret_owner,
                                       struct tide_progress *ret_progress, struct tide_error *err);

/** Takes in the bytes of such a record. Memory and errors likewise, without saying where. */
tide_status tide_change_sink_held_decode(tide_str bytes, struct tide_arena *arena,
                                         struct tide_owner *ret_owner,
                                         struct tide_progress *ret_progress,
                                         struct tide_error *err);
