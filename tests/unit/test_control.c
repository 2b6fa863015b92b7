#include "cmocka_prelude.h"

#include "app/control/control_client.h"
#include "app/control/control_server.h"
#include "app/control/control_socket.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsio.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_US 300000
#define SOON_US     20000000 /* far beyond what anything here takes */
#define CROWD       1000
#define BIG_BYTES   ((size_t)4 << 20) /* more than a socket takes in at once */

/* A pipeline's main thread that answers every request with a text of the test. */
struct main_thread {
    char dir[64];
    struct tide_control_server *server;
    struct tide_waker waker;
    pthread_t thread;
    atomic_bool is_stopping;
    atomic_uint answered;
    struct tide_buf answer; /* not changed while requests come */
};

static void *run_main(void *arg)
{
    struct main_thread *self = arg;
    while (!atomic_load(&self->is_stopping)) {
        tide_str request;
        (void)tide_waker_wait(&self->waker, tide_clock_deadline_us(1000000));
        while (tide_control_server_take(self->server, &request)) {
            tide_control_server_answer(self->server, tide_buf_str(&self->answer));
            atomic_fetch_add(&self->answered, 1);
        }
    }
    return NULL;
}

static void begin_in(struct main_thread *self, const char *dir)
{
    struct tide_error err;
    tide_waker_init(&self->waker);
    tide_buf_append_str(&self->answer, TIDE_STR("{\"status\":\"ok\",\"sinks\":[\"all\"]}"));
    if (tide_control_server_start(dir, &self->waker, PATIENCE_US, &self->server, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    tide_thread_start(&self->thread, run_main, self);
}

static void begin(struct main_thread *self)
{
    *self = (struct main_thread){0};
    (void)snprintf(self->dir, sizeof(self->dir), "/tmp/test_control_XXXXXX");
    assert_non_null(mkdtemp(self->dir));
    begin_in(self, self->dir);
}

static void end(struct main_thread *self)
{
    atomic_store(&self->is_stopping, true);
    tide_waker_wake(&self->waker);
    assert_int_equal(pthread_join(self->thread, NULL), 0);
    tide_control_server_stop(self->server);
    tide_waker_done(&self->waker);
    tide_buf_done(&self->answer);
    if (self->dir[0] != '\0') {
        assert_int_equal(rmdir(self->dir), 0); /* the socket is gone */
    }
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *stream = opendir("/proc/self/fd");
    assert_non_null(stream);
    while (readdir(stream) != NULL) {
        count++;
    }
    (void)closedir(stream);
    return count;
}

static int connect_to(const char *dir)
{
    struct tide_error err;
    int fd = -1;
    if (tide_control_connect(dir, tide_clock_deadline_us(SOON_US), &fd, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes until the other end closes; NULL-terminated, in `ret_text`. */
static size_t read_all(int fd, char *ret_text, size_t cap)
{
    size_t len = 0;
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&one, 1, SOON_US / 1000), 1);
        ssize_t got = read(fd, ret_text + len, cap - 1 - len);
        if (got <= 0) {
            ret_text[len] = '\0';
            return len;
        }
        len += (size_t)got;
    }
}

static void expect_answer(int fd)
{
    char text[256];
    (void)read_all(fd, text, sizeof(text));
    assert_string_equal(text, "{\"status\":\"ok\",\"sinks\":[\"all\"]}\n");
    assert_int_equal(close(fd), 0);
}

static void expect_closed(int fd)
{
    char text[256];
    assert_int_equal(read_all(fd, text, sizeof(text)), 0);
    assert_int_equal(close(fd), 0);
}

static void expect_served(const char *dir)
{
    struct tide_arena arena = {0};
    struct tide_error err;
    struct tide_control_answer answer = {0};
    const struct tide_control_request request = {.command = TIDE_STR("status")};
    int64_t started_us = tide_clock_monotonic_us();
    if (tide_control_ask(dir, &request, tide_clock_deadline_us(SOON_US), &arena, &answer, &err) !=
        TIDE_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(answer.status, TIDE_OK);
    assert_int_equal(answer.sink_count, 1);
    assert_true(tide_clock_monotonic_us() - started_us < SOON_US / 2);
    tide_arena_done(&arena);
}

static void request_is_answered_on_a_private_socket(void **state)
{
    struct main_thread self;
    struct stat st;
    char path[128];
    (void)state;
    begin(&self);
    (void)snprintf(path, sizeof(path), "%s/control", self.dir);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    expect_served(self.dir);
    expect_served(self.dir);
    end(&self);
}

/* A killed process leaves its socket file; nobody listens there. */
static void socket_of_a_killed_process_is_replaced(void **state)
{
    struct main_thread self = {0};
    struct tide_error err;
    char dir[] = "/tmp/test_control_XXXXXX";
    int stale = -1;
    int fd = -1;
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tide_control_listen(dir, &stale, &err), TIDE_OK);
    assert_int_equal(close(stale), 0);
    assert_int_equal(tide_control_connect(dir, tide_clock_deadline_us(SOON_US), &fd, &err),
                     TIDE_CLOSED);
    begin_in(&self, dir);
    expect_served(dir);
    end(&self);
    assert_int_equal(tide_control_connect(dir, tide_clock_deadline_us(SOON_US), &fd, &err),
                     TIDE_CLOSED);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(tide_control_connect(dir, tide_clock_deadline_us(SOON_US), &fd, &err),
                     TIDE_CLOSED);
}

static void path_longer_than_an_address_works(void **state)
{
    struct main_thread self = {0};
    struct tide_error err;
    char top[] = "/tmp/test_control_XXXXXX";
    char command[64];
    struct tide_buf dir = {0};
    (void)state;
    assert_non_null(mkdtemp(top));
    tide_buf_append_str(&dir, tide_str_from(top));
    for (unsigned i = 0; i < 10; i++) {
        tide_buf_printf(&dir, "/a directory with a name of some length %u", i);
    }
    assert_true(dir.len > 400);
    assert_int_equal(tide_dir_make(tide_buf_cstr(&dir), &err), TIDE_OK);
    begin_in(&self, tide_buf_cstr(&dir));
    expect_served(tide_buf_cstr(&dir));
    end(&self);
    tide_buf_done(&dir);
    (void)snprintf(command, sizeof(command), "rm -r %s", top);
    assert_int_equal(system(command), 0);
}

static void line_in_pieces_is_answered(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    int fd = connect_to(self.dir);
    for (const char *c = "{\"command\":1}"; *c != '\0'; c++) {
        const char one[] = {*c, '\0'};
        say(fd, one);
        (void)sched_yield();
    }
    say(fd, "\nand more that nobody reads\n");
    expect_answer(fd);
    end(&self);
}

/* As `echo … | socat` does. */
static void client_that_has_closed_its_side_gets_its_answer(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    int fd = connect_to(self.dir);
    say(fd, "x\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect_answer(fd);
    end(&self);
}

static void half_lines_and_garbage_are_dropped(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    int fd = connect_to(self.dir);
    say(fd, "half a line");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    expect_closed(fd);
    fd = connect_to(self.dir);
    char *much = tide_alloc(1, 4 * TIDE_CONTROL_REQUEST_BYTES_MAX);
    memset(much, 0xff, 4 * TIDE_CONTROL_REQUEST_BYTES_MAX);
    (void)send(fd, much, 4 * TIDE_CONTROL_REQUEST_BYTES_MAX, MSG_NOSIGNAL | MSG_DONTWAIT);
    expect_closed(fd);
    free(much);
    assert_int_equal(atomic_load(&self.answered), 0);
    expect_served(self.dir);
    end(&self);
}

static void silent_client_is_dropped_in_time(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    int64_t started_us = tide_clock_monotonic_us();
    int silent = connect_to(self.dir);
    int half = connect_to(self.dir);
    say(half, "{");
    expect_closed(silent);
    expect_closed(half);
    assert_true(tide_clock_monotonic_us() - started_us >= PATIENCE_US);
    end(&self);
}

static void silent_clients_hold_up_nobody(void **state)
{
    struct main_thread self;
    int fds[100];
    (void)state;
    begin(&self);
    for (unsigned round = 0; round < 5; round++) {
        for (size_t i = 0; i < 100; i++) {
            fds[i] = connect_to(self.dir);
        }
        expect_served(self.dir);
        for (size_t i = 0; i < 100; i++) {
            assert_int_equal(close(fds[i]), 0);
        }
    }
    end(&self);
}

/* Its answer is larger than what the kernel keeps for it. */
static void client_that_does_not_read_holds_up_nobody(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    char *room = tide_buf_reserve(&self.answer, BIG_BYTES);
    memset(room, ' ', BIG_BYTES);
    self.answer.len += BIG_BYTES;
    int lazy = connect_to(self.dir);
    say(lazy, "x\n");
    while (atomic_load(&self.answered) == 0) {
        (void)sched_yield();
    }
    expect_served(self.dir);
    (void)usleep(2 * PATIENCE_US); /* it had its time */
    char *text = tide_alloc(1, BIG_BYTES);
    size_t got = read_all(lazy, text, BIG_BYTES);
    assert_true(got > 0 && got < BIG_BYTES / 2);
    free(text);
    assert_int_equal(close(lazy), 0);
    end(&self);
}

static void thousand_at_once_are_all_answered(void **state)
{
    struct main_thread self;
    struct rlimit limit;
    int *fds = tide_alloc(CROWD, sizeof(*fds));
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    size_t before = open_files();
    begin(&self);
    for (size_t i = 0; i < CROWD; i++) {
        fds[i] = connect_to(self.dir);
        say(fds[i], "x\n");
    }
    for (size_t i = 0; i < CROWD; i++) {
        expect_answer(fds[i]);
    }
    assert_int_equal(atomic_load(&self.answered), CROWD);
    end(&self);
    assert_int_equal(open_files(), before);
    free(fds);
}

static void clients_that_come_and_go_leave_nothing(void **state)
{
    struct main_thread self;
    (void)state;
    begin(&self);
    expect_served(self.dir);
    size_t before = open_files();
    for (unsigned i = 0; i < CROWD; i++) {
        int fd = connect_to(self.dir);
        if (i % 3 == 1) {
            say(fd, "x\n"); /* nobody is there for the answer */
        } else if (i % 3 == 2) {
            say(fd, "x");
        }
        assert_int_equal(close(fd), 0);
    }
    expect_served(self.dir);
    for (unsigned i = 0; open_files() > before && i < 2000; i++) {
        (void)usleep(1000);
    }
    assert_true(open_files() <= before);
    end(&self);
}

static void busy_main_thread_is_excused(void **state)
{
    struct main_thread self;
    char text[64];
    (void)state;
    begin(&self);
    tide_control_server_excuse(self.server, TIDE_STR("not now"));
    int fd = connect_to(self.dir);
    say(fd, "x\n");
    (void)read_all(fd, text, sizeof(text));
    assert_string_equal(text, "not now\n");
    assert_int_equal(close(fd), 0);
    tide_control_server_excuse(self.server, TIDE_STR(""));
    expect_served(self.dir);
    end(&self);
}

/* It was handed over, but the main thread had no time for it any more. */
static void request_that_was_not_taken_is_excused(void **state)
{
    struct main_thread self = {.dir = "/tmp/test_control_XXXXXX"};
    struct tide_error err;
    char text[64];
    (void)state;
    assert_non_null(mkdtemp(self.dir));
    tide_waker_init(&self.waker);
    assert_int_equal(
        tide_control_server_start(self.dir, &self.waker, PATIENCE_US, &self.server, &err), TIDE_OK);
    int fd = connect_to(self.dir);
    say(fd, "x\n");
    assert_true(tide_waker_wait(&self.waker, tide_clock_deadline_us(SOON_US)));
    tide_control_server_excuse(self.server, TIDE_STR("not now"));
    (void)read_all(fd, text, sizeof(text));
    assert_string_equal(text, "not now\n");
    assert_int_equal(close(fd), 0);
    fd = connect_to(self.dir); /* open when it stops */
    tide_control_server_stop(self.server);
    expect_closed(fd);
    tide_waker_done(&self.waker);
    assert_int_equal(rmdir(self.dir), 0);
}

static void answer_given_just_before_the_stop_arrives(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        struct main_thread self = {.dir = "/tmp/test_control_XXXXXX"};
        struct tide_error err;
        char text[64];
        tide_str request;
        assert_non_null(mkdtemp(self.dir));
        tide_waker_init(&self.waker);
        assert_int_equal(
            tide_control_server_start(self.dir, &self.waker, PATIENCE_US, &self.server, &err),
            TIDE_OK);
        int fd = connect_to(self.dir);
        say(fd, "a request\n");
        assert_true(tide_waker_wait(&self.waker, tide_clock_deadline_us(SOON_US)));
        assert_true(tide_control_server_take(self.server, &request));
        assert_true(tide_str_equal(request, TIDE_STR("a request")));
        assert_false(tide_control_server_take(self.server, &request));
        tide_control_server_answer(self.server, TIDE_STR("done"));
        tide_control_server_stop(self.server);
        (void)read_all(fd, text, sizeof(text));
        assert_string_equal(text, "done\n");
        assert_int_equal(close(fd), 0);
        tide_waker_done(&self.waker);
        assert_int_equal(rmdir(self.dir), 0);
    }
}

static void ask_of_a_pipeline_that_dies_says_so(void **state)
{
    struct tide_arena arena = {0};
    struct tide_error err;
    struct tide_control_answer answer = {0};
    char dir[] = "/tmp/test_control_XXXXXX";
    const struct tide_control_request request = {.command = TIDE_STR("status")};
    int listener = -1;
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tide_control_listen(dir, &listener, &err), TIDE_OK);
    assert_int_equal(
        tide_control_ask(dir, &request, tide_clock_deadline_us(50000), &arena, &answer, &err),
        TIDE_TIMEOUT); /* it listens, and does nothing */
    assert_int_equal(close(listener), 0);
    assert_int_equal(
        tide_control_ask(dir, &request, tide_clock_deadline_us(50000), &arena, &answer, &err),
        TIDE_CLOSED);
    tide_control_remove(dir);
    assert_int_equal(rmdir(dir), 0);
    tide_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_is_answered_on_a_private_socket),
        cmocka_unit_test(socket_of_a_killed_process_is_replaced),
        cmocka_unit_test(path_longer_than_an_address_works),
        cmocka_unit_test(line_in_pieces_is_answered),
        cmocka_unit_test(client_that_has_closed_its_side_gets_its_answer),
        cmocka_unit_test(half_lines_and_garbage_are_dropped),
        cmocka_unit_test(silent_client_is_dropped_in_time),
        cmocka_unit_test(silent_clients_hold_up_nobody),
        cmocka_unit_test(client_that_does_not_read_holds_up_nobody),
        cmocka_unit_test(thousand_at_once_are_all_answered),
        cmocka_unit_test(clients_that_come_and_go_leave_nothing),
        cmocka_unit_test(busy_main_thread_is_excused),
        cmocka_unit_test(request_that_was_not_taken_is_excused),
        cmocka_unit_test(answer_given_just_before_the_stop_arrives),
        cmocka_unit_test(ask_of_a_pipeline_that_dies_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
