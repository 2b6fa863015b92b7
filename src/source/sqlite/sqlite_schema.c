#include "source/sqlite/sqlite_schema.h"

#include "base/alloc.h"
#include "base/glob.h"
#include "source/sqlite/sqlite_analyse.h"
#include "source/sqlite/sqlite_db.h"

#include <stdlib.h>

void tide_sqlite_tables_done(struct tide_sqlite_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++) {
        tide_sqlite_table_free(tables->items[i]);
    }
    free(tables->items);
    *tables = (struct tide_sqlite_tables){0};
}

struct tide_sqlite_table *tide_sqlite_tables_by_number(const struct tide_sqlite_tables *tables,
                                                       int64_t number)
{
    for (size_t i = 0; i < tables->count; i++) {
        struct tide_sqlite_table *table = tables->items[i];
        if (table->number == number && table->identity != TIDE_SQLITE_NOT_FOLLOWED) {
            return table;
        }
    }
    return NULL;
}

struct tide_sqlite_table *tide_sqlite_tables_by_name(const struct tide_sqlite_tables *tables,
                                                     tide_str name)
{
    for (size_t i = 0; i < tables->count; i++) {
        struct tide_sqlite_table *table = tables->items[i];
        if (tide_str_equal(table->name, name) && table->identity != TIDE_SQLITE_NOT_FOLLOWED) {
            return table;
        }
    }
    return NULL;
}

bool tide_sqlite_is_chosen(const tide_str *globs, size_t glob_count, tide_str name)
{
    for (size_t i = 0; i < glob_count; i++) {
        if (tide_glob_matches(globs[i], name)) {
            return true;
        }
    }
    return glob_count == 0;
}

void tide_sqlite_tables_choose(struct tide_sqlite_tables *tables, const tide_str *globs,
                               size_t glob_count)
{
    size_t kept = 0;
    for (size_t i = 0; i < tables->count; i++) {
        struct tide_sqlite_table *table = tables->items[i];
        if (tide_sqlite_is_chosen(globs, glob_count, table->name)) {
            tables->items[kept++] = table;
        } else {
            tide_sqlite_table_free(table);
        }
    }
    tables->count = kept;
}

/* Which tables are wanted: those of one name, or those that globs choose. */
struct choice {
    const tide_str *name;
    const tide_str *globs;
    size_t glob_count;
    bool *is_used; /* of each glob */
};

static bool is_ours_or_internal(tide_str name)
{
    return tide_str_starts_with(name, TIDE_STR("sqlite_")) ||
           tide_str_starts_with(name, TIDE_STR(TIDE_SQLITE_PREFIX));
}

static bool is_chosen(struct choice *choice, tide_str name)
{
    if (choice->name != NULL) {
        return tide_str_equal(*choice->name, name);
    }
    if (is_ours_or_internal(name)) {
        return false;
    }
    bool is = choice->glob_count == 0;
    for (size_t i = 0; i < choice->glob_count; i++) {
        if (tide_glob_matches(choice->globs[i], name)) {
            choice->is_used[i] = true;
            is = true;
        }
    }
    return is;
}

/* The listing is copied before tables are analysed: a PRAGMA must not run inside another. */
struct listing {
    struct tide_arena arena;
    struct tide_sqlite_listed *items;
    size_t count;
    size_t cap;
};

static void listing_done(struct listing *listing)
{
    tide_arena_done(&listing->arena);
    free(listing->items);
}

static void listing_add(struct listing *listing, sqlite3_stmt *stmt)
{
    if (listing->count == listing->cap) {
        listing->cap = listing->cap * 2 + 16;
        listing->items = tide_realloc(listing->items, listing->cap, sizeof(*listing->items));
    }
    listing->items[listing->count++] = (struct tide_sqlite_listed){
        .name = tide_arena_str(&listing->arena, tide_sqlite_column_str(stmt, 0)),
        .type = tide_arena_str(&listing->arena, tide_sqlite_column_str(stmt, 1)),
        .is_without_rowid = sqlite3_column_int(stmt, 2) != 0,
        .is_strict = sqlite3_column_int(stmt, 3) != 0,
    };
}

