#include "archive/change_block.h"

#include "archive/change_label.h"
#include "archive/change_scalar.h"

/* At most, and no more values than that unless one row has them. */
#define BLOCK_ROWS   ((size_t)256)
#define BLOCK_VALUES ((size_t)65536)

tide_status tide_change_group_fail(const struct tide_change_group *group, size_t row, size_t column,
                                   const char *what, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "row %zu of row group %zu of a segment: %.*s %s", row,
                     group->number, TIDE_STR_ARG(group->plan->parquet[column].name), what);
}

void tide_change_block_done(struct tide_change_block *block)
{
    tide_buf_done(&block->values);
    tide_buf_done(&block->text);
    tide_arena_done(&block->arena);
}

/* One value, of any form */

static struct tide_change_scalar scalar_at(const struct tide_change_group *group, size_t row,
                                           size_t at)
{
    const struct tide_parquet_values *values = &group->values[at];
    struct tide_change_scalar scalar = {0};
    switch (values->storage) {
    case TIDE_PARQUET_AS_BOOL:
        scalar.flag = values->bools[row] != 0;
        break;
    case TIDE_PARQUET_AS_I32:
        scalar.i32 = values->i32[row];
        break;
    case TIDE_PARQUET_AS_I64:
        scalar.i64 = values->i64[row];
        break;
    case TIDE_PARQUET_AS_DOUBLE:
        scalar.real = values->doubles[row];
        break;
    case TIDE_PARQUET_AS_I128:
        scalar.i128 = values->i128[row];
        break;
    case TIDE_PARQUET_AS_BYTES:
        if (group->plan->parquet[at].type == TIDE_PARQUET_UUID) {
            memcpy(scalar.uuid, values->bytes[row].ptr, sizeof(scalar.uuid));
        } else {
            scalar.bytes = values->bytes[row];
        }
        break;
    case TIDE_PARQUET_AS_FLOAT:
    default:
        TIDE_ASSERT(values->storage == TIDE_PARQUET_AS_BOOL);
    }
    return scalar;
}

static tide_status read_typed(struct tide_change_block *block,
                              const struct tide_change_group *group, size_t i, size_t row,
                              struct tide_value *value, struct tide_error *err)
{
    size_t at = tide_change_plan_main(i);
    const struct tide_change_column *column = &group->plan->columns[i];
    struct tide_change_scalar scalar = scalar_at(group, row, at);
    tide_buf_reset(&block->text);
    if (!tide_change_scalar_append(column, &scalar, &block->text, &value->kind)) {
        return tide_change_group_fail(group, row, at, "has a value that no row has", err);
    }
    bool is_borrowed = column->form == TIDE_FORM_JSON || column->form == TIDE_FORM_BINARY;
    tide_str text =
        is_borrowed ? scalar.bytes : tide_arena_str(&block->arena, tide_buf_str(&block->text));
    value->ptr = text.ptr;
    value->len = (uint32_t)text.len;
    block->is_sound = block->is_sound && column->form != TIDE_FORM_JSON;
    return TIDE_OK;
}

static tide_status read_string(struct tide_change_block *block,
                               const struct tide_change_group *group, size_t i, size_t row,
                               struct tide_value *value, struct tide_error *err)
{
    size_t at = tide_change_plan_main(i);
    size_t beside = tide_change_plan_beside(i);
    bool is_null = tide_change_group_is_null(group, row, at);
    tide_str text = is_null ? (tide_str){0} : tide_change_group_bytes(group, row, at);
    block->is_sound = false;
    if (tide_change_group_is_null(group, row, beside)) {
        *value = (struct tide_value){
            .ptr = text.ptr, .len = (uint32_t)text.len, .kind = group->plan->columns[i].natural};
        return TIDE_OK;
    }
    if (!tide_change_label_join(tide_change_group_bytes(group, row, beside), text, &block->arena,
                                value)) {
        return tide_change_group_fail(group, row, beside, "is no kind of value", err);
    }
    return TIDE_OK;
}

static tide_status read_label(struct tide_change_block *block,
                              const struct tide_change_group *group, size_t i, size_t row,
                              struct tide_value *value, struct tide_error *err)
{
    size_t beside = tide_change_plan_beside(i);
    block->is_sound = false;
    if (!tide_change_label_parse(tide_change_group_bytes(group, row, beside), &block->arena,
                                 value)) {
        return tide_change_group_fail(group, row, beside, "has no value after its kind", err);
    }
    return TIDE_OK;
}

static uint8_t silent_kind(const struct tide_change_column *column)
{
    return column->is_hidden ? TIDE_VALUE_ABSENT : TIDE_VALUE_NULL;
}

