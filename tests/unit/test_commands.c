#include "cmocka_prelude.h"

#include "app/commands.h"
#include "app/config/nearest.h"

#include <stdio.h>
#include <string.h>

static int seen_argc;
static char seen_name[64];
static char seen_last[64];

static int record_arguments(int argc, char **argv)
{
    seen_argc = argc;
    (void)snprintf(seen_name, sizeof(seen_name), "%s", argv[0]);
    (void)snprintf(seen_last, sizeof(seen_last), "%s", argv[argc - 1]);
    return TIDE_EXIT_NO;
}

static const struct tide_command commands[] = {
    {"copy", record_arguments, "copies"},
    {"checkpoint", record_arguments, "shows"},
    {NULL, NULL, NULL},
};

static int run(const char *first, const char *second)
{
    char program[] = "tidemark";
    char a[64];
    char b[64];
    (void)snprintf(a, sizeof(a), "%s", first != NULL ? first : "");
    (void)snprintf(b, sizeof(b), "%s", second != NULL ? second : "");
    char *argv[] = {program, a, b, NULL};
    int argc = 1 + (first != NULL) + (second != NULL);
    argv[argc] = NULL;
    return tide_commands_run(commands, argc, argv);
}

static void run_known_command_gets_its_arguments_and_name(void **state)
{
    (void)state;
    seen_argc = 0;
    assert_int_equal(run("copy", "sqlite:a.db"), TIDE_EXIT_NO);
    assert_int_equal(seen_argc, 2);
    assert_string_equal(seen_name, "tidemark copy");
    assert_string_equal(seen_last, "sqlite:a.db");
}

static void run_wrong_usage_is_two_and_runs_nothing(void **state)
{
    (void)state;
    seen_argc = 0;
    assert_int_equal(run(NULL, NULL), TIDE_EXIT_USAGE);
    assert_int_equal(run("cpoy", NULL), TIDE_EXIT_USAGE);
    assert_int_equal(run("--json", "copy"), TIDE_EXIT_USAGE);
    assert_int_equal(run("", NULL), TIDE_EXIT_USAGE);
    assert_int_equal(seen_argc, 0);
}

static void run_help_and_version_are_done(void **state)
{
    (void)state;
    assert_int_equal(run("--help", NULL), TIDE_EXIT_DONE);
    assert_int_equal(run("--version", NULL), TIDE_EXIT_DONE);
}

static void exit_from_each_status_is_as_documented(void **state)
{
    (void)state;

    static const struct {
        tide_status status;
        enum tide_exit want;
    } cases[] = {
        {TIDE_OK, TIDE_EXIT_DONE},        {TIDE_END, TIDE_EXIT_DONE},
        {TIDE_INVALID, TIDE_EXIT_USAGE},  {TIDE_CANCELLED, TIDE_EXIT_FAILED},
        {TIDE_CORRUPT, TIDE_EXIT_FAILED}, {TIDE_UNSUPPORTED, TIDE_EXIT_FAILED},
        {TIDE_IO, TIDE_EXIT_FAILED},      {TIDE_REMOTE, TIDE_EXIT_FAILED},
        {TIDE_CLOSED, TIDE_EXIT_FAILED},  {TIDE_TIMEOUT, TIDE_EXIT_FAILED},
        {TIDE_STALE, TIDE_EXIT_FAILED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tide_exit_from(cases[i].status), cases[i].want);
    }
}

static void nearest_word_is_the_one_meant(void **state)
{
    (void)state;
    static const char *const known[] = {"copy", "check", "checkpoint", "detach", "verify"};

    static const struct {
        const char *word;
        const char *want;
    } cases[] = {
        {"cpoy", "copy"},   {"copi", "copy"},  {"Verify", "verify"},
        {"chekc", "check"}, {"det", "detach"}, {"chekpoint", "checkpoint"},
        {"check", "check"}, {"ch", NULL},      {"frobnicate", NULL},
        {"", NULL},         {"c", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = tide_nearest(cases[i].word, known, 5);
        if (cases[i].want == NULL) {
            assert_null(got);
        } else {
            assert_non_null(got);
            assert_string_equal(got, cases[i].want);
        }
    }
}

static void nearest_overlong_word_is_none(void **state)
{
    (void)state;
    static const char *const known[] = {"copy"};
    char word[500];
    memset(word, 'c', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_null(tide_nearest(word, known, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_known_command_gets_its_arguments_and_name),
        cmocka_unit_test(run_wrong_usage_is_two_and_runs_nothing),
        cmocka_unit_test(run_help_and_version_are_done),
        cmocka_unit_test(exit_from_each_status_is_as_documented),
        cmocka_unit_test(nearest_word_is_the_one_meant),
        cmocka_unit_test(nearest_overlong_word_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
