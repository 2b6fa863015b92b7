#include "cmocka_prelude.h"

#include "base/clock.h"
#include "base/thread.h"
#include "engine/dead_letters.h"
#include "sink_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "dead_letters.ndjson"

static struct tide_dead_letter_file *open_letters(size_t record_bytes_max)
{
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = NULL;
    if (tide_dead_letter_file_open(".", record_bytes_max, &tide_position_integer, &letters, &err) !=
        TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return letters;
}

static void put(struct tide_dead_letter_file *letters, const struct tide_dead_letter *letter)
{
    struct tide_error err = {0};
    struct tide_dead_letters target = tide_dead_letter_file_target(letters);
    if (target.put(target.context, letter, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

static struct tide_dead_letter row_letter(tide_str bytes)
{
    struct tide_dead_letter letter = {
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("file:out \"x\".ndjson"),
        .reason = TIDE_STR("9 bytes, limit 8"),
        .bytes = bytes,
        .has_seq = true,
        .seq = 18446744073709551615u,
    };
    kit_snapshot_id(3, letter.snapshot_id);
    return letter;
}

/* The file without its timestamps, which are checked to be of now. */
static void expect_letters(const char *want)
{
    size_t len = 0;
    char *bytes = kit_read(FILE_NAME, &len);
    assert_non_null(bytes);
    struct tide_buf rest = {0};
    for (char *line = bytes; line < bytes + len;) {
        static const char lead[] = "{\"timestamp\":\"";
        struct tide_error err;
        int64_t at_us = 0;
        assert_memory_equal(line, lead, sizeof(lead) - 1);
        line += sizeof(lead) - 1;
        assert_int_equal(tide_rfc3339_parse(tide_str_of(line, TIDE_RFC3339_MS_LEN), &at_us, &err),
                         TIDE_OK);
        assert_true(llabs(tide_clock_utc_us() - at_us) < 60 * 1000000);
        line += TIDE_RFC3339_MS_LEN + 1;
        size_t line_len = (size_t)(strchr(line, '\n') - line) + 1;
        tide_buf_append(&rest, line, line_len);
        line += line_len;
    }
    assert_string_equal(tide_buf_cstr(&rest), want);
    tide_buf_done(&rest);
    free(bytes);
}

#define ROW_HEAD                                                                                   \
    ",\"store\":\"shop.t\",\"destination\":\"file:out \\\"x\\\".ndjson\",\"reason\":\"9 bytes, "   \
    "limit 8\",\"snapshot_id\":\"019acfd5-0b4f-7000-8000-000000000003\",\"seq\":"                  \
    "18446744073709551615,\"bytes\":"

static void put_writes_a_line_each(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters(64);
    assert_false(kit_exists(FILE_NAME)); /* it comes with the first letter */
    struct tide_dead_letter letter = row_letter(TIDE_STR("{\"a\":\n1}"));
    put(letters, &letter);
    letter = (struct tide_dead_letter){
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("-"),
        .reason = TIDE_STR("r"),
        .bytes = TIDE_STR("x"),
        .place = {.position = {.lo = 44}, .index = 2, .known = true},
    };
    put(letters, &letter);
    expect_letters(ROW_HEAD "8,\"record\":\"{\\\"a\\\":\\n1}\"}\n"
                            ",\"store\":\"shop.t\",\"destination\":\"-\",\"reason\":\"r\","
                            "\"position\":44,\"index\":2,\"bytes\":1,\"record\":\"x\"}\n");
    assert_int_equal(tide_dead_letter_file_count(letters), 2);
    struct stat st;
    assert_int_equal(stat(FILE_NAME, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    tide_dead_letter_file_close(letters);
}

static void put_keeps_the_first_bytes_only(void **state)
{
    (void)state;

    static const struct {
        tide_str bytes;
        const char *want;
    } cases[] = {
        {TIDE_STR("1234"), "4,\"record\":\"1234\"}\n"},
        {TIDE_STR("12345"), "5,\"record\":\"1234\"}\n"},
        {TIDE_STR(""), "0,\"record\":\"\"}\n"},
        {TIDE_STR("123\xc3\xa4"), "5,\"record\":\"123\"}\n"}, /* no half character */
        {TIDE_STR("12\xc3\xa4"), "4,\"record\":\"12\xc3\xa4\"}\n"},
        {TIDE_STR("\xf0\x9f\x90\x8c\x8c"), "5,\"record\":\"\xf0\x9f\x90\x8c\"}\n"},
        {TIDE_STR("12\xff"), "3,\"record_base64\":\"MTL/\"}\n"},
        {TIDE_STR("\xff\xff\xff\xff\xff"), "5,\"record_base64\":\"/////w==\"}\n"},
        {TIDE_STR("123\xff\xff"), "5,\"record_base64\":\"MTIz/w==\"}\n"},
        {TIDE_STR("123\xc3"), "4,\"record_base64\":\"MTIzww==\"}\n"}, /* whole, and half a char. */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)unlink(FILE_NAME);
        struct tide_buf want = {0};
        struct tide_dead_letter_file *letters = open_letters(4);
        struct tide_dead_letter letter = row_letter(cases[i].bytes);
        put(letters, &letter);
        tide_buf_printf(&want, "%s%s", ROW_HEAD, cases[i].want);
        expect_letters(tide_buf_cstr(&want));
        tide_dead_letter_file_close(letters);
        tide_buf_done(&want);
    }
}

/* A crash at every byte of the last line: it goes, those before it stay, the next one follows. */
static void open_after_a_crash_cuts_the_torn_line(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters(64);
    struct tide_dead_letter letter = row_letter(TIDE_STR("{}"));
    put(letters, &letter);
    put(letters, &letter);
    tide_dead_letter_file_close(letters);
    size_t len = 0;
    char *bytes = kit_read(FILE_NAME, &len);
    assert_non_null(bytes);
    size_t line = len / 2;
    for (size_t cut = 0; cut <= len; cut++) {
        kit_put(FILE_NAME, bytes, cut);
        letters = open_letters(64);
        assert_int_equal(tide_dead_letter_file_count(letters), cut / line);
        struct stat st;
        assert_int_equal(stat(FILE_NAME, &st), 0);
        assert_int_equal(st.st_size, cut / line * line);
        put(letters, &letter);
        assert_int_equal(tide_dead_letter_file_count(letters), cut / line + 1);
        assert_int_equal(stat(FILE_NAME, &st), 0);
        assert_int_equal(st.st_size, (cut / line + 1) * line);
        tide_dead_letter_file_close(letters);
    }
    free(bytes);
}

static void open_many_lines_counts_over_reads(void **state)
{
    (void)state;
    struct tide_buf bytes = {0};
    for (int i = 0; i < 50000; i++) {
        tide_buf_append_str(&bytes, TIDE_STR("{\"letter\":1}\n"));
    }
    kit_put(FILE_NAME, bytes.ptr, bytes.len);
    struct tide_dead_letter_file *letters = open_letters(64);
    assert_int_equal(tide_dead_letter_file_count(letters), 50000);
    tide_dead_letter_file_close(letters);
    tide_buf_done(&bytes);
}

/* A write that fails halfway leaves the file as it was, and the next one succeeds. */
static void put_that_fails_leaves_no_half_line(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = open_letters(64);
    struct tide_dead_letters target = tide_dead_letter_file_target(letters);
    struct tide_dead_letter letter = row_letter(TIDE_STR("{}"));
    put(letters, &letter);
    struct stat st;
    assert_int_equal(stat(FILE_NAME, &st), 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = (rlim_t)st.st_size + 10, .rlim_max = before.rlim_max};
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tide_status status = target.put(target.context, &letter, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, old);
    assert_int_equal(status, TIDE_IO);
    assert_true(err.retriable);
    assert_string_equal(err.message, "cannot write ./" FILE_NAME ": File too large");
    assert_int_equal(tide_dead_letter_file_count(letters), 1);
    off_t one = st.st_size;
    assert_int_equal(stat(FILE_NAME, &st), 0);
    assert_int_equal(st.st_size, one);
    put(letters, &letter);
    assert_int_equal(stat(FILE_NAME, &st), 0);
    assert_int_equal(st.st_size, 2 * one);
    tide_dead_letter_file_close(letters);
}

static void open_what_is_no_file_fails(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = NULL;
    assert_int_equal(symlink("elsewhere", FILE_NAME), 0);
    assert_int_equal(tide_dead_letter_file_open(".", 64, &tide_position_integer, &letters, &err),
                     TIDE_IO);
    assert_non_null(strstr(err.message, "cannot open ./" FILE_NAME));
    assert_null(letters);
}

#define THREADS 4
#define LETTERS 50

static void *put_some(void *letters)
{
    struct tide_dead_letter letter = row_letter(TIDE_STR("{}"));
    for (int i = 0; i < LETTERS; i++) {
        put(letters, &letter);
    }
    return NULL;
}

static void put_by_several_threads_keeps_lines_whole(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct tide_dead_letter_file *letters = open_letters(64);
    for (int i = 0; i < THREADS; i++) {
        tide_thread_start(&threads[i], put_some, letters);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(tide_dead_letter_file_count(letters), THREADS * LETTERS);
    tide_dead_letter_file_close(letters);
    struct tide_buf want = {0};
    for (int i = 0; i < THREADS * LETTERS; i++) {
        tide_buf_append_str(&want, TIDE_STR(ROW_HEAD "2,\"record\":\"{}\"}\n"));
    }
    expect_letters(tide_buf_cstr(&want));
    tide_buf_done(&want);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(put_writes_a_line_each),
        TEST(put_keeps_the_first_bytes_only),
        TEST(open_after_a_crash_cuts_the_torn_line),
        TEST(open_many_lines_counts_over_reads),
        TEST(put_that_fails_leaves_no_half_line),
        TEST(open_what_is_no_file_fails),
        TEST(put_by_several_threads_keeps_lines_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