static tide_status list_tables(sqlite3 *db, struct choice *choice, struct listing *listing,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db,
                                 TIDE_STR("SELECT name, type, wr, strict FROM pragma_table_list "
                                          "WHERE schema = 'main' AND type <> 'view' "
                                          "ORDER BY name COLLATE BINARY"),
                                 &stmt, err));
    bool is_row = false;
    for (;;) {
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        if (is_chosen(choice, tide_sqlite_column_str(stmt, 0))) {
            listing_add(listing, stmt);
        }
    }
}

/* Numbers of tables that have triggers. */
static tide_status read_numbers(sqlite3 *db, struct tide_sqlite_tables *tables,
                                struct tide_error *err)
{
    int64_t is_there = 0;
    TIDE_TRY(tide_sqlite_int(db,
                             "SELECT count(*) FROM main.sqlite_schema "
                             "WHERE type = 'table' AND name = '" TIDE_SQLITE_TABLES "'",
                             0, &is_there, err));
    if (is_there == 0) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db, TIDE_STR("SELECT name, t FROM main.\"" TIDE_SQLITE_TABLES "\""), &stmt, err));
    bool is_row = false;
    for (;;) {
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        struct tide_sqlite_table *table =
            tide_sqlite_tables_by_name(tables, tide_sqlite_column_str(stmt, 0));
        if (table != NULL) {
            tide_sqlite_table_set_number(table, sqlite3_column_int64(stmt, 1));
        }
    }
}

static tide_status read_chosen(sqlite3 *db, tide_str connection, struct choice *choice,
                               struct tide_sqlite_tables *ret_tables, struct tide_error *err)
{
    TIDE_CLEANUP(listing_done) struct listing listing = {0};
    TIDE_TRY(list_tables(db, choice, &listing, err));
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    tables.items = tide_alloc(listing.count, sizeof(struct tide_sqlite_table *));
    for (size_t i = 0; i < listing.count; i++) {
        TIDE_TRY(tide_sqlite_analyse(db, connection, &listing.items[i], &tables.items[tables.count],
                                     err));
        tables.count++;
    }
    TIDE_TRY(read_numbers(db, &tables, err));
    *ret_tables = tables;
    tables = (struct tide_sqlite_tables){0};
    return TIDE_OK;
}

tide_status tide_sqlite_tables_read(sqlite3 *db, tide_str connection, const tide_str *globs,
                                    size_t glob_count, struct tide_sqlite_tables *ret_tables,
                                    struct tide_error *err)
{
    TIDE_ASSERT(ret_tables->count == 0);
    TIDE_CLEANUP(tide_free_ptr) bool *is_used = tide_alloc(glob_count + 1, sizeof(bool));
    struct choice choice = {.globs = globs, .glob_count = glob_count, .is_used = is_used};
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_TRY(read_chosen(db, connection, &choice, &tables, err));
    for (size_t i = 0; i < glob_count; i++) {
        if (!is_used[i]) {
            return tide_fail(err, TIDE_INVALID,
                             "no table of the database matches \"%.*s\"; names are matched with "
                             "upper and lower case, * and ?",
                             TIDE_STR_ARG(globs[i]));
        }
    }
    *ret_tables = tables;
    tables = (struct tide_sqlite_tables){0};
    return TIDE_OK;
}

tide_status tide_sqlite_table_read(sqlite3 *db, tide_str connection, tide_str name,
                                   struct tide_sqlite_table **ret_table, struct tide_error *err)
{
    struct choice choice = {.name = &name};
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_TRY(read_chosen(db, connection, &choice, &tables, err));
    *ret_table = tables.count > 0 ? tables.items[0] : NULL;
    tables.count = 0;
    return TIDE_OK;
}
