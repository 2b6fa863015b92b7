#include "source/sqlite/sqlite_window.h"

#include "base/alloc.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_key.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define PLACES ((size_t)TIDE_SQLITE_WINDOW_ENTRIES * 2) /* a power of two */

/* Result columns of the log's SELECT; k1 … follow. */
enum {
    COLUMN_ID,
    COLUMN_TABLE,
    COLUMN_OP,
    COLUMN_ROWID,
    COLUMN_KEY
};

void tide_sqlite_window_init(struct tide_sqlite_window *window, size_t entries_max)
{
    TIDE_ASSERT(entries_max >= 1 && entries_max <= TIDE_SQLITE_WINDOW_ENTRIES);
    window->entries_max = entries_max;
    window->marks = tide_alloc(TIDE_SQLITE_WINDOW_ENTRIES, sizeof(*window->marks));
    window->places = tide_alloc(PLACES, sizeof(*window->places));
}

void tide_sqlite_window_done(struct tide_sqlite_window *window)
{
    tide_arena_done(&window->arena);
    tide_buf_done(&window->key);
    free(window->marks);
    free(window->places);
    *window = (struct tide_sqlite_window){0};
}

void tide_sqlite_window_reset(struct tide_sqlite_window *window)
{
    tide_arena_reset(&window->arena);
    memset(window->places, 0, PLACES * sizeof(*window->places));
    window->count = 0;
    window->next = 0;
    window->entries = 0;
    window->bytes = 0;
}

size_t tide_sqlite_window_width(const struct tide_sqlite_tables *tables)
{
    size_t width = 1;
    for (size_t i = 0; i < tables->count; i++) {
        size_t own = tide_sqlite_table_log_width(tables->items[i]);
        width = own > width ? own : width;
    }
    return width;
}

tide_status tide_sqlite_window_prepare(sqlite3 *db, size_t width, sqlite3_stmt **ret_stmt,
                                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    tide_buf_append_str(&sql, TIDE_STR("SELECT id, t, op, r"));
    for (size_t i = 1; i <= width; i++) {
        tide_buf_printf(&sql, ", k%zu", i);
    }
    tide_buf_append_str(&sql, TIDE_STR(" FROM main.\"" TIDE_SQLITE_LOG "\" WHERE id > ?1"
                                       " AND id <= ?2 ORDER BY id LIMIT ?3"));
    return tide_sqlite_prepare(db, tide_buf_str(&sql), ret_stmt, err);
}

/* Adds the mark, and takes the place of an earlier one of the same row. */
static void add_mark(struct tide_sqlite_window *window, struct tide_sqlite_mark mark)
{
    size_t place = mark.hash & (PLACES - 1);
    while (window->places[place] != 0) {
        struct tide_sqlite_mark *older = &window->marks[window->places[place] - 1];
        if (older->hash == mark.hash && tide_str_equal(older->key, mark.key)) {
            older->is_superseded = true;
            mark.key = older->key;
            mark.op = mark.op == TIDE_SQLITE_OP_CANDIDATE ? older->op : mark.op;
            break;
        }
        place = (place + 1) & (PLACES - 1);
    }
    if (window->places[place] == 0) {
        mark.key = tide_arena_str(&window->arena, mark.key);
        window->bytes += mark.key.len;
    }
    window->marks[window->count++] = mark;
    window->places[place] = (uint32_t)window->count;
}

/* Notes are no rows' marks: they are never merged. */
static void add_note(struct tide_sqlite_window *window, sqlite3_stmt *stmt, enum tide_sqlite_op op)
{
    tide_str name = tide_arena_str(&window->arena, tide_sqlite_column_str(stmt, COLUMN_KEY));
    tide_str note = tide_arena_str(&window->arena, tide_sqlite_column_str(stmt, COLUMN_ROWID));
    window->bytes += name.len + note.len;
    window->marks[window->count++] = (struct tide_sqlite_mark){
        .id = window->last_id,
        .number = window->number,
        .table = window->table,
        .key = name,
        .note = note,
        .op = op,
    };
}

