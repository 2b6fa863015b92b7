#include "source/sqlite/sqlite_select.h"

#include "source/sqlite/sqlite_db.h"

#include <strings.h>

/* What a SELECT is written from. */
struct writer {
    sqlite3 *db;
    const struct tide_sqlite_table *table;
    struct tide_buf sql;
};

static void add(struct writer *writer, const char *text)
{
    tide_buf_append_str(&writer->sql, tide_str_from(text));
}

static void add_column(struct writer *writer, tide_str name)
{
    add(writer, "x.");
    tide_sqlite_append_name(&writer->sql, name);
}

/* The collation that `=` and ORDER BY take for a column by itself. */
static bool is_column_collation(const struct writer *writer, tide_str column, tide_str collation)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf names = {0};
    tide_buf_append_str(&names, writer->table->name);
    tide_buf_append_char(&names, '\0');
    tide_buf_append_str(&names, column);
    const char *table_name = tide_buf_cstr(&names);
    const char *own = NULL;
    int rc = sqlite3_table_column_metadata(writer->db, "main", table_name,
                                           table_name + writer->table->name.len + 1, NULL, &own,
                                           NULL, NULL, NULL);
    return rc == SQLITE_OK && own != NULL && strlen(own) == collation.len &&
           strncasecmp(own, collation.ptr, collation.len) == 0;
}

/* A needless COLLATE would keep a row value from using more than the index's first column. */
static void add_key_column(struct writer *writer, size_t i)
{
    const struct tide_sqlite_table *table = writer->table;
    tide_str name = table->columns[table->key_columns[i]].name;
    add_column(writer, name);
    if (table->identity != TIDE_SQLITE_INTEGER_KEY &&
        !is_column_collation(writer, name, table->key_collations[i])) {
        add(writer, " COLLATE ");
        tide_sqlite_append_name(&writer->sql, table->key_collations[i]);
    }
}

static void add_key_columns(struct writer *writer)
{
    for (size_t i = 0; i < writer->table->key_count; i++) {
        add(writer, i == 0 ? "" : ", ");
        add_key_column(writer, i);
    }
}

static void add_equal(struct writer *writer)
{
    for (size_t i = 0; i < writer->table->key_count; i++) {
        add(writer, i == 0 ? "" : " AND ");
        add_key_column(writer, i);
        tide_buf_printf(&writer->sql, " = ?%zu", i + 1);
    }
}

static void add_null_test(struct writer *writer, const char *test, const char *between)
{
    const struct tide_sqlite_table *table = writer->table;
    for (size_t i = 0; i < table->key_count; i++) {
        add(writer, i == 0 ? "" : between);
        add_column(writer, table->columns[table->key_columns[i]].name);
        add(writer, test);
    }
}

static void add_order_by_rowid(struct writer *writer)
{
    add_column(writer, writer->table->rowid_name);
    add(writer, " >= ?1 ORDER BY ");
    add_column(writer, writer->table->rowid_name);
    add(writer, " LIMIT ?2");
}

static void add_order_by_key(struct writer *writer, size_t limit_place)
{
    add(writer, " ORDER BY ");
    add_key_columns(writer);
    tide_buf_printf(&writer->sql, " LIMIT ?%zu", limit_place);
}

static void add_after(struct writer *writer)
{
    size_t count = writer->table->key_count;
    add(writer, count > 1 ? "(" : "");
    add_key_columns(writer);
    add(writer, count > 1 ? ") > (" : " > ");
    for (size_t i = 0; i < count; i++) {
        tide_buf_printf(&writer->sql, i == 0 ? "?%zu" : ", ?%zu", i + 1);
    }
    add(writer, count > 1 ? ")" : "");
    if (writer->table->is_nullable) { /* (1, NULL) > (0, 0) is true */
        add(writer, " AND ");
        add_null_test(writer, " IS NOT NULL", " AND ");
    }
    add_order_by_key(writer, count + 1);
}

static void add_start(struct writer *writer)
{
    if (writer->table->is_nullable) {
        add_null_test(writer, " IS NOT NULL", " AND ");
    } else {
        add(writer, "1");
    }
    add_order_by_key(writer, 1);
}

static void add_nulls(struct writer *writer)
{
    add(writer, "(");
    add_null_test(writer, " IS NULL", " OR ");
    if (writer->table->key_count > 1) {
        add(writer, " OR (");
        add_column(writer, writer->table->rowid_name);
        tide_buf_printf(&writer->sql, " & %d) = 0", TIDE_SQLITE_NULLS_MARKER);
    }
    add(writer, ") AND ");
    add_order_by_rowid(writer);
}

static void add_columns(struct writer *writer)
{
    const struct tide_sqlite_table *table = writer->table;
    add(writer, "SELECT ");
    for (size_t i = 0; i < table->relation->column_count; i++) {
        add(writer, i == 0 ? "" : ", ");
        add_column(writer, i < table->column_count ? table->columns[i].name : table->rowid_name);
    }
    add(writer, " FROM main.");
    tide_sqlite_append_name(&writer->sql, table->name);
    add(writer, " AS x WHERE ");
}

static void add_where(struct writer *writer, enum tide_sqlite_select select)
{
    switch (select) {
    case TIDE_SQLITE_BY_KEY:
        add_equal(writer);
        break;
    case TIDE_SQLITE_BY_ROWID:
        add_column(writer, writer->table->rowid_name);
        add(writer, " = ?1");
        break;
    case TIDE_SQLITE_FROM_START:
        add_start(writer);
        break;
    case TIDE_SQLITE_AFTER_KEY:
        add_after(writer);
        break;
    case TIDE_SQLITE_NULLS:
        add_nulls(writer);
        break;
    case TIDE_SQLITE_FROM_ROWID:
        add_order_by_rowid(writer);
        break;
    case TIDE_SQLITE_SELECTS:
    default:
        TIDE_ASSERT(select < TIDE_SQLITE_SELECTS);
    }
}

tide_status tide_sqlite_select_prepare(sqlite3 *db, const struct tide_sqlite_table *table,
                                       enum tide_sqlite_select select, sqlite3_stmt **ret_stmt,
                                       struct tide_error *err)
{
    struct writer writer = {.db = db, .table = table};
    add_columns(&writer);
    add_where(&writer, select);
    tide_status status = tide_sqlite_prepare(db, tide_buf_str(&writer.sql), ret_stmt, err);
    tide_buf_done(&writer.sql);
    if (status != TIDE_OK && sqlite3_errcode(db) == SQLITE_ERROR) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s cannot be read as it was (%s); look with `tidemark check`",
                         TIDE_STR_ARG(table->name), sqlite3_errmsg(db));
    }
    return status;
}
