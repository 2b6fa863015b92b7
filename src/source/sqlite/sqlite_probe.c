#include "source/sqlite/sqlite_probe.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_maker.h"

#include <limits.h>
#include <string.h>

#define LOG_COLUMNS 4 /* id, t, op, r, beside the key's */

static void give_up(struct tide_sqlite_table *table, const char *what, const char *why)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    tide_buf_printf(&text, "%s: %s", what, why);
    table->problem = tide_arena_str(&table->arena, tide_buf_str(&text));
    table->identity = TIDE_SQLITE_NOT_FOLLOWED;
    table->is_nullable = false;
}

/* Whether SQLite takes the statement. Other errors than its own show themselves to whoever reads.
 */
static bool is_taken(sqlite3 *db, tide_str sql)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_ASSERT(sql.len < INT_MAX);
    int rc = sqlite3_prepare_v3(db, sql.ptr, (int)sql.len, 0, &stmt, NULL);
    return rc != SQLITE_TOOBIG && (rc & 0xff) != SQLITE_ERROR;
}

static void append_equal_one(struct tide_buf *sql, tide_str expression, tide_str collation)
{
    tide_buf_append_str(sql, TIDE_STR(" AND ("));
    tide_buf_append_str(sql, expression);
    tide_buf_append_str(sql, TIDE_STR(") COLLATE "));
    tide_sqlite_append_name(sql, collation);
    tide_buf_append_str(sql, TIDE_STR(" = 1"));
}

static void append_from(struct tide_buf *sql, const struct tide_sqlite_table *table)
{
    tide_buf_append_str(sql, TIDE_STR(" FROM main."));
    tide_sqlite_append_name(sql, table->name);
    tide_buf_append_str(sql, TIDE_STR(" WHERE 1"));
}

/* A SELECT as the chunk reader's: by key, in the order of the key's index. */
static void append_read(struct tide_buf *sql, const struct tide_sqlite_table *table)
{
    tide_buf_append_str(sql, TIDE_STR("SELECT 1"));
    for (size_t i = 0; i < table->column_count; i++) {
        tide_buf_append_str(sql, TIDE_STR(", "));
        tide_sqlite_append_name(sql, table->columns[i].name);
    }
    append_from(sql, table);
    for (size_t i = 0; i < table->key_count; i++) {
        tide_buf_append_str(sql, TIDE_STR(" AND "));
        tide_sqlite_append_name(sql, table->columns[table->key_columns[i]].name);
        tide_buf_append_str(sql, TIDE_STR(" COLLATE "));
        tide_sqlite_append_name(sql, table->key_collations[i]);
        tide_buf_append_str(sql, TIDE_STR(" = ?1"));
    }
}

/* A column's default, which triggers put where OR REPLACE would. */
static void append_default(struct tide_buf *sql, const struct tide_sqlite_column *column)
{
    if (tide_sqlite_has_filled_default(column)) {
        append_equal_one(sql, column->default_text, TIDE_STR("BINARY"));
    }
}

static void append_expression(struct tide_buf *sql, const struct tide_sqlite_table *table,
                              const struct tide_sqlite_part *part)
{
    append_equal_one(sql, part->expression, part->collation);
    for (size_t i = 0; i < part->column_name_count; i++) {
        append_default(sql, &table->columns[part->column_names[i]]);
    }
}

/* What triggers take from an index beside its columns. Who writes to an index of plain columns has
 * their collations; one with expressions is computed by our triggers for other writes too. */
static void append_index(struct tide_buf *sql, const struct tide_sqlite_table *table,
                         const struct tide_sqlite_index *index)
{
    if (index->where.ptr != NULL) {
        append_equal_one(sql, index->where, TIDE_STR("BINARY"));
    }
    for (size_t i = 0; i < index->part_count; i++) {
        const struct tide_sqlite_part *part = &index->parts[i];
        if (part->column == TIDE_SQLITE_PART_EXPRESSION) {
            append_expression(sql, table, part);
        } else if (part->column >= 0) {
            append_default(sql, &table->columns[part->column]);
        }
    }
}

static bool probe_indexes(sqlite3 *db, struct tide_sqlite_table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    for (size_t i = 0; i < table->index_count; i++) {
        tide_buf_reset(&sql);
        tide_buf_append_str(&sql, TIDE_STR("SELECT 1"));
        append_from(&sql, table);
        size_t plain = sql.len;
        append_index(&sql, table, &table->indexes[i]);
        if (sql.len > plain && !is_taken(db, tide_buf_str(&sql))) {
            give_up(table,
                    "a UNIQUE index of it cannot be computed outside its application, so that our "
                    "triggers would make other programs' writes fail",
                    sqlite3_errmsg(db));
            return false;
        }
    }
    return true;
}

/* SQLite parses a trigger when it is prepared: what is too large for it is known before any is
 * made. */
static void probe_triggers(sqlite3 *db, struct tide_sqlite_table *table)
{
    if (tide_sqlite_table_log_width(table) + LOG_COLUMNS >
        (size_t)sqlite3_limit(db, SQLITE_LIMIT_COLUMN, -1)) {
        give_up(table, "its changes cannot be noted", "its key has too many columns");
        return;
    }
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_sqlite_trigger triggers[TIDE_SQLITE_TRIGGERS_MAX];
    table->number = INT64_MAX; /* one that no table has */
    size_t count = tide_sqlite_triggers_make(table, &arena, triggers);
    table->number = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_taken(db, triggers[i].sql)) {
            give_up(table, "its triggers cannot be made", sqlite3_errmsg(db));
            return;
        }
    }
}

void tide_sqlite_probe(sqlite3 *db, struct tide_sqlite_table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    append_read(&sql, table);
    if (!is_taken(db, tide_buf_str(&sql))) {
        const char *why = sqlite3_errmsg(db);
        bool is_missing = strncmp(why, "no such", strlen("no such")) == 0;
        give_up(table,
                is_missing ? "it cannot be read outside its application" : "it cannot be read",
                why);
    } else if (probe_indexes(db, table)) {
        probe_triggers(db, table);
    }
}
