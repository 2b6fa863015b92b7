#include "cmocka_prelude.h"

#include "base/log.h"
#include "base/thread.h"
#include "engine/dead_letter_files.h"
#include "engine/dead_letter_ids.h"
#include "engine/dead_letters.h"
#include "sink_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME TIDE_DEAD_LETTERS_FILE

static struct tide_dead_letter_limits small(uint64_t file_bytes, uint64_t files,
                                            enum tide_dead_letters_full when_full)
{
    struct tide_dead_letter_limits limits = tide_dead_letter_limits_default();
    limits.file_bytes = file_bytes;
    limits.files = files;
    limits.when_full = when_full;
    return limits;
}

static struct tide_dead_letter_file *open_with(struct tide_dead_letter_limits limits)
{
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = NULL;
    if (tide_dead_letter_file_open(".", &limits, &tide_position_integer, &letters, &err) !=
        TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return letters;
}

static struct tide_dead_letter_file *open_letters(void)
{
    return open_with(tide_dead_letter_limits_default());
}

/* Letter number `n`: each is of another row. */
static tide_status try_put(struct tide_dead_letter_file *letters, uint64_t n, bool *ret_is_new,
                           struct tide_error *err)
{
    char record[32];
    struct tide_dead_letters target = tide_dead_letter_file_target(letters);
    struct tide_dead_letter letter = {
        .sink = TIDE_STR("all"),
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("-"),
        .reason = TIDE_STR("9 bytes, limit 8"),
        .bytes = {record, (size_t)snprintf(record, sizeof(record), "letter %010u", (unsigned)n)},
        .has_seq = true,
        .seq = n,
    };
    kit_snapshot_id(3, letter.snapshot_id);
    return target.put(target.context, &letter, ret_is_new, err);
}

static bool put(struct tide_dead_letter_file *letters, uint64_t n)
{
    bool is_new = false;
    struct tide_error err = {0};
    if (try_put(letters, n, &is_new, &err) != TIDE_OK) {
        fail_msg("letter %u: %s", (unsigned)n, err.message);
    }
    return is_new;
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static off_t line_size(void)
{
    struct tide_dead_letter_file *letters = open_letters();
    assert_true(put(letters, 1));
    tide_dead_letter_file_close(letters);
    off_t size = size_of(FILE_NAME);
    kit_remove(FILE_NAME);
    return size;
}

/* The numbers of the letters in a file, in order: "1 2 "; "-" when it is not there. */
static void expect_file(const char *path, const char *want)
{
    size_t len = 0;
    struct tide_buf is = {0};
    char *bytes = kit_read(path, &len);
    if (bytes == NULL) {
        tide_buf_append_char(&is, '-');
    }
    for (char *at = bytes; at != NULL && (at = strstr(at, "\"letter ")) != NULL; at++) {
        tide_buf_printf(&is, "%llu ", strtoull(at + 8, NULL, 10));
    }
    assert_string_equal(tide_buf_cstr(&is), want);
    tide_buf_done(&is);
    free(bytes);
}

static void put_makes_the_file_with_the_first_letter(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters();
    assert_false(kit_exists(FILE_NAME));
    assert_true(put(letters, 1));
    assert_true(put(letters, 2));
    expect_file(FILE_NAME, "1 2 ");
    assert_int_equal(tide_dead_letter_file_count(letters), 2);
    struct stat st;
    assert_int_equal(stat(FILE_NAME, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    tide_dead_letter_file_close(letters);
}

static void put_again_keeps_it_once_also_after_opening(void **state)
{
    (void)state;
    off_t line = line_size();
    for (int round = 0; round < 3; round++) {
        struct tide_dead_letter_file *letters =
            open_with(small((uint64_t)(2 * line), 9, TIDE_DEAD_LETTERS_STOP));
        for (uint64_t n = 1; n <= 5; n++) {
            assert_int_equal(put(letters, n), round == 0);
            assert_false(put(letters, n));
        }
        assert_int_equal(tide_dead_letter_file_count(letters), round == 0 ? 5 : 0);
        tide_dead_letter_file_close(letters);
    }
    expect_file("dead_letters.1.ndjson", "1 2 ");
    expect_file("dead_letters.2.ndjson", "3 4 ");
    expect_file(FILE_NAME, "5 ");
}

static void skip_tells_the_first_time(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters();
    struct tide_dead_letters target = tide_dead_letter_file_target(letters);
    struct tide_dead_letter letter = {.sink = TIDE_STR("a"), .store = TIDE_STR("s")};
    for (uint64_t n = 0; n < 6; n++) {
        bool is_new = false;
        letter.place.position.lo = n / 2;
        target.note_skipped(target.context, &letter, &is_new);
        assert_int_equal(is_new, n % 2 == 0);
    }
    assert_false(kit_exists(FILE_NAME));
    assert_int_equal(tide_dead_letter_file_count(letters), 0);
    tide_dead_letter_file_close(letters);
}

/* A crash at every byte of the last line: it goes, those before it stay, the next one follows. */
static void open_after_a_crash_cuts_the_torn_line(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters();
    assert_true(put(letters, 1) && put(letters, 2));
    tide_dead_letter_file_close(letters);
    size_t len = 0;
    char *bytes = kit_read(FILE_NAME, &len);
    assert_non_null(bytes);
    size_t line = len / 2;
    for (size_t cut = 0; cut <= len; cut++) {
        kit_put(FILE_NAME, bytes, cut);
        letters = open_letters();
        assert_int_equal(size_of(FILE_NAME), cut / line * line);
        assert_int_equal(put(letters, 1), cut < line);
        assert_int_equal(put(letters, 2), cut < len);
        expect_file(FILE_NAME, "1 2 ");
        tide_dead_letter_file_close(letters);
    }
    /* its end had reached the disk, what is before it not */
    for (size_t zeros = 1; zeros < line; zeros++) {
        char *torn = malloc(len);
        assert_non_null(torn);
        memcpy(torn, bytes, len);
        memset(torn + line, 0, zeros);
        kit_put(FILE_NAME, torn, len);
        free(torn);
        letters = open_letters();
        assert_int_equal(size_of(FILE_NAME), line);
        assert_true(put(letters, 2));
        expect_file(FILE_NAME, "1 2 ");
        tide_dead_letter_file_close(letters);
    }
    free(bytes);
}

/* A write that fails halfway leaves the file as it was, and the next one succeeds. */
static void put_that_fails_leaves_no_half_line(void **state)
{
    (void)state;
    bool is_new = false;
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = open_letters();
    assert_true(put(letters, 1));
    off_t one = size_of(FILE_NAME);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = {.rlim_cur = (rlim_t)one + 10, .rlim_max = before.rlim_max};
    void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    tide_status status = try_put(letters, 2, &is_new, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, old);
    assert_int_equal(status, TIDE_IO);
    assert_true(err.retriable);
    assert_string_equal(err.message, "cannot write ./" FILE_NAME ": File too large");
    assert_int_equal(tide_dead_letter_file_count(letters), 1);
    assert_int_equal(size_of(FILE_NAME), one);
    assert_true(put(letters, 2));
    assert_int_equal(size_of(FILE_NAME), 2 * one);
    tide_dead_letter_file_close(letters);
}

static void open_what_is_no_file_fails(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_dead_letter_file *letters = NULL;
    struct tide_dead_letter_limits limits = tide_dead_letter_limits_default();
    assert_int_equal(symlink("elsewhere", FILE_NAME), 0);
    assert_int_equal(
        tide_dead_letter_file_open(".", &limits, &tide_position_integer, &letters, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "cannot open ./" FILE_NAME));
    assert_null(letters);
}

static void put_when_full_stops_until_somebody_makes_room(void **state)
{
    (void)state;
    bool is_new = false;
    struct tide_error err = {0};
    struct tide_dead_letter_limits limits =
        small((uint64_t)(2 * line_size()), 3, TIDE_DEAD_LETTERS_STOP);
    struct tide_dead_letter_file *letters = open_with(limits);
    for (uint64_t n = 1; n <= 6; n++) {
        assert_true(put(letters, n));
    }
    for (int round = 0; round < 2; round++) {
        assert_int_equal(try_put(letters, 7, &is_new, &err), TIDE_INVALID);
        assert_false(err.retriable);
        assert_non_null(strstr(err.message, "the dead letters in . have filled their 3 files of "));
        assert_non_null(strstr(err.message, "`tidemark dead-letters list .`"));
        assert_false(put(letters, 6)); /* what is known needs no room */
        tide_dead_letter_file_close(letters);
        letters = open_with(limits);
    }
    expect_file("dead_letters.1.ndjson", "1 2 ");
    expect_file("dead_letters.2.ndjson", "3 4 ");
    expect_file(FILE_NAME, "5 6 ");
    kit_remove("dead_letters.1.ndjson");
    assert_true(put(letters, 7));
    expect_file("dead_letters.3.ndjson", "5 6 ");
    expect_file(FILE_NAME, "7 ");
    kit_remove("dead_letters.2.ndjson");
    kit_remove("dead_letters.3.ndjson");
    assert_true(put(letters, 8) && put(letters, 9));
    expect_file("dead_letters.4.ndjson", "7 8 ");
    tide_dead_letter_file_close(letters);
}

static void put_when_full_may_drop_the_oldest_and_counts_them(void **state)
{
    (void)state;
    off_t line = line_size();
    tide_log_set_level(TIDE_LOG_ERROR);
    struct tide_dead_letter_file *letters =
        open_with(small((uint64_t)(2 * line + 8), 3, TIDE_DEAD_LETTERS_DROP_OLDEST));
    for (uint64_t n = 1; n <= 11; n++) {
        assert_true(put(letters, n));
    }
    tide_dead_letter_file_close(letters);
    /* fewer files than before */
    letters = open_with(small((uint64_t)(2 * line + 8), 2, TIDE_DEAD_LETTERS_DROP_OLDEST));
    assert_true(put(letters, 12) && put(letters, 13));
    tide_dead_letter_file_close(letters);
    tide_log_set_level(TIDE_LOG_INFO);
    expect_file("dead_letters.4.ndjson", "-");
    expect_file("dead_letters.5.ndjson", "-");
    expect_file("dead_letters.6.ndjson", "11 12 ");
    expect_file(FILE_NAME, "13 ");
}

static void put_longer_than_a_file_gets_one_of_its_own(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_with(small(1, 9, TIDE_DEAD_LETTERS_STOP));
    assert_true(put(letters, 1) && put(letters, 2));
    expect_file("dead_letters.1.ndjson", "1 ");
    expect_file(FILE_NAME, "2 ");
    tide_dead_letter_file_close(letters);
}

static void put_goes_on_where_a_file_was_taken_away(void **state)
{
    (void)state;
    struct tide_dead_letter_file *letters = open_letters();
    assert_true(put(letters, 1));
    assert_int_equal(rename(FILE_NAME, "mine"), 0);
    assert_true(put(letters, 2));
    kit_remove(FILE_NAME);
    assert_true(put(letters, 3));
    expect_file("mine", "1 ");
    expect_file(FILE_NAME, "3 ");
    assert_int_equal(rename("mine", FILE_NAME), 0);
    assert_true(put(letters, 4));
    expect_file(FILE_NAME, "1 4 ");
    tide_dead_letter_file_close(letters);
}

static void files_are_known_by_their_names(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        uint64_t number; /* 0: none */
    } cases[] = {
        {"dead_letters.1.ndjson", 1},
        {"dead_letters.18446744073709551615.ndjson", UINT64_MAX},
        {"dead_letters.18446744073709551616.ndjson", 0},
        {"dead_letters.0.ndjson", 0},
        {"dead_letters.01.ndjson", 0},
        {"dead_letters..ndjson", 0},
        {"dead_letters.ndjson", 0},
        {"dead_letters.x.ndjson", 0},
        {".dead_letters.1.ndjson", 0},
        {"dead_letters.1.ndjson.gz", 0},
        {"", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t number = 0;
        assert_int_equal(tide_dead_letters_number(tide_str_from(cases[i].name), &number),
                         cases[i].number > 0);
        assert_int_equal(number, cases[i].number);
        if (number > 0) {
            char name[TIDE_DEAD_LETTERS_NAME_MAX];
            tide_dead_letters_name(number, name);
            assert_string_equal(name, cases[i].name);
        }
    }
}

static tide_status append_line(void *context, const struct tide_dead_letters_line *line,
                               struct tide_error *err)
{
    (void)err;
    tide_buf_printf(context, "%llu@%llu:%.*s%s|", (unsigned long long)line->number,
                    (unsigned long long)line->start, TIDE_STR_ARG(line->text),
                    line->is_cut ? "+" : "");
    return TIDE_OK;
}

static void expect_lines(const char *bytes, size_t len, size_t line_max, const char *want,
                         uint64_t want_length)
{
    uint64_t length = 7;
    struct tide_error err;
    struct tide_buf is = {0};
    kit_put("lines", bytes, len);
    int fd = open("lines", O_RDONLY | O_CLOEXEC);
    assert_int_equal(
        tide_dead_letters_each_line(fd, "lines", len, line_max, append_line, &is, &length, &err),
        TIDE_OK);
    (void)close(fd);
    assert_string_equal(tide_buf_cstr(&is), want);
    assert_int_equal(length, want_length);
    tide_buf_done(&is);
}

static void each_line_gives_whole_lines_only(void **state)
{
    (void)state;
    expect_lines("", 0, 9, "", 0);
    expect_lines("a", 1, 9, "", 0);
    expect_lines("a\n", 2, 9, "1@0:a|", 2);
    expect_lines("\n\nabcdef\nx\ny", 12, 4, "1@0:|2@1:|3@2:abcd+|4@9:x|", 11);
    /* over several reads */
    size_t len = 200000;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, 'x', len);
    bytes[0] = '\n';
    bytes[150000] = '\n';
    bytes[150002] = '\n';
    expect_lines(bytes, len, 3, "1@0:|2@1:xxx+|3@150001:x|", 150003);
    free(bytes);
}

static struct tide_dead_letter_id id_of(uint64_t n)
{
    return (struct tide_dead_letter_id){.hi = n % 3, .lo = n};
}

static void ids_remember_at_least_the_newest(void **state)
{
    (void)state;
    struct tide_dead_letter_ids ids;
    tide_dead_letter_ids_init(&ids, 1000);
    for (uint64_t n = 0; n < 50000; n++) {
        assert_false(tide_dead_letter_ids_has(&ids, id_of(n)));
        tide_dead_letter_ids_add(&ids, id_of(n));
        tide_dead_letter_ids_add(&ids, id_of(n));
        uint64_t old = n < 999 ? 0 : n - 999;
        assert_true(tide_dead_letter_ids_has(&ids, id_of(n)));
        assert_true(tide_dead_letter_ids_has(&ids, id_of(old)));
        assert_true(ids.newer.count <= 1000 && ids.older.count <= 1000);
    }
    assert_false(tide_dead_letter_ids_has(&ids, id_of(40000)));
    tide_dead_letter_ids_done(&ids);
}

#define THREADS 4
#define LETTERS 50

static void *put_some(void *letters)
{
    for (uint64_t n = 1; n <= LETTERS; n++) { /* each of them by all threads */
        (void)put(letters, n);
    }
    return NULL;
}

static void put_by_several_threads_keeps_lines_whole(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct tide_dead_letter_file *letters = open_letters();
    for (int i = 0; i < THREADS; i++) {
        tide_thread_start(&threads[i], put_some, letters);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(tide_dead_letter_file_count(letters), LETTERS);
    tide_dead_letter_file_close(letters);
    struct tide_buf want = {0};
    for (int n = 1; n <= LETTERS; n++) {
        tide_buf_printf(&want, "%d ", n);
    }
    expect_file(FILE_NAME, tide_buf_cstr(&want));
    tide_buf_done(&want);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(put_makes_the_file_with_the_first_letter),
        TEST(put_again_keeps_it_once_also_after_opening),
        TEST(skip_tells_the_first_time),
        TEST(open_after_a_crash_cuts_the_torn_line),
        TEST(put_that_fails_leaves_no_half_line),
        TEST(open_what_is_no_file_fails),
        TEST(put_when_full_stops_until_somebody_makes_room),
        TEST(put_when_full_may_drop_the_oldest_and_counts_them),
        TEST(put_longer_than_a_file_gets_one_of_its_own),
        TEST(put_goes_on_where_a_file_was_taken_away),
        TEST(files_are_known_by_their_names),
        TEST(each_line_gives_whole_lines_only),
        TEST(ids_remember_at_least_the_newest),
        TEST(put_by_several_threads_keeps_lines_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
