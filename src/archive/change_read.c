#include "archive/change_read.h"

#include "archive/change_block.h"
#include "archive/change_group.h"
#include "archive/change_label.h"
#include "archive/change_op.h"
#include "archive/change_pairs.h"
#include "archive/change_position.h"
#include "base/alloc.h"
#include "base/map.h"
#include "format/parquet/reader.h"

#include <stdlib.h>

/* What the newest row has, which the next one mostly has too: then the dictionary gives the very
 * same bytes. Of the current row group. */
struct newest {
    tide_str op_name;
    enum tide_change_row_kind kind;
    enum tide_op op;
    tide_str position_text;
    struct tide_position position;
};

struct tide_change_reader {
    struct tide_parquet_reader *parquet;
    struct tide_arena arena; /* schema and plan */
    struct tide_change_schema schema;
    struct tide_change_plan plan;
    struct tide_map names; /* of columns: their numbers */
    const struct tide_position_kind *position_kind;
    bool is_of_heads;
    struct tide_change_group group;
    size_t next_group;
    size_t row;   /* of the current row group */
    bool has_all; /* of the group has been read, not what heads need alone */
    struct tide_change_block block;
    bool is_sound; /* the current row's values outside of the block */
    struct newest newest;
    struct tide_arena row_arena;
};

static tide_status fail_row(const struct tide_change_reader *reader, size_t column,
                            const char *what, struct tide_error *err)
{
    return tide_change_group_fail(&reader->group, reader->row, column, what, err);
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
    reader->group.plan = &reader->plan;
    reader->group.values = tide_alloc(reader->plan.parquet_count, sizeof(*reader->group.values));
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
    for (size_t i = 0; reader->group.values != NULL && i < reader->plan.parquet_count; i++) {
        tide_parquet_values_done(&reader->group.values[i]);
    }
    free(reader->group.values);
    tide_change_block_done(&reader->block);
    tide_parquet_reader_free(reader->parquet);
    tide_map_done(&reader->names);
    tide_arena_done(&reader->arena);
    tide_arena_done(&reader->row_arena);
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

void tide_change_reader_want_heads(struct tide_change_reader *reader)
{
    TIDE_ASSERT(reader->next_group == 0);
    reader->is_of_heads = true;
}

bool tide_change_reader_is_sound(const struct tide_change_reader *reader)
{
    return reader->is_sound && reader->block.is_sound;
}

static bool is_null(const struct tide_change_reader *reader, size_t column)
{
    return tide_change_group_is_null(&reader->group, reader->row, column);
}

static tide_str bytes_at(const struct tide_change_reader *reader, size_t column)
{
    return tide_change_group_bytes(&reader->group, reader->row, column);
}

/* 0 where it is null, as in all columns of numbers that are not always there. */
static uint64_t u64_at(const struct tide_change_reader *reader, enum tide_change_meta column)
{
    return is_null(reader, column) ? 0 : (uint64_t)reader->group.values[column].i64[reader->row];
}

static uint32_t u32_at(const struct tide_change_reader *reader, enum tide_change_meta column)
{
    return is_null(reader, column) ? 0 : (uint32_t)reader->group.values[column].i32[reader->row];
}

/* A list's slots; false where it is null. */
static bool list_at(const struct tide_change_reader *reader, enum tide_change_meta column,
                    size_t *ret_start, size_t *ret_count)
{
    const struct tide_parquet_values *values = &reader->group.values[column];
    if (values->is_list_null != NULL && values->is_list_null[reader->row] != 0) {
        return false;
    }
    *ret_start = values->list_starts[reader->row];
    *ret_count = values->list_starts[reader->row + 1] - *ret_start;
    return true;
}

/* Whether it is the same piece of memory, not just the same text. */
static bool is_same(tide_str a, tide_str b)
{
    return a.ptr == b.ptr && a.len == b.len;
}

static tide_status read_place(struct tide_change_reader *reader, enum tide_change_meta position,
                              enum tide_change_meta index, struct tide_place *place,
                              struct tide_error *err)
{
    struct newest *newest = &reader->newest;
    if (is_null(reader, position)) {
        return TIDE_OK;
    }
    tide_str text = bytes_at(reader, position);
    if (newest->position_text.ptr == NULL || !is_same(text, newest->position_text)) {
        if (tide_change_position_parse(text, reader->position_kind, &newest->position, err) !=
            TIDE_OK) {
            return fail_row(reader, position, "is no position", err);
        }
        newest->position_text = text;
    }
    place->position = newest->position;
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
            starts[i] = (uint64_t)reader->group.values[TIDE_META_STARTS].i64[start + i];
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
        tide_str label = reader->group.values[column].bytes[start + i];
        if (!tide_change_label_parse(label, &reader->row_arena, &values[i])) {
            return fail_row(reader, column, "has no value after its kind", err);
        }
    }
    reader->is_sound = false;
    *ret_values = values;
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
        tide_str name = reader->group.values[TIDE_META_UNCHANGED].bytes[i];
        const union tide_map_value *column = tide_map_get(&reader->names, name);
        if (column == NULL) {
            return fail_row(reader, TIDE_META_UNCHANGED, "names no column of the table", err);
        }
        values[column->number] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    }
    return TIDE_OK;
}

