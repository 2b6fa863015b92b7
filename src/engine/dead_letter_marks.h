/*
 * Which dead letters were replayed: their ids in `dead_letters.replayed` of the state directory
 * (0600), one a line. The letters themselves stay as they are. May be used while a pipeline runs,
 * and by several at once.
 */
#pragma once

#include "engine/dead_letter_ids.h"

/** Adds those that are marked to `ids`, which was made for any number of them. Errors: TIDE_IO. */
tide_status tide_dead_letter_marks_read(const char *dir, struct tide_dead_letter_ids *ids,
                                        struct tide_error *err);

/** Marks them durably; what an interrupted one left of a line is cut. Errors: TIDE_IO. */
tide_status tide_dead_letter_marks_add(const char *dir, const struct tide_dead_letter_id *ids,
                                       size_t count, struct tide_error *err);
