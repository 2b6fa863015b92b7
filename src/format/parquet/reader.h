/*
 * Reads a Parquet file in memory, column by column of each row group. Pure; for one thread at a
 * time. What is read, and what is refused by name, is in docs/parquet.md.
 */
#pragma once

#include "format/parquet/codec.h"
#include "format/parquet/metadata.h"
#include "format/parquet/schema.h"

struct tide_parquet_limits {
    size_t footer_bytes;
    size_t page_bytes;  /* before compression */
    size_t chunk_bytes; /* of one column of a row group, before compression */
    size_t values;      /* of one column of a row group; a list's elements count, so does a null */
    bool takes_any_checksum; /* for tests of what a damaged page does */
};

/** Those of base/limits.h. */
struct tide_parquet_limits tide_parquet_limits_default(void);

struct tide_parquet_reader;

/**
 * Reads the footer.
 *
 * Owns:   the reader borrows from `bytes`.
 * Errors: TIDE_CORRUPT when it is no whole Parquet file; TIDE_UNSUPPORTED when it is encrypted or
 *         beyond the limits.
 */
tide_status tide_parquet_reader_new(tide_str bytes, const struct tide_parquet_limits *limits,
                                    struct tide_parquet_reader **ret_reader,
                                    struct tide_error *err);
void tide_parquet_reader_free(struct tide_parquet_reader *reader);

/** For TIDE_CLEANUP. */
void tide_parquet_reader_free_ptr(struct tide_parquet_reader **reader);

/** Rows, columns, row groups with their statistics, key-value pairs. Lives as long as the reader.
 */
const struct tide_parquet_metadata *
tide_parquet_reader_metadata(const struct tide_parquet_reader *reader);

/** The column of that name, or the count of columns. */
size_t tide_parquet_reader_find(const struct tide_parquet_reader *reader, tide_str name);

/*
 * A column of one row group.
 *
 *     slot      one a row; of a list column one an element
 *     a null    has a zeroed slot
 *     a list    of row r is the slots list_starts[r] up to list_starts[r + 1]
 */
struct tide_parquet_values {
    enum tide_parquet_storage storage;
    size_t row_count;
    size_t slot_count;

    union {
        const uint8_t *bools;
        const int32_t *i32;
        const int64_t *i64;
        const float *floats;
        const double *doubles;
        const tide_int128 *i128;
        const tide_str *bytes;
    };

    const uint8_t *is_null;      /* one a slot; NULL when no slot is */
    size_t null_count;           /* slots */
    const uint32_t *list_starts; /* row_count + 1; NULL unless a list */
    const uint8_t *is_list_null; /* one a row; NULL when no list is */

    /* private: the memory of the above */
    struct tide_arena arena; /* pages that slices point into */
    struct tide_buf slots;
    struct tide_buf nulls;
    struct tide_buf starts;
    struct tide_buf list_nulls;
    struct tide_buf dictionary;
    struct tide_buf page;
    struct tide_buf levels;
    struct tide_buf numbers;
};

/** Frees the memory. `{0}` is empty. For TIDE_CLEANUP too. */
void tide_parquet_values_done(struct tide_parquet_values *values);

/**
 * Reads one column of one row group; what `values` held before is gone, its memory is used again.
 *
 * Owns:   the arrays live in `values`; bytes borrow from it or from the file.
 * Errors: TIDE_CORRUPT; TIDE_UNSUPPORTED, by name, for what is not read. `values` is then empty.
 */
tide_status tide_parquet_reader_read(struct tide_parquet_reader *reader, size_t group,
                                     size_t column, struct tide_parquet_values *values,
                                     struct tide_error *err);
