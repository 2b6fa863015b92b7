/* Rows of a series as a Parquet file: column by column. Pure. Private to change_*.c. */
#pragma once

#include "archive/change_plan.h"
#include "archive/change_row.h"
#include "base/status.h"
#include "format/parquet/writer.h"

struct tide_change_writer;

/** Both must stay as long as the writer; `parquet` is of the plan's columns. */
struct tide_change_writer *tide_change_writer_new(const struct tide_change_plan *plan,
                                                  struct tide_parquet_writer *parquet);

/** NULL is fine. */
void tide_change_writer_free(struct tide_change_writer *writer);

/** Adds rows with their times; errors as of tide_parquet_writer_end_rows. */
tide_status tide_change_writer_add(struct tide_change_writer *writer,
                                   const struct tide_change_row *rows, const int64_t *times,
                                   size_t count, struct tide_error *err);
