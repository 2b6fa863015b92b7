/* What `tidemark dead-letters` shows of a letter. */
#pragma once

#include "base/buf.h"
#include "format/dead_letter.h"

/** A line for people: id, when, sink, store, place, size, reason. */
void tide_dead_letter_print_line(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                 bool is_replayed);

/** The same and more as a line of JSON, all but the record. */
void tide_dead_letter_print_json(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                 bool is_replayed);

/** The whole letter for people: a line for each of its keys, then the record. */
void tide_dead_letter_print_whole(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                  bool is_replayed);
