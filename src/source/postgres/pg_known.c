#include "source/postgres/pg_known.h"

#include "base/alloc.h"

#include <stdlib.h>

void tide_pg_known_done(struct tide_pg_known *known)
{
    free(known->told);
    free((void *)known->fresh);
    *known = (struct tide_pg_known){0};
}

static void add(struct tide_pg_known *known, const struct tide_pg_table *table)
{
    known->told[known->count++] =
        (struct tide_pg_told){.oid = table->oid, .store = table->relation->store};
}

static void begin(struct tide_pg_known *known, const struct tide_pg_tables *tables)
{
    tide_pg_known_done(known);
    known->told = tide_alloc(tables->count, sizeof(*known->told));
    known->fresh = tide_alloc(tables->count, sizeof(*known->fresh));
}

void tide_pg_known_begin(struct tide_pg_known *known, const struct tide_pg_tables *tables)
{
    begin(known, tables);
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->relation != NULL) {
            add(known, tables->items[i]);
        }
    }
}

static bool was_told(const struct tide_pg_state *saved, const struct tide_pg_table *table)
{
    for (size_t i = 0; i < saved->table_count; i++) {
        if (saved->tables[i].oid == table->oid) {
            return tide_str_equal(saved->tables[i].store, table->relation->store);
        }
    }
    return false;
}

void tide_pg_known_go_on(struct tide_pg_known *known, const struct tide_pg_state *saved,
                         const uint32_t *published, size_t published_count,
                         const struct tide_pg_tables *tables)
{
    begin(known, tables);
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        if (table->relation == NULL) {
            continue;
        }
        bool is_known = saved->has_tables ? was_told(saved, table)
                                          : tide_pg_has_oid(published, published_count, table->oid);
        /* one that was told and is not published any more was out of the stream for a while */
        if (is_known && tide_pg_has_oid(published, published_count, table->oid)) {
            add(known, table);
        } else {
            known->fresh[known->fresh_count++] = table;
        }
    }
}

const struct tide_pg_table *tide_pg_known_take_fresh(struct tide_pg_known *known)
{
    if (known->fresh_at == known->fresh_count) {
        return NULL;
    }
    const struct tide_pg_table *table = known->fresh[known->fresh_at++];
    add(known, table);
    return table;
}