/* The row's values in the block. */
static tide_status find_values(struct tide_change_reader *reader, struct tide_value **ret_values,
                               struct tide_error *err)
{
    if (reader->row < reader->block.start || reader->row >= reader->block.end) {
        TIDE_TRY(tide_change_block_read(&reader->block, &reader->group, reader->row, err));
    }
    *ret_values = tide_change_block_row(&reader->block, reader->row);
    return TIDE_OK;
}

/* The key from the table's columns: of the values, or what is there instead of them. */
static tide_status read_key(struct tide_change_reader *reader, struct tide_change_row *row,
                            struct tide_error *err)
{
    const struct tide_change_schema *schema = &reader->schema;
    struct tide_value *key = tide_arena_alloc(&reader->row_arena, schema->key_count, sizeof(*key));
    struct tide_value *values = NULL;
    bool is_there = row->values != NULL;
    TIDE_TRY(find_values(reader, &values, err));
    for (size_t i = 0; i < schema->key_count; i++) {
        size_t column = schema->key_columns[i];
        is_there = is_there || !is_null(reader, tide_change_plan_main(column)) ||
                   !is_null(reader, tide_change_plan_beside(column));
        key[i] = values[column];
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
        struct tide_value *values = NULL;
        TIDE_TRY(find_values(reader, &values, err));
        TIDE_TRY(read_unchanged(reader, values, err));
        row->values = values;
    }
    TIDE_TRY(read_labels(reader, TIDE_META_KEY, &row->key, err));
    bool has_key = (is_change && row->op != TIDE_OP_TRUNCATE) || row->kind == TIDE_ROW_STUB;
    if (row->key == NULL && has_key && reader->schema.key_count > 0) {
        TIDE_TRY(read_key(reader, row, err));
    }
    return read_labels(reader, TIDE_META_MOVED_FROM, &row->moved_from, err);
}

static tide_status read_op(struct tide_change_reader *reader, struct tide_change_row *row,
                           struct tide_error *err)
{
    struct newest *newest = &reader->newest;
    tide_str name = bytes_at(reader, TIDE_META_OP);
    if (newest->op_name.ptr == NULL || !is_same(name, newest->op_name)) {
        if (!tide_change_op_parse(name, &newest->kind, &newest->op)) {
            return fail_row(reader, TIDE_META_OP, "is no known word", err);
        }
        newest->op_name = name;
    }
    row->kind = newest->kind;
    row->op = newest->op;
    return TIDE_OK;
}

static tide_status read_head(struct tide_change_reader *reader, struct tide_change_row *row,
                             struct tide_error *err)
{
    TIDE_TRY(read_op(reader, row, err));
    row->commit_us = (int64_t)u64_at(reader, TIDE_META_COMMIT_TIME);
    row->incarnation = u32_at(reader, TIDE_META_INCARNATION);
    row->bytes = u64_at(reader, TIDE_META_BYTES);
    TIDE_TRY(read_place(reader, TIDE_META_POSITION, TIDE_META_INDEX, &row->place, err));
    return read_snapshot(reader, row, err);
}

