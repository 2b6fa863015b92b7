#include "source/sqlite/sqlite_analyse.h"

#include "base/alloc.h"

#include <stdlib.h>

void tide_sqlite_table_free(struct tide_sqlite_table *table)
{
    if (table == NULL) {
        return;
    }
    tide_relation_unref(table->relation);
    tide_arena_done(&table->arena);
    free(table);
}

static const struct tide_relation *make_relation(const struct tide_sqlite_table *table)
{
    bool has_rowid = tide_sqlite_table_has_hidden_rowid(table);
    size_t count = table->column_count + has_rowid;
    TIDE_CLEANUP(tide_free_ptr)
    struct tide_column *columns = tide_alloc(count, sizeof(*columns));
    for (size_t i = 0; i < table->column_count; i++) {
        columns[i].name = table->columns[i].name;
        columns[i].type = table->columns[i].type;
    }
    TIDE_CLEANUP(tide_free_ptr)
    uint32_t *key = tide_alloc(table->key_count + has_rowid, sizeof(*key));
    for (size_t i = 0; i < table->key_count; i++) {
        key[i] = table->key_columns[i];
    }
    if (has_rowid) {
        columns[count - 1] = (struct tide_column){table->rowid_name, TIDE_STR("INTEGER"), true};
        key[table->key_count] = (uint32_t)(count - 1);
    }
    struct tide_relation_spec spec = {
        .id = (uint64_t)table->number,
        .connection = table->connection,
        .name = table->name,
        .columns = columns,
        .column_count = count,
        .key_columns = key,
        .key_count = table->key_count + has_rowid,
    };
    return tide_relation_new(&spec);
}

void tide_sqlite_table_set_number(struct tide_sqlite_table *table, int64_t number)
{
    table->number = number;
    if (table->identity == TIDE_SQLITE_NOT_FOLLOWED) {
        return;
    }
    tide_relation_unref(table->relation);
    table->relation = make_relation(table);
}
