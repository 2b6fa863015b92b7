/* Base64 (RFC 4648, section 4), padded. Pure. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/** Appends the text of the bytes. */
void tide_base64_append(struct tide_buf *buf, tide_str bytes);

/** The bytes, in `arena`; false when `text` is not padded base64 and nothing else. */
bool tide_base64_decode(tide_str text, struct tide_arena *arena, tide_str *ret_bytes);
