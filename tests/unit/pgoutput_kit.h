/* What the tests of the replication messages share: hex, tight memory, messages as text. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "source/postgres/pgoutput.h"

/** Appends the bytes of lower-case hex. */
void pgoutput_unhex(tide_str hex, struct tide_buf *buf);

/** A copy in memory of just its size, so that a sanitizer sees a byte read too far. */
tide_str pgoutput_exact(tide_str bytes);
void pgoutput_free(tide_str bytes);

/** Appends the message as one line of text with everything that is in it. */
void pgoutput_print(struct tide_buf *out, const struct tide_pgoutput *message);
