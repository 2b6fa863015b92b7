/* Text from outside on a terminal. */
#pragma once

#include "base/buf.h"

/** Appends it as it is, but for bytes that a terminal would act on (C0, DEL and C1 controls): those
 * as \xNN. */
void tide_append_safe(struct tide_buf *buf, tide_str text);
