#include "cmocka_prelude.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fsio.h"
#include "base/glob.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_schema.h"
#include "source/sqlite/sqlite_spec.h"
#include "source/sqlite/sqlite_triggers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static sqlite3 *make_db(const char *sql)
{
    sqlite3 *db = NULL;
    struct tide_error err = {0};
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_string_equal(tide_sqlite_exec(db, sql, &err) == TIDE_OK ? "" : err.message, "");
    return db;
}

static struct tide_sqlite_table *read_table(sqlite3 *db, const char *name)
{
    struct tide_sqlite_table *table = NULL;
    struct tide_error err = {0};
    tide_status status =
        tide_sqlite_table_read(db, TIDE_STR("shop"), tide_str_from(name), &table, &err);
    assert_string_equal(status == TIDE_OK ? "" : err.message, "");
    return table;
}

static void append_key(struct tide_buf *buf, const struct tide_sqlite_table *table)
{
    for (size_t i = 0; i < table->key_count; i++) {
        tide_buf_printf(buf, "%s%.*s/%.*s", i > 0 ? "," : "",
                        TIDE_STR_ARG(table->columns[table->key_columns[i]].name),
                        TIDE_STR_ARG(table->key_collations[i]));
    }
}

static void table_read_decides_identity(void **state)
{
    (void)state;

    enum {
        NONE = TIDE_SQLITE_NOT_FOLLOWED,
        INTEGER = TIDE_SQLITE_INTEGER_KEY,
        PRIMARY = TIDE_SQLITE_PRIMARY_KEY,
        UNIQUE = TIDE_SQLITE_UNIQUE_KEY,
        ROWID = TIDE_SQLITE_ROWID
    };

    /* clang-format off */
    static const struct {
        const char *sql; int identity; const char *key; bool is_nullable; bool is_exact;
        const char *rowid;
    } cases[] = {
        {"(k INTEGER PRIMARY KEY, a)", INTEGER, "k/BINARY", false, true, "k"},
        {"(k INTEGER PRIMARY KEY AUTOINCREMENT)", INTEGER, "k/BINARY", false, true, "k"},
        {"(a, k integer, PRIMARY KEY(k))", INTEGER, "k/BINARY", false, true, "k"},
        {"(k INTEGER PRIMARY KEY) STRICT", INTEGER, "k/BINARY", false, true, "k"},
        {"(k INTEGER PRIMARY KEY DESC)", PRIMARY, "k/BINARY", true, true, "_rowid_"},
        {"(k INT PRIMARY KEY)", PRIMARY, "k/BINARY", true, true, "_rowid_"},
        {"(k INTEGER PRIMARY KEY) WITHOUT ROWID", PRIMARY, "k/BINARY", false, true, ""},
        {"(k TEXT PRIMARY KEY)", PRIMARY, "k/BINARY", true, true, "_rowid_"},
        {"(k TEXT NOT NULL PRIMARY KEY)", PRIMARY, "k/BINARY", false, true, "_rowid_"},
        {"(k TEXT COLLATE NOCASE NOT NULL PRIMARY KEY)", PRIMARY, "k/NOCASE", false, false, "_rowid_"},
        {"(k TEXT NOT NULL, PRIMARY KEY(k COLLATE RTRIM))", PRIMARY, "k/RTRIM", false, false, "_rowid_"},
        {"(k NOT NULL PRIMARY KEY)", PRIMARY, "k/BINARY", false, false, "_rowid_"},
        {"(k BLOB NOT NULL PRIMARY KEY)", PRIMARY, "k/BINARY", false, false, "_rowid_"},
        {"(k NUMERIC NOT NULL PRIMARY KEY)", PRIMARY, "k/BINARY", false, true, "_rowid_"},
        {"(k ANY PRIMARY KEY) STRICT", PRIMARY, "k/BINARY", false, false, "_rowid_"},
        {"(k TEXT PRIMARY KEY) STRICT", PRIMARY, "k/BINARY", false, true, "_rowid_"},
        {"(a INT NOT NULL, b TEXT NOT NULL, PRIMARY KEY(b, a))", PRIMARY, "b/BINARY,a/BINARY", false, true, "_rowid_"},
        {"(a INT NOT NULL, b TEXT, PRIMARY KEY(b, a))", PRIMARY, "b/BINARY,a/BINARY", true, true, "_rowid_"},
        {"(_rowid_ TEXT PRIMARY KEY, rowid)", PRIMARY, "_rowid_/BINARY", true, true, "oid"},
        {"(a INT NOT NULL UNIQUE, b)", UNIQUE, "a/BINARY", false, true, "_rowid_"},
        {"(a INT UNIQUE, b)", ROWID, "", false, true, "_rowid_"},
        {"(a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE(a,b), UNIQUE(c))", UNIQUE, "c/BINARY", false, true, "_rowid_"},
        {"(a INT NOT NULL AS (b) UNIQUE, b INT)", ROWID, "", false, true, "_rowid_"},
        {"(a, b)", ROWID, "", false, true, "_rowid_"},
        {"(_ROWID_, RowId)", ROWID, "", false, true, "oid"},
        {"(_rowid_, rowid, oid)", NONE, "", false, true, ""},
        {"(_rowid_ TEXT PRIMARY KEY, rowid, oid)", NONE, "_rowid_/BINARY", false, true, ""},
        {"(_rowid_ TEXT NOT NULL PRIMARY KEY, rowid, oid)", PRIMARY, "_rowid_/BINARY", false, true, ""},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        tide_buf_printf(&text, "CREATE TABLE t %s", cases[i].sql);
        sqlite3 *db = make_db(tide_buf_cstr(&text));
        struct tide_sqlite_table *table = read_table(db, "t");
        tide_buf_reset(&text);
        tide_buf_printf(&text, "%s: %d ", cases[i].sql, (int)table->identity);
        append_key(&text, table);
        tide_buf_printf(&text, " %d %d %.*s", table->is_nullable, table->is_exact,
                        TIDE_STR_ARG(table->rowid_name));
        TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
        tide_buf_printf(&want, "%s: %d %s %d %d %s", cases[i].sql, cases[i].identity, cases[i].key,
                        cases[i].is_nullable, cases[i].is_exact, cases[i].rowid);
        assert_string_equal(tide_buf_cstr(&text), tide_buf_cstr(&want));
        assert_int_equal(table->relation == NULL, table->identity == TIDE_SQLITE_NOT_FOLLOWED);
        assert_int_equal(table->problem.len > 0, table->identity == TIDE_SQLITE_NOT_FOLLOWED);
        tide_sqlite_table_free(table);
        tide_sqlite_db_close(&db);
    }
}