static tide_status read_rest(struct tide_change_reader *reader, struct tide_change_row *row,
                             struct tide_error *err)
{
    row->tx = is_null(reader, TIDE_META_TX) ? (tide_str){0} : bytes_at(reader, TIDE_META_TX);
    TIDE_TRY(read_place(reader, TIDE_META_PREV_POSITION, TIDE_META_PREV_INDEX, &row->prev, err));
    TIDE_TRY(read_table(reader, row, err));
    const char *mistake = tide_change_row_mistake(row, reader->schema.key_count);
    return mistake == NULL ? TIDE_OK : fail_row(reader, TIDE_META_OP, mistake, err);
}

static bool is_of_head(size_t column)
{
    switch (column) {
    case TIDE_META_TIME:
    case TIDE_META_OP:
    case TIDE_META_COMMIT_TIME:
    case TIDE_META_POSITION:
    case TIDE_META_INDEX:
    case TIDE_META_INCARNATION:
    case TIDE_META_SNAPSHOT_ID:
    case TIDE_META_SEQ:
    case TIDE_META_ATTEMPT:
    case TIDE_META_STARTS:
    case TIDE_META_BYTES:
        return true;
    default:
        return false;
    }
}

/* The group's columns that heads need, or the others. */
static tide_status read_columns(struct tide_change_reader *reader, bool is_head,
                                struct tide_error *err)
{
    for (size_t i = 0; i < reader->plan.parquet_count; i++) {
        if (is_of_head(i) == is_head) {
            TIDE_TRY(tide_parquet_reader_read(reader->parquet, reader->group.number, i,
                                              &reader->group.values[i], err));
        }
    }
    return TIDE_OK;
}

static tide_status need_all(struct tide_change_reader *reader, struct tide_error *err)
{
    if (!reader->has_all) {
        TIDE_TRY(read_columns(reader, false, err));
        reader->has_all = true;
    }
    return TIDE_OK;
}

/* A stub's key is told with its head: whether it is known says what its snapshot is worth. */
static tide_status read_row(struct tide_change_reader *reader, struct tide_change_row *row,
                            struct tide_error *err)
{
    TIDE_TRY(read_head(reader, row, err));
    if (reader->is_of_heads && row->kind != TIDE_ROW_STUB) {
        const char *mistake = tide_change_row_head_mistake(row);
        return mistake == NULL ? TIDE_OK : fail_row(reader, TIDE_META_OP, mistake, err);
    }
    TIDE_TRY(need_all(reader, err));
    return read_rest(reader, row, err);
}

/* The next row group that has rows. */
static tide_status next_group(struct tide_change_reader *reader, struct tide_error *err)
{
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader->parquet);
    reader->row = reader->group.row_count = 0;
    reader->block.start = reader->block.end = 0;
    reader->has_all = false;
    reader->newest = (struct newest){0};
    while (reader->group.row_count == 0) {
        if (reader->next_group == metadata->group_count) {
            return TIDE_END;
        }
        reader->group.number = reader->next_group++;
        TIDE_TRY(read_columns(reader, true, err));
        reader->group.row_count = reader->group.values[TIDE_META_TIME].row_count;
    }
    return reader->is_of_heads ? TIDE_OK : need_all(reader, err);
}

tide_status tide_change_reader_next(struct tide_change_reader *reader, int64_t *ret_time,
                                    struct tide_change_row *ret_row, struct tide_error *err)
{
    struct tide_change_row row = {0};
    if (reader->row == reader->group.row_count) {
        TIDE_TRY(next_group(reader, err));
    }
    tide_arena_reset(&reader->row_arena);
    reader->is_sound = true;
    TIDE_TRY(read_row(reader, &row, err));
    *ret_time = reader->group.values[TIDE_META_TIME].i64[reader->row];
    *ret_row = row;
    reader->row++;
    return TIDE_OK;
}
