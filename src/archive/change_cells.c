#include "archive/change_cells.h"

#include "archive/change_label.h"

void tide_change_cells_done(struct tide_change_cells *cells)
{
    tide_change_scratch_done(&cells->scratch);
    tide_buf_done(&cells->text);
}

static void add_scalar(struct tide_parquet_writer *parquet, size_t at, enum tide_change_form form,
                       const struct tide_change_scalar *scalar)
{
    switch (form) {
    case TIDE_FORM_BOOL:
        tide_parquet_add_bool(parquet, at, scalar->flag);
        return;
    case TIDE_FORM_DATE:
        tide_parquet_add_i32(parquet, at, scalar->i32);
        return;
    case TIDE_FORM_I64:
    case TIDE_FORM_TIME:
    case TIDE_FORM_TIMESTAMP:
    case TIDE_FORM_TIMESTAMP_UTC:
        tide_parquet_add_i64(parquet, at, scalar->i64);
        return;
    case TIDE_FORM_DOUBLE:
    case TIDE_FORM_DOUBLE_PG:
    case TIDE_FORM_FLOAT_PG:
        tide_parquet_add_double(parquet, at, scalar->real);
        return;
    case TIDE_FORM_DECIMAL:
    case TIDE_FORM_NUMBER:
        tide_parquet_add_i128(parquet, at, scalar->i128);
        return;
    case TIDE_FORM_UUID:
        tide_parquet_add_bytes(parquet, at, tide_str_of(scalar->uuid, sizeof(scalar->uuid)));
        return;
    case TIDE_FORM_STRING:
    case TIDE_FORM_JSON:
    case TIDE_FORM_BINARY:
    default:
        tide_parquet_add_bytes(parquet, at, scalar->bytes);
        return;
    }
}

static void add_nothing_beside(struct tide_change_cells *cells, size_t beside)
{
    if (beside != TIDE_CHANGE_NO_COLUMN) {
        tide_parquet_add_null(cells->parquet, beside);
    }
}

static bool is_null(const struct tide_change_column *column, struct tide_value value)
{
    uint8_t silent = column->is_hidden ? TIDE_VALUE_ABSENT : TIDE_VALUE_NULL;
    return value.kind == silent || value.kind == TIDE_VALUE_UNCHANGED;
}

static bool is_natural(const struct tide_change_column *column, struct tide_value value)
{
    return value.kind == column->natural && tide_str_is_utf8(tide_value_str(value));
}

static void add_kind(struct tide_change_cells *cells, struct tide_value value, size_t at,
                     size_t beside)
{
    if (value.kind > TIDE_VALUE_ABSENT) {
        tide_buf_reset(&cells->text);
        tide_change_label_append_text(&cells->text, value);
        tide_parquet_add_bytes(cells->parquet, at, tide_buf_str(&cells->text));
    } else {
        tide_parquet_add_null(cells->parquet, at);
    }
    tide_parquet_add_bytes(cells->parquet, beside, tide_change_label_kind(value));
}

static void add_label(struct tide_change_cells *cells, struct tide_value value, size_t at,
                      size_t beside)
{
    tide_parquet_add_null(cells->parquet, at);
    tide_buf_reset(&cells->text);
    tide_change_label_append(&cells->text, value);
    tide_parquet_add_bytes(cells->parquet, beside, tide_buf_str(&cells->text));
}

static bool scalar_of(struct tide_change_cells *cells, size_t i, struct tide_value value,
                      struct tide_change_scalar *ret_scalar)
{
    return tide_change_scalar_of(&cells->plan->columns[i],
                                 cells->plan->parquet[tide_change_plan_main(i)].precision, value,
                                 &cells->scratch, ret_scalar);
}

void tide_change_cell_add(struct tide_change_cells *cells, size_t i, struct tide_value value,
                          size_t at, size_t beside)
{
    const struct tide_change_column *column = &cells->plan->columns[i];
    bool is_string = column->form == TIDE_FORM_STRING;
    struct tide_change_scalar scalar;
    if (is_null(column, value)) {
        tide_parquet_add_null(cells->parquet, at);
    } else if (is_string && is_natural(column, value)) {
        tide_parquet_add_bytes(cells->parquet, at, tide_value_str(value));
    } else if (!is_string && scalar_of(cells, i, value, &scalar)) {
        add_scalar(cells->parquet, at, column->form, &scalar);
    } else {
        TIDE_ASSERT(beside != TIDE_CHANGE_NO_COLUMN);
        if (is_string) {
            add_kind(cells, value, at, beside);
        } else {
            add_label(cells, value, at, beside);
        }
        return;
    }
    add_nothing_beside(cells, beside);
}

bool tide_change_cell_fits(struct tide_change_cells *cells, size_t i, struct tide_value value)
{
    const struct tide_change_column *column = &cells->plan->columns[i];
    struct tide_change_scalar ignored;
    return is_null(column, value) ||
           (column->form == TIDE_FORM_STRING ? is_natural(column, value)
                                             : scalar_of(cells, i, value, &ignored));
}
