#include "source/sqlite/sqlite_fetch.h"

#include "base/alloc.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_key.h"
#include "source/sqlite/sqlite_select.h"

#include <stdlib.h>

struct tide_sqlite_fetcher {
    const struct tide_sqlite_table *table;
    sqlite3_stmt *by_key;
    sqlite3_stmt *by_rowid;
    int *key_columns; /* result columns of the key's columns */
    int rowid_column;
};

static void fetcher_init(struct tide_sqlite_fetcher *fetcher, const struct tide_sqlite_table *table)
{
    size_t width = tide_sqlite_table_log_width(table);
    fetcher->table = table;
    fetcher->key_columns = tide_alloc(width, sizeof(*fetcher->key_columns));
    for (size_t k = 0; k < width; k++) {
        fetcher->key_columns[k] = (int)table->relation->key_columns[k];
    }
    fetcher->rowid_column = (int)table->relation->column_count - 1;
}

void tide_sqlite_fetch_init(struct tide_sqlite_fetch *fetch, sqlite3 *db,
                            const struct tide_sqlite_tables *tables)
{
    *fetch = (struct tide_sqlite_fetch){.db = db, .count = tables->count};
    fetch->fetchers = tide_alloc(fetch->count, sizeof(*fetch->fetchers));
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->relation != NULL) {
            fetcher_init(&fetch->fetchers[i], tables->items[i]);
        }
    }
}

void tide_sqlite_fetch_done(struct tide_sqlite_fetch *fetch)
{
    for (size_t i = 0; i < fetch->count; i++) {
        tide_sqlite_stmt_done(&fetch->fetchers[i].by_key);
        tide_sqlite_stmt_done(&fetch->fetchers[i].by_rowid);
        free(fetch->fetchers[i].key_columns);
    }
    free(fetch->fetchers);
    tide_buf_done(&fetch->key);
    *fetch = (struct tide_sqlite_fetch){0};
}

static struct tide_sqlite_fetcher *fetcher_of(struct tide_sqlite_fetch *fetch,
                                              const struct tide_sqlite_table *table)
{
    if (fetch->last != NULL && fetch->last->table == table) {
        return fetch->last;
    }
    size_t i = 0;
    while (fetch->fetchers[i].table != table) {
        i++;
        TIDE_ASSERT(i < fetch->count);
    }
    fetch->last = &fetch->fetchers[i];
    return fetch->last;
}

/* The statement that fetches the row, bound. */
static tide_status bind_fetch(struct tide_sqlite_fetch *fetch, struct tide_sqlite_fetcher *fetcher,
                              tide_str key, sqlite3_stmt **ret_stmt, struct tide_error *err)
{
    bool by_rowid = tide_sqlite_key_is_by_rowid(fetcher->table, key);
    sqlite3_stmt **stmt = by_rowid ? &fetcher->by_rowid : &fetcher->by_key;
    if (*stmt == NULL) {
        TIDE_TRY(tide_sqlite_select_prepare(fetch->db, fetcher->table,
                                            by_rowid ? TIDE_SQLITE_BY_ROWID : TIDE_SQLITE_BY_KEY,
                                            stmt, err));
    }
    tide_sqlite_key_bind(fetcher->table, key, *stmt);
    *ret_stmt = *stmt;
    return TIDE_OK;
}

/* SQL may hold keys equal that are not the same ('abc' and 'ABC', 1 and 1.0). */
static bool is_same_row(struct tide_sqlite_fetch *fetch, const struct tide_sqlite_fetcher *fetcher,
                        sqlite3_stmt *stmt, tide_str key)
{
    tide_buf_reset(&fetch->key);
    tide_sqlite_key_append(&fetch->key, fetcher->table, stmt, fetcher->key_columns,
                           fetcher->rowid_column);
    return tide_str_equal(tide_buf_str(&fetch->key), key);
}

tide_status tide_sqlite_fetch_row(struct tide_sqlite_fetch *fetch,
                                  const struct tide_sqlite_table *table, tide_str key,
                                  sqlite3_stmt **ret_stmt, bool *ret_is_there,
                                  struct tide_error *err)
{
    struct tide_sqlite_fetcher *fetcher = fetcher_of(fetch, table);
    bool has_row = false;
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(bind_fetch(fetch, fetcher, key, &stmt, err));
    TIDE_TRY(tide_sqlite_step(stmt, &has_row, err)); /* resets it when it fails */
    *ret_is_there = has_row && is_same_row(fetch, fetcher, stmt, key);
    *ret_stmt = stmt;
    return TIDE_OK;
}
