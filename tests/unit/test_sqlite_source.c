#include "cmocka_prelude.h"

#include "base/clock.h"
#include "sqlite_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS tide_sqlite_source_ops

static const char *const modes[] = {"wal", "delete"};

#define MODES 2

static struct tide_position at(uint64_t id)
{
    return (struct tide_position){.lo = id};
}

static void open_refuses(const char *path, tide_status want, const char *want_text)
{
    struct tide_source_options options = {.place = tide_str_from(path)};
    struct tide_source *source = NULL;
    struct tide_error err;
    assert_int_equal(OPS.open(&options, &source, &err), want);
    assert_null(source);
    if (strstr(err.message, want_text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", want_text, err.message);
    }
}

static void open_what_is_no_database_is_refused(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/none.db", kit.dir);
    open_refuses(path, TIDE_IO, path);
    assert_int_not_equal(access(path, F_OK), 0);
    open_refuses(kit.dir, TIDE_INVALID, kit.dir);
    open_refuses("", TIDE_INVALID, "path");
    open_refuses(":memory:", TIDE_IO, ":memory:");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 2000; i++) {
        (void)fputs("this is text", file);
    }
    (void)fclose(file);
    open_refuses(path, TIDE_CORRUPT, path);
    (void)unlink(path);
    kit_done(&kit);
}

static void open_without_connection_takes_the_name_of_the_file(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    struct tide_source_options options = {.place = tide_str_from(kit.path)};
    struct tide_error err;
    assert_int_equal(OPS.open(&options, &kit.source, &err), TIDE_OK);
    tide_str store = kit_relation(kit.source, "t")->store;
    assert_true(tide_str_equal(store, TIDE_STR("shop.t")));
    kit_done(&kit);
}

static void identity_is_the_same_before_and_after_prepare_and_reopen(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_buf ids[3] = {{0}, {0}, {0}};
    struct tide_error err;
    kit_init(&kit, "delete");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    kit.source = kit_open_source(&kit, "p");
    OPS.identity(kit.source, &ids[0]);
    assert_int_equal(OPS.prepare(kit.source, NULL, at(0), &kit.start, &err), TIDE_OK);
    OPS.identity(kit.source, &ids[1]);
    OPS.close(kit.source);
    kit.source = kit_open_source(&kit, "other");
    OPS.identity(kit.source, &ids[2]);
    assert_int_equal(ids[0].len, 34);
    for (size_t i = 0; i < 3; i++) {
        assert_true(tide_str_equal(tide_buf_str(&ids[i]), tide_buf_str(&ids[0])));
    }
    for (size_t i = 0; i < 3; i++) {
        tide_buf_done(&ids[i]);
    }
    kit_done(&kit);
}

/* Both made up an id before either had installed: the second must not take the first one's away. */
static void prepare_of_two_at_the_same_time_lets_the_second_try_again(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err = {0};
    struct tide_position start;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    struct tide_source *second = kit_open_source(&kit, "second");
    kit.source = kit_open_source(&kit, "first");
    assert_int_equal(OPS.prepare(kit.source, NULL, at(0), &kit.start, &err), TIDE_OK);
    assert_int_equal(OPS.prepare(second, NULL, at(0), &start, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "run the same command again"));
    OPS.close(second);
    second = kit_open_source(&kit, "second");
    assert_int_equal(OPS.prepare(second, NULL, at(0), &start, &err), TIDE_OK);
    OPS.close(second);
    assert_int_equal(OPS.stream(kit.source, kit.start, &err), TIDE_OK);
    kit_sql(&kit, "INSERT INTO t VALUES (1)");
    kit_expect(&kit, "insert t: i1 = i1\ncommit\n");
    kit_done(&kit);
}

