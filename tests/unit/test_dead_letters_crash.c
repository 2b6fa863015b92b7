/*
 * Dead letters that die at every step. The program is linked with --wrap for the calls that change
 * files: a child process puts letters over several files and is killed before, or halfway through,
 * call number 1, 2, 3 … In half of the runs the power goes too (wrapped_io.h). Opened again, every
 * letter that was said to be held is there, none twice; and when all are delivered once more, each
 * is there once.
 */
#include "cmocka_prelude.h"

#include "base/log.h"
#include "engine/dead_letter_files.h"
#include "engine/dead_letters.h"
#include "format/json_reader.h"
#include "sink_kit.h"
#include "wrapped_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LETTERS     24
#define RECORD_SIZE 300

/* What the child tells before it dies. */
struct told {
    _Atomic unsigned acked; /* letters 1 to this are held */
};

static struct told *told;

static tide_status put_one(struct tide_dead_letter_file *letters, unsigned n,
                           struct tide_error *err)
{
    char record[RECORD_SIZE];
    bool is_new;
    struct tide_dead_letters target = tide_dead_letter_file_target(letters);
    memset(record, 'a' + n % 20, sizeof(record));
    record[snprintf(record, sizeof(record), "letter %u", n)] = ' ';
    struct tide_dead_letter letter = {
        .sink = TIDE_STR("all"),
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("-"),
        .reason = TIDE_STR("r"),
        .bytes = {record, sizeof(record)},
        .place = {.position = {.lo = n}, .known = true},
    };
    return target.put(target.context, &letter, &is_new, err);
}

static struct tide_dead_letter_file *open_letters(enum tide_dead_letters_full when_full)
{
    struct tide_error err;
    struct tide_dead_letter_file *letters = NULL;
    struct tide_dead_letter_limits limits = {
        .record_bytes = 1000,
        .file_bytes = 1500,
        .files = when_full == TIDE_DEAD_LETTERS_STOP ? 99 : 3,
        .when_full = when_full,
    };
    if (tide_dead_letter_file_open(".", &limits, &tide_position_integer, &letters, &err) !=
        TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return NULL;
    }
    return letters;
}

/* Letters from `first` on; -1 with a message when it fails. */
static int put_from(unsigned first, enum tide_dead_letters_full when_full)
{
    struct tide_error err;
    tide_status status = TIDE_OK;
    struct tide_dead_letter_file *letters = open_letters(when_full);
    for (unsigned n = first; letters != NULL && status == TIDE_OK && n <= LETTERS; n++) {
        status = put_one(letters, n, &err);
        if (status == TIDE_OK) {
            told->acked = n;
        } else {
            (void)fprintf(stderr, "letter %u: %s\n", n, err.message);
        }
    }
    tide_dead_letter_file_close(letters);
    return letters != NULL && status == TIDE_OK ? 0 : -1;
}

/* True when the child died at its call number `step`; false when it came to the end. */
static bool run_and_die(enum tide_dead_letters_full when_full, const struct wrapped_plan *plan)
{
    told->acked = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        wrapped_io_arm(plan);
        _exit(put_from(1, when_full) == 0 ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return false;
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return true;
}

static tide_status count_letter(void *context, const struct tide_dead_letters_line *line,
                                struct tide_error *err)
{
    unsigned *counts = context;
    const char *at = memmem(line->text.ptr, line->text.len, "\"letter ", 8);
    unsigned long n = at == NULL ? 0 : strtoul(at + 8, NULL, 10);
    assert_int_equal(tide_json_check(line->text, 8, err), TIDE_OK);
    assert_true(n >= 1 && n <= LETTERS);
    counts[n]++;
    return TIDE_OK;
}

static void count_in(const char *name, unsigned *counts)
{
    uint64_t length;
    struct tide_error err;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_int_equal(tide_dead_letters_each_line(fd, name, UINT64_MAX, 4096, count_letter,
                                                     counts, &length, &err),
                         TIDE_OK);
        assert_int_equal(length, lseek(fd, 0, SEEK_END));
        (void)close(fd);
    }
}

/* How often each letter is there. */
static size_t count_letters(unsigned counts[LETTERS + 1])
{
    struct tide_error err;
    uint64_t *numbers = NULL;
    size_t count = 0;
    memset(counts, 0, (LETTERS + 1) * sizeof(*counts));
    int dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tide_dead_letters_list(dir_fd, ".", &numbers, &count, &err), TIDE_OK);
    for (size_t i = 0; i < count; i++) {
        char name[TIDE_DEAD_LETTERS_NAME_MAX];
        tide_dead_letters_name(numbers[i], name);
        count_in(name, counts);
    }
    count_in(TIDE_DEAD_LETTERS_FILE, counts);
    free(numbers);
    (void)close(dir_fd);
    return count;
}

/* With dropping, old ones are missing: those that are there are the newest, in one piece. */
static void expect_letters(unsigned first, unsigned held)
{
    unsigned counts[LETTERS + 1];
    (void)count_letters(counts);
    for (unsigned n = 1; n <= LETTERS; n++) {
        if (counts[n] > 1 || (n >= first && n <= held && counts[n] != 1) ||
            (n > held + 1 && counts[n] != 0)) {
            fail_msg("letter %u of %u is there %u times", n, held, counts[n]);
        }
    }
}

static void remove_letters(void)
{
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (tide_dead_letters_is_name(tide_str_from(entry->d_name))) {
            kit_remove(entry->d_name);
        }
    }
    (void)closedir(dir);
}

/* Three files of at least two letters, of which the newest may have one alone. */
static unsigned first_kept(enum tide_dead_letters_full when_full, unsigned held)
{
    return when_full == TIDE_DEAD_LETTERS_STOP || held < 4 ? 1 : held - 3;
}

/* What was dropped does not come again: only the newest batches do. */
static unsigned first_again(enum tide_dead_letters_full when_full, unsigned held)
{
    return when_full == TIDE_DEAD_LETTERS_STOP || held < 3 ? 1 : held - 2;
}

/* Seed 0 kills only; the others cut the power. */
static void die_at_every_step(enum tide_dead_letters_full when_full, uint64_t seed)
{
    unsigned step = 1;
    for (;; step++) {
        struct wrapped_plan plan = {
            .die_at = step, .cuts_power = seed > 0, .seed = seed * 100003 + step};
        bool has_died = run_and_die(when_full, &plan);
        unsigned held = told->acked;
        assert_true(has_died || held == LETTERS);
        struct tide_dead_letter_file *letters = open_letters(when_full);
        assert_non_null(letters);
        expect_letters(first_kept(when_full, held), held);
        tide_dead_letter_file_close(letters);
        assert_int_equal(put_from(first_again(when_full, held), when_full), 0);
        expect_letters(first_kept(when_full, LETTERS), LETTERS);
        remove_letters();
        if (!has_died) {
            break;
        }
    }
    assert_true(step > LETTERS);
}

static void letters_that_die_at_every_step_are_there_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        die_at_every_step(TIDE_DEAD_LETTERS_STOP, seed);
    }
}

static void letters_that_die_while_old_ones_are_dropped_are_there_once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        die_at_every_step(TIDE_DEAD_LETTERS_DROP_OLDEST, seed);
    }
}

static int share_memory(void **state)
{
    (void)state;
    tide_log_set_level(TIDE_LOG_ERROR);
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told == MAP_FAILED ? -1 : 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(letters_that_die_at_every_step_are_there_once),
        TEST(letters_that_die_while_old_ones_are_dropped_are_there_once),
    };
    return cmocka_run_group_tests(tests, share_memory, NULL);
}
