/* The source's life beside its rows: confirming and pruning, resuming, detaching. */
#include "cmocka_prelude.h"

#include "base/clock.h"
#include "sqlite_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS   tide_sqlite_source_ops
#define MODES 2

static const char *const modes[MODES] = {"wal", "delete"};

static struct tide_position at(uint64_t id)
{
    return (struct tide_position){.lo = id};
}

static void expect_get(struct sqlite_kit *kit, const char *sql, const char *want)
{
    char *got = kit_get(kit, sql);
    assert_string_equal(got, want);
    free(got);
}

static void confirm_prunes_all_but_the_last_entry(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        kit_follow_with_rows(&kit, modes[mode], HUNDRED_ROWS);
        uint64_t end = kit_log_end(&kit);
        assert_true(OPS.retained_bytes(kit.source) > 0);
        kit_confirm(kit.source, end);
        assert_int_equal(OPS.retained_bytes(kit.source), 0);
        expect_get(&kit, "SELECT count(*) FROM _tidemark_changes", "1");
        assert_int_equal(kit_log_end(&kit), end);
        kit_sql(&kit, "INSERT INTO t VALUES (1000, 'later')");
        assert_int_equal(kit_log_end(&kit), end + 1);
        kit_expect(&kit, "insert t: i1000 = i1000|t'later'\ncommit\n");
        kit_done(&kit);
    }
}