static void next_merges_versions_and_moves_the_position(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        kit_init(&kit, modes[mode]);
        kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x')");
        kit_follow(&kit);
        kit_expect(&kit, "");
        kit_sql(&kit, "UPDATE t SET a = 'y'; UPDATE t SET a = 'z'; INSERT INTO t VALUES (2, NULL)");
        kit_expect(&kit, "update t: i1 = i1|t'z'\ninsert t: i2 = i2|n\ncommit\n");
        kit_expect(&kit, "");
        kit_sql(&kit, "INSERT INTO t VALUES (3, 0); DELETE FROM t WHERE id = 3");
        kit_expect(&kit, "delete t: i3\ncommit\n"); /* an earlier delivery may have had it */
        kit_sql(&kit, "UPDATE t SET id = 9 WHERE id = 1");
        kit_expect(&kit, "delete t: i1\nupdate t: i9 = i9|t'z'\ncommit\n");
        kit_sql(&kit, "BEGIN; DELETE FROM t; ROLLBACK");
        kit_expect(&kit, "");
        kit_done(&kit);
    }
}

static void next_after_replace_deletes_the_rows_that_went(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE);"
                  "INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    kit_follow(&kit);
    kit_sql(&kit, "INSERT OR REPLACE INTO t VALUES (3, 'a')");
    kit_expect(&kit, "delete t: i1\ninsert t: i3 = i3|t'a'\ncommit\n");
    kit_sql(&kit, "INSERT OR IGNORE INTO t VALUES (4, 'b')"); /* only looks at row 2 */
    kit_expect(&kit, "reached\n");
    kit_done(&kit);
}

static void next_brings_every_kind_of_value(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE v(k INTEGER PRIMARY KEY, a)");
    kit_follow(&kit);
    kit_sql(&kit, "INSERT INTO v VALUES (9223372036854775807, -9223372036854775808),"
                  "(1, 9e999), (2, -9e999), (3, -0.0), (4, x''), (5, ''), (6, x'00ff'),"
                  "(7, cast(x'610062' AS TEXT)), (8, cast(x'ff61' AS TEXT)), (9, 'é'), (10, 0.1)");
    kit_expect(&kit, "insert v: i9223372036854775807 = "
                     "i9223372036854775807|i-9223372036854775808\n"
                     "insert v: i1 = i1|r7ff0000000000000\n"
                     "insert v: i2 = i2|rfff0000000000000\n"
                     "insert v: i3 = i3|r8000000000000000\n"
                     "insert v: i4 = i4|b\n"
                     "insert v: i5 = i5|t''\n"
                     "insert v: i6 = i6|b00ff\n"
                     "insert v: i7 = i7|t'a\\0b'\n"
                     "insert v: i8 = i8|xff61\n"
                     "insert v: i9 = i9|t'é'\n"
                     "insert v: i10 = i10|r3fb999999999999a\n"
                     "commit\n");
    kit_expect_chunks(&kit, "v", 5,
                      "i1|r7ff0000000000000\ni2|rfff0000000000000\ni3|r8000000000000000\n"
                      "i4|b\ni5|t''\n;i6|b00ff\ni7|t'a\\0b'\ni8|xff61\ni9|t'é'\n"
                      "i10|r3fb999999999999a\n;"
                      "i9223372036854775807|i-9223372036854775808\n;");
    kit_done(&kit);
}

static void keys_that_sql_holds_equal_are_told_apart(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE n(k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL);"
                  "CREATE TABLE m(k NOT NULL PRIMARY KEY);"
                  "INSERT INTO n VALUES ('abc'); INSERT INTO m VALUES (1), ('1'), (-0.0)");
    kit_follow(&kit);
    kit_sql(&kit, "UPDATE n SET k = 'ABC'");
    kit_expect(&kit, "delete n: t'abc'\nupdate n: t'ABC' = t'ABC'\ncommit\n");
    kit_sql(&kit, "UPDATE m SET k = 1.0 WHERE typeof(k) = 'integer'");
    kit_expect(&kit, "delete m: i1\nupdate m: r3ff0000000000000 = r3ff0000000000000\ncommit\n");
    kit_sql(&kit, "UPDATE m SET k = 0.0 WHERE k = 0");
    kit_expect(&kit, "update m: r0000000000000000 = r0000000000000000\ncommit\n");
    kit_sql(&kit, "INSERT OR REPLACE INTO n VALUES ('aBc')");
    kit_expect(&kit, "delete n: t'ABC'\ninsert n: t'aBc' = t'aBc'\ncommit\n");
    kit_sql(&kit, "INSERT INTO n VALUES ('b'), ('C'), ('D')");
    kit_expect_chunks(&kit, "n", 1, "t'aBc'\n;t'b'\n;t'C'\n;t'D'\n;;");
    kit_expect_chunks(&kit, "m", 1, "r0000000000000000\n;r3ff0000000000000\n;t'1'\n;;");
    kit_done(&kit);
}

