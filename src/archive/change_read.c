#include "archive/change_read.h"

#include "archive/change_label.h"
#include "archive/change_op.h"
#include "archive/change_pairs.h"
#include "archive/change_position.h"
#include "archive/change_scalar.h"
#include "base/alloc.h"
#include "base/map.h"
#include "format/parquet/reader.h"

#include <stdlib.h>

struct tide_change_reader {
    struct tide_parquet_reader *parquet;
    struct tide_arena arena; /* schema and plan */
    struct tide_change_schema schema;
    struct tide_change_plan plan;
    struct tide_map names; /* of columns: their numbers */
    const struct tide_position_kind *position_kind;
    struct tide_parquet_values *values; /* of the current row group, one a parquet column */
    size_t next_group;
    size_t row; /* of the current row group */
    size_t row_count;
    struct tide_arena row_arena;
    struct tide_buf text; /* of one value, on its way into the arena */
};

static tide_status fail_row(const struct tide_change_reader *reader, size_t column,
                            const char *what, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "row %zu of row group %zu of a segment: %.*s %s",
                     reader->row, reader->next_group - 1,
                     TIDE_STR_ARG(reader->plan.parquet[column].name), what);
}

static tide_status open_schema(struct tide_change_reader *reader, struct tide_error *err)
{
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader->parquet);
    tide_str version = tide_change_pair(metadata, TIDE_CHANGE_PAIR_ENCODER);
    if (version.ptr == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "a Parquet file that is no segment of changes");
    }
    if (!tide_str_equal(version, TIDE_STR(TIDE_CHANGE_ENCODER_VERSION))) {
        return tide_fail(err, TIDE_UNSUPPORTED, "a segment of version %.*s, this program reads %s",
                         version.len > 64 ? 64 : (int)version.len, version.ptr,
                         TIDE_CHANGE_ENCODER_VERSION);
    }
    tide_str json = tide_change_pair(metadata, TIDE_CHANGE_PAIR_SCHEMA);
    TIDE_TRY(tide_change_schema_decode(json, &reader->arena, &reader->schema, err));
    tide_change_plan_make(&reader->schema, &reader->arena, &reader->plan);
    TIDE_TRY(tide_change_plan_check(&reader->plan, metadata->columns, metadata->column_count, err));
    for (size_t i = 0; i < reader->schema.column_count; i++) {
        tide_map_put(&reader->names, reader->schema.columns[i].name, NULL)->number = i;
    }
    reader->position_kind = tide_change_position_kind(reader->schema.position_kind);
    reader->values = tide_alloc(reader->plan.parquet_count, sizeof(*reader->values));
    return TIDE_OK;
}

tide_status tide_change_reader_new(tide_str bytes, struct tide_change_reader **ret_reader,
                                   struct tide_error *err)
{
    struct tide_change_reader *reader TIDE_CLEANUP(tide_change_reader_free_ptr) =
        tide_alloc(1, sizeof(*reader));
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    TIDE_TRY(tide_parquet_reader_new(bytes, &limits, &reader->parquet, err));
    TIDE_TRY(open_schema(reader, err));
    *ret_reader = reader;
    reader = NULL;
    return TIDE_OK;
}

void tide_change_reader_free(struct tide_change_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    for (size_t i = 0; reader->values != NULL && i < reader->plan.parquet_count; i++) {
        tide_parquet_values_done(&reader->values[i]);
    }
    free(reader->values);
    tide_parquet_reader_free(reader->parquet);
    tide_map_done(&reader->names);
    tide_arena_done(&reader->arena);
    tide_arena_done(&reader->row_arena);
    tide_buf_done(&reader->text);
    free(reader);
}

void tide_change_reader_free_ptr(struct tide_change_reader **reader)
{
    tide_change_reader_free(*reader);
    *reader = NULL;
}

const struct tide_change_schema *tide_change_reader_schema(const struct tide_change_reader *reader)
{
    return &reader->schema;
}

tide_str tide_change_reader_json(const struct tide_change_reader *reader)
{
    return tide_change_pair(tide_parquet_reader_metadata(reader->parquet), TIDE_CHANGE_PAIR_SCHEMA);
}

static bool is_null(const struct tide_change_reader *reader, size_t column)
{
    const uint8_t *nulls = reader->values[column].is_null;
    return nulls != NULL && nulls[reader->row] != 0;
}

