#include "source/postgres/pg_known.h"

#include "base/alloc.h"

#include <stdlib.h>

void tide_pg_known_done(struct tide_pg_known *known)
{
    free(known->oids);
    free((void *)known->fresh);
    *known = (struct tide_pg_known){0};
}

static void add(struct tide_pg_known *known, uint32_t oid)
{
    if (known->count == known->cap) {
        known->cap = known->cap == 0 ? 16 : known->cap * 2;
        known->oids = tide_realloc(known->oids, known->cap, sizeof(*known->oids));
    }
    known->oids[known->count++] = oid;
}

void tide_pg_known_begin(struct tide_pg_known *known, const struct tide_pg_tables *tables)
{
    tide_pg_known_done(known);
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->relation != NULL) {
            add(known, tables->items[i]->oid);
        }
    }
}

static bool is_in(const uint32_t *oids, size_t count, uint32_t oid)
{
    for (size_t i = 0; i < count; i++) {
        if (oids[i] == oid) {
            return true;
        }
    }
    return false;
}

void tide_pg_known_go_on(struct tide_pg_known *known, const uint32_t *oids, size_t count,
                         const struct tide_pg_tables *tables)
{
    tide_pg_known_done(known);
    known->fresh = tide_alloc(tables->count, sizeof(*known->fresh));
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        if (table->relation == NULL) {
            continue;
        }
        if (is_in(oids, count, table->oid)) {
            add(known, table->oid);
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
    add(known, table->oid);
    return table;
}
