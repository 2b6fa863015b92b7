/*
 * Writes a table as a Parquet file in memory. Pure; for one thread at a time.
 *
 * Values are added column by column: any number of them to a column, then some to the next, as long
 * as each column has the same number of rows when tide_parquet_writer_end_rows is called. A row of
 * a list column is one list and its elements, or a null.
 *
 *     "PAR1", row groups (column chunks of pages), footer, u32 size of the footer, "PAR1"
 */
#pragma once

#include "format/parquet/codec.h"
#include "format/parquet/schema.h"

struct tide_parquet_options {
    enum tide_parquet_codec codec;
    int level;                   /* of zstd, 1 to 19 */
    size_t page_bytes;           /* before compression: a page ends with the row that fills it */
    size_t dictionary_bytes_max; /* of one column in one row group; 0: no dictionaries */
    size_t row_group_rows;       /* a row group ends at the first end of rows that reaches */
    size_t row_group_bytes;      /* either of these; bytes before compression */
    tide_str created_by;         /* "tidemark version X" when empty; must stay */
};

/** zstd, dictionaries, pages of 1 MiB, row groups of 128 Ki rows or 64 MiB. */
struct tide_parquet_options tide_parquet_options_default(void);

struct tide_parquet_pair; /* metadata.h: what else the file says about itself */
struct tide_parquet_writer;

/**
 * An empty table. Columns are copied. TIDE_INVALID when a column or an option cannot be.
 */
tide_status tide_parquet_writer_new(const struct tide_parquet_column *columns, size_t count,
                                    const struct tide_parquet_options *options,
                                    struct tide_parquet_writer **ret_writer,
                                    struct tide_error *err);
void tide_parquet_writer_free(struct tide_parquet_writer *writer);

/** For TIDE_CLEANUP. */
void tide_parquet_writer_free_ptr(struct tide_parquet_writer **writer);

/** A file anew: forgets all rows, keeps columns, options and memory. */
void tide_parquet_writer_reset(struct tide_parquet_writer *writer);

/**
 * Adds one value in the form that its column's type has (tide_parquet_storage_of): a row's, or an
 * element's of the list that was added last. Bytes are copied. Another form, or a null where there
 * can be none, is a mistake of the caller and aborts. A value that its type cannot hold (an integer
 * out of the type's range, a decimal of more digits, a UUID that is not 16 bytes, bytes over
 * 1 GiB) is told by the next tide_parquet_writer_end_rows. Text is taken for UTF-8.
 */
void tide_parquet_add_null(struct tide_parquet_writer *writer, size_t column);
void tide_parquet_add_bool(struct tide_parquet_writer *writer, size_t column, bool value);
void tide_parquet_add_i32(struct tide_parquet_writer *writer, size_t column, int32_t value);
void tide_parquet_add_i64(struct tide_parquet_writer *writer, size_t column, int64_t value);
void tide_parquet_add_float(struct tide_parquet_writer *writer, size_t column, float value);
void tide_parquet_add_double(struct tide_parquet_writer *writer, size_t column, double value);
void tide_parquet_add_i128(struct tide_parquet_writer *writer, size_t column, tide_int128 value);
void tide_parquet_add_bytes(struct tide_parquet_writer *writer, size_t column, tide_str value);

/** A list of `count` elements, which are added next. */
void tide_parquet_add_list(struct tide_parquet_writer *writer, size_t column, size_t count);

/**
 * Ends `count` rows, which every column must have. May write a row group.
 *
 * Errors: TIDE_INVALID when a value cannot be written. The file is then lost: reset or free.
 */
tide_status tide_parquet_writer_end_rows(struct tide_parquet_writer *writer, size_t count,
                                         struct tide_error *err);

/** Rows so far. */
size_t tide_parquet_writer_rows(const struct tide_parquet_writer *writer);

/** Bytes so far: of the row groups written, and those before compression of what waits. */
size_t tide_parquet_writer_size(const struct tide_parquet_writer *writer);

/**
 * Ends the file. Nothing can be added then until it is reset.
 *
 * Owns:   `ret_bytes` borrows from the writer until it is reset or freed.
 * Errors: as of tide_parquet_writer_end_rows.
 */
tide_status tide_parquet_writer_finish(struct tide_parquet_writer *writer,
                                       const struct tide_parquet_pair *pairs, size_t pair_count,
                                       tide_str *ret_bytes, struct tide_error *err);
