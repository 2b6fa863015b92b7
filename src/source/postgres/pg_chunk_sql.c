#include "source/postgres/pg_chunk_sql.h"

#include "source/postgres/pg_conn.h"
#include "source/postgres/pg_value.h"

#include <string.h>

static void add(struct tide_buf *sql, const char *text)
{
    tide_buf_append(sql, text, strlen(text));
}

static const struct tide_pg_column *key_column(const struct tide_pg_chunk_from *from, size_t i)
{
    return &from->table->columns[from->table->relation->key_columns[i]];
}

static void add_column(struct tide_buf *sql, tide_str name)
{
    add(sql, "x.");
    tide_pg_append_name(sql, name);
}

void tide_pg_chunk_begin_sql(const struct tide_relation *relation, struct tide_buf *sql)
{
    struct tide_buf name = {0};
    tide_pg_append_table(&name, relation->schema, relation->name);
    /* LOCK takes no snapshot. Were there one already, a TRUNCATE or a rewriting ALTER that commits
     * before the COPY would leave it an empty table, which reads as done. */
    add(sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
             " LOCK TABLE ONLY ");
    tide_buf_append_str(sql, tide_buf_str(&name));
    add(sql, " IN ACCESS SHARE MODE;"
             " SELECT pg_current_snapshot(),"
             " set_config('tidemark.position', pg_current_wal_insert_lsn()::text, false),"
             " (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, c.oid,"
             " concat((SELECT string_agg(a.attnum || ':' || a.xmin, ' ' ORDER BY a.attnum)"
             " FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), ' key ',"
             " (SELECT string_agg(i.indexrelid || ':' || i.xmin, ' ')"
             " FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))"
             " FROM pg_class c WHERE c.oid = ");
    tide_pg_append_text(sql, tide_buf_str(&name));
    add(sql, "::regclass");
    tide_buf_done(&name);
}

void tide_pg_chunk_end_sql(struct tide_buf *sql)
{
    add(sql, "COMMIT; " TIDE_PG_CHUNK_MESSAGE
             " WHERE pg_current_wal_flush_lsn() < current_setting('tidemark.position')::pg_lsn");
}

void tide_pg_chunk_operators_sql(uint32_t oid, struct tide_buf *sql)
{
    add(sql, "SELECT k.collated, max(o.name) FILTER (WHERE o.strategy = 5),"
             " max(o.name) FILTER (WHERE o.strategy = 4), max(o.name) FILTER (WHERE o.strategy = 3)"
             " FROM pg_index i, unnest(i.indclass::oid[], i.indcollation::oid[])"
             " WITH ORDINALITY AS k (class, collated, place)"
             " JOIN pg_opclass c ON c.oid = k.class"
             " JOIN LATERAL (SELECT a.amopstrategy AS strategy,"
             " CASE WHEN n.nspname = 'pg_catalog' THEN p.oprname::text"
             " ELSE format('OPERATOR(%I.%s)', n.nspname, p.oprname) END AS name"
             " FROM pg_amop a JOIN pg_operator p ON p.oid = a.amopopr"
             " JOIN pg_namespace n ON n.oid = p.oprnamespace WHERE a.amopfamily = c.opcfamily"
             " AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype) o ON true"
             " WHERE i.indrelid = ");
    tide_buf_append_u64(sql, oid);
    add(sql, " AND i.indisprimary GROUP BY k.place, k.collated ORDER BY k.place");
}

static void add_select(const struct tide_pg_chunk_from *from, struct tide_buf *sql)
{
    const struct tide_pg_table *table = from->table;
    TIDE_ASSERT(table->column_count > 0 && table->relation->key_count > 0);
    add(sql, "COPY (SELECT ");
    for (size_t i = 0; i < table->column_count; i++) {
        add(sql, i == 0 ? "" : ", ");
        add_column(sql, table->columns[i].name);
    }
    /* ONLY: rows of tables that inherit from it are theirs, in the stream too. */
    add(sql, " FROM ONLY ");
    tide_pg_append_table(sql, table->schema, table->name);
    add(sql, " x");
}

static tide_status bad_key(const struct tide_pg_chunk_from *from, size_t i, uint8_t kind,
                           struct tide_error *err)
{
    const struct tide_pg_table *table = from->table;
    if (kind == TIDE_VALUE_RAW_TEXT) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s.%.*s has a row whose column %.*s, of the key, is not UTF-8: "
                         "mend the row and start its copy anew",
                         TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name),
                         TIDE_STR_ARG(key_column(from, i)->name));
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "table %.*s.%.*s: the key to read after has no value that column %.*s could "
                     "hold; start the copy anew",
                     TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name),
                     TIDE_STR_ARG(key_column(from, i)->name));
}

/* Column `i` of the key as `'text'::type`. */
static tide_status add_literal(const struct tide_pg_chunk_from *from, size_t i,
                               struct tide_value value, struct tide_buf *sql,
                               struct tide_error *err)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error ignored;
    if (tide_pg_value_to_text(value, &text, &ignored) != TIDE_OK ||
        !tide_str_is_utf8(tide_buf_str(&text)) ||
        (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL)) {
        return bad_key(from, i, value.kind, err);
    }
    tide_pg_append_text(sql, tide_buf_str(&text));
    add(sql, "::");
    tide_buf_append_str(sql, key_column(from, i)->type.name);
    return TIDE_OK;
}

