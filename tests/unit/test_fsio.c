#include "cmocka_prelude.h"

#include "base/fsio.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof(root), "/tmp/tide_fsio_XXXXXX");
    return mkdtemp(root) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command);
}

static const char *in_root(const char *name)
{
    static char paths[4][256];
    static unsigned at;
    char *path = paths[at++ % 4];
    (void)snprintf(path, 256, "%s/%s", root, name);
    return path;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void replace_then_read_gives_the_bytes(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_buf buf = {0};
    static const char *const contents[] = {"", "one", "another, longer one", "x"};
    for (size_t i = 0; i < 4; i++) {
        tide_buf_reset(&buf);
        tide_buf_append(&buf, "kept", 4);
        assert_int_equal(tide_file_replace(root, "f", tide_str_from(contents[i]), &err), TIDE_OK);
        assert_int_equal(tide_file_read(in_root("f"), 1000, &buf, &err), TIDE_OK);
        assert_int_equal(buf.len, 4 + strlen(contents[i]));
        assert_string_equal(tide_buf_cstr(&buf) + 4, contents[i]);
    }
    assert_int_equal(mode_of(in_root("f")), 0600);
    assert_int_equal(access(in_root(".f.tmp"), F_OK), -1);
    tide_buf_done(&buf);
}

static void read_at_and_over_the_limit(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_buf big = {0};
    struct tide_buf buf = {0};
    for (size_t i = 0; i < 200000; i++) {
        tide_buf_append_char(&big, (char)('a' + i % 26));
    }
    assert_int_equal(tide_file_replace(root, "big", tide_buf_str(&big), &err), TIDE_OK);
    assert_int_equal(tide_file_read(in_root("big"), big.len, &buf, &err), TIDE_OK);
    assert_true(tide_str_equal(tide_buf_str(&buf), tide_buf_str(&big)));
    buf.len = 5;
    assert_int_equal(tide_file_read(in_root("big"), big.len - 1, &buf, &err), TIDE_CORRUPT);
    assert_int_equal(buf.len, 5);
    assert_non_null(strstr(err.message, "/big is larger than 199999 bytes"));
    assert_int_equal(tide_file_read(in_root("big"), 0, &buf, &err), TIDE_CORRUPT);
    tide_buf_done(&big);
    tide_buf_done(&buf);
}

static void read_missing_or_directory_is_io(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_buf buf = {0};
    assert_int_equal(tide_file_read(in_root("none"), 10, &buf, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "/none: No such file"));
    assert_int_equal(tide_file_read(root, 10, &buf, &err), TIDE_IO);
    assert_int_equal(buf.len, 0);
    tide_buf_done(&buf);
}

static void replace_failing_keeps_the_old_and_leaves_nothing(void **state)
{
    (void)state;
    struct tide_error err;
    assert_int_equal(tide_file_replace(in_root("none"), "f", TIDE_STR("x"), &err), TIDE_IO);
    assert_int_equal(tide_file_replace(root, "a/b", TIDE_STR("x"), &err), TIDE_INVALID);
    char name[300];
    memset(name, 'n', sizeof(name));
    name[252] = '\0';
    assert_int_equal(tide_file_replace(root, name, TIDE_STR("x"), &err), TIDE_INVALID);
    /* a directory of that name cannot be replaced by a file */
    assert_int_equal(mkdir(in_root("d"), 0700), 0);
    assert_int_equal(tide_file_replace(root, "d", TIDE_STR("x"), &err), TIDE_IO);
    assert_int_equal(access(in_root(".d.tmp"), F_OK), -1);
}

static void replace_through_a_link_left_as_temporary_is_refused(void **state)
{
    (void)state;
    struct tide_error err;
    assert_int_equal(symlink(in_root("victim"), in_root(".s.tmp")), 0);
    assert_int_equal(tide_file_replace(root, "s", TIDE_STR("x"), &err), TIDE_IO);
    assert_int_equal(access(in_root("victim"), F_OK), -1);
}

static void write_all_to_a_full_device_is_io(void **state)
{
    (void)state;
    struct tide_error err;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(tide_file_write_all(fd, "/dev/full", TIDE_STR("x"), &err), TIDE_IO);
    assert_string_equal(err.message, "cannot write /dev/full: No space left on device");
    assert_int_equal(tide_file_write_all(fd, "/dev/full", TIDE_STR(""), &err), TIDE_OK);
    (void)close(fd);
}

static void dir_make_nested_is_private_and_repeatable(void **state)
{
    (void)state;
    struct tide_error err;
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/a//b/c/", root);
    assert_int_equal(tide_dir_make(path, &err), TIDE_OK);
    assert_int_equal(tide_dir_make(path, &err), TIDE_OK);
    assert_int_equal(mode_of(in_root("a")), 0700);
    assert_int_equal(mode_of(in_root("a/b/c")), 0700);
    assert_int_equal(tide_dir_sync(path, &err), TIDE_OK);
    assert_int_equal(tide_dir_make("/", &err), TIDE_OK);
    assert_int_equal(tide_dir_make(".", &err), TIDE_OK);
    assert_int_equal(tide_dir_make("", &err), TIDE_INVALID);
}

static void dir_make_over_a_file_is_io(void **state)
{
    (void)state;
    struct tide_error err;
    assert_int_equal(tide_file_replace(root, "file", TIDE_STR(""), &err), TIDE_OK);
    assert_int_equal(tide_dir_make(in_root("file"), &err), TIDE_IO);
    assert_non_null(strstr(err.message, "is no directory"));
    assert_int_equal(tide_dir_make(in_root("file/below"), &err), TIDE_IO);
    assert_int_equal(tide_dir_sync(in_root("missing"), &err), TIDE_IO);
}

/* In a child, for the lock of one's own process says nothing about others. */
static int lock_in_child(char *message, size_t size)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        struct tide_error err = {0};
        int fd = -1;
        tide_status status = tide_dir_lock(root, &fd, &err);
        (void)!write(pipes[1], err.message, strlen(err.message));
        _exit((int)status);
    }
    (void)close(pipes[1]);
    ssize_t got = read(pipes[0], message, size - 1);
    message[got > 0 ? got : 0] = '\0';
    (void)close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void dir_lock_taken_is_refused_with_the_pid(void **state)
{
    (void)state;
    struct tide_error err;
    char message[512];
    char pid[64];
    int fd = -1;
    assert_int_equal(tide_dir_lock(root, &fd, &err), TIDE_OK);
    assert_int_equal(lock_in_child(message, sizeof(message)), TIDE_INVALID);
    (void)snprintf(pid, sizeof(pid), "is in use by process %ld:", (long)getpid());
    assert_non_null(strstr(message, pid));
    tide_fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(lock_in_child(message, sizeof(message)), TIDE_OK);
    assert_int_equal(tide_dir_lock(in_root("none"), &fd, &err), TIDE_IO);
    assert_int_equal(fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replace_then_read_gives_the_bytes),
        cmocka_unit_test(read_at_and_over_the_limit),
        cmocka_unit_test(read_missing_or_directory_is_io),
        cmocka_unit_test(replace_failing_keeps_the_old_and_leaves_nothing),
        cmocka_unit_test(replace_through_a_link_left_as_temporary_is_refused),
        cmocka_unit_test(write_all_to_a_full_device_is_io),
        cmocka_unit_test(dir_make_nested_is_private_and_repeatable),
        cmocka_unit_test(dir_make_over_a_file_is_io),
        cmocka_unit_test(dir_lock_taken_is_refused_with_the_pid),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