static tide_str bytes_at(const struct tide_change_reader *reader, size_t column)
{
    return reader->values[column].bytes[reader->row];
}

/* 0 where it is null, as in all columns of numbers that are not always there. */
static uint64_t u64_at(const struct tide_change_reader *reader, enum tide_change_meta column)
{
    return is_null(reader, column) ? 0 : (uint64_t)reader->values[column].i64[reader->row];
}

static uint32_t u32_at(const struct tide_change_reader *reader, enum tide_change_meta column)
{
    return is_null(reader, column) ? 0 : (uint32_t)reader->values[column].i32[reader->row];
}

/* A list's slots; false where it is null. */
static bool list_at(const struct tide_change_reader *reader, enum tide_change_meta column,
                    size_t *ret_start, size_t *ret_count)
{
    const struct tide_parquet_values *values = &reader->values[column];
    if (values->is_list_null != NULL && values->is_list_null[reader->row] != 0) {
        return false;
    }
    *ret_start = values->list_starts[reader->row];
    *ret_count = values->list_starts[reader->row + 1] - *ret_start;
    return true;
}

static tide_status read_place(const struct tide_change_reader *reader,
                              enum tide_change_meta position, enum tide_change_meta index,
                              struct tide_place *place, struct tide_error *err)
{
    if (is_null(reader, position)) {
        return TIDE_OK;
    }
    tide_status status = tide_change_position_parse(bytes_at(reader, position),
                                                    reader->position_kind, &place->position, err);
    if (status != TIDE_OK) {
        return fail_row(reader, position, "is no position", err);
    }
    place->known = true;
    place->index = is_null(reader, index) ? TIDE_INDEX_AFTER_ALL : u64_at(reader, index);
    return TIDE_OK;
}

static tide_status read_snapshot(struct tide_change_reader *reader, struct tide_change_row *row,
                                 struct tide_error *err)
{
    size_t start = 0;
    size_t count = 0;
    if (!is_null(reader, TIDE_META_SNAPSHOT_ID)) {
        tide_str id = bytes_at(reader, TIDE_META_SNAPSHOT_ID);
        if (id.len != TIDE_UUID_LEN) {
            return fail_row(reader, TIDE_META_SNAPSHOT_ID, "has not 36 characters", err);
        }
        memcpy(row->snapshot_id, id.ptr, id.len);
    }
    row->seq = u64_at(reader, TIDE_META_SEQ);
    row->attempt = u32_at(reader, TIDE_META_ATTEMPT);
    bool has_starts = list_at(reader, TIDE_META_STARTS, &start, &count);
    bool is_due = tide_change_row_has_starts(row->kind);
    if (has_starts != is_due || (has_starts && count != row->attempt)) {
        return fail_row(reader, TIDE_META_STARTS, "does not go with _op and _attempt", err);
    }
    if (has_starts) {
        uint64_t *starts = tide_arena_alloc(&reader->row_arena, count, sizeof(*starts));
        for (size_t i = 0; i < count; i++) {
            starts[i] = (uint64_t)reader->values[TIDE_META_STARTS].i64[start + i];
        }
        row->starts = starts;
    }
    return TIDE_OK;
}

static tide_status read_labels(struct tide_change_reader *reader, enum tide_change_meta column,
                               const struct tide_value **ret_values, struct tide_error *err)
{
    size_t start = 0;
    size_t count = 0;
    if (!list_at(reader, column, &start, &count)) {
        return TIDE_OK;
    }
    if (count != reader->schema.key_count) {
        return fail_row(reader, column, "has not as many values as the key", err);
    }
    struct tide_value *values = tide_arena_alloc(&reader->row_arena, count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        tide_str label = reader->values[column].bytes[start + i];
        if (!tide_change_label_parse(label, &reader->row_arena, &values[i])) {
            return fail_row(reader, column, "has no value after its kind", err);
        }
    }
    *ret_values = values;
    return TIDE_OK;
}

