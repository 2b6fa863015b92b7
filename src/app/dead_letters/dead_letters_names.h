/* Which sinks and tables there are dead letters of: for who asked for others. */
#pragma once

#include "app/dead_letters/dead_letters_view.h"
#include "base/buf.h"

/**
 * Appends one sentence: that no letter is in the view, and of which sinks and tables there are
 * some. Errors: as tide_dead_letters_view.
 */
tide_status tide_dead_letters_say_none(const char *dir, const struct tide_dead_letters_view *view,
                                       struct tide_buf *buf, struct tide_error *err);
