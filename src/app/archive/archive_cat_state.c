#include "app/archive/archive_cat.h"
#include "app/archive/archive_state.h"
#include "format/record.h"

static void append_record(struct tide_buf *buf, const struct tide_relation *relation,
                          const struct tide_change_state *row)
{
    if (row->values != NULL) {
        tide_record_append(buf, relation, row->values);
    } else {
        tide_record_append_key(buf, relation, row->key);
    }
    tide_buf_append_char(buf, '\n');
}

static void add_cells(struct tide_row_lines *lines, const struct tide_relation *relation,
                      const struct tide_change_state *row)
{
    for (size_t i = 0; i < relation->column_count; i++) {
        struct tide_value value = {.kind = TIDE_VALUE_ABSENT};
        for (size_t k = 0; row->values == NULL && k < relation->key_count; k++) {
            value = relation->key_columns[k] == i ? row->key[k] : value;
        }
        tide_row_lines_add_value(lines, row->values != NULL ? row->values[i] : value);
    }
}

static tide_status print_state(const struct tide_archive_state *state, enum tide_row_format format,
                               uint64_t *ret_stale, struct tide_error *err)
{
    TIDE_CLEANUP(tide_row_lines_done) struct tide_row_lines lines = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    const struct tide_change_schema *schema = state->schema;
    struct tide_change_state row;
    if (schema == NULL) {
        return TIDE_OK; /* an empty table */
    }
    struct tide_relation relation = tide_change_relation_of(schema, &arena);
    tide_row_lines_init(&lines, format, relation.column_count);
    for (size_t i = 0; format != TIDE_ROWS_NDJSON && i < relation.column_count; i++) {
        tide_row_lines_add(&lines, relation.columns[i].name);
    }
    while (tide_change_fold_next(state->fold, &row)) {
        *ret_stale += row.is_stale || row.values == NULL;
        if (format == TIDE_ROWS_NDJSON) {
            append_record(&lines.buf, &relation, &row);
        } else {
            add_cells(&lines, &relation, &row);
        }
        TIDE_TRY(tide_row_lines_write(&lines, false, err));
    }
    return tide_row_lines_write(&lines, true, err);
}

tide_status tide_archive_cat_state(struct tide_archive *archive, const struct tide_archive_cat *cat,
                                   bool *ret_is_whole, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_state_done) struct tide_archive_state state = {0};
    const struct tide_archive_series_info *series = NULL;
    struct tide_archive_catalogue catalogue;
    uint64_t stale = 0;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_TRY(tide_archive_catalogue_read(held, &arena, &catalogue, err));
    TIDE_TRY(tide_archive_choice_find(&cat->choice, cat->path, &catalogue, &series, err));
    TIDE_TRY(tide_archive_state_fold(held, series, &cat->as_of, &state, err));
    TIDE_TRY(tide_archive_state_note_late(held, series->source, &cat->as_of, err));
    TIDE_TRY(print_state(&state, cat->format, &stale, err));
    *ret_is_whole = tide_archive_state_warn(&state, series, stale);
    return TIDE_OK;
}