static struct tide_change_scalar scalar_at(const struct tide_change_reader *reader, size_t at)
{
    const struct tide_parquet_values *values = &reader->values[at];
    struct tide_change_scalar scalar = {0};
    switch (values->storage) {
    case TIDE_PARQUET_AS_BOOL:
        scalar.flag = values->bools[reader->row] != 0;
        break;
    case TIDE_PARQUET_AS_I32:
        scalar.i32 = values->i32[reader->row];
        break;
    case TIDE_PARQUET_AS_I64:
        scalar.i64 = values->i64[reader->row];
        break;
    case TIDE_PARQUET_AS_DOUBLE:
        scalar.real = values->doubles[reader->row];
        break;
    case TIDE_PARQUET_AS_I128:
        scalar.i128 = values->i128[reader->row];
        break;
    case TIDE_PARQUET_AS_BYTES:
        if (reader->plan.parquet[at].type == TIDE_PARQUET_UUID) {
            memcpy(scalar.uuid, bytes_at(reader, at).ptr, sizeof(scalar.uuid));
        } else {
            scalar.bytes = bytes_at(reader, at);
        }
        break;
    case TIDE_PARQUET_AS_FLOAT:
    default:
        TIDE_ASSERT(values->storage == TIDE_PARQUET_AS_BOOL);
    }
    return scalar;
}

static tide_status read_typed(struct tide_change_reader *reader, size_t i, struct tide_value *value,
                              struct tide_error *err)
{
    size_t at = tide_change_plan_main(i);
    const struct tide_change_column *column = &reader->plan.columns[i];
    struct tide_change_scalar scalar = scalar_at(reader, at);
    tide_buf_reset(&reader->text);
    if (!tide_change_scalar_append(column, &scalar, &reader->text, &value->kind)) {
        return fail_row(reader, at, "has a value that no row has", err);
    }
    bool is_borrowed = column->form == TIDE_FORM_JSON || column->form == TIDE_FORM_BINARY;
    tide_str text = is_borrowed ? scalar.bytes
                                : tide_arena_str(&reader->row_arena, tide_buf_str(&reader->text));
    value->ptr = text.ptr;
    value->len = (uint32_t)text.len;
    return TIDE_OK;
}

static tide_status read_string(struct tide_change_reader *reader, size_t i,
                               struct tide_value *value, struct tide_error *err)
{
    size_t at = tide_change_plan_main(i);
    size_t beside = tide_change_plan_beside(i);
    tide_str text = is_null(reader, at) ? (tide_str){0} : bytes_at(reader, at);
    if (is_null(reader, beside)) {
        *value = (struct tide_value){
            .ptr = text.ptr, .len = (uint32_t)text.len, .kind = reader->plan.columns[i].natural};
        return TIDE_OK;
    }
    if (!tide_change_label_join(bytes_at(reader, beside), text, &reader->row_arena, value)) {
        return fail_row(reader, beside, "is no kind of value", err);
    }
    return TIDE_OK;
}

static tide_status read_value(struct tide_change_reader *reader, size_t i,
                              struct tide_value *ret_value, struct tide_error *err)
{
    const struct tide_change_column *column = &reader->plan.columns[i];
    bool has_main = !is_null(reader, tide_change_plan_main(i));
    size_t beside = tide_change_plan_beside(i);
    struct tide_value value = {.kind = column->is_hidden ? TIDE_VALUE_ABSENT : TIDE_VALUE_NULL};
    if (has_main || !is_null(reader, beside)) {
        if (column->form == TIDE_FORM_STRING) {
            TIDE_TRY(read_string(reader, i, &value, err));
        } else if (has_main) {
            TIDE_TRY(read_typed(reader, i, &value, err));
        } else if (!tide_change_label_parse(bytes_at(reader, beside), &reader->row_arena, &value)) {
            return fail_row(reader, beside, "has no value after its kind", err);
        }
    }
    *ret_value = value;
    return TIDE_OK;
}

static tide_status read_unchanged(struct tide_change_reader *reader, struct tide_value *values,
                                  struct tide_error *err)
{
    size_t start = 0;
    size_t count = 0;
    if (!list_at(reader, TIDE_META_UNCHANGED, &start, &count)) {
        return TIDE_OK;
    }
    for (size_t i = start; i < start + count; i++) {
        tide_str name = reader->values[TIDE_META_UNCHANGED].bytes[i];
        const union tide_map_value *column = tide_map_get(&reader->names, name);
        if (column == NULL) {
            return fail_row(reader, TIDE_META_UNCHANGED, "names no column of the table", err);
        }
        values[column->number] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    }
    return TIDE_OK;
}

static tide_status read_values(struct tide_change_reader *reader, struct tide_change_row *row,
                               struct tide_error *err)
{
    size_t count = reader->schema.column_count;
    struct tide_value *values = tide_arena_alloc(&reader->row_arena, count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(read_value(reader, i, &values[i], err));
    }
    TIDE_TRY(read_unchanged(reader, values, err));
    row->values = values;
    return TIDE_OK;
}

