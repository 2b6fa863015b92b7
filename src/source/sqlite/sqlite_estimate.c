#include "source/sqlite/sqlite_estimate.h"

#include "source/sqlite/sqlite_db.h"

static uint64_t highest_rowid(sqlite3 *db, const struct tide_sqlite_table *table)
{
    struct tide_error ignored;
    int64_t highest = 0;
    char *sql =
        sqlite3_mprintf("SELECT max(\"%.*w\") FROM main.\"%.*w\"", (int)table->rowid_name.len,
                        table->rowid_name.ptr, (int)table->name.len, table->name.ptr);
    TIDE_ASSERT(sql != NULL);
    tide_status status = tide_sqlite_int(db, sql, 0, &highest, &ignored);
    sqlite3_free(sql);
    return status == TIDE_OK && highest > 0 ? (uint64_t)highest : 0;
}

uint64_t tide_sqlite_estimate_rows(sqlite3 *db, const struct tide_sqlite_tables *tables)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_sqlite_table *table = tables->items[i];
        if (table->relation != NULL && table->rowid_name.len > 0) {
            rows += highest_rowid(db, table);
        }
    }
    return rows;
}
