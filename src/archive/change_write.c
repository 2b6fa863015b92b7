#include "archive/change_write.h"

#include "archive/change_cells.h"
#include "archive/change_label.h"
#include "archive/change_op.h"
#include "archive/change_position.h"
#include "base/alloc.h"

#include <stdlib.h>

struct tide_change_writer {
    const struct tide_change_plan *plan;
    struct tide_parquet_writer *parquet;
    const struct tide_position_kind *position_kind;
    struct tide_change_cells cells;
    struct tide_buf text;
    struct tide_buf ways; /* enum key_way of each row */
};

/* Where a row's key is. */
enum key_way {
    KEY_NONE,       /* nowhere: there is none, or it is among the values */
    KEY_IN_COLUMNS, /* in the columns of the table, in place of values */
    KEY_APART,      /* in _key */
};

struct tide_change_writer *tide_change_writer_new(const struct tide_change_plan *plan,
                                                  struct tide_parquet_writer *parquet)
{
    struct tide_change_writer *writer = tide_alloc(1, sizeof(*writer));
    writer->plan = plan;
    writer->parquet = parquet;
    writer->cells = (struct tide_change_cells){.plan = plan, .parquet = parquet};
    writer->position_kind = tide_change_position_kind(plan->schema->position_kind);
    return writer;
}

void tide_change_writer_free(struct tide_change_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    tide_change_cells_done(&writer->cells);
    tide_buf_done(&writer->text);
    tide_buf_done(&writer->ways);
    free(writer);
}

static bool is_key_of_values(const struct tide_change_schema *schema,
                             const struct tide_change_row *row)
{
    for (size_t i = 0; i < schema->key_count; i++) {
        if (!tide_value_equal(row->key[i], row->values[schema->key_columns[i]])) {
            return false;
        }
    }
    return true;
}

/* Columns hold a key that says it is there: of values, not all of them NULL. */
static bool fits_columns(const struct tide_change_schema *schema, const struct tide_change_row *row)
{
    bool has_value = false;
    for (size_t i = 0; i < schema->key_count; i++) {
        if (row->key[i].kind == TIDE_VALUE_UNCHANGED) {
            return false;
        }
        has_value = has_value || row->key[i].kind > TIDE_VALUE_ABSENT;
    }
    return has_value;
}

static enum key_way key_way_of(const struct tide_change_schema *schema,
                               const struct tide_change_row *row)
{
    if (row->key == NULL) {
        return KEY_NONE;
    }
    if (row->values != NULL) {
        return is_key_of_values(schema, row) ? KEY_NONE : KEY_APART;
    }
    return fits_columns(schema, row) ? KEY_IN_COLUMNS : KEY_APART;
}

static enum key_way way_of(const struct tide_change_writer *writer, size_t row)
{
    return (enum key_way)writer->ways.ptr[row];
}

static void add_text(struct tide_change_writer *writer, size_t column)
{
    tide_parquet_add_bytes(writer->parquet, column, tide_buf_str(&writer->text));
}

static void add_place(struct tide_change_writer *writer, enum tide_change_meta position,
                      enum tide_change_meta index, const struct tide_place *place)
{
    if (!place->known) {
        tide_parquet_add_null(writer->parquet, position);
        tide_parquet_add_null(writer->parquet, index);
        return;
    }
    tide_buf_reset(&writer->text);
    tide_change_position_append(&writer->text, writer->position_kind, place->position);
    add_text(writer, position);
    if (place->index == TIDE_INDEX_AFTER_ALL) {
        tide_parquet_add_null(writer->parquet, index);
    } else {
        tide_parquet_add_i64(writer->parquet, index, (int64_t)place->index);
    }
}

static void add_i64_unless_zero(struct tide_change_writer *writer, enum tide_change_meta column,
                                int64_t value)
{
    if (value == 0) {
        tide_parquet_add_null(writer->parquet, column);
    } else {
        tide_parquet_add_i64(writer->parquet, column, value);
    }
}

static void add_str_unless_empty(struct tide_change_writer *writer, enum tide_change_meta column,
                                 tide_str text)
{
    if (text.len == 0) {
        tide_parquet_add_null(writer->parquet, column);
    } else {
        tide_parquet_add_bytes(writer->parquet, column, text);
    }
}

/* Of a snapshot's rows the seq and attempt, even of 0. */
static void add_snapshot(struct tide_change_writer *writer, const struct tide_change_row *row)
{
    struct tide_parquet_writer *parquet = writer->parquet;
    add_str_unless_empty(writer, TIDE_META_SNAPSHOT_ID, tide_str_from(row->snapshot_id));
    if (row->kind == TIDE_ROW_CHANGE) {
        tide_parquet_add_null(parquet, TIDE_META_SEQ);
        tide_parquet_add_null(parquet, TIDE_META_ATTEMPT);
    } else {
        tide_parquet_add_i64(parquet, TIDE_META_SEQ, (int64_t)row->seq);
        tide_parquet_add_i32(parquet, TIDE_META_ATTEMPT, (int32_t)row->attempt);
    }
    if (!tide_change_row_has_starts(row->kind)) {
        tide_parquet_add_null(parquet, TIDE_META_STARTS);
        return;
    }
    tide_parquet_add_list(parquet, TIDE_META_STARTS, row->attempt);
    for (uint32_t i = 0; i < row->attempt; i++) {
        tide_parquet_add_i64(parquet, TIDE_META_STARTS, (int64_t)row->starts[i]);
    }
}