static void confirm_prunes_a_large_log_in_pieces(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_follow_with_rows(&kit, "wal",
                         "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                         " INSERT INTO t SELECT i, 'row' FROM n");
    uint64_t end = kit_log_end(&kit);
    free(kit_state(&kit));
    assert_int_equal(OPS.confirm(kit.source, at(end), &err), TIDE_TIMEOUT);
    char *nonce = kit_get(&kit, "SELECT nonce FROM _tidemark_pipelines");
    expect_get(&kit, "SELECT count(*) BETWEEN 9000 AND 23001 FROM _tidemark_changes", "1");
    kit_confirm(kit.source, end);
    expect_get(&kit, "SELECT count(*) FROM _tidemark_changes", "1");
    /* no checkpoint was made in between: the nonce stays one that the last one knows */
    expect_get(&kit, "SELECT nonce FROM _tidemark_pipelines", nonce);
    free(nonce);
    kit_done(&kit);
}

/* The file's change counter: with a rollback journal each writing transaction adds one. */
static uint32_t transactions(const struct sqlite_kit *kit)
{
    unsigned char bytes[4];
    FILE *file = fopen(kit->path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 24, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    (void)fclose(file);
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void confirm_prunes_no_more_in_a_transaction_than_is_short(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_follow_with_rows(&kit, "delete",
                         "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
                         " INSERT INTO t SELECT i, 'row' FROM n");
    uint64_t end = kit_log_end(&kit);
    char *before = kit_get(&kit, "SELECT count(*) FROM _tidemark_changes");
    uint32_t first = transactions(&kit);
    assert_int_equal(OPS.confirm(kit.source, at(end), &err), TIDE_TIMEOUT);
    char *after = kit_get(&kit, "SELECT count(*) FROM _tidemark_changes");
    long gone = strtol(before, NULL, 10) - strtol(after, NULL, 10);
    assert_true(gone >= 10000); /* that much a second is to be kept up with */
    assert_true(gone <= 2000 * (long)(transactions(&kit) - first));
    free(before);
    free(after);
    kit_done(&kit);
}

static void confirm_keeps_what_another_pipeline_needs(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_position start;
    kit_follow_with_rows(&kit, "wal", "INSERT INTO t VALUES (1, 1), (2, 2)");
    struct tide_source *other = kit_open_source(&kit, "other");
    assert_int_equal(OPS.prepare(other, NULL, at(0), &start, &err), TIDE_OK);
    assert_int_equal(OPS.stream(other, start, &err), TIDE_OK);
    assert_int_equal(start.lo, kit_log_end(&kit));
    kit_sql(&kit, "UPDATE t SET a = 7");
    uint64_t end = kit_log_end(&kit);
    free(kit_drain(&kit, kit.source, false));
    kit_confirm(kit.source, end);
    char *got = kit_drain(&kit, other, false);
    assert_string_equal(got, "update t: i1 = i1|i7\nupdate t: i2 = i2|i7\ncommit\n");
    free(got);
    kit_confirm(other, end);
    kit_sql(&kit, "DELETE FROM t");
    free(kit_drain(&kit, kit.source, false));
    kit_confirm(kit.source, kit_log_end(&kit));
    expect_get(&kit, "SELECT count(*) FROM _tidemark_changes", "2");
    OPS.close(other);
    kit_done(&kit);
}

static void prepare_with_a_state_goes_on_where_it_was(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        struct tide_error err;
        kit_follow_with_rows(&kit, modes[mode], HUNDRED_ROWS);
        uint64_t end = kit_log_end(&kit);
        char *saved = kit_state(&kit);
        kit_confirm(kit.source, end); /* killed between this and the next checkpoint */
        kit_sql(&kit, "UPDATE t SET a = 'new' WHERE id = 3");
        assert_int_equal(kit_resume(&kit, saved, at(end), &err), TIDE_OK);
        assert_int_equal(kit.start.lo, end);
        kit_expect(&kit, "update t: i3 = i3|t'new'\ncommit\n");
        char *later = kit_state(&kit);
        kit_confirm(kit.source,
                    kit_log_end(&kit)); /* and the checkpoint before may have to serve */
        assert_int_equal(kit_resume(&kit, saved, at(kit_log_end(&kit)), &err), TIDE_OK);
        assert_int_equal(kit_resume(&kit, later, at(kit_log_end(&kit)), &err), TIDE_OK);
        free(saved);
        free(later);
        kit_done(&kit);
    }
}

static void expect_stale(struct sqlite_kit *kit, const char *saved, uint64_t id)
{
    struct tide_error err;
    assert_int_equal(kit_resume(kit, saved, at(id), &err), TIDE_STALE);
    if (strstr(err.message, "anew") == NULL || err.retriable) {
        fail_msg("no way on: %s", err.message);
    }
}

static void prepare_with_what_does_not_fit_is_stale(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_follow_with_rows(&kit, "wal", HUNDRED_ROWS);
    uint64_t end = kit_log_end(&kit);
    char *saved = kit_state(&kit);
    expect_stale(&kit, saved, end + 1); /* an older database */
    assert_int_equal(kit_resume(&kit, saved, at(end), &err), TIDE_OK);
    kit_confirm(kit.source, end);
    expect_stale(&kit, saved, end - 1); /* an older checkpoint */
    expect_stale(&kit, "{\"source\":\"0123\",\"nonces\":[]}", end);
    assert_int_equal(kit_resume(&kit, "[]", at(end), &err), TIDE_CORRUPT);
    assert_int_equal(kit_resume(&kit, "{\"nonces\":[1]}", at(end), &err), TIDE_CORRUPT);
    kit_sql(&kit, "DROP TABLE _tidemark_canary");
    expect_stale(&kit, saved, end);
    free(saved);
    kit_done(&kit);
}

static void copy_file(const char *from, const char *to)
{
    char command[256];
    (void)snprintf(command, sizeof(command), "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

static void prepare_on_a_restored_backup_is_stale(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    char backup[128];
    kit_follow_with_rows(&kit, "delete", "INSERT INTO t VALUES (1, 1)");
    (void)snprintf(backup, sizeof(backup), "%s/backup", kit.dir);
    copy_file(kit.path, backup);
    char *saved = NULL;
    for (int i = 0; i < 4; i++) { /* each confirm after a checkpoint of its own */
        kit_sql(&kit, "UPDATE t SET a = a + 1");
        free(kit_drain(&kit, kit.source, false));
        free(saved);
        saved = kit_state(&kit);
        kit_confirm(kit.source, kit_log_end(&kit));
    }
    uint64_t end = kit_log_end(&kit);
    OPS.close(kit.source);
    kit.source = NULL;
    (void)sqlite3_close(kit.app);
    copy_file(backup, kit.path);
    assert_int_equal(sqlite3_open(kit.path, &kit.app), SQLITE_OK);
    for (int i = 0; i < 9; i++) { /* its log may well have grown past the checkpoint */
        kit_sql(&kit, "UPDATE t SET a = a + 1");
    }
    expect_stale(&kit, saved, end);
    free(saved);
    (void)unlink(backup);
    kit_done(&kit);
}

static void prepare_twice_is_as_once(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    kit_follow_with_rows(&kit, "wal", "INSERT INTO t VALUES (1, 1)");
    char *schema = kit_get(&kit, "SELECT group_concat(sql, x'0a') FROM sqlite_schema");
    assert_int_equal(OPS.prepare(kit.source, NULL, at(0), &kit.start, &err), TIDE_OK);
    assert_int_equal(kit.start.lo, kit_log_end(&kit));
    assert_int_equal(OPS.stream(kit.source, kit.start, &err), TIDE_OK);
    expect_get(&kit, "SELECT group_concat(sql, x'0a') FROM sqlite_schema", schema);
    kit_sql(&kit, "INSERT INTO t VALUES (2, 2)");
    kit_expect(&kit, "insert t: i2 = i2|i2\ncommit\n");
    free(schema);
    kit_done(&kit);
}

static void detach_leaves_the_schema_as_it_was(void **state)
{
    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        struct sqlite_kit kit;
        struct tide_error err;
        struct tide_findings findings = {0};
        kit_init(&kit, modes[mode]);
        kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, a UNIQUE);"
                      "CREATE TRIGGER mine AFTER INSERT ON t BEGIN SELECT 1; END;"
                      "CREATE INDEX i ON t(a); INSERT INTO t VALUES (1, 1)");
        const char *sql =
            "SELECT group_concat(type || name || tbl_name || coalesce(sql, ''), x'0a')"
            " FROM sqlite_schema";
        char *before = kit_get(&kit, sql);
        kit_follow(&kit);
        kit_sql(&kit, "INSERT INTO t VALUES (2, 2)");
        assert_int_equal(OPS.detach(kit.source, &findings, &err), TIDE_OK);
        assert_true(findings.count > 0);
        expect_get(&kit, sql, before);
        expect_get(&kit, "PRAGMA integrity_check", "ok");
        expect_get(&kit, "PRAGMA journal_mode", modes[mode]);
        kit_sql(&kit, "INSERT INTO t VALUES (3, 3)");
        tide_findings_done(&findings);
        free(before);
        kit_done(&kit);
    }
}

static void replace_file(struct sqlite_kit *kit)
{
    char other[128];
    (void)snprintf(other, sizeof(other), "%s/other", kit->dir);
    copy_file(kit->path, other);
    assert_int_equal(rename(other, kit->path), 0);
}

static void next_on_a_replaced_file_is_stale(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_event event;
    kit_follow_with_rows(&kit, "delete", "INSERT INTO t VALUES (1, 1)");
    replace_file(&kit);
    assert_int_equal(
        OPS.next(kit.source, &kit.arena, NULL, tide_clock_deadline_us(1000000), &event, &err),
        TIDE_STALE);
    assert_non_null(strstr(err.message, kit.path));
    kit_done(&kit);
}

static void remove_wal(struct sqlite_kit *kit)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s-wal", kit->path);
    assert_int_equal(unlink(path), 0);
}

