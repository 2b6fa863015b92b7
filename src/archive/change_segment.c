#include "archive/change_segment.h"

#include "archive/change_pairs.h"
#include "archive/change_plan.h"
#include "archive/change_schema.h"
#include "archive/change_write.h"
#include "base/alloc.h"
#include "base/attr.h"

#include <stdlib.h>

/* Rows that are taken apart before they go into columns. */
#define BLOCK_ROWS 256

struct tide_change_segment {
    tide_str series;
    tide_str schema_json;
    struct tide_arena arena; /* of the file */
    struct tide_change_schema schema;
    struct tide_change_plan plan;
    struct tide_parquet_writer *parquet;
    struct tide_change_writer *writer;
    struct tide_arena block_arena;
    struct tide_change_row rows[BLOCK_ROWS];
    int64_t times[BLOCK_ROWS];
    size_t count;
};

tide_status tide_change_segment_new(tide_str series, tide_str schema,
                                    struct tide_change_segment **ret_segment,
                                    struct tide_error *err)
{
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) =
        tide_alloc(1, sizeof(*segment));
    struct tide_parquet_options options = tide_parquet_options_default();
    segment->series = tide_arena_str(&segment->arena, series);
    segment->schema_json = tide_arena_str(&segment->arena, schema);
    TIDE_TRY(
        tide_change_schema_decode(segment->schema_json, &segment->arena, &segment->schema, err));
    tide_change_plan_make(&segment->schema, &segment->arena, &segment->plan);
    TIDE_TRY(tide_parquet_writer_new(segment->plan.parquet, segment->plan.parquet_count, &options,
                                     &segment->parquet, err));
    segment->writer = tide_change_writer_new(&segment->plan, segment->parquet);
    *ret_segment = segment;
    segment = NULL;
    return TIDE_OK;
}

void tide_change_segment_free(struct tide_change_segment *segment)
{
    if (segment == NULL) {
        return;
    }
    tide_change_writer_free(segment->writer);
    tide_parquet_writer_free(segment->parquet);
    tide_arena_done(&segment->arena);
    tide_arena_done(&segment->block_arena);
    free(segment);
}

void tide_change_segment_free_ptr(struct tide_change_segment **segment)
{
    tide_change_segment_free(*segment);
    *segment = NULL;
}

static tide_status flush(struct tide_change_segment *segment, struct tide_error *err)
{
    size_t count = segment->count;
    if (count == 0) {
        return TIDE_OK;
    }
    segment->count = 0;
    TIDE_TRY(tide_change_writer_add(segment->writer, segment->rows, segment->times, count, err));
    tide_arena_reset(&segment->block_arena);
    return TIDE_OK;
}

tide_status tide_change_segment_add_bytes(struct tide_change_segment *segment, int64_t time,
                                          tide_str bytes, struct tide_error *err)
{
    TIDE_TRY(tide_change_row_decode(bytes, segment->schema.column_count, segment->schema.key_count,
                                    &segment->block_arena, &segment->rows[segment->count], err));
    segment->times[segment->count++] = time;
    return segment->count == BLOCK_ROWS ? flush(segment, err) : TIDE_OK;
}

tide_status tide_change_segment_add(struct tide_change_segment *segment, int64_t time,
                                    const struct tide_change_row *row, struct tide_error *err)
{
    TIDE_TRY(flush(segment, err));
    return tide_change_writer_add(segment->writer, row, &time, 1, err);
}

size_t tide_change_segment_size(const struct tide_change_segment *segment)
{
    return tide_parquet_writer_size(segment->parquet);
}

tide_status tide_change_segment_finish(struct tide_change_segment *segment, struct tide_buf *buf,
                                       struct tide_error *err)
{
    const struct tide_parquet_pair pairs[] = {
        {TIDE_STR(TIDE_CHANGE_PAIR_ENCODER), TIDE_STR(TIDE_CHANGE_ENCODER_VERSION)},
        {TIDE_STR(TIDE_CHANGE_PAIR_SERIES), segment->series},
        {TIDE_STR(TIDE_CHANGE_PAIR_SCHEMA), segment->schema_json},
    };
    tide_str bytes = {0};
    TIDE_TRY(flush(segment, err));
    TIDE_TRY(tide_parquet_writer_finish(segment->parquet, pairs, sizeof(pairs) / sizeof(pairs[0]),
                                        &bytes, err));
    tide_buf_append_str(buf, bytes);
    return TIDE_OK;
}
