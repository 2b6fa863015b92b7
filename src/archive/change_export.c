#include "archive/change_export.h"

#include <stdlib.h>

#include "archive/change_cells.h"
#include "archive/change_segment.h"
#include "format/parquet/metadata.h"
#include "format/parquet/writer.h"

#define PAIR_STORE "tidemark.store"

/* A state */

struct state_file {
    struct tide_arena arena;
    struct tide_change_plan plan;
    struct tide_change_cells cells;
    size_t *at; /* of each column of the table, in the file */
    size_t *beside;
    struct tide_parquet_column *columns;
    size_t column_count;
    const struct tide_change_file_taker *taker;
    size_t number;
    struct tide_value *values; /* of one row */
};

static void state_file_done(struct state_file *file)
{
    tide_change_cells_done(&file->cells);
    tide_parquet_writer_free(file->cells.parquet);
    tide_arena_done(&file->arena);
}

/* Of a row that was too long each time, only the key is known; what is from before a column is null
 * there. */
static void set_values(struct state_file *file, const struct tide_change_state *row)
{
    const struct tide_change_schema *schema = file->plan.schema;
    for (size_t i = 0; i < schema->column_count; i++) {
        struct tide_value value = {.kind = TIDE_VALUE_NULL};
        size_t key_place = file->plan.columns[i].key_place;
        if (row->values != NULL) {
            value = row->values[i];
        } else if (key_place > 0) {
            value = row->key[key_place - 1];
        }
        if (value.kind == TIDE_VALUE_ABSENT || value.kind == TIDE_VALUE_UNCHANGED) {
            value.kind = file->plan.columns[i].is_hidden ? TIDE_VALUE_ABSENT : TIDE_VALUE_NULL;
        }
        file->values[i] = value;
    }
}

static void find_besides(struct state_file *file, struct tide_change_fold *fold)
{
    struct tide_change_state row;
    size_t count = file->plan.schema->column_count;
    for (size_t i = 0; i < count; i++) {
        file->beside[i] = TIDE_CHANGE_NO_COLUMN;
    }
    while (tide_change_fold_next(fold, &row)) {
        set_values(file, &row);
        for (size_t i = 0; i < count; i++) {
            if (file->beside[i] == TIDE_CHANGE_NO_COLUMN &&
                !tide_change_cell_fits(&file->cells, i, file->values[i])) {
                file->beside[i] = 0; /* is given its place next */
            }
        }
    }
    tide_change_fold_rewind(fold);
}

static void place_columns(struct state_file *file)
{
    for (size_t i = 0; i < file->plan.schema->column_count; i++) {
        file->at[i] = file->column_count;
        file->columns[file->column_count++] = file->plan.parquet[tide_change_plan_main(i)];
        if (file->beside[i] != TIDE_CHANGE_NO_COLUMN) {
            file->beside[i] = file->column_count;
            file->columns[file->column_count++] = file->plan.parquet[tide_change_plan_beside(i)];
        }
    }
}

static tide_status open_state_file(struct state_file *file, struct tide_change_fold *fold,
                                   const struct tide_change_schema *schema, struct tide_error *err)
{
    struct tide_parquet_options options = tide_parquet_options_default();
    size_t count = schema->column_count;
    tide_change_plan_make_bare(schema, &file->arena, &file->plan);
    file->cells.plan = &file->plan;
    file->at = tide_arena_alloc(&file->arena, count, sizeof(*file->at));
    file->beside = tide_arena_alloc(&file->arena, count, sizeof(*file->beside));
    file->values = tide_arena_alloc(&file->arena, count, sizeof(*file->values));
    file->columns = tide_arena_alloc(&file->arena, 2 * count, sizeof(*file->columns));
    find_besides(file, fold);
    place_columns(file);
    return tide_parquet_writer_new(file->columns, file->column_count, &options,
                                   &file->cells.parquet, err);
}

