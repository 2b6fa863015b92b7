/* Starting: several pipelines at once, on a new log, with a file or names that will not do. */
#include "cmocka_prelude.h"

#include "base/buf.h"
#include "sqlite_kit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPS tide_sqlite_source_ops

static char *identity(struct tide_source *source)
{
    struct tide_buf text = {0};
    OPS.identity(source, &text);
    (void)tide_buf_cstr(&text);
    return text.ptr;
}

static tide_status prepare(struct tide_source *source, struct tide_error *err)
{
    struct tide_position start;
    return OPS.prepare(source, NULL, (struct tide_position){0}, &start, err);
}

static void expect(struct sqlite_kit *kit, const char *sql, const char *want)
{
    char *got = kit_get(kit, sql);
    assert_string_equal(got, want);
    free(got);
}

static void prepare_after_another_was_first_leaves_nothing_and_works_again(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err = {0};
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
    kit.source = kit_open_source(&kit, "p");
    struct tide_source *second = kit_open_source(&kit, "q");
    assert_int_equal(prepare(kit.source, &err), TIDE_OK);
    assert_int_equal(prepare(second, &err), TIDE_IO);
    assert_true(err.retriable);
    assert_non_null(strstr(err.message, "run the same command again"));
    expect(&kit, "SELECT group_concat(name) FROM _tidemark_pipelines", "p");
    OPS.close(second);
    second = kit_open_source(&kit, "q");
    char *before = identity(second);
    assert_int_equal(prepare(second, &err), TIDE_OK);
    char *after = identity(second);
    assert_string_equal(before, after); /* what sinks were told stays true */
    free(before);
    free(after);
    OPS.close(second);
    kit_done(&kit);
}

static void prepare_on_an_emptied_log_takes_a_new_id(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err = {0};
    kit_follow_with_rows(&kit, "wal", "INSERT INTO t VALUES (1, 1)");
    char *old = identity(kit.source);
    kit_sql(&kit, "DELETE FROM _tidemark_changes");
    struct tide_source *second = kit_open_source(&kit, "q");
    char *before = identity(second);
    assert_string_not_equal(before, old);
    assert_int_equal(prepare(second, &err), TIDE_OK);
    char *after = identity(second);
    assert_string_equal(before, after);
    free(old);
    free(before);
    free(after);
    OPS.close(second);
    kit_done(&kit);
}

static void prepare_on_a_log_emptied_after_opening_fails_once(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err = {0};
    kit_follow_with_rows(&kit, "wal", "INSERT INTO t VALUES (1, 1)");
    struct tide_source *second = kit_open_source(&kit, "q");
    kit_sql(&kit, "DELETE FROM _tidemark_changes");
    assert_int_equal(prepare(second, &err), TIDE_IO);
    OPS.close(second);
    second = kit_open_source(&kit, "q");
    assert_int_equal(prepare(second, &err), TIDE_OK);
    OPS.close(second);
    kit_done(&kit);
}

#define NOBODY 65534

