/* Appending JSON (RFC 8259), compact. Nothing here checks structure: callers write `{`, `,`
 * themselves. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/**
 * A JSON string in quotes. `text` must be valid UTF-8 (asserted in debug builds only). Escapes `"`,
 * `\`, and controls below 0x20 (\b \f \n \r \t, else \u00XX lower case); everything else goes out
 * as it is.
 */
void tide_json_append_string(struct tide_buf *buf, tide_str text);

/** Bytes as base64 (RFC 4648, padded) in quotes. */
void tide_json_append_base64(struct tide_buf *buf, tide_str bytes);

/** `"name":` — a key with its colon. */
void tide_json_append_key(struct tide_buf *buf, tide_str name);
