/*
 * A Parquet file's footer and page headers as structs, and their Thrift. Pure. Private to this
 * folder, but for struct tide_parquet_statistics.
 */
#pragma once

#include "format/parquet/schema.h"
#include "format/parquet/thrift.h"

enum tide_parquet_encoding {
    TIDE_PARQUET_PLAIN = 0,
    TIDE_PARQUET_PLAIN_DICTIONARY = 2, /* older files' name of RLE_DICTIONARY */
    TIDE_PARQUET_RLE = 3,
    TIDE_PARQUET_RLE_DICTIONARY = 8,
};

enum tide_parquet_page_type {
    TIDE_PARQUET_DATA_PAGE = 0,
    TIDE_PARQUET_INDEX_PAGE = 1,
    TIDE_PARQUET_DICTIONARY_PAGE = 2,
    TIDE_PARQUET_DATA_PAGE_V2 = 3,
};

/* How a name of the format reads; "of number N" where it is newer than this code. */
const char *tide_parquet_encoding_name(int32_t encoding);
const char *tide_parquet_codec_name(int32_t codec);

struct tide_parquet_statistics {
    bool has_null_count;
    bool has_min;
    bool has_max;
    bool is_min_exact; /* else it is a bound: no value is less */
    bool is_max_exact;
    int64_t null_count;
    tide_str min; /* as one PLAIN value, a string without its length */
    tide_str max;
};

/* One column of one row group. */
struct tide_parquet_chunk {
    int32_t physical;
    int32_t codec;
    int64_t value_count;   /* nulls and empty lists too */
    int64_t plain_size;    /* of its pages with their headers, before compression */
    int64_t packed_size;   /* after it */
    int64_t data_at;       /* of the first data page, from the file's start */
    int64_t dictionary_at; /* 0 without one */
    bool is_elsewhere;     /* in another file */
    bool is_encrypted;
    bool has_dictionary_pages; /* written: encodings say so */
    struct tide_parquet_statistics statistics;
};

struct tide_parquet_group {
    int64_t row_count;
    struct tide_parquet_chunk *chunks; /* one a leaf */
};

struct tide_parquet_pair {
    tide_str key;
    tide_str value;
};

struct tide_parquet_metadata {
    int64_t row_count;
    tide_str created_by;
    struct tide_parquet_column *columns;
    struct tide_parquet_leaf *leaves; /* one a column */
    size_t column_count;
    size_t leaf_count; /* column chunks of a row group; more than columns where some are nested */
    struct tide_parquet_group *groups;
    size_t group_count;
    struct tide_parquet_pair *pairs;
    size_t pair_count;
};

/** Appends FileMetaData, with these pairs. The chunks stand in the columns' order. */
void tide_parquet_metadata_append(struct tide_buf *out,
                                  const struct tide_parquet_metadata *metadata,
                                  const struct tide_parquet_pair *pairs, size_t pair_count);

/**
 * Reads FileMetaData.
 *
 * Owns:   slices borrow from `bytes`, arrays live in `arena`.
 * Errors: TIDE_CORRUPT; TIDE_UNSUPPORTED when nothing of the file could be read (encrypted).
 */
tide_status tide_parquet_metadata_read(tide_str bytes, struct tide_arena *arena,
                                       struct tide_parquet_metadata *ret_metadata,
                                       struct tide_error *err);

struct tide_parquet_page {
    int32_t type;
    int32_t plain_size;
    int32_t packed_size;
    bool has_checksum;
    uint32_t checksum; /* CRC-32 of the bytes behind the header, as they are */
    int32_t value_count;
    int32_t encoding;
    int32_t definition_encoding; /* version 1 */
    int32_t repetition_encoding;
    int32_t null_count; /* version 2, as what follows */
    int32_t row_count;
    int32_t definition_size;
    int32_t repetition_size;
    bool is_packed;
};

/** Appends a PageHeader, with its checksum, of a data page (version 1) or a dictionary page. */
void tide_parquet_page_append(struct tide_buf *out, const struct tide_parquet_page *page);

/** Reads one PageHeader from the start of `bytes` and sets how many bytes it takes. */
tide_status tide_parquet_page_read(tide_str bytes, struct tide_parquet_page *ret_page,
                                   size_t *ret_size, struct tide_error *err);
