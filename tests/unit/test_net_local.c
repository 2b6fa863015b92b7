#include "cmocka_prelude.h"

#include "base/clock.h"
#include "base/fsio.h"
#include "net/local.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOON_US 20000000

static char folder[64];
static char path[128];

static int make_folder(void **state)
{
    (void)state;
    (void)strcpy(folder, "/tmp/tidemark-local-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/a.sock", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static void open_at(const char *at, struct tide_local *local)
{
    struct tide_error err;
    if (tide_local_open(at, local, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

static void reach_it(const char *at)
{
    struct tide_error err;
    int fd = -1;
    if (tide_local_reach(at, tide_clock_deadline_us(SOON_US), &fd, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    tide_fd_close(&fd);
}

static void refused(const char *says)
{
    struct tide_local local = {.fd = -1};
    struct tide_error err;
    assert_int_equal(tide_local_open(path, &local, &err), TIDE_INVALID);
    assert_non_null(strstr(err.message, says));
    assert_int_equal(local.fd, -1);
}

static void open_is_the_users_alone_and_goes_when_closed(void **state)
{
    (void)state;
    struct tide_local local;
    struct stat info;
    open_at(path, &local);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode, S_IFSOCK | 0600);
    reach_it(path);
    tide_local_close(&local);
    assert_int_not_equal(stat(path, &info), 0);
    tide_local_close(&local); /* once more is fine */
}

static void open_replaces_what_a_kill_has_left(void **state)
{
    (void)state;
    struct tide_local left;
    struct tide_local local;
    open_at(path, &left);
    (void)close(left.fd); /* as the kernel does */
    open_at(path, &local);
    reach_it(path);
    left.fd = open("/dev/null", O_RDONLY);
    tide_local_close(&left); /* the socket there is another's now: it stays */
    reach_it(path);
    tide_local_close(&local);
}

static void open_where_somebody_listens_is_refused(void **state)
{
    (void)state;
    struct tide_local local;
    open_at(path, &local);
    refused("another program listens");
    reach_it(path);
    tide_local_close(&local);
}

static void open_over_a_file_is_refused_and_the_file_kept(void **state)
{
    (void)state;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    struct stat info;
    assert_int_equal(write(fd, "x", 1), 1);
    tide_fd_close(&fd);
    refused("is no socket");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    refused("is no socket");
}

static void open_in_a_folder_that_others_write_to_is_refused(void **state)
{
    (void)state;
    struct tide_local local;
    assert_int_equal(chmod(folder, 0770), 0);
    refused("not the user's alone");
    assert_int_equal(chmod(folder, 0777), 0);
    refused("chmod go-w");
    assert_int_equal(chmod(folder, 01777), 0); /* as /tmp: nobody removes another's */
    open_at(path, &local);
    tide_local_close(&local);
}

static void open_in_no_folder_is_an_error(void **state)
{
    (void)state;
    struct tide_local local = {.fd = -1};
    struct tide_error err;
    (void)snprintf(path, sizeof(path), "%s/none/a.sock", folder);
    assert_int_equal(tide_local_open(path, &local, &err), TIDE_IO);
    assert_non_null(strstr(err.message, "none"));
    int fd = -1;
    assert_int_equal(tide_local_reach(path, tide_clock_deadline_us(SOON_US), &fd, &err),
                     TIDE_CLOSED);
}

static void open_long_paths_work(void **state)
{
    (void)state;
    char deep[400];
    char at[420];
    struct tide_local local;
    (void)snprintf(deep, sizeof(deep), "%s/%0150d", folder, 0);
    (void)snprintf(at, sizeof(at), "%s/a.sock", deep);
    assert_int_equal(mkdir(deep, 0700), 0);
    open_at(at, &local);
    reach_it(at);
    tide_local_close(&local);
    assert_int_equal(rmdir(deep), 0);
}

static void open_without_a_folder_is_here(void **state)
{
    (void)state;
    struct tide_local local;
    char before[512];
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(folder), 0);
    open_at("a.sock", &local);
    reach_it(path);
    tide_local_close(&local);
    assert_int_equal(chdir(before), 0);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(open_is_the_users_alone_and_goes_when_closed),
        IN_FOLDER(open_replaces_what_a_kill_has_left),
        IN_FOLDER(open_where_somebody_listens_is_refused),
        IN_FOLDER(open_over_a_file_is_refused_and_the_file_kept),
        IN_FOLDER(open_in_a_folder_that_others_write_to_is_refused),
        IN_FOLDER(open_in_no_folder_is_an_error),
        IN_FOLDER(open_long_paths_work),
        IN_FOLDER(open_without_a_folder_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