static void add_labels(struct tide_change_writer *writer, enum tide_change_meta column,
                       const struct tide_value *values, size_t count)
{
    if (values == NULL) {
        tide_parquet_add_null(writer->parquet, column);
        return;
    }
    tide_parquet_add_list(writer->parquet, column, count);
    for (size_t i = 0; i < count; i++) {
        tide_buf_reset(&writer->text);
        tide_change_label_append(&writer->text, values[i]);
        add_text(writer, column);
    }
}

static void add_unchanged(struct tide_change_writer *writer, const struct tide_change_row *row)
{
    const struct tide_change_schema *schema = writer->plan->schema;
    size_t count = 0;
    for (size_t i = 0; row->values != NULL && i < schema->column_count; i++) {
        count += row->values[i].kind == TIDE_VALUE_UNCHANGED;
    }
    if (count == 0) {
        tide_parquet_add_null(writer->parquet, TIDE_META_UNCHANGED);
        return;
    }
    tide_parquet_add_list(writer->parquet, TIDE_META_UNCHANGED, count);
    for (size_t i = 0; i < schema->column_count; i++) {
        if (row->values[i].kind == TIDE_VALUE_UNCHANGED) {
            tide_parquet_add_bytes(writer->parquet, TIDE_META_UNCHANGED, schema->columns[i].name);
        }
    }
}

static void add_meta(struct tide_change_writer *writer, const struct tide_change_row *row,
                     int64_t time, enum key_way way)
{
    struct tide_parquet_writer *parquet = writer->parquet;
    size_t key_count = writer->plan->schema->key_count;
    tide_parquet_add_i64(parquet, TIDE_META_TIME, time);
    tide_parquet_add_bytes(parquet, TIDE_META_OP, tide_change_op_name(row->kind, row->op));
    add_i64_unless_zero(writer, TIDE_META_COMMIT_TIME, row->commit_us);
    add_str_unless_empty(writer, TIDE_META_TX, row->tx);
    add_place(writer, TIDE_META_POSITION, TIDE_META_INDEX, &row->place);
    add_place(writer, TIDE_META_PREV_POSITION, TIDE_META_PREV_INDEX, &row->prev);
    if (row->incarnation == 0) {
        tide_parquet_add_null(parquet, TIDE_META_INCARNATION);
    } else {
        tide_parquet_add_i32(parquet, TIDE_META_INCARNATION, (int32_t)row->incarnation);
    }
    add_snapshot(writer, row);
    add_i64_unless_zero(writer, TIDE_META_BYTES, (int64_t)row->bytes);
    add_unchanged(writer, row);
    add_labels(writer, TIDE_META_MOVED_FROM, row->moved_from, key_count);
    add_labels(writer, TIDE_META_KEY, way == KEY_APART ? row->key : NULL, key_count);
}

static void add_value(struct tide_change_writer *writer, size_t i, struct tide_value value)
{
    tide_change_cell_add(&writer->cells, i, value, tide_change_plan_main(i),
                         tide_change_plan_beside(i));
}

static void add_nulls(struct tide_change_writer *writer, size_t column)
{
    tide_parquet_add_null(writer->parquet, tide_change_plan_main(column));
    tide_parquet_add_null(writer->parquet, tide_change_plan_beside(column));
}

static void add_column(struct tide_change_writer *writer, size_t i,
                       const struct tide_change_row *rows, size_t count)
{
    size_t key_place = writer->plan->columns[i].key_place;
    for (size_t r = 0; r < count; r++) {
        if (rows[r].values != NULL) {
            add_value(writer, i, rows[r].values[i]);
        } else if (key_place > 0 && way_of(writer, r) == KEY_IN_COLUMNS) {
            add_value(writer, i, rows[r].key[key_place - 1]);
        } else {
            add_nulls(writer, i);
        }
    }
}

tide_status tide_change_writer_add(struct tide_change_writer *writer,
                                   const struct tide_change_row *rows, const int64_t *times,
                                   size_t count, struct tide_error *err)
{
    tide_buf_reset(&writer->ways);
    for (size_t r = 0; r < count; r++) {
        tide_buf_append_char(&writer->ways, (char)key_way_of(writer->plan->schema, &rows[r]));
        add_meta(writer, &rows[r], times[r], way_of(writer, r));
    }
    for (size_t i = 0; i < writer->plan->schema->column_count; i++) {
        add_column(writer, i, rows, count);
    }
    return tide_parquet_writer_end_rows(writer->parquet, count, err);
}
