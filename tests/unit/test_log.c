#include "cmocka_prelude.h"

#include "base/log.h"

#include <string.h>
#include <unistd.h>

/* What is logged of one message, without its time. */
static void logged(const char *message, char *ret_text, size_t size)
{
    int pipes[2];
    int kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
    tide_log(TIDE_LOG_WARN, "%s", message);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    (void)close(pipes[1]);
    ssize_t got = read(pipes[0], ret_text, size - 1);
    (void)close(pipes[0]);
    assert_in_range(got, 1, size - 1);
    ret_text[got] = '\0';
    const char *level = strstr(ret_text, "warn  ");
    assert_non_null(level);
    memmove(ret_text, level + 6, strlen(level + 6) + 1);
}

static void log_of_control_bytes_stays_one_line(void **state)
{
    static const struct {
        const char *message;
        const char *want;
    } cases[] = {
        {"table a.b", "table a.b\n"},
        {"table x\n2026-11-29T13:40:55.567Z error forged",
         "table x?2026-11-29T13:40:55.567Z error forged\n"},
        {"\r\x1b[2J\x7f\t", "??[2J??\n"},
        {"C1 \xc2\x9b"
         "31m, not \xc2\xa0 or \xc3\xa9",
         "C1 ??31m, not \xc2\xa0 or \xc3\xa9\n"},
        {"cut \xc2", "cut ?\n"},
        {"not UTF-8 \xff\xed\xa0\x80\xc3 \xf0\x9f\x8c\x8a", "not UTF-8 ????? \xf0\x9f\x8c\x8a\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        logged(cases[i].message, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
    }
}

static void log_of_a_long_message_is_cut_with_its_line_end(void **state)
{
    char message[4096];
    char text[4096];
    (void)state;
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    logged(message, text, sizeof(text));
    assert_in_range(strlen(text), 1900, 2048);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_of_control_bytes_stays_one_line),
        cmocka_unit_test(log_of_a_long_message_is_cut_with_its_line_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
