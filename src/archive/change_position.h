/*
 * Positions as the text that a segment has of them: the source's own JSON, or `[hi,lo]` where that
 * would not give them back. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "model/position.h"

/** The kind of that name, or NULL. */
const struct tide_position_kind *tide_change_position_kind(tide_str name);

/** `kind` may be NULL. */
void tide_change_position_append(struct tide_buf *buf, const struct tide_position_kind *kind,
                                 struct tide_position position);

/** The same as users write it: without the quotes that JSON has. */
void tide_change_position_show(struct tide_buf *buf, const struct tide_position_kind *kind,
                               struct tide_position position);

/** TIDE_CORRUPT when it is none. */
tide_status tide_change_position_parse(tide_str text, const struct tide_position_kind *kind,
                                       struct tide_position *ret_position, struct tide_error *err);
