/* Starting: several pipelines at once, on a new log, with a file that cannot be written. */
#include "cmocka_prelude.h"

#include "base/buf.h"
#include "sqlite_kit.h"

#include <stdlib.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prepare_after_another_was_first_leaves_nothing_and_works_again),
        cmocka_unit_test(prepare_on_an_emptied_log_takes_a_new_id),
        cmocka_unit_test(prepare_on_a_log_emptied_after_opening_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
