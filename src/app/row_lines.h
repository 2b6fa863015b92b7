/*
 * Rows of cells as CSV or as a table for people, and lines of JSON, on standard output as they
 * come. A failed write ends it: nobody reads on, or the disk is full; the program says so when it
 * ends.
 */
#pragma once

#include "app/text_table.h"
#include "base/buf.h"
#include "base/status.h"
#include "model/value.h"

#include <stdbool.h>

enum tide_row_format {
    TIDE_ROWS_NDJSON,
    TIDE_ROWS_CSV,
    TIDE_ROWS_TABLE, /* held until the end, so that columns are as wide as they must be */
};

struct tide_row_lines {
    enum tide_row_format format;
    size_t column_count;
    struct tide_buf buf; /* of lines, for whoever writes NDJSON too */
    size_t column;       /* of the next cell */
    struct tide_text_table table;
    struct tide_buf cell;
    struct tide_buf shown;
};

/** False when it is none of ndjson, csv, table. */
bool tide_row_format_parse(const char *name, enum tide_row_format *ret_format);

/** Rows of so many cells; 0 for NDJSON. */
void tide_row_lines_init(struct tide_row_lines *lines, enum tide_row_format format,
                         size_t column_count);

/** Frees what is not written. For TIDE_CLEANUP too. */
void tide_row_lines_done(struct tide_row_lines *lines);

/** The next cell of a row (not of NDJSON); the row ends with its last column. */
void tide_row_lines_add(struct tide_row_lines *lines, tide_str text);

/** A cell that is no text: empty in CSV, where empty text is `""`. */
void tide_row_lines_add_none(struct tide_row_lines *lines);

/** A value as a cell: text as it is, bytes as base64, JSON as JSON. */
void tide_row_lines_add_value(struct tide_row_lines *lines, struct tide_value value);

/**
 * Writes what has gathered, when it is enough or `is_end`.
 * Errors: TIDE_CLOSED nobody reads on; TIDE_IO. Both have been dealt with for the program's end.
 */
tide_status tide_row_lines_write(struct tide_row_lines *lines, bool is_end, struct tide_error *err);
