#include "sqlite_random.h"

#include <string.h>

#define COUNT(array)        (sizeof(array) / sizeof((array)[0]))
#define PICK(random, array) ((array)[random_below(random, COUNT(array))])

/* `@` stands for a conflict clause. */
struct kind {
    const char *columns;
    const char *constraint;
    const char *tail;
    const char *keys[2];
};

static const struct kind kinds[] = {
    {"k INTEGER PRIMARY KEY@", "", "", {"k"}},
    {"k INTEGER PRIMARY KEY@ AUTOINCREMENT", "", "", {"k"}},
    {"k INTEGER PRIMARY KEY DESC@", "", "", {"k"}},
    {"k TEXT PRIMARY KEY@", "", "", {"k"}},
    {"k TEXT NOT NULL DEFAULT 'dk' PRIMARY KEY@", "", "", {"k"}},
    {"k TEXT COLLATE NOCASE PRIMARY KEY@", "", "", {"k"}},
    {"k PRIMARY KEY@", "", "", {"k"}},
    {"k BLOB NOT NULL PRIMARY KEY@", "", "", {"k"}},
    {"k INT, k2 TEXT", ", PRIMARY KEY (k2, k)@", "", {"k2", "k"}},
    {"k INT NOT NULL, k2 TEXT NOT NULL", ", PRIMARY KEY (k2, k)@", "", {"k2", "k"}},
    {"k INT, k2 TEXT", ", PRIMARY KEY (k2, k)@", " WITHOUT ROWID", {"k2", "k"}},
    {"k, k2", ", PRIMARY KEY (k2, k DESC)@", "", {"k2", "k"}},
    {"k TEXT PRIMARY KEY@", "", " WITHOUT ROWID", {"k"}},
    {"k TEXT COLLATE NOCASE PRIMARY KEY@", "", " WITHOUT ROWID", {"k"}},
    {"k PRIMARY KEY@", "", " WITHOUT ROWID", {"k"}},
    {"k NUMERIC PRIMARY KEY@", "", "", {"k"}},
    {"k REAL PRIMARY KEY@", "", "", {"k"}},
    {"k TEXT", ", PRIMARY KEY (k COLLATE NOCASE)@", "", {"k"}},
    {"k", "", "", {"k"}},
    {"k NOT NULL UNIQUE@", "", "", {"k"}},
    {"k ANY PRIMARY KEY@", "", " STRICT", {"k"}},
    {"k INTEGER PRIMARY KEY@", "", " STRICT", {"k"}},
    {"\"rowid\" TEXT PRIMARY KEY@", "", "", {"rowid"}},
};

static const char *const values[] = {
    "NULL",
    "0",
    "1",
    "2",
    "3",
    "'1'",
    "'2'",
    "1.0",
    "0.5",
    "-0.0",
    "0.0",
    "'a'",
    "'A'",
    "'b'",
    "'B'",
    "x'61'",
    "x''",
    "''",
    "'é'",
    "-1",
    "4",
    "9e999",
    "5",
    "cast(x'610062' AS TEXT)",
    "cast(x'ff' AS TEXT)",
    "9223372036854775807",
    "-9223372036854775808",
};

static const char *const others[] = {"a", "b", "c", "\"d \"\"q\""};

size_t random_below(struct sqlite_random *random, size_t limit)
{
    random->state ^= random->state << 13; /* xorshift64 */
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (size_t)(random->state >> 11) % limit;
}

static void add(struct tide_buf *sql, const char *text)
{
    tide_buf_append_str(sql, tide_str_from(text));
}

static void add_with_clause(struct tide_buf *sql, const char *text, const char *clause)
{
    for (; *text != '\0'; text++) {
        if (*text == '@') {
            add(sql, clause);
        } else {
            tide_buf_append_char(sql, *text);
        }
    }
}

static void add_other_columns(struct sqlite_random *random, struct tide_buf *sql, bool is_strict)
{
    static const char *const types[] = {"", " TEXT", " INT", " TEXT COLLATE NOCASE", " REAL"};
    static const char *const uniques[] = {
        "", "", "", " UNIQUE", " UNIQUE ON CONFLICT REPLACE", " UNIQUE ON CONFLICT IGNORE"};
    static const char *const nulls[] = {"", "", " NOT NULL DEFAULT 1",
                                        " NOT NULL ON CONFLICT REPLACE DEFAULT 2"};
    for (size_t i = 0; i < COUNT(others); i++) {
        add(sql, ", ");
        add(sql, others[i]);
        add(sql, is_strict ? " ANY" : PICK(random, types));
        add(sql, i == 1 ? PICK(random, nulls) : "");
        add(sql, i < 2 ? PICK(random, uniques) : "");
    }
    if (random_below(random, 3) == 0) {
        add(sql, is_strict ? ", g ANY AS (a) STORED, h ANY AS (b || a)"
                           : ", g AS (a) STORED, h AS (b || a)");
    }
}