static tide_status read_value(struct tide_change_block *block,
                              const struct tide_change_group *group, size_t i, size_t row,
                              struct tide_value *value, struct tide_error *err)
{
    const struct tide_change_column *column = &group->plan->columns[i];
    bool has_main = !tide_change_group_is_null(group, row, tide_change_plan_main(i));
    bool has_beside = !tide_change_group_is_null(group, row, tide_change_plan_beside(i));
    *value = (struct tide_value){.kind = silent_kind(column)};
    if (!has_main && !has_beside) {
        return TIDE_OK;
    }
    if (column->form == TIDE_FORM_STRING) {
        return read_string(block, group, i, row, value, err);
    }
    return has_main ? read_typed(block, group, i, row, value, err)
                    : read_label(block, group, i, row, value, err);
}

/* A column of the block: where nothing is beside it, the forms that most columns have */

static void fill_silent(const struct tide_change_block *block,
                        const struct tide_change_group *group, size_t i)
{
    struct tide_value silent = {.kind = silent_kind(&group->plan->columns[i])};
    struct tide_value *to = tide_change_block_row(block, block->start) + i;
    for (size_t row = block->start; row < block->end; row++, to += block->column_count) {
        *to = silent;
    }
}

/* Text of a string is UTF-8, which reading the pages has made sure of. */
static void fill_strings(struct tide_change_block *block, const struct tide_change_group *group,
                         size_t i)
{
    const struct tide_change_column *column = &group->plan->columns[i];
    const struct tide_parquet_values *from = &group->values[tide_change_plan_main(i)];
    struct tide_value *to = tide_change_block_row(block, block->start) + i;
    for (size_t row = block->start; row < block->end; row++, to += block->column_count) {
        bool is_null = from->is_null != NULL && from->is_null[row] != 0;
        to->ptr = from->bytes[row].ptr;
        to->len = (uint32_t)from->bytes[row].len;
        to->kind = is_null ? silent_kind(column) : column->natural;
    }
    block->is_sound = block->is_sound && column->natural == TIDE_VALUE_TEXT;
}

static void fill_integers(struct tide_change_block *block, const struct tide_change_group *group,
                          size_t i)
{
    const struct tide_parquet_values *from = &group->values[tide_change_plan_main(i)];
    struct tide_value *to = tide_change_block_row(block, block->start) + i;
    struct tide_value silent = {.kind = silent_kind(&group->plan->columns[i])};
    size_t room = (block->end - block->start) * TIDE_I64_TEXT_MAX;
    char *text = tide_arena_bytes(&block->arena, room);
    for (size_t row = block->start; row < block->end; row++, to += block->column_count) {
        *to = silent;
        if (from->is_null == NULL || from->is_null[row] == 0) {
            size_t len = tide_i64_to_text(from->i64[row], text);
            *to = (struct tide_value){text, (uint32_t)len, TIDE_VALUE_INTEGER};
            text += len;
            room -= len;
        }
    }
    tide_arena_give_back(&block->arena, room);
}

static tide_status fill_any(struct tide_change_block *block, const struct tide_change_group *group,
                            size_t i, struct tide_error *err)
{
    struct tide_value *to = tide_change_block_row(block, block->start) + i;
    for (size_t row = block->start; row < block->end; row++, to += block->column_count) {
        TIDE_TRY(read_value(block, group, i, row, to, err));
    }
    return TIDE_OK;
}

static tide_status fill(struct tide_change_block *block, const struct tide_change_group *group,
                        size_t i, struct tide_error *err)
{
    enum tide_change_form form = group->plan->columns[i].form;
    if (!tide_change_group_is_silent(group, tide_change_plan_beside(i))) {
        return fill_any(block, group, i, err);
    }
    if (tide_change_group_is_silent(group, tide_change_plan_main(i))) {
        fill_silent(block, group, i);
    } else if (form == TIDE_FORM_STRING) {
        fill_strings(block, group, i);
    } else if (form == TIDE_FORM_I64) {
        fill_integers(block, group, i);
    } else {
        return fill_any(block, group, i, err);
    }
    return TIDE_OK;
}

tide_status tide_change_block_read(struct tide_change_block *block,
                                   const struct tide_change_group *group, size_t start,
                                   struct tide_error *err)
{
    size_t columns = group->plan->schema->column_count;
    size_t count = group->row_count - start;
    size_t most = columns == 0 ? BLOCK_ROWS : BLOCK_VALUES / columns + 1;
    most = most < BLOCK_ROWS ? most : BLOCK_ROWS;
    count = count < most ? count : most;
    tide_arena_reset(&block->arena);
    tide_buf_reset(&block->values);
    (void)tide_buf_reserve(&block->values, count * columns * sizeof(struct tide_value) + 1);
    block->column_count = columns;
    block->start = start;
    block->is_sound = true;
    block->end = start + count;
    for (size_t i = 0; i < columns; i++) {
        tide_status status = fill(block, group, i, err);
        if (status != TIDE_OK) {
            block->end = start; /* nothing of it is there */
            return status;
        }
    }
    return TIDE_OK;
}
