#include "source/sqlite/sqlite_analyse.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_probe.h"
#include "source/sqlite/sqlite_spec.h"
#include "source/sqlite/sqlite_tokens.h"

#include <strings.h>

static bool contains(tide_str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (strncasecmp(text.ptr + i, word, len) == 0) {
            return true;
        }
    }
    return false;
}

/* The rules of "Determination Of Column Affinity" in SQLite's manual (datatype3.html, 3.1). */
static enum tide_sqlite_affinity affinity_of(tide_str type, bool is_strict)
{
    if (is_strict && tide_sqlite_names_equal(type, TIDE_STR("ANY"))) {
        return TIDE_SQLITE_BLOB;
    }
    if (contains(type, "INT")) {
        return TIDE_SQLITE_INTEGER;
    }
    if (contains(type, "CHAR") || contains(type, "CLOB") || contains(type, "TEXT")) {
        return TIDE_SQLITE_TEXT;
    }
    if (contains(type, "BLOB") || type.len == 0) {
        return TIDE_SQLITE_BLOB;
    }
    bool is_real = contains(type, "REAL") || contains(type, "FLOA") || contains(type, "DOUB");
    return is_real ? TIDE_SQLITE_REAL : TIDE_SQLITE_NUMERIC;
}

/* The values of `hidden` in PRAGMA table_xinfo; 1 are hidden columns of virtual tables. */
static enum tide_sqlite_generated generated_of(int hidden)
{
    return hidden == 2   ? TIDE_SQLITE_VIRTUAL
           : hidden == 3 ? TIDE_SQLITE_STORED
                         : TIDE_SQLITE_ORDINARY;
}

static tide_str copy_column(struct tide_arena *arena, sqlite3_stmt *stmt, int column)
{
    tide_str text = tide_sqlite_column_str(stmt, column);
    return text.ptr == NULL ? text : tide_arena_str(arena, text);
}

static tide_status prepare_for(sqlite3 *db, const char *sql, tide_str name, sqlite3_stmt **ret_stmt,
                               struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_prepare(db, tide_str_from(sql), ret_stmt, err));
    tide_sqlite_bind_str(*ret_stmt, 1, name);
    return TIDE_OK;
}

