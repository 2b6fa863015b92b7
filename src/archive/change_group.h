/* A row group of a segment: its parquet columns as arrays. Pure. Private to change_read.c and
 * change_block.c. */
#pragma once

#include "archive/change_plan.h"
#include "base/status.h"
#include "format/parquet/reader.h"

struct tide_change_group {
    const struct tide_change_plan *plan;
    struct tide_parquet_values *values; /* one a parquet column */
    size_t number;                      /* in the file */
    size_t row_count;
};

/** TIDE_CORRUPT: what a parquet column has in that row. */
tide_status tide_change_group_fail(const struct tide_change_group *group, size_t row, size_t column,
                                   const char *what, struct tide_error *err);

static inline bool tide_change_group_is_null(const struct tide_change_group *group, size_t row,
                                             size_t column)
{
    const uint8_t *nulls = group->values[column].is_null;
    return nulls != NULL && nulls[row] != 0;
}

/** Whether it is null in every row. */
static inline bool tide_change_group_is_silent(const struct tide_change_group *group, size_t column)
{
    return group->values[column].null_count == group->row_count;
}

static inline tide_str tide_change_group_bytes(const struct tide_change_group *group, size_t row,
                                               size_t column)
{
    return group->values[column].bytes[row];
}
