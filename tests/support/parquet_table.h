/*
 * Random tables for tests and fuzzers of Parquet: made from a seed or from a fuzzer's bytes, given
 * to a writer, and compared with what a reader gets.
 */
#pragma once

#include "format/parquet/reader.h"
#include "format/parquet/writer.h"

/* Numbers from `data` while there are some, then (or at once, without data) from the seed. */
struct parquet_random {
    uint64_t state;
    const uint8_t *data;
    size_t size;
};

/** Any number; and one below `limit`. */
uint64_t parquet_random_next(struct parquet_random *random);
size_t parquet_random_below(struct parquet_random *random, size_t limit);

struct parquet_slot {
    bool is_null;
    tide_int128 number; /* the bits of everything but bytes */
    tide_str bytes;
};

struct parquet_cells {
    struct parquet_slot *slots;
    size_t slot_count;
    size_t *list_starts; /* of list columns */
    bool *is_list_null;
};

struct parquet_table {
    struct tide_arena arena;
    struct tide_parquet_column *columns;
    struct parquet_cells *cells; /* one a column */
    size_t column_count;
    size_t row_count;
};

/** A column of the type with its other properties drawn; `name` must stay. */
struct tide_parquet_column parquet_random_column(struct parquet_random *random,
                                                 enum tide_parquet_type type, tide_str name);

/** Draws the rows of a table with these columns (which must stay). */
void parquet_table_make(struct parquet_table *table, struct parquet_random *random,
                        struct tide_parquet_column *columns, size_t column_count, size_t row_count);
void parquet_table_done(struct parquet_table *table);

/** Options of small pages, groups and dictionaries, or of large ones. */
struct tide_parquet_options parquet_random_options(struct parquet_random *random);

/** Adds all rows, `step` at once; 0: all. */
tide_status parquet_table_write(const struct parquet_table *table,
                                struct tide_parquet_writer *writer, size_t step,
                                struct tide_error *err);

/** Aborts when the file is not this table, value by value. Others declare null as they like. */
void parquet_table_check(const struct parquet_table *table, tide_str bytes, bool is_ours);
