#include "base/alloc.h"
#include "base/clock.h"
#include "source/postgres/postgres_source_parts.h"

#include <stdlib.h>

#define LOOK_AGAIN_US 300000 /* between two looks at the catalogue while following */

tide_status tide_pg_source_read_tables(struct tide_source *source, struct tide_error *err)
{
    const struct tide_source_options *options = &source->options;
    struct tide_pg_tables tables = {0};
    TIDE_TRY(tide_pg_source_connect(source, err));
    TIDE_TRY(tide_pg_tables_read(source->conn, options->connection, options->globs,
                                 options->glob_count, tide_pg_wait_for(TIDE_PG_QUERY_US), &tables,
                                 err));
    tide_status status = tide_pg_tables_refuse(&tables, err);
    if (status != TIDE_OK) {
        tide_pg_tables_done(&tables);
        return status;
    }
    tide_pg_tables_done(&source->tables);
    source->tables = tables;
    return TIDE_OK;
}

/* While it is followed a table may get other columns, which a new copy must have. A server that is
 * away now leaves what was known. */
static void look_again(struct tide_source *source)
{
    const struct tide_source_options *options = &source->options;
    struct tide_pg_tables tables = {0};
    struct tide_error ignored;
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us < source->looked_at_us + LOOK_AGAIN_US || source->conn == NULL) {
        return;
    }
    source->looked_at_us = now_us;
    if (tide_pg_tables_read(source->conn, options->connection, options->globs, options->glob_count,
                            tide_pg_wait_for(TIDE_PG_QUERY_US), &tables, &ignored) == TIDE_OK) {
        tide_pg_tables_done(&source->looked);
        source->looked = tables;
    }
}

tide_status tide_pg_source_tables(struct tide_source *source,
                                  const struct tide_relation *const **ret_tables, size_t *ret_count,
                                  struct tide_error *err)
{
    if (!source->is_prepared) {
        TIDE_TRY(tide_pg_source_read_tables(source, err));
    } else {
        look_again(source);
    }
    const struct tide_pg_tables *tables =
        source->looked.items != NULL ? &source->looked : &source->tables;
    free((void *)source->relations);
    source->relations = tide_alloc(tables->count, sizeof(*source->relations));
    size_t count = 0;
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        if (table->relation != NULL && tide_pg_tables_have(&source->tables, table->oid)) {
            source->relations[count++] = table->relation;
        }
    }
    *ret_tables = source->relations;
    *ret_count = count;
    return TIDE_OK;
}
