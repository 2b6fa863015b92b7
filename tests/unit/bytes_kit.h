/* What tests of codecs share: hex, and memory of just the right size. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/** Appends the bytes of lower-case hex. */
void bytes_unhex(tide_str hex, struct tide_buf *buf);

/** A copy in memory of just its size, so that a sanitizer sees a byte read too far. */
tide_str bytes_exact(tide_str bytes);
void bytes_free(tide_str bytes);
