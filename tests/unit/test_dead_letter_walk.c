#include "cmocka_prelude.h"

#include "engine/dead_letter_files.h"
#include "engine/dead_letter_marks.h"
#include "engine/dead_letter_walk.h"
#include "engine/dead_letters.h"
#include "sink_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LETTER(record)                                                                             \
    "{\"timestamp\":\"2025-11-29T13:40:00.123Z\",\"store\":\"s\",\"destination\":\"-\","           \
    "\"reason\":\"r\",\"bytes\":1,\"record\":\"" record "\"}\n"

static void put_file(const char *name, const char *text)
{
    kit_put(name, text, strlen(text));
}

/* "FILE:LINE record" or "FILE:LINE !why" a line. */
static tide_status append_found(void *context, const struct tide_dead_letter_found *found,
                                struct tide_error *err)
{
    struct tide_buf *buf = context;
    (void)err;
    tide_buf_printf(buf, "%s:%llu ", found->path, (unsigned long long)found->line_number);
    if (found->letter == NULL) {
        tide_buf_printf(buf, "!%s\n", found->why);
    } else {
        tide_buf_printf(buf, "%.*s\n", TIDE_STR_ARG(found->letter->record));
    }
    return TIDE_OK;
}

static void expect_walk(const char *want)
{
    struct tide_error err = {0};
    struct tide_buf is = {0};
    if (tide_dead_letter_walk(".", append_found, &is, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    assert_string_equal(tide_buf_cstr(&is), want);
    tide_buf_done(&is);
}

static void walk_goes_from_the_oldest_to_the_newest(void **state)
{
    (void)state;
    expect_walk("");
    put_file(TIDE_DEAD_LETTERS_FILE, LETTER("e") LETTER("f"));
    put_file("dead_letters.10.ndjson", LETTER("d"));
    put_file("dead_letters.9.ndjson", LETTER("b") LETTER("c"));
    put_file("dead_letters.x.ndjson", LETTER("z"));
    expect_walk("./dead_letters.9.ndjson:1 b\n./dead_letters.9.ndjson:2 c\n"
                "./dead_letters.10.ndjson:1 d\n./dead_letters.ndjson:1 e\n"
                "./dead_letters.ndjson:2 f\n");
    assert_int_equal(link(TIDE_DEAD_LETTERS_FILE, "dead_letters.11.ndjson"), 0);
    kit_remove("dead_letters.9.ndjson");
    expect_walk("./dead_letters.10.ndjson:1 d\n./dead_letters.ndjson:1 e\n"
                "./dead_letters.ndjson:2 f\n");
}

static void walk_says_what_is_no_letter_and_goes_on(void **state)
{
    (void)state;
    put_file(TIDE_DEAD_LETTERS_FILE,
             LETTER("a") "\n{}\nhello\n" LETTER("b") "{\"record\":\"\xff\"}\n" LETTER("c") "{\"ti");
    struct tide_buf is = {0};
    struct tide_error err = {0};
    assert_int_equal(tide_dead_letter_walk(".", append_found, &is, &err), TIDE_OK);
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:1 a\n"));
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:2 !"));
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:3 !missing key `timestamp`"));
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:4 !"));
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:5 b\n"));
    assert_non_null(strstr(tide_buf_cstr(&is), "ndjson:6 !"));
    assert_true(tide_str_ends_with(tide_buf_str(&is), TIDE_STR("ndjson:7 c\n")));
    tide_buf_done(&is);
}

/* However the file is cut, every whole line is given, and nothing of a torn one is said. */
static void walk_of_every_truncation_gives_the_whole_lines(void **state)
{
    (void)state;
    static const char text[] = LETTER("a") LETTER("b");
    size_t line = (sizeof(text) - 1) / 2;
    for (size_t len = 0; len < sizeof(text); len++) {
        kit_put(TIDE_DEAD_LETTERS_FILE, text, len);
        expect_walk(len < line       ? ""
                    : len < 2 * line ? "./dead_letters.ndjson:1 a\n"
                                     : "./dead_letters.ndjson:1 a\n./dead_letters.ndjson:2 b\n");
    }
}

static tide_status end_it(void *context, const struct tide_dead_letter_found *found,
                          struct tide_error *err)
{
    int *count = context;
    (void)found;
    ++*count;
    return tide_fail(err, TIDE_INVALID, "enough");
}

static void walk_ends_with_an_error(void **state)
{
    (void)state;
    int count = 0;
    struct tide_error err;
    put_file(TIDE_DEAD_LETTERS_FILE, LETTER("a") LETTER("b"));
    assert_int_equal(tide_dead_letter_walk(".", end_it, &count, &err), TIDE_INVALID);
    assert_int_equal(count, 1);
    assert_int_equal(tide_dead_letter_walk("nowhere", end_it, &count, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "nowhere"));
    kit_remove(TIDE_DEAD_LETTERS_FILE);
    assert_int_equal(mkfifo(TIDE_DEAD_LETTERS_FILE, 0600), 0); /* would block for ever */
    assert_int_equal(tide_dead_letter_walk(".", end_it, &count, &err), TIDE_IO);
    assert_int_equal(count, 1);
}

static bool is_marked(uint64_t n)
{
    struct tide_error err = {0};
    struct tide_dead_letter_ids ids;
    tide_dead_letter_ids_init(&ids, SIZE_MAX);
    assert_int_equal(tide_dead_letter_marks_read(".", &ids, &err), TIDE_OK);
    bool is = tide_dead_letter_ids_has(&ids, (struct tide_dead_letter_id){.hi = 5, .lo = n});
    tide_dead_letter_ids_done(&ids);
    return is;
}

static void mark(uint64_t n)
{
    struct tide_error err = {0};
    struct tide_dead_letter_id ids[] = {{.hi = 5, .lo = n}, {.hi = 6, .lo = n}};
    assert_int_equal(tide_dead_letter_marks_add(".", ids, 2, &err), TIDE_OK);
}

static void marks_are_kept_also_behind_a_torn_line(void **state)
{
    (void)state;
    assert_false(is_marked(1));
    mark(1);
    mark(2);
    assert_true(is_marked(1) && is_marked(2) && !is_marked(3));
    size_t len = 0;
    char *bytes = kit_read(TIDE_DEAD_LETTERS_MARKS, &len);
    assert_non_null(bytes);
    assert_int_equal(len, 4 * (TIDE_DEAD_LETTER_ID_LEN + 1));
    for (size_t cut = 0; cut <= len; cut++) {
        kit_put(TIDE_DEAD_LETTERS_MARKS, bytes, cut);
        mark(3);
        assert_int_equal(is_marked(1), cut >= TIDE_DEAD_LETTER_ID_LEN + 1);
        assert_int_equal(is_marked(2), cut >= 3 * (TIDE_DEAD_LETTER_ID_LEN + 1));
        assert_true(is_marked(3));
    }
    free(bytes);
    struct stat st;
    kit_remove(TIDE_DEAD_LETTERS_MARKS);
    mark(4);
    assert_int_equal(stat(TIDE_DEAD_LETTERS_MARKS, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(walk_goes_from_the_oldest_to_the_newest),
        TEST(walk_says_what_is_no_letter_and_goes_on),
        TEST(walk_of_every_truncation_gives_the_whole_lines),
        TEST(walk_ends_with_an_error),
        TEST(marks_are_kept_also_behind_a_torn_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
