/*
 * What a Parquet file's columns are: base types, and lists of them. Pure.
 *
 * In memory a value has one of few forms (its storage), whatever it means and however many bits
 * the file gives it.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The unscaled integer of a decimal: 38 digits fit. Aligned as arenas are. */
typedef __int128 tide_int128 __attribute__((aligned(8)));

enum tide_parquet_type {
    TIDE_PARQUET_BOOL,
    TIDE_PARQUET_INT8,
    TIDE_PARQUET_INT16,
    TIDE_PARQUET_INT32,
    TIDE_PARQUET_INT64,
    TIDE_PARQUET_UINT8,
    TIDE_PARQUET_UINT16,
    TIDE_PARQUET_UINT32, /* an int32_t with the same bits */
    TIDE_PARQUET_UINT64, /* an int64_t with the same bits */
    TIDE_PARQUET_FLOAT,
    TIDE_PARQUET_DOUBLE,
    TIDE_PARQUET_DECIMAL,   /* the value times 10^scale */
    TIDE_PARQUET_DATE,      /* days since 1970-01-01 */
    TIDE_PARQUET_TIME,      /* units since midnight */
    TIDE_PARQUET_TIMESTAMP, /* units since 1970-01-01 00:00, in UTC or in no zone */
    TIDE_PARQUET_STRING,    /* UTF-8 */
    TIDE_PARQUET_BINARY,
    TIDE_PARQUET_UUID, /* 16 bytes */
    TIDE_PARQUET_JSON, /* UTF-8 */
};

/* How a value is given and taken in memory. */
enum tide_parquet_storage {
    TIDE_PARQUET_AS_BOOL, /* uint8_t, 0 or 1 */
    TIDE_PARQUET_AS_I32,
    TIDE_PARQUET_AS_I64,
    TIDE_PARQUET_AS_FLOAT,
    TIDE_PARQUET_AS_DOUBLE,
    TIDE_PARQUET_AS_I128,  /* tide_int128 */
    TIDE_PARQUET_AS_BYTES, /* tide_str */
};

enum tide_parquet_unit {
    TIDE_PARQUET_US = 0,
    TIDE_PARQUET_MS,
    TIDE_PARQUET_NS,
};

#define TIDE_PARQUET_DECIMAL_DIGITS_MAX 38

struct tide_parquet_column {
    tide_str name; /* valid UTF-8 */
    enum tide_parquet_type type;
    enum tide_parquet_unit unit; /* of times and timestamps */
    bool is_utc;                 /* times and timestamps: an instant, not what a wall clock shows */
    uint8_t precision;           /* decimals: digits, 1 to 38 */
    uint8_t scale;               /* decimals: digits behind the point, 0 to precision */
    bool is_nullable;
    bool is_list;             /* of `type`; a list may be empty, and null if nullable */
    bool is_element_nullable; /* of a list */
    uint32_t fixed_length;    /* read: bytes of each value of a BINARY of fixed length, else 0 */
    const char *refused;      /* read: why the column cannot be, as "is a map"; NULL if it can be */
};

/** The form that values of the column have in memory. */
enum tide_parquet_storage tide_parquet_storage_of(const struct tide_parquet_column *column);

/** Bytes of one value in memory. */
size_t tide_parquet_storage_size(enum tide_parquet_storage storage);

/* Physical types of the file. */
enum tide_parquet_physical {
    TIDE_PARQUET_BOOLEAN = 0,
    TIDE_PARQUET_PHYSICAL_INT32 = 1,
    TIDE_PARQUET_PHYSICAL_INT64 = 2,
    TIDE_PARQUET_INT96 = 3,
    TIDE_PARQUET_PHYSICAL_FLOAT = 4,
    TIDE_PARQUET_PHYSICAL_DOUBLE = 5,
    TIDE_PARQUET_BYTE_ARRAY = 6,
    TIDE_PARQUET_FIXED_BYTES = 7,
};

/* Where a column's values are: one leaf of the schema's tree for each that can be read. */
struct tide_parquet_leaf {
    int32_t physical; /* enum tide_parquet_physical */
    uint32_t width;   /* bytes of a value in PLAIN encoding; 0: of any length. A boolean's is 1 */
    uint8_t max_definition;
    uint8_t max_repetition;
    size_t index;     /* the column chunk of this column in each row group */
    tide_str path[3]; /* names from below the root */
    uint8_t path_count;
};

/** The leaf of a column that is to be written. `index` is its place. */
struct tide_parquet_leaf tide_parquet_leaf_of(const struct tide_parquet_column *column,
                                              size_t index);

/** TIDE_INVALID when there are no columns, too many, or one is not as struct tide_parquet_column
 * says. */
tide_status tide_parquet_columns_check(const struct tide_parquet_column *columns, size_t count,
                                       struct tide_error *err);
