/*
 * One column of the row group that is being written: its values and levels until the group is
 * whole, then its pages. Pure. Private to this folder.
 *
 * Values stand in `plain`, or as numbers in `indexes` as long as a dictionary pays. A chunk has
 * either a dictionary or plain values, never both.
 */
#pragma once

#include "format/parquet/codec.h"
#include "format/parquet/dictionary.h"
#include "format/parquet/metadata.h"

struct tide_parquet_column_writer {
    const struct tide_parquet_column *column;
    const struct tide_parquet_leaf *leaf;
    enum tide_parquet_storage storage;
    size_t dictionary_bytes_max; /* 0: never a dictionary */
    bool has_dictionary;         /* in this row group, so far */
    unsigned rest;               /* row groups to come that do not try one */

    struct tide_buf plain;   /* booleans a byte each */
    struct tide_buf indexes; /* uint32_t */
    struct tide_parquet_dictionary dictionary;
    struct tide_buf definitions; /* a byte an entry; empty while all are the highest */
    struct tide_buf repetitions; /* a byte an entry; of lists alone */

    size_t row_count;
    size_t entry_count; /* rows, or elements and empty and null lists */
    size_t value_count; /* entries that are values */
    size_t null_count;
    size_t plain_size; /* of all values, PLAIN */
    size_t list_left;  /* elements that the current list lacks */
    bool is_list_start;
    const char *mistake; /* what a value was that cannot be written; NULL while all is well */
};

/** An empty column. `column` and `leaf` must stay. */
void tide_parquet_column_writer_init(struct tide_parquet_column_writer *writer,
                                     const struct tide_parquet_column *column,
                                     const struct tide_parquet_leaf *leaf,
                                     size_t dictionary_bytes_max);
void tide_parquet_column_writer_done(struct tide_parquet_column_writer *writer);

/** Forgets all values, keeps the memory. */
void tide_parquet_column_writer_reset(struct tide_parquet_column_writer *writer);

/** A null: a row's, or an element's within a list. */
void tide_parquet_column_writer_null(struct tide_parquet_column_writer *writer);

/** A list of `count` elements, which follow. */
void tide_parquet_column_writer_list(struct tide_parquet_column_writer *writer, size_t count);

/** A value as it stands in the file, without a length before it. */
void tide_parquet_column_writer_value(struct tide_parquet_column_writer *writer, const void *bytes,
                                      size_t len);

/** Bytes in memory that wait for the row group's end. */
size_t tide_parquet_column_writer_size(const struct tide_parquet_column_writer *writer);

/** Gives up the dictionary: its values become plain ones. */
void tide_parquet_column_writer_leave_dictionary(struct tide_parquet_column_writer *writer);

struct tide_parquet_pages {
    struct tide_parquet_packer packer;
    size_t page_bytes;      /* before compression; where a page ends, at a row's end */
    struct tide_buf body;   /* scratch */
    struct tide_buf packed; /* scratch */
};

/**
 * Appends the column's pages to `out` and describes them; the column is then empty.
 * Statistics live in `arena`. TIDE_INVALID when one row takes more than
 * TIDE_PARQUET_PAGE_BYTES_MAX.
 */
tide_status tide_parquet_column_writer_flush(struct tide_parquet_column_writer *writer,
                                             struct tide_parquet_pages *pages, struct tide_buf *out,
                                             struct tide_arena *arena,
                                             struct tide_parquet_chunk *ret_chunk,
                                             struct tide_error *err);
