/* Rows and keys of a source as JSON objects (docs/formats.md has how each kind of value is
 * written). */
#pragma once

#include "base/buf.h"
#include "model/relation.h"
#include "model/value.h"

/** One value as JSON. NULL, UNCHANGED and ABSENT must not get here but NULL, which is `null`. */
void tide_record_append_value(struct tide_buf *buf, struct tide_value value);

/** `{"column":value,…}` in table order; UNCHANGED and ABSENT columns are left out. */
void tide_record_append(struct tide_buf *buf, const struct tide_relation *relation,
                        const struct tide_value *values);

/** `{"column":value,…}` of the key columns in key order; ABSENT ones are left out. */
void tide_record_append_key(struct tide_buf *buf, const struct tide_relation *relation,
                            const struct tide_value *key);

/** The key's values as a JSON array: the row_key of a stub. */
void tide_record_append_row_key(struct tide_buf *buf, const struct tide_relation *relation,
                                const struct tide_value *key);