static tide_status count_rows(sqlite3 *db, const char *sql, tide_str name, size_t *ret_count,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(prepare_for(db, sql, name, &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    *ret_count = is_row ? (size_t)sqlite3_column_int64(stmt, 0) : 0;
    return TIDE_OK;
}

/* No PRAGMA tells a column's collation. */
static tide_str declared_collation(struct tide_sqlite_table *table, sqlite3_stmt *stmt)
{
    const char *collation = NULL;
    int rc = sqlite3_table_column_metadata(
        sqlite3_db_handle(stmt), "main", tide_arena_cstr(&table->arena, table->name),
        (const char *)sqlite3_column_text(stmt, 0), NULL, &collation, NULL, NULL, NULL);
    return rc == SQLITE_OK && collation != NULL
               ? tide_arena_str(&table->arena, tide_str_from(collation))
               : TIDE_STR("BINARY");
}

static void read_column(struct tide_sqlite_table *table, sqlite3_stmt *stmt,
                        struct tide_sqlite_column *ret_column)
{
    tide_str type = copy_column(&table->arena, stmt, 1);
    *ret_column = (struct tide_sqlite_column){
        .name = copy_column(&table->arena, stmt, 0),
        .type = type.ptr == NULL ? TIDE_STR("") : type,
        .affinity = affinity_of(type, table->is_strict),
        .collation = declared_collation(table, stmt),
        .generated = generated_of(sqlite3_column_int(stmt, 5)),
        .is_not_null = sqlite3_column_int(stmt, 2) != 0,
        .default_text = tide_sqlite_default_text(tide_sqlite_column_str(stmt, 3), &table->arena),
        .primary_place = (uint32_t)sqlite3_column_int(stmt, 4),
    };
}

static tide_status read_columns(sqlite3 *db, struct tide_sqlite_table *table,
                                struct tide_error *err)
{
    size_t count = 0;
    TIDE_TRY(count_rows(db, "SELECT count(*) FROM pragma_table_xinfo(?1, 'main')", table->name,
                        &count, err));
    TIDE_ASSERT(count <= TIDE_COLUMNS_MAX);
    table->columns = tide_arena_alloc(&table->arena, count, sizeof(*table->columns));
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(prepare_for(db,
                         "SELECT name, type, \"notnull\", dflt_value, pk, hidden "
                         "FROM pragma_table_xinfo(?1, 'main') ORDER BY cid",
                         table->name, &stmt, err));
    bool is_row = false;
    for (;;) {
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row || table->column_count == count) {
            return TIDE_OK;
        }
        read_column(table, stmt, &table->columns[table->column_count++]);
    }
}

static tide_str *column_names(struct tide_sqlite_table *table)
{
    tide_str *names = tide_arena_alloc(&table->arena, table->column_count, sizeof(*names));
    for (size_t i = 0; i < table->column_count; i++) {
        names[i] = table->columns[i].name;
    }
    return names;
}

/* Finds the columns whose names are words of the expression. Too many do no harm. */
static void find_named_columns(struct tide_sqlite_table *table, struct tide_sqlite_part *part)
{
    TIDE_CLEANUP(tide_free_ptr) bool *is_named = tide_alloc(table->column_count, sizeof(bool));
    struct tide_sqlite_token token;
    for (size_t at = 0; tide_sqlite_token_next(part->expression, &at, &token);) {
        if (token.kind != TIDE_SQLITE_TOKEN_WORD && token.kind != TIDE_SQLITE_TOKEN_NAME) {
            continue;
        }
        tide_str name = tide_sqlite_token_unquote(&table->arena, &token);
        for (size_t i = 0; i < table->column_count; i++) {
            is_named[i] = is_named[i] || tide_sqlite_names_equal(name, table->columns[i].name);
        }
    }
    uint32_t *named = tide_arena_alloc(&table->arena, table->column_count, sizeof(*named));
    for (size_t i = 0; i < table->column_count; i++) {
        if (is_named[i]) {
            named[part->column_name_count++] = (uint32_t)i;
        }
    }
    part->column_names = named;
}

#define PARTS_SQL(what)                                                                            \
    "SELECT " what " FROM pragma_index_xinfo(?1, 'main') WHERE \"key\" ORDER BY seqno"

static tide_status read_parts(sqlite3 *db, struct tide_sqlite_table *table,
                              struct tide_sqlite_index *index, struct tide_error *err)
{
    size_t count = 0;
    TIDE_TRY(count_rows(db, PARTS_SQL("count(*)"), index->name, &count, err));
    index->parts = tide_arena_alloc(&table->arena, count, sizeof(*index->parts));
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(prepare_for(db, PARTS_SQL("cid, coll"), index->name, &stmt, err));
    while (index->part_count < count) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            break;
        }
        struct tide_sqlite_part *part = &index->parts[index->part_count];
        *part = (struct tide_sqlite_part){
            .column = sqlite3_column_int(stmt, 0),
            .collation = copy_column(&table->arena, stmt, 1),
        };
        if (part->column < TIDE_SQLITE_PART_EXPRESSION ||
            part->column >= (int32_t)table->column_count) {
            return tide_fail(err, TIDE_CORRUPT, "index %.*s names a column that is not there",
                             TIDE_STR_ARG(index->name));
        }
        index->part_count++;
    }
    return TIDE_OK;
}

/* Fills what no PRAGMA tells from the index's own text. */
static void take_index_text(struct tide_sqlite_table *table, struct tide_sqlite_index *index,
                            const struct tide_sqlite_index_text *text)
{
    const tide_str *names = column_names(table);
    for (size_t i = 0; i < index->part_count && i < text->term_count; i++) {
        struct tide_sqlite_part *part = &index->parts[i];
        if (part->column == TIDE_SQLITE_PART_EXPRESSION) {
            part->expression = tide_sqlite_expression_text(text->terms[i], names,
                                                           table->column_count, &table->arena);
            find_named_columns(table, part);
        }
    }
    if (text->where.ptr != NULL) {
        index->where =
            tide_sqlite_expression_text(text->where, names, table->column_count, &table->arena);
    }
}