static void table_read_relation_has_hidden_rowid_last(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; const char *want; } cases[] = {
        {"(k INTEGER PRIMARY KEY, a TEXT, g AS (a))", "k INTEGER,a TEXT,g ,key 0"},
        {"(a TEXT, b)", "a TEXT,b ,_rowid_ INTEGER hidden,key 2"},
        {"(a TEXT, k TEXT, g TEXT AS (a) STORED, PRIMARY KEY(k, a))",
         "a TEXT,k TEXT,g TEXT,_rowid_ INTEGER hidden,key 1 0 3"},
        {"(a TEXT, k VARCHAR(10) NOT NULL PRIMARY KEY)", "a TEXT,k VARCHAR(10),key 1"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        tide_buf_printf(&text, "CREATE TABLE t %s", cases[i].sql);
        sqlite3 *db = make_db(tide_buf_cstr(&text));
        struct tide_sqlite_table *table = read_table(db, "t");
        const struct tide_relation *relation = table->relation;
        tide_buf_reset(&text);
        for (size_t c = 0; c < relation->column_count; c++) {
            tide_buf_printf(&text, "%.*s %.*s%s,", TIDE_STR_ARG(relation->columns[c].name),
                            TIDE_STR_ARG(relation->columns[c].type),
                            relation->columns[c].is_hidden ? " hidden" : "");
        }
        tide_buf_append_str(&text, TIDE_STR("key"));
        for (size_t k = 0; k < relation->key_count; k++) {
            tide_buf_printf(&text, " %u", relation->key_columns[k]);
        }
        assert_string_equal(tide_buf_cstr(&text), cases[i].want);
        assert_true(tide_str_equal(relation->store, TIDE_STR("shop.t")));
        tide_sqlite_table_free(table);
        tide_sqlite_db_close(&db);
    }
}