static tide_status add_entry(struct tide_sqlite_window *window, sqlite3_stmt *stmt,
                             const struct tide_sqlite_tables *tables, const int *key_columns,
                             struct tide_error *err)
{
    int64_t number = sqlite3_column_int64(stmt, COLUMN_TABLE);
    int op = sqlite3_column_int(stmt, COLUMN_OP);
    if (number != window->number) {
        window->number = number;
        window->table = tide_sqlite_tables_by_number(tables, number);
    }
    const struct tide_sqlite_table *table = window->table;
    if (op >= TIDE_SQLITE_OP_TRUNCATE && op <= TIDE_SQLITE_OP_GONE) {
        add_note(window, stmt, (enum tide_sqlite_op)op);
        return TIDE_OK;
    }
    if (table == NULL) {
        return TIDE_OK; /* another pipeline's, or (0) the entry that keeps the log filled */
    }
    if (op < TIDE_SQLITE_OP_INSERT || op > TIDE_SQLITE_OP_CANDIDATE) {
        return tide_fail(err, TIDE_CORRUPT,
                         "entry %lld of " TIDE_SQLITE_LOG " has the unknown operation %d; somebody "
                         "else wrote into it, " TIDE_SQLITE_DETACH_ANEW,
                         (long long)window->last_id, op);
    }
    tide_buf_reset(&window->key);
    tide_sqlite_key_append(&window->key, table, stmt, key_columns, COLUMN_ROWID);
    add_mark(window, (struct tide_sqlite_mark){
                         .id = window->last_id,
                         .number = number,
                         .table = table,
                         .key = tide_buf_str(&window->key),
                         .hash = XXH3_64bits(window->key.ptr, window->key.len),
                         .op = (enum tide_sqlite_op)op,
                     });
    return TIDE_OK;
}

static tide_status read_entries(struct tide_sqlite_window *window, sqlite3_stmt *stmt,
                                const struct tide_sqlite_tables *tables, bool *ret_is_done,
                                struct tide_error *err)
{
    size_t width = (size_t)sqlite3_column_count(stmt) - COLUMN_KEY;
    int *columns = tide_arena_alloc(&window->arena, width, sizeof(*columns));
    for (size_t i = 0; i < width; i++) {
        columns[i] = COLUMN_KEY + (int)i;
    }
    bool has_row = false;
    do {
        TIDE_TRY(tide_sqlite_step(stmt, &has_row, err));
        if (has_row) {
            window->entries++;
            window->last_id = sqlite3_column_int64(stmt, COLUMN_ID);
            TIDE_TRY(add_entry(window, stmt, tables, columns, err));
        }
    } while (has_row && window->bytes <= TIDE_SQLITE_WINDOW_BYTES);
    *ret_is_done = !has_row;
    return TIDE_OK;
}

tide_status tide_sqlite_window_load(struct tide_sqlite_window *window, sqlite3_stmt *stmt,
                                    const struct tide_sqlite_tables *tables, int64_t first,
                                    int64_t last, struct tide_error *err)
{
    tide_sqlite_window_reset(window);
    (void)sqlite3_bind_int64(stmt, 1, first);
    (void)sqlite3_bind_int64(stmt, 2, last);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)window->entries_max);
    bool is_done = false;
    tide_status status = read_entries(window, stmt, tables, &is_done, err);
    (void)sqlite3_reset(stmt);
    if (status != TIDE_OK) {
        tide_sqlite_window_reset(window);
        return status;
    }
    if (is_done && window->entries < window->entries_max) {
        window->last_id = last;
    }
    return TIDE_OK;
}

void tide_sqlite_window_retable(struct tide_sqlite_window *window,
                                const struct tide_sqlite_tables *tables)
{
    for (size_t i = window->next; i < window->count; i++) {
        struct tide_sqlite_mark *mark = &window->marks[i];
        mark->table = tide_sqlite_tables_by_number(tables, mark->number);
        if (mark->table == NULL && !tide_sqlite_mark_is_note(mark)) {
            mark->is_superseded = true; /* by the note that says why */
        }
    }
    window->number = 0; /* of the filler, no table's */
    window->table = NULL;
}