static tide_status read_index_text(sqlite3 *db, struct tide_sqlite_table *table,
                                   struct tide_sqlite_index *index, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(prepare_for(db,
                         "SELECT sql FROM main.sqlite_schema WHERE type = 'index' AND name = ?1",
                         index->name, &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
    tide_str sql = is_row ? copy_column(&table->arena, stmt, 0) : (tide_str){NULL, 0};
    struct tide_sqlite_index_text text = {0};
    TIDE_TRY(tide_sqlite_index_text(sql, &table->arena, &text, err));
    take_index_text(table, index, &text);
    return TIDE_OK;
}

static bool has_expression(const struct tide_sqlite_index *index)
{
    for (size_t i = 0; i < index->part_count; i++) {
        if (index->parts[i].column == TIDE_SQLITE_PART_EXPRESSION) {
            return true;
        }
    }
    return false;
}

static tide_status read_index(sqlite3 *db, struct tide_sqlite_table *table, sqlite3_stmt *stmt,
                              struct tide_error *err)
{
    struct tide_sqlite_index *index = &table->indexes[table->index_count++];
    tide_str origin = tide_sqlite_column_str(stmt, 2);
    *index = (struct tide_sqlite_index){
        .name = copy_column(&table->arena, stmt, 0),
        .is_primary = tide_str_equal(origin, TIDE_STR("pk")),
    };
    bool is_partial = sqlite3_column_int(stmt, 3) != 0;
    TIDE_TRY(read_parts(db, table, index, err));
    bool needs_text = is_partial || has_expression(index);
    return needs_text ? read_index_text(db, table, index, err) : TIDE_OK;
}

static tide_status read_indexes(sqlite3 *db, struct tide_sqlite_table *table,
                                struct tide_error *err)
{
    size_t count = 0;
    TIDE_TRY(count_rows(db, "SELECT count(*) FROM pragma_index_list(?1, 'main')", table->name,
                        &count, err));
    table->has_index = count > 0;
    table->indexes = tide_arena_alloc(&table->arena, count, sizeof(*table->indexes));
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(prepare_for(db,
                         "SELECT name, \"unique\", origin, partial "
                         "FROM pragma_index_list(?1, 'main') ORDER BY seq",
                         table->name, &stmt, err));
    bool is_row = false;
    for (;;) {
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row || table->index_count == count) {
            return TIDE_OK;
        }
        if (sqlite3_column_int(stmt, 1) != 0) {
            TIDE_TRY(read_index(db, table, stmt, err));
        }
    }
}

/* SQLite takes any bytes for a name; frames are UTF-8. */
static void judge_names(struct tide_sqlite_table *table)
{
    if (!tide_str_is_utf8(table->name)) {
        table->problem = TIDE_STR("its name is not valid UTF-8");
    }
    for (size_t i = 0; i < table->column_count && table->problem.len == 0; i++) {
        if (!tide_str_is_utf8(table->columns[i].name) ||
            !tide_str_is_utf8(table->columns[i].type)) {
            table->problem = TIDE_STR("the name or the type of one of its columns is not valid "
                                      "UTF-8");
        }
    }
}

static tide_status analyse_ordinary(sqlite3 *db, struct tide_sqlite_table *table,
                                    struct tide_error *err)
{
    TIDE_TRY(read_columns(db, table, err));
    judge_names(table);
    if (table->problem.len > 0) {
        return TIDE_OK; /* the identity says that it cannot be followed */
    }
    TIDE_TRY(read_indexes(db, table, err));
    tide_sqlite_identify(table);
    if (table->identity != TIDE_SQLITE_NOT_FOLLOWED) {
        tide_sqlite_probe(db, table);
    }
    return TIDE_OK;
}

static struct tide_sqlite_table *table_new(tide_str connection,
                                           const struct tide_sqlite_listed *listed)
{
    struct tide_sqlite_table *table = tide_alloc(1, sizeof(*table));
    table->connection = tide_arena_str(&table->arena, connection);
    table->name = tide_arena_str(&table->arena, listed->name);
    table->is_without_rowid = listed->is_without_rowid;
    table->is_strict = listed->is_strict;
    table->key_index = -1;
    return table;
}

static void free_table_ptr(struct tide_sqlite_table **table)
{
    tide_sqlite_table_free(*table);
}

tide_status tide_sqlite_analyse(sqlite3 *db, tide_str connection,
                                const struct tide_sqlite_listed *listed,
                                struct tide_sqlite_table **ret_table, struct tide_error *err)
{
    TIDE_CLEANUP(free_table_ptr) struct tide_sqlite_table *table = table_new(connection, listed);
    table->is_shadow = tide_str_equal(listed->type, TIDE_STR("shadow"));
    table->is_virtual = table->is_shadow || tide_str_equal(listed->type, TIDE_STR("virtual"));
    if (table->is_virtual && !table->is_shadow) {
        table->problem = TIDE_STR("it is a virtual table, and SQLite has no triggers on these");
    } else if (table->is_shadow) {
        table->problem = TIDE_STR("it is the inner table of a virtual table");
    } else if (analyse_ordinary(db, table, err) != TIDE_OK) {
        return tide_fail_context(err, "table %.*s", TIDE_STR_ARG(table->name));
    }
    tide_sqlite_table_specify(table);
    tide_sqlite_table_set_number(table, 0);
    *ret_table = table;
    table = NULL;
    return TIDE_OK;
}
