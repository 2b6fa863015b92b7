#include "source/sqlite/sqlite_analyse.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* Goes into the digest: another number makes every trigger anew. */
#define TRIGGERS_VERSION 1

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

void tide_sqlite_table_set_number(struct tide_sqlite_table *table, int64_t number, int64_t since)
{
    table->number = number;
    table->since = since;
    if (table->identity == TIDE_SQLITE_NOT_FOLLOWED) {
        return;
    }
    tide_relation_unref(table->relation);
    table->relation = make_relation(table);
}

/* Lengths keep two shapes from reading the same. */
static void put(struct tide_buf *buf, tide_str text)
{
    if (text.ptr == NULL) {
        tide_buf_append_str(buf, TIDE_STR("-;"));
        return;
    }
    tide_buf_append_u64(buf, text.len);
    tide_buf_append_char(buf, ':');
    tide_buf_append_str(buf, text);
}

static void put_column(struct tide_buf *buf, const struct tide_sqlite_column *column)
{
    put(buf, column->name);
    put(buf, column->type);
    put(buf, column->collation);
    put(buf, column->default_text);
    tide_buf_printf(buf, "%d,%d,%u;", (int)column->generated, column->is_not_null,
                    column->primary_place);
}

static void put_index(struct tide_buf *buf, const struct tide_sqlite_index *index)
{
    put(buf, index->name);
    put(buf, index->where);
    tide_buf_printf(buf, "%d,%zu;", index->is_primary, index->part_count);
    for (size_t i = 0; i < index->part_count; i++) {
        tide_buf_printf(buf, "%d;", index->parts[i].column);
        put(buf, index->parts[i].collation);
        put(buf, index->parts[i].expression);
    }
}

void tide_sqlite_table_digest(struct tide_sqlite_table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    tide_buf_printf(&buf, "%d;%d,%d,%d;%d,%zu,%zu;", TRIGGERS_VERSION, table->is_without_rowid,
                    table->is_strict, (int)table->identity, tide_sqlite_table_is_renumbered(table),
                    table->column_count, table->index_count);
    put(&buf, table->name);
    put(&buf, table->rowid_name);
    for (size_t i = 0; i < table->column_count; i++) {
        put_column(&buf, &table->columns[i]);
    }
    for (size_t i = 0; i < table->key_count; i++) {
        tide_buf_printf(&buf, "%u;", table->key_columns[i]);
    }
    for (size_t i = 0; i < table->index_count; i++) {
        put_index(&buf, &table->indexes[i]);
    }
    XXH128_hash_t hash = XXH3_128bits(buf.ptr, buf.len);
    (void)snprintf(table->digest, sizeof(table->digest), "%016llx%016llx",
                   (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}