/* Whoever meets other files first says so, and writes nothing. */
static const struct {
    const char *mode;
    void (*replace)(struct sqlite_kit *kit);
} others[] = {{"delete", replace_file}, {"wal", replace_file}, {"wal", remove_wal}};

static void confirm_on_other_files_is_stale(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct sqlite_kit kit;
        struct tide_error err;
        kit_follow_with_rows(&kit, others[i].mode, HUNDRED_ROWS);
        uint64_t end = kit_log_end(&kit);
        others[i].replace(&kit);
        assert_int_equal(OPS.confirm(kit.source, at(end), &err), TIDE_STALE);
        assert_non_null(strstr(err.message, "replaced or removed while it was open"));
        assert_false(err.retriable);
        kit_done(&kit);
    }
}

static void chunk_of_other_files_is_stale(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct sqlite_kit kit;
        struct tide_error err;
        struct tide_chunk_reader *reader = NULL;
        struct tide_chunk chunk = {0};
        kit_follow_with_rows(&kit, others[i].mode, HUNDRED_ROWS);
        struct tide_chunk_request request = {
            .relation = kit_relation(kit.source, "t"), .rows_max = 10, .bytes_max = 1000000};
        assert_int_equal(OPS.reader_open(kit.source, &reader, &err), TIDE_OK);
        others[i].replace(&kit);
        assert_int_equal(OPS.reader_read(reader, &request, &chunk, &err), TIDE_STALE);
        assert_non_null(strstr(err.message, "replaced or removed while it was open"));
        OPS.reader_close(reader);
        kit_done(&kit);
    }
}

static void entries_of_other_tables_are_passed_over(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err;
    struct tide_source *source = NULL;
    struct tide_position start;
    tide_str glob = TIDE_STR("o*");
    kit_init(&kit, "wal");
    kit_sql(&kit,
            "CREATE TABLE t(id INTEGER PRIMARY KEY); CREATE TABLE other(id INTEGER PRIMARY KEY)");
    kit_follow(&kit);
    struct tide_source_options options = {.place = tide_str_from(kit.path),
                                          .pipeline = TIDE_STR("q"),
                                          .globs = &glob,
                                          .glob_count = 1};
    assert_int_equal(OPS.open(&options, &source, &err), TIDE_OK);
    assert_int_equal(OPS.prepare(source, NULL, at(0), &start, &err), TIDE_OK);
    assert_int_equal(OPS.stream(source, start, &err), TIDE_OK);
    kit_sql(&kit, "INSERT INTO t VALUES (1), (2)");
    char *got = kit_drain(&kit, source, false);
    assert_string_equal(got, "reached\n");
    free(got);
    kit_sql(&kit, "BEGIN; INSERT INTO t VALUES (3); INSERT INTO other VALUES (4); COMMIT");
    got = kit_drain(&kit, source, false);
    assert_string_equal(got, "insert other: i4 = i4\ncommit\n");
    free(got);
    OPS.close(source);
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confirm_prunes_all_but_the_last_entry),
        cmocka_unit_test(confirm_prunes_a_large_log_in_pieces),
        cmocka_unit_test(confirm_prunes_no_more_in_a_transaction_than_is_short),
        cmocka_unit_test(confirm_keeps_what_another_pipeline_needs),
        cmocka_unit_test(prepare_with_a_state_goes_on_where_it_was),
        cmocka_unit_test(prepare_with_what_does_not_fit_is_stale),
        cmocka_unit_test(prepare_on_a_restored_backup_is_stale),
        cmocka_unit_test(prepare_twice_is_as_once),
        cmocka_unit_test(detach_leaves_the_schema_as_it_was),
        cmocka_unit_test(next_on_a_replaced_file_is_stale),
        cmocka_unit_test(confirm_on_other_files_is_stale),
        cmocka_unit_test(chunk_of_other_files_is_stale),
        cmocka_unit_test(entries_of_other_tables_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