static void table_read_affinity_follows_the_declared_type(void **state)
{
    (void)state;
    sqlite3 *db =
        make_db("CREATE TABLE t (a INT, b VARCHAR(5), c, d BLOB, e DOUBLE, f DECIMAL(9,2),"
                " g FLOATING POINT, h CHARINT, i DATE, j ANY)");
    struct tide_sqlite_table *table = read_table(db, "t");

    static const enum tide_sqlite_affinity want[] = {
        TIDE_SQLITE_INTEGER, TIDE_SQLITE_TEXT,    TIDE_SQLITE_BLOB,    TIDE_SQLITE_BLOB,
        TIDE_SQLITE_REAL,    TIDE_SQLITE_NUMERIC, TIDE_SQLITE_INTEGER, TIDE_SQLITE_INTEGER,
        TIDE_SQLITE_NUMERIC, TIDE_SQLITE_NUMERIC,
    };

    assert_int_equal(table->column_count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(table->columns[i].affinity, want[i]);
    }
    tide_sqlite_table_free(table);
    tide_sqlite_db_close(&db);
}

/* The caller frees it. */
static tide_str spec_of(sqlite3 *db)
{
    struct tide_sqlite_table *table = read_table(db, "t");
    tide_str spec = {tide_strndup(table->spec.ptr, table->spec.len), table->spec.len};
    tide_sqlite_table_free(table);
    return spec;
}

static void spec_tells_what_has_changed(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; enum tide_sqlite_difference want; } cases[] = {
        {"CREATE TABLE other (a)", TIDE_SQLITE_SAME},
        {"CREATE INDEX plain ON t(b)", TIDE_SQLITE_SAME},
        {"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", TIDE_SQLITE_SAME},
        {"INSERT INTO t VALUES (1, 2, 3)", TIDE_SQLITE_SAME},
        {"CREATE UNIQUE INDEX u ON t(b)", TIDE_SQLITE_MORE_INDEXES},
        {"CREATE UNIQUE INDEX v ON t(a)", TIDE_SQLITE_MORE_INDEXES},
        {"DROP INDEX u", TIDE_SQLITE_FEWER_INDEXES},
        {"DROP INDEX v", TIDE_SQLITE_FEWER_INDEXES},
        {"CREATE UNIQUE INDEX u ON t(b) WHERE a > 1", TIDE_SQLITE_MORE_INDEXES},
        {"DROP INDEX u; CREATE UNIQUE INDEX u ON t(b) WHERE a > 2", TIDE_SQLITE_MORE_INDEXES},
        {"DROP INDEX u; CREATE UNIQUE INDEX u ON t(abs(b))", TIDE_SQLITE_MORE_INDEXES},
        {"ALTER TABLE t ADD COLUMN d", TIDE_SQLITE_MORE_COLUMNS},
        {"ALTER TABLE t RENAME COLUMN d TO e", TIDE_SQLITE_OTHER_SHAPE},
        {"ALTER TABLE t DROP COLUMN e", TIDE_SQLITE_FEWER_COLUMNS},
        {"ALTER TABLE t RENAME COLUMN k TO key", TIDE_SQLITE_OTHER_KEY},
        {"DROP TABLE t; CREATE TABLE t (a NOT NULL UNIQUE, b)", TIDE_SQLITE_OTHER_KEY},
    };

    /* clang-format on */
    sqlite3 *db = make_db("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)");
    tide_str before = spec_of(db);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tide_error err = {0};
        assert_int_equal(tide_sqlite_exec(db, cases[i].sql, &err), TIDE_OK);
        tide_str after = spec_of(db);
        tide_str triggers;
        if (tide_sqlite_spec_compare(before, after, &triggers) != cases[i].want ||
            triggers.len > 0) {
            fail_msg("%s: %.*s, then %.*s", cases[i].sql, TIDE_STR_ARG(before),
                     TIDE_STR_ARG(after));
        }
        free((void *)(uintptr_t)before.ptr);
        before = after;
    }
    tide_str triggers;
    assert_int_equal(tide_sqlite_spec_compare(TIDE_STR("1:x"), before, &triggers),
                     TIDE_SQLITE_OTHER_VERSION);
    struct tide_buf kept = {0};
    tide_buf_printf(&kept, "%.*s:0123", TIDE_STR_ARG(before));
    assert_int_equal(tide_sqlite_spec_compare(tide_buf_str(&kept), before, &triggers),
                     TIDE_SQLITE_SAME);
    assert_true(tide_str_equal(triggers, TIDE_STR("0123")));
    tide_buf_done(&kept);
    free((void *)(uintptr_t)before.ptr);
    tide_sqlite_db_close(&db);
}