/* The superuser may write everything: stops being it, if it is. */
static void become_nobody(struct sqlite_kit *kit)
{
    if (geteuid() == 0) {
        assert_int_equal(chown(kit->path, NOBODY, NOBODY), 0);
        assert_int_equal(chown(kit->dir, NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
}

static void check_of_what_cannot_be_written_says_so(void **state)
{
    (void)state;

    static const struct {
        const char *mode;
        mode_t file;
        mode_t folder;
        const char *want;
        tide_status goes_on; /* TIDE_OK: what lacks shows itself at the first confirm */
    } cases[] = {
        {"delete", 0444, 0700, "the database ", TIDE_IO},
        {"delete", 0600, 0500, "the folder ", TIDE_OK},
        {"delete", 0444, 0500, "the database ", TIDE_IO},
        {"wal", 0444, 0700, "the database ", TIDE_IO},
        {"wal", 0600, 0500, "the folder ", TIDE_IO},
        {"wal", 0444, 0500, "the database ", TIDE_IO},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sqlite_kit kit;
        struct tide_error err = {0};
        struct tide_findings findings = {0};
        kit_init(&kit, cases[i].mode);
        kit_sql(&kit, "CREATE TABLE t(id INTEGER PRIMARY KEY)");
        kit_follow(&kit); /* there is something to take away */
        char *saved = kit_state(&kit);
        tide_str saved_state = tide_str_from(saved);
        OPS.close(kit.source);
        (void)sqlite3_close(kit.app);
        kit.app = NULL;
        uid_t uid = geteuid();
        become_nobody(&kit);
        assert_int_equal(chmod(kit.path, cases[i].file), 0);
        assert_int_equal(chmod(kit.dir, cases[i].folder), 0);
        kit.source = kit_open_source(&kit, "p");
        assert_int_equal(OPS.check(kit.source, &findings, &err), TIDE_OK);
        assert_true(findings.count > 0 && findings.items[0].is_problem);
        assert_true(tide_str_starts_with(findings.items[0].what, tide_str_from(cases[i].want)));
        assert_non_null(kit_relation(kit.source, "t"));
        assert_int_equal(prepare(kit.source, &err), TIDE_IO);
        assert_non_null(strstr(err.message, "give us write access to the file and its directory"));
        assert_int_equal(OPS.prepare(kit.source, &saved_state, kit.start, &kit.start, &err),
                         cases[i].goes_on);
        free(saved);
        struct tide_findings removed = {0};
        assert_int_equal(OPS.detach(kit.source, &removed, &err), TIDE_IO);
        tide_findings_done(&removed);
        tide_findings_done(&findings);
        assert_int_equal(chmod(kit.dir, 0700), 0);
        assert_int_equal(seteuid(uid), 0);
        kit_done(&kit);
    }
}

static void names_that_are_no_text_are_not_followed(void **state)
{
    (void)state;
    struct sqlite_kit kit;
    struct tide_error err = {0};
    struct tide_findings findings = {0};
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    kit_init(&kit, "wal");
    kit_sql(&kit, "CREATE TABLE \"a\xff\"(id INTEGER PRIMARY KEY, v);"
                  "CREATE TABLE b(id INTEGER PRIMARY KEY, \"v\xc3\");"
                  "CREATE TABLE c(id INTEGER PRIMARY KEY, v \"t\xed\xa0\x80\");"
                  "CREATE TABLE \"d\n\x1b[1m\xc2\x9b\"(v);"
                  "CREATE TABLE \"\xc3\xa9\"(id INTEGER PRIMARY KEY)");
    kit.source = kit_open_source(&kit, "p");
    assert_int_equal(OPS.tables(kit.source, &tables, &count, &err), TIDE_OK);
    assert_int_equal(count, 2); /* d and é */
    assert_int_equal(OPS.check(kit.source, &findings, &err), TIDE_OK);
    struct tide_buf said = {0};
    for (size_t i = 0; i < findings.count; i++) {
        tide_buf_append_str(&said, findings.items[i].what);
        tide_buf_append_char(&said, '|');
    }
    assert_true(tide_str_is_utf8(tide_buf_str(&said)));
    assert_null(strpbrk(tide_buf_cstr(&said), "\n\x1b"));
    assert_non_null(strstr(said.ptr, "table a\\xff cannot be followed: its name is not valid"));
    assert_non_null(strstr(said.ptr, "table b cannot be followed: the name or the type of one"));
    assert_non_null(strstr(said.ptr, "table c cannot be followed: the name or the type of one"));
    assert_non_null(strstr(said.ptr, "table d\\x0a\\x1b[1m\\x9b has no key"));
    tide_buf_done(&said);
    tide_findings_done(&findings);
    assert_int_equal(prepare(kit.source, &err), TIDE_OK); /* the others */
    kit_done(&kit);
}

static void open_of_a_file_whose_name_is_no_text_is_invalid(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_source *source = NULL;
    struct tide_source_options options = {.place = TIDE_STR("/tmp/\xff.db"),
                                          .pipeline = TIDE_STR("p")};
    assert_int_equal(OPS.open(&options, &source, &err), TIDE_INVALID);
    assert_non_null(strstr(err.message, "not valid UTF-8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepare_after_another_was_first_leaves_nothing_and_works_again),
        cmocka_unit_test(prepare_on_an_emptied_log_takes_a_new_id),
        cmocka_unit_test(prepare_on_a_log_emptied_after_opening_fails_once),
        cmocka_unit_test(names_that_are_no_text_are_not_followed),
        cmocka_unit_test(open_of_a_file_whose_name_is_no_text_is_invalid),
        cmocka_unit_test(check_of_what_cannot_be_written_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
