/* The tables that an archive sink has written rows of, each with its series and its columns as they
 * are now. One sink thread uses them. */
#pragma once

#include "archive/writer.h"
#include "base/buf.h"
#include "model/relation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_archive_rows;

/* A table that rows were written of. */
struct tide_archive_table {
    struct tide_archive_series *series;
    const struct tide_relation *relation; /* of the last row; counted */
    struct tide_buf columns;              /* of it, as a caller row has them */
    size_t names_size;                    /* a bound of what names take in a record */
    bool needs_note;                      /* the columns have to be written before the next row */
    bool is_changed;                      /* they have not been written yet as they are now */
    bool is_noted;                        /* `columns_from` is set */
    int64_t columns_from;                 /* the time from which rows have these columns */
    bool is_touched;                      /* rows were written since sealing was looked at */
};

/** The table of a relation, opened with its first row; its columns are that relation's then.
 * Errors: of opening a series, of reading what it holds. */
tide_status tide_archive_rows_table(struct tide_archive_rows *rows,
                                    const struct tide_relation *relation,
                                    struct tide_archive_table **ret_table, struct tide_error *err);

/** Whether the table is gone, and the archive has nothing of it. */
bool tide_archive_table_is_unheard_of(const struct tide_archive_table *table);

/** Frees it, but for its series, which is the writer's. */
void tide_archive_table_free(struct tide_archive_table *table);
