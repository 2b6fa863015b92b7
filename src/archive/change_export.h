/*
 * Tables as Parquet files for others: a state with the table's columns alone, or all rows of a
 * series as segments have them. A table is one file, as long as its columns stay and it is not
 * larger than a limit; else several.
 */
#pragma once

#include "archive/change_series.h"

/* Takes the files one after the other, numbered from 1; a failure ends it and is passed on. */
struct tide_change_file_taker {
    tide_status (*take)(void *context, size_t number, tide_str bytes, struct tide_error *err);
    void *context;
    size_t bytes_max; /* a file is ended by the row that makes it larger */
};

/* What has gone into files. */
struct tide_change_exported {
    uint64_t rows;
    uint64_t unsure; /* of a state: rows that are older than they should be, or keys alone */
};

/**
 * The rows that come next of a fold, and then again from the first on. Each column has the type
 * that a segment has for it; where a value does not fit, there is also a column `#other` or
 * `#kind`. Errors: those of the taker; TIDE_INVALID columns of which there can be no file.
 */
tide_status tide_change_export_state(struct tide_change_fold *fold,
                                     const struct tide_change_schema *schema,
                                     const struct tide_change_file_taker *taker,
                                     struct tide_change_exported *ret_exported,
                                     struct tide_error *err);

/** All rows of a series, snapshots and changes. Errors: those of reading and of the taker. */
tide_status tide_change_export_series(struct tide_archive *archive,
                                      const struct tide_archive_series_info *series,
                                      const struct tide_change_file_taker *taker,
                                      struct tide_change_exported *ret_exported,
                                      struct tide_error *err);