static tide_status finish_state_file(struct state_file *file, struct tide_error *err)
{
    const struct tide_parquet_pair pairs[] = {{TIDE_STR(PAIR_STORE), file->plan.schema->store}};
    tide_str bytes = {0};
    TIDE_TRY(tide_parquet_writer_finish(file->cells.parquet, pairs, 1, &bytes, err));
    TIDE_TRY(file->taker->take(file->taker->context, ++file->number, bytes, err));
    tide_parquet_writer_reset(file->cells.parquet);
    return TIDE_OK;
}

static tide_status add_state(struct state_file *file, const struct tide_change_state *row,
                             struct tide_error *err)
{
    set_values(file, row);
    for (size_t i = 0; i < file->plan.schema->column_count; i++) {
        tide_change_cell_add(&file->cells, i, file->values[i], file->at[i], file->beside[i]);
    }
    TIDE_TRY(tide_parquet_writer_end_rows(file->cells.parquet, 1, err));
    return tide_parquet_writer_size(file->cells.parquet) > file->taker->bytes_max
               ? finish_state_file(file, err)
               : TIDE_OK;
}

tide_status tide_change_export_state(struct tide_change_fold *fold,
                                     const struct tide_change_schema *schema,
                                     const struct tide_change_file_taker *taker,
                                     struct tide_change_exported *ret_exported,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(state_file_done) struct state_file file = {.taker = taker};
    struct tide_change_exported exported = {0};
    struct tide_change_state row;
    TIDE_TRY(open_state_file(&file, fold, schema, err));
    while (tide_change_fold_next(fold, &row)) {
        exported.rows++;
        exported.unsure += row.is_stale || row.values == NULL;
        TIDE_TRY(add_state(&file, &row, err));
    }
    if (file.number == 0 || tide_parquet_writer_rows(file.cells.parquet) > 0) {
        TIDE_TRY(finish_state_file(&file, err));
    }
    *ret_exported = exported;
    return TIDE_OK;
}

/* A series */

struct series_file {
    const struct tide_change_file_taker *taker;
    tide_str series;
    size_t number;
    struct tide_change_segment *segment;
    const struct tide_change_columns *columns; /* of the segment */
    struct tide_buf bytes;
};

static void series_file_done(struct series_file *file)
{
    tide_change_segment_free(file->segment);
    tide_buf_done(&file->bytes);
}

static tide_status finish_series_file(struct series_file *file, struct tide_error *err)
{
    if (file->segment == NULL) {
        return TIDE_OK;
    }
    tide_buf_reset(&file->bytes);
    TIDE_TRY(tide_change_segment_finish(file->segment, &file->bytes, err));
    tide_change_segment_free(file->segment);
    file->segment = NULL;
    return file->taker->take(file->taker->context, ++file->number, tide_buf_str(&file->bytes), err);
}

static tide_status add_seen(struct series_file *file, const struct tide_change_seen *seen,
                            struct tide_error *err)
{
    if (file->segment != NULL &&
        (file->columns != seen->columns ||
         tide_change_segment_size(file->segment) > file->taker->bytes_max)) {
        TIDE_TRY(finish_series_file(file, err));
    }
    if (file->segment == NULL) {
        TIDE_TRY(tide_change_segment_new(file->series, seen->columns->json, &file->segment, err));
        file->columns = seen->columns;
    }
    return tide_change_segment_add(file->segment, seen->ts, &seen->row, err);
}

tide_status tide_change_export_series(struct tide_archive *archive,
                                      const struct tide_archive_series_info *series,
                                      const struct tide_change_file_taker *taker,
                                      struct tide_change_exported *ret_exported,
                                      struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    TIDE_CLEANUP(series_file_done)
    struct series_file file = {.taker = taker, .series = series->name};
    const struct tide_archive_range range = {.source = series->source,
                                             .series = series->name,
                                             .start_ts = INT64_MIN,
                                             .end_ts = INT64_MAX};
    struct tide_change_exported exported = {0};
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(tide_change_scan_open(archive, &range, &scan, err));
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        exported.rows++;
        TIDE_TRY(add_seen(&file, &seen, err));
    }
    if (status != TIDE_END) {
        return status;
    }
    TIDE_TRY(finish_series_file(&file, err));
    *ret_exported = exported;
    return TIDE_OK;
}
