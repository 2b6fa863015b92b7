/* A Parquet file of a series' rows, row by row. Pure. Private to change_*.c. */
#pragma once

#include "archive/change_plan.h"
#include "archive/change_row.h"
#include "base/status.h"
#include "base/str.h"

struct tide_change_reader;

/**
 * Opens a segment and reads of which columns it is.
 *
 * Owns:   borrows from `bytes`.
 * Errors: TIDE_CORRUPT it is no segment of ours; TIDE_UNSUPPORTED of another version.
 */
tide_status tide_change_reader_new(tide_str bytes, struct tide_change_reader **ret_reader,
                                   struct tide_error *err);
void tide_change_reader_free(struct tide_change_reader *reader);
void tide_change_reader_free_ptr(struct tide_change_reader **reader);

/** Of the rows; lives as long as the reader. */
const struct tide_change_schema *tide_change_reader_schema(const struct tide_change_reader *reader);

/** The same as the file has it, the JSON of change_schema.h. */
tide_str tide_change_reader_json(const struct tide_change_reader *reader);

/**
 * Before the first row: they come without `tx`, `prev`, `moved_from` and values, and without their
 * keys unless they are stubs; the table's columns are not read then. What is left out is zero.
 */
void tide_change_reader_want_heads(struct tide_change_reader *reader);

/** Whether the newest row's values are of their kinds by the way they were made; else that is to be
 * checked. */
bool tide_change_reader_is_sound(const struct tide_change_reader *reader);

/** The next row, valid until the next call. TIDE_END after the last, TIDE_CORRUPT. */
tide_status tide_change_reader_next(struct tide_change_reader *reader, int64_t *ret_time,
                                    struct tide_change_row *ret_row, struct tide_error *err);
