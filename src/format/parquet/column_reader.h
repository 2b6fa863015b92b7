/*
 * Reads the pages of one column chunk into arrays. Pure. Private to this folder.
 */
#pragma once

#include "format/parquet/metadata.h"
#include "format/parquet/reader.h"

/* What the chunk is and what of it has been read. */
struct tide_parquet_column_reader {
    const struct tide_parquet_column *column;
    const struct tide_parquet_leaf *leaf;
    const struct tide_parquet_chunk *chunk;
    const struct tide_parquet_limits *limits;
    struct tide_parquet_unpacker *unpacker;
    struct tide_parquet_values *values;
    size_t size;         /* of one value in memory */
    size_t entries_left; /* of the chunk */
    size_t bytes;        /* of all pages so far, before compression */
    bool has_dictionary;
    size_t dictionary_count; /* values in values->dictionary */
    size_t null_count;       /* slots */
    size_t null_list_count;
};

/** Reads the pages in `bytes`, which begin with the dictionary if there is one. */
tide_status tide_parquet_column_read(struct tide_parquet_column_reader *reader, tide_str bytes,
                                     struct tide_error *err);
