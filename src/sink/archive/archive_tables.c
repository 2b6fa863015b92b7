#include "sink/archive/archive_tables.h"

#include "archive/change_schema.h"
#include "base/alloc.h"
#include "sink/archive/archive_recall.h"
#include "sink/archive/archive_rows.h"

#include <stdlib.h>

void tide_archive_table_free(struct tide_archive_table *table)
{
    tide_relation_unref(table->relation);
    tide_buf_done(&table->columns);
    free(table);
}

/* What counts is whether it looks the same. */
static void use_relation(struct tide_archive_rows *rows, struct tide_archive_table *table,
                         const struct tide_relation *relation)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf columns = {0};
    if (table->relation == relation) {
        return;
    }
    tide_relation_unref(table->relation);
    table->relation = tide_relation_ref(relation);
    if (relation->column_count == 0) {
        return; /* it is gone: what is left to say of it needs no columns, and it had others */
    }
    tide_change_schema_encode(relation, tide_str_from(rows->position_kind->name), &columns);
    if (tide_str_equal(tide_buf_str(&columns), tide_buf_str(&table->columns))) {
        return;
    }
    table->columns.len = 0;
    tide_buf_append_str(&table->columns, tide_buf_str(&columns));
    table->needs_note = true;
    table->is_changed = true;
    table->names_size = 2;
    for (size_t i = 0; i < relation->column_count; i++) {
        table->names_size += 6 * relation->columns[i].name.len + 40;
    }
}

static tide_status open_table(struct tide_archive_rows *rows, const struct tide_relation *relation,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    struct tide_archive_series *series = NULL;
    tide_change_series_name_append(&name, relation->store);
    TIDE_TRY(
        tide_archive_series_open(rows->writer, rows->source, tide_buf_str(&name), &series, err));
    struct tide_archive_table *table = tide_alloc(1, sizeof(*table));
    table->series = series;
    rows->tables =
        tide_realloc(rows->tables, rows->table_count + 1, sizeof(struct tide_archive_table *));
    rows->tables[rows->table_count++] = table;
    union tide_map_value *value = tide_map_put(&rows->by_store, relation->store, NULL);
    value->ptr = table;
    use_relation(rows, table, relation);
    return rows->fills
               ? tide_archive_recall(rows->path, rows->source, tide_buf_str(&name), relation,
                                     tide_buf_str(&table->columns), &rows->fill, err)
               : TIDE_OK;
}

tide_status tide_archive_rows_table(struct tide_archive_rows *rows,
                                    const struct tide_relation *relation,
                                    struct tide_archive_table **ret_table, struct tide_error *err)
{
    if (rows->last != NULL && rows->last->relation == relation) {
        *ret_table = rows->last;
        return TIDE_OK;
    }
    const union tide_map_value *known = tide_map_get(&rows->by_store, relation->store);
    if (known == NULL) {
        TIDE_TRY(open_table(rows, relation, err));
        known = tide_map_get(&rows->by_store, relation->store);
    }
    rows->last = known->ptr;
    use_relation(rows, rows->last, relation);
    *ret_table = rows->last;
    return TIDE_OK;
}

bool tide_archive_table_is_unheard_of(const struct tide_archive_table *table)
{
    struct tide_archive_series_state state;
    if (TIDE_LIKELY(table->relation->column_count > 0 || table->is_touched)) {
        return false;
    }
    tide_archive_series_state(table->series, &state);
    return !state.has_newest;
}
