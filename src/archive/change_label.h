/*
 * A value of any kind as text that people can read and that gives back exactly the value: the kind,
 * and the text. Pure.
 *
 *     text:abc    integer:5    real:NaN    bytes:3q2+7w==    null    absent
 *
 * Bytes and what is not UTF-8 are base64; of a kind that should be text, `;base64` says so.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "model/value.h"

#include <stdbool.h>

/** The kind: "integer", "text;base64". Static. */
tide_str tide_change_label_kind(struct tide_value value);

/** Appends the text that belongs to it. */
void tide_change_label_append_text(struct tide_buf *buf, struct tide_value value);

/** Appends `kind:text`; for null, unchanged and absent the kind alone. */
void tide_change_label_append(struct tide_buf *buf, struct tide_value value);

/** The value of a kind and a text; what is made lives in `arena`. False when they are none. */
bool tide_change_label_join(tide_str kind, tide_str text, struct tide_arena *arena,
                            struct tide_value *ret_value);

/** The value of a whole `kind:text`. */
bool tide_change_label_parse(tide_str label, struct tide_arena *arena,
                             struct tide_value *ret_value);