void random_append_table(struct sqlite_random *random, size_t table, struct tide_buf *sql)
{
    static const char *const clauses[] = {"", "", " ON CONFLICT REPLACE", " ON CONFLICT IGNORE",
                                          " ON CONFLICT FAIL"};
    static const char *const indexes[] = {
        "(a)", "(a COLLATE NOCASE)",     "(b, a)", "(b) WHERE a > 0", "(lower(a))",
        "(c)", "(a COLLATE BINARY DESC)"};
    random->kinds[table] = random_below(random, COUNT(kinds));
    const struct kind *kind = &kinds[random->kinds[table]];
    const char *clause = PICK(random, clauses);
    tide_buf_printf(sql, "CREATE TABLE t%zu(", table + 1);
    add_with_clause(sql, kind->columns, clause);
    add_other_columns(random, sql, strcmp(kind->tail, " STRICT") == 0);
    add_with_clause(sql, kind->constraint, clause);
    add(sql, ")");
    add(sql, kind->tail);
    for (size_t i = random_below(random, 3); i > 0; i--) {
        tide_buf_printf(sql, "; CREATE UNIQUE INDEX t%zuu%zu ON t%zu %s", table + 1, i, table + 1,
                        PICK(random, indexes));
    }
}

static const char *random_column(struct sqlite_random *random, const struct kind *kind)
{
    size_t keys = kind->keys[1] == NULL ? 1 : 2;
    size_t i = random_below(random, keys + COUNT(others));
    return i < keys ? kind->keys[i] : others[i - keys];
}

static void add_where(struct sqlite_random *random, const struct kind *kind, struct tide_buf *sql)
{
    if (random_below(random, 8) == 0) {
        return;
    }
    tide_buf_printf(sql, " WHERE %s %s %s", random_column(random, kind),
                    random_below(random, 2) == 0 ? "=" : "IS", PICK(random, values));
}

static void add_insert(struct sqlite_random *random, const struct kind *kind, size_t table,
                       const char *conflict, struct tide_buf *sql)
{
    static const char *const ends[] = {"", "", "", " ON CONFLICT DO NOTHING",
                                       " ON CONFLICT DO UPDATE SET a = 7, b = excluded.b"};
    bool has_second = kind->keys[1] != NULL;
    tide_buf_printf(sql, "INSERT%s INTO t%zu(%s%s%s, a, b, c) VALUES ", conflict, table + 1,
                    kind->keys[0], has_second ? ", " : "", has_second ? kind->keys[1] : "");
    size_t rows = random_below(random, 3) == 0 ? 3 : 1;
    for (size_t row = 0; row < rows; row++) {
        add(sql, row == 0 ? "(" : ", (");
        for (size_t i = 0; i < (has_second ? 5 : 4); i++) {
            add(sql, i == 0 ? "" : ", ");
            add(sql, PICK(random, values));
        }
        add(sql, ")");
    }
    add(sql, conflict[0] == '\0' ? PICK(random, ends) : "");
}

static void add_update(struct sqlite_random *random, const struct kind *kind, size_t table,
                       const char *conflict, struct tide_buf *sql)
{
    tide_buf_printf(sql, "UPDATE%s t%zu SET ", conflict, table + 1);
    bool has_rowid = strcmp(kind->tail, " WITHOUT ROWID") != 0;
    if (has_rowid && random_below(random, 12) == 0) {
        tide_buf_printf(sql, "_rowid_ = %zu", random_below(random, 6));
    } else {
        tide_buf_printf(sql, "%s = %s", random_column(random, kind), PICK(random, values));
        if (random_below(random, 2) == 0) {
            tide_buf_printf(sql, ", \"d \"\"q\" = %s", PICK(random, values));
        }
    }
    add_where(random, kind, sql);
}

void random_append_statement(struct sqlite_random *random, struct tide_buf *sql)
{
    static const char *const conflicts[] = {
        "", "", " OR REPLACE", " OR REPLACE", " OR REPLACE", " OR IGNORE", " OR FAIL"};
    size_t table = random_below(random, 2);
    const struct kind *kind = &kinds[random->kinds[table]];
    size_t what = random_below(random, 100);
    if (what < 50) {
        add_insert(random, kind, table, PICK(random, conflicts), sql);
    } else if (what < 85) {
        add_update(random, kind, table, PICK(random, conflicts), sql);
    } else {
        tide_buf_printf(sql, "DELETE FROM t%zu", table + 1);
        add_where(random, kind, sql);
    }
}
