/*
 * Values that a configuration only names: `${NAME}` of the environment and `${file:PATH}`. Nothing
 * here puts what they stand for into a message.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"

/**
 * Appends `text` with what it names in the names' place; `$${` gives `${`. Of a file a line end at
 * its end is left out. As user or password of a URL (`scheme://user:${NAME}@host`) it is
 * percent-encoded.
 *
 * Input:   relative paths are `dir`'s.
 * Errors:  TIDE_INVALID saying which name stands for nothing; `buf` may then have a part.
 */
tide_status tide_secrets_expand(tide_str text, const char *dir, struct tide_buf *buf,
                                struct tide_error *err);