static void keys_with_null_are_rows_by_rowid(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        kit_init(&kit, modes[mode]);
        kit_sql(&kit, "CREATE TABLE t(a, b, c, PRIMARY KEY (b, a));"
                      "INSERT INTO t(rowid, a, b) VALUES (5, 1, NULL), (7, NULL, NULL), (9, 1, 1),"
                      "(-4, 2, NULL), (11, NULL, 1), (12, 0, 2)");
        kit_follow(&kit);
        kit_expect_chunks(&kit, "t", 2,
                          "i2|n|n|i-4\ni1|n|n|i5\n;n|n|n|i7\nn|i1|n|i11\n;"
                          "i1|i1|n|-\ni0|i2|n|-\n;;");
        kit_expect_chunks(&kit, "t", 5,
                          "i2|n|n|i-4\ni1|n|n|i5\nn|n|n|i7\nn|i1|n|i11\ni1|i1|n|-\n;"
                          "i0|i2|n|-\n;");
        kit_sql(&kit, "UPDATE t SET c = 'x' WHERE rowid = 7; UPDATE t SET b = 3 WHERE rowid = 5;"
                      "DELETE FROM t WHERE rowid IN (-4, 9)");
        kit_expect(&kit, "update t: n|n|i7 = n|n|t'x'|i7\ndelete t: n|i1|i5\n"
                         "update t: i3|i1|- = i1|i3|n|-\ndelete t: n|i2|i-4\n"
                         "delete t: i1|i1|-\ncommit\n");
        kit_done(&kit);
    }
}

static void tables_without_a_key_go_by_rowid(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "delete");
    kit_sql(&kit, "CREATE TABLE t(a, rowid); INSERT INTO t VALUES ('x', 1), ('x', 1), ('y', 2)");
    kit_follow(&kit);
    kit_expect_chunks(&kit, "t", 2, "t'x'|i1|i1\nt'x'|i1|i2\n;t'y'|i2|i3\n;");
    kit_sql(&kit, "DELETE FROM t WHERE _rowid_ = 2; UPDATE t SET _rowid_ = 9 WHERE a = 'y'");
    kit_expect(&kit, "delete t: i2\ndelete t: i3\nupdate t: i9 = t'y'|i2|i9\ncommit\n");
    kit_done(&kit);
}

static void chunks_go_by_key_whatever_the_index_is(void **state)
{
    (void)state;
    static const char *const tables[] = {
        "CREATE TABLE t(a NOT NULL, b NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "CREATE TABLE t(a NOT NULL, b NOT NULL, PRIMARY KEY (a DESC, b DESC))",
        "CREATE TABLE t(a NOT NULL, b NOT NULL, PRIMARY KEY (a, b DESC)) WITHOUT ROWID",
        "CREATE TABLE t(a INT NOT NULL, b TEXT NOT NULL, UNIQUE (a, b))",
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct sqlite_kit kit;
        kit_init(&kit, "wal");
        kit_sql(&kit, tables[i]);
        kit_sql(&kit, "INSERT INTO t VALUES (1, 'a'), (1, 'b'), (1, 'c'), (2, 'a'), (3, 'z')");
        kit_follow(&kit);
        kit_expect_chunks(&kit, "t", 2, "i1|t'a'\ni1|t'b'\n;i1|t'c'\ni2|t'a'\n;i3|t'z'\n;");
        kit_done(&kit);
    }
}