static void tables_read_globs_choose_by_name(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *globs[3]; const char *want; } cases[] = {
        {{NULL}, "Items,order_lines,orders,\xc3\xa9t\xc3\xa9,"},
        {{"orders"}, "orders,"},
        {{"order*"}, "order_lines,orders,"},
        {{"?rders"}, "orders,"},
        {{"items", "orders"}, "no table of the database matches \"items\"; names are matched with "
                              "upper and lower case, * and ?"},
        {{"*e*", "Items"}, "Items,order_lines,orders,"},
        {{"?t?"}, "\xc3\xa9t\xc3\xa9,"},
        {{"*_*"}, "order_lines,"},
        {{"nothing"}, "no table of the database matches \"nothing\"; names are matched with upper "
                      "and lower case, * and ?"},
        {{"_tidemark_*"}, "no table of the database matches \"_tidemark_*\"; names are matched "
                          "with upper and lower case, * and ?"},
        {{"sqlite_*"}, "no table of the database matches \"sqlite_*\"; names are matched with "
                       "upper and lower case, * and ?"},
        {{"a_view"}, "no table of the database matches \"a_view\"; names are matched with upper "
                     "and lower case, * and ?"},
    };

    /* clang-format on */
    sqlite3 *db = make_db("CREATE TABLE orders (k INTEGER PRIMARY KEY AUTOINCREMENT);"
                          "CREATE TABLE Items (a); CREATE TABLE order_lines (a);"
                          "CREATE TABLE \"\xc3\xa9t\xc3\xa9\" (a); CREATE VIEW a_view AS SELECT 1;"
                          "CREATE TABLE \"_tidemark_x\" (a);"
                          "INSERT INTO orders DEFAULT VALUES;");
    struct tide_error err = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tide_str globs[3];
        size_t count = 0;
        while (count < 3 && cases[i].globs[count] != NULL) {
            globs[count] = tide_str_from(cases[i].globs[count]);
            count++;
        }
        TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
        if (tide_sqlite_tables_read(db, TIDE_STR("c"), globs, count, &tables, &err) != TIDE_OK) {
            assert_int_equal(err.status, TIDE_INVALID);
            tide_buf_printf(&got, "%s", err.message);
        }
        for (size_t t = 0; t < tables.count; t++) {
            tide_buf_printf(&got, "%.*s,", TIDE_STR_ARG(tables.items[t]->name));
        }
        assert_string_equal(tide_buf_cstr(&got), cases[i].want);
    }
    tide_sqlite_db_close(&db);
}

static void glob_matches_stars_take_no_exponential_time(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *glob; const char *name; bool want; } cases[] = {
        {"", "", true}, {"", "a", false}, {"*", "", true}, {"?", "", false}, {"a", "A", false},
        {"a*b*c", "aXbYbc", true}, {"a*b*c", "aXbYcb", false}, {"**a", "bca", true},
        {"?", "\xc3\xa9", true}, {"??", "\xc3\xa9", false}, {"a?", "a", false}, {"[a]", "a", false},
        {"*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (tide_glob_matches(tide_str_from(cases[i].glob), tide_str_from(cases[i].name)) !=
            cases[i].want) {
            fail_msg("%s and %s", cases[i].glob, cases[i].name);
        }
    }
}

/* The triggers of tables that need each kind, as they were reviewed. TIDEMARK_RECORD=1 writes the
 * file anew. */
