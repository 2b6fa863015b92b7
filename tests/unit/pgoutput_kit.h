/* What the tests of the replication messages share: messages as text. */
#pragma once

#include "base/buf.h"
#include "bytes_kit.h"
#include "source/postgres/pgoutput.h"

/** Appends the message as one line of text with everything that is in it. */
void pgoutput_print(struct tide_buf *out, const struct tide_pgoutput *message);
