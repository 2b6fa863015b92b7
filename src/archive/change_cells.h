/*
 * Values of a table's columns into the columns of a Parquet file: typed, and beside that what the
 * type cannot hold (change_plan.h). Pure.
 */
#pragma once

#include "archive/change_plan.h"
#include "archive/change_scalar.h"
#include "format/parquet/writer.h"

struct tide_change_cells {
    const struct tide_change_plan *plan;
    struct tide_parquet_writer *parquet;
    /* private */
    struct tide_change_scratch scratch;
    struct tide_buf text;
};

/* A parquet column that the file does not have. */
#define TIDE_CHANGE_NO_COLUMN SIZE_MAX

/** Frees what it uses. For TIDE_CLEANUP too. */
void tide_change_cells_done(struct tide_change_cells *cells);

/** Adds a value of the table's column `i` to the parquet columns `at` and `beside`; where there is
 * no `beside`, the value must fit without. */
void tide_change_cell_add(struct tide_change_cells *cells, size_t i, struct tide_value value,
                          size_t at, size_t beside);

/** Whether it fits without what is beside. */
bool tide_change_cell_fits(struct tide_change_cells *cells, size_t i, struct tide_value value);