static void chunks_of_an_empty_table_are_one_that_is_last(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "delete");
    kit_sql(&kit, "CREATE TABLE t(a PRIMARY KEY, b); CREATE TABLE u(id INTEGER PRIMARY KEY);"
                  "INSERT INTO u VALUES (-9223372036854775808), (9223372036854775807)");
    kit_follow(&kit);
    kit_expect_chunks(&kit, "t", 10, ";");
    kit_expect_chunks(&kit, "u", 1, "i-9223372036854775808\n;i9223372036854775807\n;;");
    kit_done(&kit);
}

/* Looking for the rows with a NULL may take several chunks, some of them without a row. */
static void chunks_of_a_large_nullable_table_bring_each_row_once(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        struct tide_error err;
        struct tide_chunk_reader *reader = NULL;
        kit_init(&kit, modes[mode]);
        kit_sql(&kit,
                "CREATE TABLE t(a, b, PRIMARY KEY (a, b));"
                "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)"
                " INSERT INTO t SELECT i, CASE WHEN i % 10000 = 0 THEN NULL ELSE 0 END FROM n");
        kit_follow(&kit);
        struct kit_chunks chunks = {.relation = kit_relation(kit.source, "t"), .rows_max = 5000};
        assert_int_equal(OPS.reader_open(kit.source, &reader, &err), TIDE_OK);
        size_t nulls = 0;
        size_t others = 0;
        for (const struct tide_value *row; (row = kit_next_row(&chunks, reader)) != NULL;) {
            nulls += row[1].kind == TIDE_VALUE_NULL;
            others += row[1].kind != TIDE_VALUE_NULL;
            assert_true(others == 0 || nulls == 6);
        }
        assert_int_equal(nulls, 6);
        assert_int_equal(others, 60000 - 6);
        OPS.reader_close(reader);
        kit_done(&kit);
    }
}

/* One read with what the request asks for beside the relation. */
static tide_status read_once(struct sqlite_kit *kit, struct tide_chunk_reader *reader,
                             struct tide_chunk_request request, const char *want, bool want_last)
{
    struct tide_chunk chunk = {0};
    struct tide_error err;
    struct tide_buf text = {0};
    (void)kit;
    tide_status status = OPS.reader_read(reader, &request, &chunk, &err);
    if (status != TIDE_OK) {
        assert_null(chunk.arena.block);
        return status;
    }
    for (size_t i = 0; i < chunk.row_count; i++) {
        kit_append_values(&text, chunk.rows[i], request.relation->column_count);
        tide_buf_append_char(&text, '\n');
    }
    assert_string_equal(tide_buf_cstr(&text), want);
    assert_int_equal(chunk.is_last, want_last);
    tide_buf_done(&text);
    tide_chunk_done(&chunk);
    return TIDE_OK;
}

static void reader_reads_keys_again_and_ends_early(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_init(&kit, "delete");
    kit_sql(&kit, "CREATE TABLE t(k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL, a);"
                  "INSERT INTO t VALUES ('a', zeroblob(20)), ('b', 2), ('c', 3)");
    kit_follow(&kit);
    struct tide_chunk_reader *reader = NULL;
    assert_int_equal(OPS.reader_open(kit.source, &reader, &err), TIDE_OK);
    struct tide_value keys[] = {
        {"c", 1, TIDE_VALUE_TEXT}, {"B", 1, TIDE_VALUE_TEXT}, {"nowhere", 7, TIDE_VALUE_TEXT}};
    const struct tide_value *again[] = {&keys[0], &keys[1], &keys[2]};
    struct tide_chunk_request request = {
        .relation = kit_relation(kit.source, "t"), .rows_max = 10, .bytes_max = 1};
    request.again = again;
    request.again_count = 3;
    const char *first = "t'a'|b0000000000000000000000000000000000000000\nt'c'|i3\n";
    assert_int_equal(read_once(&kit, reader, request, first, false), TIDE_OK);
    request.range_is_done = true;
    assert_int_equal(read_once(&kit, reader, request, "t'c'|i3\n", true), TIDE_OK);
    OPS.reader_cancel(reader);
    assert_int_equal(read_once(&kit, reader, request, "", true), TIDE_CANCELLED);
    assert_int_equal(read_once(&kit, reader, request, "t'c'|i3\n", true), TIDE_OK);
    kit_sql(&kit, "ALTER TABLE t ADD COLUMN b");
    assert_int_equal(read_once(&kit, reader, request, "", true), TIDE_TIMEOUT);
    kit_sql(&kit, "DROP TABLE t");
    assert_int_equal(read_once(&kit, reader, request, "", true), TIDE_TIMEOUT);
    OPS.reader_close(reader);
    kit_done(&kit);
}