/* The key from the table's columns: of the values, or what is there instead of them. */
static tide_status read_key(struct tide_change_reader *reader, struct tide_change_row *row,
                            struct tide_error *err)
{
    const struct tide_change_schema *schema = &reader->schema;
    struct tide_value *key = tide_arena_alloc(&reader->row_arena, schema->key_count, sizeof(*key));
    bool is_there = row->values != NULL;
    for (size_t i = 0; i < schema->key_count; i++) {
        size_t column = schema->key_columns[i];
        if (row->values != NULL) {
            key[i] = row->values[column];
            continue;
        }
        is_there = is_there || !is_null(reader, tide_change_plan_main(column)) ||
                   !is_null(reader, tide_change_plan_beside(column));
        TIDE_TRY(read_value(reader, column, &key[i], err));
    }
    row->key = is_there ? key : NULL;
    return TIDE_OK;
}

static tide_status read_table(struct tide_change_reader *reader, struct tide_change_row *row,
                              struct tide_error *err)
{
    bool is_change = row->kind == TIDE_ROW_CHANGE;
    bool is_upsert = is_change && (row->op == TIDE_OP_INSERT || row->op == TIDE_OP_UPDATE);
    if (row->kind == TIDE_ROW_SNAPSHOT || (is_upsert && row->bytes == 0)) {
        TIDE_TRY(read_values(reader, row, err));
    }
    TIDE_TRY(read_labels(reader, TIDE_META_KEY, &row->key, err));
    bool has_key = (is_change && row->op != TIDE_OP_TRUNCATE) || row->kind == TIDE_ROW_STUB;
    if (row->key == NULL && has_key && reader->schema.key_count > 0) {
        TIDE_TRY(read_key(reader, row, err));
    }
    return read_labels(reader, TIDE_META_MOVED_FROM, &row->moved_from, err);
}

static tide_status read_row(struct tide_change_reader *reader, struct tide_change_row *row,
                            struct tide_error *err)
{
    if (!tide_change_op_parse(bytes_at(reader, TIDE_META_OP), &row->kind, &row->op)) {
        return fail_row(reader, TIDE_META_OP, "is no known word", err);
    }
    row->commit_us = (int64_t)u64_at(reader, TIDE_META_COMMIT_TIME);
    row->tx = is_null(reader, TIDE_META_TX) ? (tide_str){0} : bytes_at(reader, TIDE_META_TX);
    row->incarnation = u32_at(reader, TIDE_META_INCARNATION);
    row->bytes = u64_at(reader, TIDE_META_BYTES);
    TIDE_TRY(read_place(reader, TIDE_META_POSITION, TIDE_META_INDEX, &row->place, err));
    TIDE_TRY(read_place(reader, TIDE_META_PREV_POSITION, TIDE_META_PREV_INDEX, &row->prev, err));
    TIDE_TRY(read_snapshot(reader, row, err));
    TIDE_TRY(read_table(reader, row, err));
    const char *mistake = tide_change_row_mistake(row, reader->schema.key_count);
    return mistake == NULL ? TIDE_OK : fail_row(reader, TIDE_META_OP, mistake, err);
}

/* The next row group that has rows. */
static tide_status next_group(struct tide_change_reader *reader, struct tide_error *err)
{
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader->parquet);
    reader->row = reader->row_count = 0;
    while (reader->row_count == 0) {
        if (reader->next_group == metadata->group_count) {
            return TIDE_END;
        }
        size_t group = reader->next_group++;
        for (size_t i = 0; i < reader->plan.parquet_count; i++) {
            TIDE_TRY(tide_parquet_reader_read(reader->parquet, group, i, &reader->values[i], err));
        }
        reader->row_count = reader->values[0].row_count;
    }
    return TIDE_OK;
}

tide_status tide_change_reader_next(struct tide_change_reader *reader, int64_t *ret_time,
                                    struct tide_change_row *ret_row, struct tide_error *err)
{
    struct tide_change_row row = {0};
    if (reader->row == reader->row_count) {
        TIDE_TRY(next_group(reader, err));
    }
    tide_arena_reset(&reader->row_arena);
    TIDE_TRY(read_row(reader, &row, err));
    *ret_time = reader->values[TIDE_META_TIME].i64[reader->row];
    *ret_row = row;
    reader->row++;
    return TIDE_OK;
}