/* The key's columns, in parentheses when there are several. */
static void add_key(const struct tide_pg_chunk_from *from, struct tide_buf *sql)
{
    size_t count = from->table->relation->key_count;
    for (size_t i = 0; i < count; i++) {
        add(sql, i > 0 ? ", " : count > 1 ? "(" : "");
        add_column(sql, key_column(from, i)->name);
    }
    add(sql, count > 1 ? ")" : "");
}

static tide_status add_key_literals(const struct tide_pg_chunk_from *from,
                                    const struct tide_value *key, struct tide_buf *sql,
                                    struct tide_error *err)
{
    size_t count = from->table->relation->key_count;
    for (size_t i = 0; i < count; i++) {
        add(sql, i > 0 ? ", " : count > 1 ? "(" : "");
        TIDE_TRY(add_literal(from, i, key[i], sql, err));
    }
    add(sql, count > 1 ? ")" : "");
    return TIDE_OK;
}

static tide_status add_comparison(const struct tide_pg_chunk_from *from, size_t i, tide_str op,
                                  struct tide_value value, struct tide_buf *sql,
                                  struct tide_error *err)
{
    add_column(sql, key_column(from, i)->name);
    tide_buf_append_char(sql, ' ');
    tide_buf_append_str(sql, op);
    tide_buf_append_char(sql, ' ');
    return add_literal(from, i, value, sql, err);
}

/* One operator can compare whole rows when it is the same for every column. */
static bool has_one_operator(const struct tide_pg_chunk_from *from)
{
    for (size_t i = 1; i < from->table->relation->key_count; i++) {
        if (!tide_str_equal(from->operators[i].greater, from->operators[0].greater)) {
            return false;
        }
    }
    return true;
}

/* k1 >= a AND (k1 > a OR (k1 = a AND (k2 > b OR …))): the first part is for the index. */
static tide_status add_after_by_column(const struct tide_pg_chunk_from *from,
                                       const struct tide_value *key, struct tide_buf *sql,
                                       struct tide_error *err)
{
    size_t last = from->table->relation->key_count - 1;
    TIDE_TRY(add_comparison(from, 0, from->operators[0].at_least, key[0], sql, err));
    add(sql, " AND (");
    for (size_t i = 0; i < last; i++) {
        TIDE_TRY(add_comparison(from, i, from->operators[i].greater, key[i], sql, err));
        add(sql, " OR (");
        TIDE_TRY(add_comparison(from, i, from->operators[i].equal, key[i], sql, err));
        add(sql, " AND (");
    }
    TIDE_TRY(add_comparison(from, last, from->operators[last].greater, key[last], sql, err));
    for (size_t i = 0; i < last; i++) {
        add(sql, "))");
    }
    tide_buf_append_char(sql, ')');
    return TIDE_OK;
}

static tide_status add_after(const struct tide_pg_chunk_from *from, const struct tide_value *key,
                             struct tide_buf *sql, struct tide_error *err)
{
    add(sql, " WHERE ");
    if (!has_one_operator(from)) {
        return add_after_by_column(from, key, sql, err);
    }
    add_key(from, sql);
    tide_buf_append_char(sql, ' ');
    tide_buf_append_str(sql, from->operators[0].greater);
    tide_buf_append_char(sql, ' ');
    return add_key_literals(from, key, sql, err);
}

tide_status tide_pg_chunk_range_sql(const struct tide_pg_chunk_from *from,
                                    const struct tide_value *after_key, size_t limit,
                                    struct tide_buf *sql, struct tide_error *err)
{
    add_select(from, sql);
    if (after_key != NULL) {
        TIDE_TRY(add_after(from, after_key, sql, err));
    }
    add(sql, " ORDER BY ");
    for (size_t i = 0; i < from->table->relation->key_count; i++) {
        add(sql, i == 0 ? "" : ", ");
        add_column(sql, key_column(from, i)->name);
    }
    add(sql, " LIMIT ");
    tide_buf_append_u64(sql, limit);
    add(sql, ") TO STDOUT");
    return TIDE_OK;
}

/* IN takes the `=` of pg_catalog. */
static bool has_plain_equal(const struct tide_pg_chunk_from *from)
{
    for (size_t i = 0; i < from->table->relation->key_count; i++) {
        if (!tide_str_equal(from->operators[i].equal, TIDE_STR("="))) {
            return false;
        }
    }
    return true;
}

static tide_status add_equal(const struct tide_pg_chunk_from *from, const struct tide_value *key,
                             struct tide_buf *sql, struct tide_error *err)
{
    for (size_t i = 0; i < from->table->relation->key_count; i++) {
        add(sql, i == 0 ? "(" : " AND ");
        TIDE_TRY(add_comparison(from, i, from->operators[i].equal, key[i], sql, err));
    }
    tide_buf_append_char(sql, ')');
    return TIDE_OK;
}

tide_status tide_pg_chunk_again_sql(const struct tide_pg_chunk_from *from,
                                    const struct tide_value *const *keys, size_t count,
                                    struct tide_buf *sql, struct tide_error *err)
{
    bool is_plain = has_plain_equal(from);
    add_select(from, sql);
    add(sql, " WHERE ");
    if (is_plain) {
        add_key(from, sql);
        add(sql, " IN (");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_plain) {
            add(sql, i == 0 ? "" : ", ");
            TIDE_TRY(add_key_literals(from, keys[i], sql, err));
        } else {
            add(sql, i == 0 ? "" : " OR ");
            TIDE_TRY(add_equal(from, keys[i], sql, err));
        }
    }
    add(sql, is_plain ? ")) TO STDOUT" : ") TO STDOUT");
    return TIDE_OK;
}
