#include "cmocka_prelude.h"

#include "base/clock.h"
#include "base/fsio.h"
#include "engine/state.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS                                                                                       \
    "{\"reconciliation_pos\":%u,\"tables\":[],\"tidemark\":{\"version\":1,\"sequence\":%u,"        \
    "\"pipeline\":\"p\",\"source\":\"s\",\"source_state\":null,\"incarnation\":0,"                 \
    "\"creating\":false,\"closed\":false,\"stores\":[],\"sinks\":[],\"copies\":[],"                \
    "\"requests\":[]}}"

/* A directory of its own for each test, and what is needed to look into it. */
struct fixture {
    char dir[64];
    struct tide_state *state;
    struct tide_arena arena;
    struct tide_buf warnings;
    struct tide_error err;
    tide_str json;
    enum tide_checkpoint_phase phase;
    bool found;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/tide_state_XXXXXX");
    return mkdtemp(f->dir) == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    tide_state_close(f->state);
    tide_arena_done(&f->arena);
    tide_buf_done(&f->warnings);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void reopen(struct fixture *f)
{
    tide_state_close(f->state);
    f->state = NULL;
    assert_int_equal(tide_state_open(f->dir, &f->state, &f->err), TIDE_OK);
}

static void save(struct fixture *f, unsigned sequence)
{
    char json[512];
    (void)snprintf(json, sizeof(json), OURS, sequence * 10, sequence);
    if (tide_state_save(f->state, tide_str_from(json), TIDE_PHASE_SNAPSHOT_PROGRESS, &f->err) !=
        TIDE_OK) {
        fail_msg("%s", f->err.message);
    }
}

static tide_status load(struct fixture *f)
{
    tide_buf_reset(&f->warnings);
    return tide_state_load(f->state, &f->arena, &f->found, &f->json, &f->phase, &f->warnings,
                           &f->err);
}

/* Loads and checks which sequence was found. */
static void assert_loads(struct fixture *f, unsigned sequence)
{
    char want[512];
    (void)snprintf(want, sizeof(want), OURS, sequence * 10, sequence);
    if (load(f) != TIDE_OK) {
        fail_msg("%s", f->err.message);
    }
    assert_true(f->found);
    assert_true(tide_str_equal(f->json, tide_str_from(want)));
    assert_int_equal(f->phase, TIDE_PHASE_SNAPSHOT_PROGRESS);
}

static int is_checkpoint(const struct dirent *entry)
{
    return strncmp(entry->d_name, "checkpoint_", 11) == 0;
}

/* The checkpoints' names in their order, which is that of time under one phase. */
static int names(const struct fixture *f, char ret_names[8][256])
{
    struct dirent **entries = NULL;
    int count = scandir(f->dir, &entries, is_checkpoint, alphasort);
    assert_in_range(count, 0, 8);
    for (int i = 0; i < count; i++) {
        (void)snprintf(ret_names[i], 256, "%s", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return count;
}

static void put(const struct fixture *f, const char *name, tide_str bytes)
{
    struct tide_error err;
    assert_int_equal(tide_file_replace(f->dir, name, bytes, &err), TIDE_OK);
}

static void put_checkpoint(const struct fixture *f, const char *name, const char *json,
                           int64_t created_us)
{
    struct tide_buf buf = {0};
    tide_checkpoint_file_encode(tide_str_from(json), TIDE_PHASE_SNAPSHOT_PROGRESS, created_us,
                                &buf);
    put(f, name, tide_buf_str(&buf));
    tide_buf_done(&buf);
}

/* Cuts the file to half its length, as a file system may after a power cut. */
static void tear(const struct fixture *f, const char *name)
{
    char path[512];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void load_empty_directory_finds_nothing(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    f->found = true;
    assert_int_equal(load(f), TIDE_OK);
    assert_false(f->found);
    assert_string_equal(tide_state_dir(f->state), f->dir);
}

static void save_keeps_the_newest_two(void **state)
{
    struct fixture *f = *state;
    char before[8][256];
    char after[8][256];
    struct stat st;
    char path[512];
    reopen(f);
    save(f, 1);
    assert_int_equal(names(f, before), 1);
    for (unsigned sequence = 2; sequence < 10; sequence++) {
        save(f, sequence);
        assert_int_equal(names(f, after), 2);
        assert_string_equal(after[0], before[sequence == 2 ? 0 : 1]);
        memcpy(before, after, sizeof(before));
    }
    assert_loads(f, 9);
    reopen(f);
    assert_loads(f, 9);
    assert_int_equal(f->warnings.len, 0);
    save(f, 10);
    assert_int_equal(names(f, after), 2);
    assert_string_equal(after[0], before[1]);
    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, after[1]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(strncmp(after[1], "checkpoint_snapshot_progress_20", 31), 0);
    assert_non_null(strstr(after[1], "+00:00.json"));
}

static void save_without_load_removes_older_ones_too(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    reopen(f);
    save(f, 1);
    save(f, 2);
    reopen(f);
    save(f, 3);
    assert_int_equal(names(f, found), 2);
    assert_loads(f, 3);
}

static void load_torn_newest_takes_the_one_before(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    reopen(f);
    save(f, 1);
    save(f, 2);
    assert_int_equal(names(f, found), 2);
    tear(f, found[1]);
    reopen(f);
    assert_loads(f, 1);
    assert_non_null(strstr(tide_buf_cstr(&f->warnings), found[1]));
    assert_null(strstr(tide_buf_cstr(&f->warnings), found[0]));
    /* the good one stays as the one before, the torn one goes */
    char now[8][256];
    save(f, 3);
    assert_int_equal(names(f, now), 2);
    assert_string_equal(now[0], found[0]);
    assert_loads(f, 3);
    assert_int_equal(f->warnings.len, 0);
}

static void load_torn_in_every_way_takes_the_one_before(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    struct tide_buf whole = {0};
    char path[512];
    reopen(f);
    save(f, 1);
    save(f, 2);
    assert_int_equal(names(f, found), 2);
    (void)snprintf(path, sizeof(path), "%s/%s", f->dir, found[1]);
    assert_int_equal(tide_file_read(path, 10000, &whole, &f->err), TIDE_OK);
    for (size_t len = 0; len < whole.len; len++) {
        put(f, found[1], tide_str_of(whole.ptr, len));
        assert_loads(f, 1);
        assert_true(f->warnings.len > 0);
    }
    put(f, found[1], tide_buf_str(&whole));
    assert_loads(f, 2);
    /* whole as a file, but what is inside is no checkpoint */
    put_checkpoint(f, found[1], "{\"tables\":[]}", 5);
    assert_loads(f, 1);
    tide_buf_done(&whole);
}

static void load_all_torn_is_corrupt_and_names_them(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    reopen(f);
    save(f, 1);
    save(f, 2);
    assert_int_equal(names(f, found), 2);
    tear(f, found[0]);
    tear(f, found[1]);
    reopen(f);
    f->found = false;
    assert_int_equal(load(f), TIDE_CORRUPT);
    assert_false(f->found);
    assert_non_null(strstr(f->err.message, found[0]));
    assert_non_null(strstr(f->err.message, found[1]));
}

static void load_newer_version_is_unsupported(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    save(f, 1);
    char json[512];
    (void)snprintf(json, sizeof(json), OURS, 20, 2);
    strstr(json, "version\":1")[9] = '2';
    put_checkpoint(f, "checkpoint_full_sync_end_2024-01-01T00:00:00+00:00.json", json, 0);
    assert_int_equal(load(f), TIDE_UNSUPPORTED);
    assert_non_null(strstr(f->err.message, "full_sync_end"));
}

static void load_goes_by_the_sequence_not_by_the_clock(void **state)
{
    struct fixture *f = *state;
    char json[512];
    (void)snprintf(json, sizeof(json), OURS, 50, 5);
    put_checkpoint(f, "checkpoint_snapshot_progress_2020-01-01T00:00:00+00:00.json", json, 1000);
    (void)snprintf(json, sizeof(json), OURS, 40, 4);
    put_checkpoint(f, "checkpoint_snapshot_progress_2021-01-01T00:00:00+00:00.json", json, 2000);
    /* another program's, later than both */
    put_checkpoint(f, "checkpoint_snapshot_progress_2022-01-01T00:00:00+00:00.json",
                   "{\"reconciliation_pos\":1,\"tables\":[]}", 3000);
    reopen(f);
    assert_loads(f, 5);
}

static void load_of_another_program_goes_by_time(void **state)
{
    struct fixture *f = *state;
    put_checkpoint(f, "checkpoint_b.json", "{\"reconciliation_pos\":1,\"tables\":[]}", 3000);
    put_checkpoint(f, "checkpoint_a.json", "{\"stream_pos\":2,\"tables\":[]}", 4000);
    put_checkpoint(f, "checkpoint_c.json", "{\"reconciliation_pos\":3,\"tables\":[]}", 2000);
    reopen(f);
    assert_int_equal(load(f), TIDE_OK);
    assert_true(tide_str_equal(f->json, TIDE_STR("{\"stream_pos\":2,\"tables\":[]}")));
    save(f, 1);
    assert_loads(f, 1);
    char found[8][256];
    assert_int_equal(names(f, found), 2);
    assert_string_equal(found[0], "checkpoint_a.json");
}

static void save_with_the_clock_set_back_is_later_still(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    char json[512];
    int64_t future_us = tide_clock_utc_us() + INT64_C(86400) * 1000000 * 365;
    (void)snprintf(json, sizeof(json), OURS, 10, 1);
    put_checkpoint(f, "checkpoint_snapshot_progress_2020-01-01T00:00:00+00:00.json", json,
                   future_us);
    reopen(f);
    assert_loads(f, 1);
    for (unsigned sequence = 2; sequence < 5; sequence++) {
        char want[64];
        save(f, sequence);
        tide_rfc3339_us(future_us + sequence - 1, "+00:00", want);
        assert_int_equal(names(f, found), 2);
        assert_non_null(strstr(found[1], want));
    }
    assert_loads(f, 4);
}

static void save_past_a_torn_file_from_the_future_is_later(void **state)
{
    struct fixture *f = *state;
    struct tide_state_checkpoint seen = {0};
    put(f, "checkpoint_snapshot_progress_2100-01-01T00:00:00+00:00.json", TIDE_STR("{"));
    reopen(f);
    assert_int_equal(load(f), TIDE_CORRUPT);
    save(f, 1);
    assert_int_equal(tide_state_peek(f->dir, &f->arena, &f->found, &seen, &f->warnings, &f->err),
                     TIDE_OK);
    assert_int_equal(seen.created_us, INT64_C(4102444800000001));
}

static void save_two_at_once_have_two_times(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    reopen(f);
    for (unsigned sequence = 1; sequence < 100; sequence++) {
        save(f, sequence);
        assert_int_equal(names(f, found), sequence == 1 ? 1 : 2);
    }
    assert_loads(f, 99);
}

static void open_second_time_is_refused_with_the_pid(void **state)
{
    struct fixture *f = *state;
    struct tide_state *second = NULL;
    char want[64];
    reopen(f);
    /* another open file of this process is locked out just as another process is */
    assert_int_equal(tide_state_open(f->dir, &second, &f->err), TIDE_INVALID);
    assert_null(second);
    (void)snprintf(want, sizeof(want), "process %ld", (long)getpid());
    assert_non_null(strstr(f->err.message, want));
    assert_non_null(strstr(f->err.message, f->dir));
    save(f, 1); /* the first goes on */
}

/* As a command does that changes the state of a pipeline that starts just then. */
static void open_waits_for_a_lock_held_for_a_moment(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    char byte = 0;
    tide_state_close(f->state);
    f->state = NULL;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct tide_error err;
        struct tide_state *held = NULL;
        tide_status status = tide_state_open(f->dir, &held, &err);
        (void)!write(ready[1], "x", 1);
        (void)usleep(200000);
        _exit((int)status);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(tide_state_open(f->dir, &f->state, &f->err), TIDE_OK);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void open_removes_what_an_interrupted_process_left(void **state)
{
    struct fixture *f = *state;
    char path[256];
    put(f, ".checkpoint_full_sync_start_x.json.tmp", TIDE_STR("{"));
    put(f, ".checkpoint_full_sync_start_x.json", TIDE_STR("{")); /* none of ours */
    put(f, "notes.tmp", TIDE_STR("{"));
    reopen(f);
    (void)snprintf(path, sizeof(path), "%s/.checkpoint_full_sync_start_x.json.tmp", f->dir);
    assert_int_equal(access(path, F_OK), -1);
    (void)snprintf(path, sizeof(path), "%s/.checkpoint_full_sync_start_x.json", f->dir);
    assert_int_equal(access(path, F_OK), 0);
    (void)snprintf(path, sizeof(path), "%s/notes.tmp", f->dir);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(load(f), TIDE_OK);
    assert_false(f->found);
}

static void open_makes_a_private_directory(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char nested[128];
    (void)snprintf(nested, sizeof(nested), "%s/a/b", f->dir);
    assert_int_equal(tide_state_open(nested, &f->state, &f->err), TIDE_OK);
    assert_int_equal(stat(nested, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void open_in_a_directory_not_writable_is_io(void **state)
{
    struct fixture *f = *state;
    if (geteuid() == 0) {
        skip();
    }
    assert_int_equal(chmod(f->dir, 0500), 0);
    assert_int_equal(tide_state_open(f->dir, &f->state, &f->err), TIDE_IO);
    assert_null(f->state);
    assert_int_equal(chmod(f->dir, 0700), 0);
}

static void save_into_a_removed_directory_is_io(void **state)
{
    struct fixture *f = *state;
    char command[128];
    char json[512];
    reopen(f);
    save(f, 1);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    (void)snprintf(json, sizeof(json), OURS, 20, 2);
    assert_int_equal(
        tide_state_save(f->state, tide_str_from(json), TIDE_PHASE_SNAPSHOT_PROGRESS, &f->err),
        TIDE_IO);
}

static void drop_older_leaves_only_the_newest(void **state)
{
    struct fixture *f = *state;
    char found[8][256];
    reopen(f);
    save(f, 8);
    save(f, 9);
    /* as an import does: lower than what is there */
    save(f, 1);
    assert_int_equal(tide_state_drop_older(f->state, &f->err), TIDE_OK);
    assert_int_equal(names(f, found), 1);
    assert_loads(f, 1);
    assert_int_equal(tide_state_drop_older(f->state, &f->err), TIDE_OK);
    assert_int_equal(names(f, found), 1);
}

static void peek_sees_the_newest_without_the_lock(void **state)
{
    struct fixture *f = *state;
    struct tide_state_checkpoint seen = {0};
    char found[8][256];
    assert_int_equal(tide_state_peek(f->dir, &f->arena, &f->found, &seen, &f->warnings, &f->err),
                     TIDE_OK);
    assert_false(f->found);
    reopen(f);
    save(f, 1);
    save(f, 2);
    assert_int_equal(tide_state_peek(f->dir, &f->arena, &f->found, &seen, &f->warnings, &f->err),
                     TIDE_OK);
    assert_true(f->found && seen.has_sequence);
    assert_int_equal(seen.sequence, 2);
    assert_int_equal(names(f, found), 2);
    assert_true(tide_str_equal(seen.file, tide_str_from(found[1])));
    assert_int_equal(seen.phase, TIDE_PHASE_SNAPSHOT_PROGRESS);
    assert_int_equal(
        tide_state_peek("/nonexistent", &f->arena, &f->found, &seen, &f->warnings, &f->err),
        TIDE_IO);
}

/* A reader beside a writer at full speed always finds a whole checkpoint. */
static void peek_beside_a_writer_always_finds_one(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    save(f, 1);
    pid_t child = fork();
    if (child == 0) {
        int bad = 0;
        for (unsigned i = 0; i < 300; i++) {
            struct tide_state_checkpoint seen = {0};
            struct tide_arena arena = {0};
            struct tide_buf warnings = {0};
            struct tide_error err;
            bool found = false;
            bad += tide_state_peek(f->dir, &arena, &found, &seen, &warnings, &err) != TIDE_OK ||
                   !found || warnings.len > 0;
            tide_arena_done(&arena);
            tide_buf_done(&warnings);
        }
        _exit(bad != 0);
    }
    int status = -1;
    for (unsigned sequence = 2; waitpid(child, &status, WNOHANG) == 0; sequence++) {
        save(f, sequence);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(load_empty_directory_finds_nothing),
        TEST(save_keeps_the_newest_two),
        TEST(save_without_load_removes_older_ones_too),
        TEST(load_torn_newest_takes_the_one_before),
        TEST(load_torn_in_every_way_takes_the_one_before),
        TEST(load_all_torn_is_corrupt_and_names_them),
        TEST(load_newer_version_is_unsupported),
        TEST(load_goes_by_the_sequence_not_by_the_clock),
        TEST(load_of_another_program_goes_by_time),
        TEST(save_with_the_clock_set_back_is_later_still),
        TEST(save_past_a_torn_file_from_the_future_is_later),
        TEST(save_two_at_once_have_two_times),
        TEST(open_second_time_is_refused_with_the_pid),
        TEST(open_waits_for_a_lock_held_for_a_moment),
        TEST(open_removes_what_an_interrupted_process_left),
        TEST(open_makes_a_private_directory),
        TEST(open_in_a_directory_not_writable_is_io),
        TEST(save_into_a_removed_directory_is_io),
        TEST(drop_older_leaves_only_the_newest),
        TEST(peek_sees_the_newest_without_the_lock),
        TEST(peek_beside_a_writer_always_finds_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