static void names_may_be_anything(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "wal");
    kit_sql(&kit,
            "CREATE TABLE \"a \"\"b' c;--\"(\"select\" TEXT COLLATE NOCASE NOT NULL,"
            " \"x]y\" INT NOT NULL, \"rowid\", \"_rowid_\", PRIMARY KEY (\"x]y\", \"select\"));"
            "INSERT INTO \"a \"\"b' c;--\" VALUES ('k', 1, 2, 3), ('L', 1, 4, 5)");
    kit_follow(&kit);
    kit_expect_chunks(&kit, "a \"b' c;--", 1, "t'k'|i1|i2|i3\n;t'L'|i1|i4|i5\n;;");
    kit_sql(&kit, "UPDATE \"a \"\"b' c;--\" SET rowid = NULL WHERE \"select\" = 'l'");
    kit_expect(&kit, "update a \"b' c;--: i1|t'L' = t'L'|i1|n|i5\ncommit\n");
    kit_done(&kit);
}

static void a_utf16_database_is_converted(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    kit_init(&kit, "delete");
    kit_sql(&kit, "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(k TEXT PRIMARY KEY NOT NULL, a);"
                  "INSERT INTO t VALUES ('é', 'ü'), ('z', '')");
    kit_follow(&kit);
    kit_expect_chunks(&kit, "t", 1, "t'z'|t''\n;t'é'|t'ü'\n;;");
    kit_sql(&kit, "UPDATE t SET a = '𝄞' WHERE k = 'é'; DELETE FROM t WHERE k = 'z'");
    kit_expect(&kit, "update t: t'é' = t'é'|t'𝄞'\ndelete t: t'z'\ncommit\n");
    kit_done(&kit);
}

static void stream_again_from_an_earlier_position_brings_the_same(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, a)");
    kit_follow(&kit);
    kit_sql(&kit, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3); UPDATE t SET a = 9 WHERE id = 1;"
                  "DELETE FROM t WHERE id = 2");
    char *first = kit_drain(&kit, kit.source, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(OPS.stream(kit.source, kit.start, &err), TIDE_OK);
        char *again = kit_drain(&kit, kit.source, true);
        assert_string_equal(again, first);
        free(again);
    }
    free(first);
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_what_is_no_database_is_refused),
        cmocka_unit_test(open_without_connection_takes_the_name_of_the_file),
        cmocka_unit_test(identity_is_the_same_before_and_after_prepare_and_reopen),
        cmocka_unit_test(prepare_of_two_at_the_same_time_lets_the_second_try_again),
        cmocka_unit_test(next_merges_versions_and_moves_the_position),
        cmocka_unit_test(next_after_replace_deletes_the_rows_that_went),
        cmocka_unit_test(next_brings_every_kind_of_value),
        cmocka_unit_test(keys_that_sql_holds_equal_are_told_apart),
        cmocka_unit_test(keys_with_null_are_rows_by_rowid),
        cmocka_unit_test(tables_without_a_key_go_by_rowid),
        cmocka_unit_test(chunks_go_by_key_whatever_the_index_is),
        cmocka_unit_test(chunks_of_an_empty_table_are_one_that_is_last),
        cmocka_unit_test(chunks_of_a_large_nullable_table_bring_each_row_once),
        cmocka_unit_test(reader_reads_keys_again_and_ends_early),
        cmocka_unit_test(names_may_be_anything),
        cmocka_unit_test(a_utf16_database_is_converted),
        cmocka_unit_test(stream_again_from_an_earlier_position_brings_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