static void triggers_make_as_recorded(void **state)
{
    (void)state;
    static const char path[] = TIDE_TEST_ROOT "/golden/sqlite_triggers/triggers.sql";
    sqlite3 *db = make_db(
        "CREATE TABLE integer_key (k INTEGER PRIMARY KEY, a UNIQUE, b NOT NULL DEFAULT abc);"
        "CREATE UNIQUE INDEX partial ON integer_key(b) WHERE integer_key.a > \"z\";"
        "CREATE TABLE no_key (a, b);"
        "CREATE TABLE nullable (k TEXT COLLATE NOCASE, l INT, PRIMARY KEY(k, l));"
        "CREATE TABLE \"quo\"\"ted\" (\"k 'x\" TEXT NOT NULL DEFAULT 'd' PRIMARY KEY,"
        " g AS (v) UNIQUE, v TEXT COLLATE NOCASE);"
        "CREATE UNIQUE INDEX expression ON \"quo\"\"ted\"(v || ',' COLLATE RTRIM);"
        "CREATE UNIQUE INDEX comparing ON \"quo\"\"ted\"(CASE WHEN v = 1 THEN v END);"
        "CREATE TABLE without_rowid (k PRIMARY KEY, l UNIQUE) WITHOUT ROWID;");
    struct tide_error err = {0};
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    assert_int_equal(tide_sqlite_tables_read(db, TIDE_STR("c"), NULL, 0, &tables, &err), TIDE_OK);
    for (size_t i = 0; i < tables.count; i++) {
        struct tide_sqlite_trigger triggers[TIDE_SQLITE_TRIGGERS_MAX];
        tide_sqlite_table_set_number(tables.items[i], (int64_t)i + 1);
        size_t count = tide_sqlite_triggers_make(tables.items[i], &arena, triggers);
        for (size_t t = 0; t < count; t++) {
            tide_buf_printf(&got, "%.*s;\n", TIDE_STR_ARG(triggers[t].sql));
        }
        assert_true(tide_str_ends_with(triggers[count - 1].name, TIDE_STR("_ai")));
    }
    tide_sqlite_db_close(&db);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    if (getenv("TIDEMARK_RECORD") != NULL) {
        assert_int_equal(tide_file_replace(TIDE_TEST_ROOT "/golden/sqlite_triggers", "triggers.sql",
                                           tide_buf_str(&got), &err),
                         TIDE_OK);
    }
    assert_int_equal(tide_file_read(path, 1 << 20, &want, &err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&got), tide_buf_cstr(&want));
}

static void db_open_says_what_is_wrong(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    struct tide_error err = {0};
    assert_int_equal(tide_sqlite_db_open("/nowhere/x.db", TIDE_SQLITE_READ_ONLY, 0, &db, &err),
                     TIDE_IO);
    assert_non_null(strstr(err.message, "/nowhere/x.db: No such file"));
    assert_int_equal(tide_sqlite_db_open(TIDE_TEST_ROOT "/unit/cmocka_prelude.h",
                                         TIDE_SQLITE_READ_ONLY, 0, &db, &err),
                     TIDE_CORRUPT);
    assert_non_null(strstr(err.message, "not an SQLite database"));
    assert_null(db);
}

static void install_into_a_read_only_database_fails(void **state)
{
    (void)state;
    char path[] = "/tmp/test_sqlite_schema.XXXXXX";
    assert_int_not_equal(close(mkstemp(path)), -1);
    sqlite3 *db = NULL;
    struct tide_error err = {0};
    assert_int_equal(tide_sqlite_db_open(path, TIDE_SQLITE_READ_WRITE, 0, &db, &err), TIDE_OK);
    assert_int_equal(tide_sqlite_exec(db, "CREATE TABLE t (a)", &err), TIDE_OK);
    tide_sqlite_db_close(&db);
    assert_int_equal(tide_sqlite_db_open(path, TIDE_SQLITE_READ_ONLY, 0, &db, &err), TIDE_OK);
    struct tide_sqlite_choice choice = {.pipeline = TIDE_STR("p"), .connection = TIDE_STR("c")};
    struct tide_sqlite_installed installed = {0};
    assert_int_equal(tide_sqlite_install(db, &choice, NULL, &installed, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "cannot be written"));
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    tide_sqlite_db_close(&db);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_read_decides_identity),
        cmocka_unit_test(table_read_relation_has_hidden_rowid_last),
        cmocka_unit_test(table_read_affinity_follows_the_declared_type),
        cmocka_unit_test(spec_tells_what_has_changed),
        cmocka_unit_test(tables_read_globs_choose_by_name),
        cmocka_unit_test(glob_matches_stars_take_no_exponential_time),
        cmocka_unit_test(triggers_make_as_recorded),
        cmocka_unit_test(db_open_says_what_is_wrong),
        cmocka_unit_test(install_into_a_read_only_database_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
