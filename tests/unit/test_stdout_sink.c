#include "cmocka_prelude.h"

#include "sink/file/stdout_sink.h"
#include "sink_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct tide_sink_ops *const ops = &tide_stdout_sink_ops;

/* Puts `fd` in place of standard output; returns the old one for restore. */
static int take_stdout(int fd)
{
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0);
    assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    return kept;
}

static void restore_stdout(int kept)
{
    assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
    assert_int_equal(close(kept), 0);
}

static void flush_writes_the_frames_of_the_golden_file(void **state)
{
    (void)state;
    const struct tide_relation *t = kit_relation("t");
    int fd = open("caught", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    struct tide_sink_options options = kit_options("-");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("other"), 5, 1));
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = t,
                                         .snapshot = 1,
                                         .opening = TIDE_OPENING_BEGIN,
                                         .rows = 2,
                                         .note = "{\n \"a\":\r\n1}"}));
    kit_write(ops, sink, kit_changes(t, 9, 2));
    kit_write(ops, sink,
              kit_rows((struct kit_part){
                  .relation = t, .snapshot = 1, .first_seq = 2, .rows = 1, .is_end = true}));
    int kept = take_stdout(fd);
    kit_flush(ops, sink);
    restore_stdout(kept);
    kit_assert_golden("caught", "file_sink/one_file.ndjson");
    struct tide_sink_held held = {.is_known = true};
    ops->held(sink, &held);
    assert_false(held.is_known); /* who reads a pipe may forget */
    struct tide_sink_counts counts;
    ops->counts(sink, &counts);
    assert_int_equal(counts.rows, 3);
    assert_int_equal(counts.changes, 3);
    ops->close(sink);
    assert_int_equal(close(fd), 0);
}

static void flush_into_a_closed_pipe_says_so(void **state)
{
    (void)state;
    struct tide_error err = {0};
    int pipe_fds[2];
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    struct tide_sink_options options = kit_options("-");
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 1));
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(close(pipe_fds[0]), 0);
    int kept = take_stdout(pipe_fds[1]);
    tide_status status = ops->flush(sink, true, &err);
    restore_stdout(kept);
    (void)signal(SIGPIPE, old);
    assert_int_equal(status, TIDE_CLOSED);
    assert_false(err.retriable);
    assert_string_equal(err.message, "standard output was closed");
    ops->close(sink);
    assert_int_equal(close(pipe_fds[1]), 0);
}

struct reader {
    int fd;
    struct tide_buf got;
};

static void *read_slowly(void *arg)
{
    struct reader *reader = arg;
    char bytes[5000];
    ssize_t got;
    while ((got = read(reader->fd, bytes, sizeof(bytes))) > 0) {
        tide_buf_append(&reader->got, bytes, (size_t)got);
        if (reader->got.len < 100000) {
            (void)usleep(500);
        }
    }
    return NULL;
}

/* More than a pipe takes at once, into one that does not block. */
static void write_batch_into_a_slow_pipe_waits(void **state)
{
    (void)state;
    int pipe_fds[2];
    pthread_t thread;
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(fcntl(pipe_fds[0], F_SETFL, 0), 0);
    struct reader reader = {.fd = pipe_fds[0]};
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
    struct tide_sink_options options = kit_options("-");
    struct tide_sink *sink = kit_open(ops, &options);
    int kept = take_stdout(pipe_fds[1]);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 1, 5000));
    kit_flush(ops, sink);
    restore_stdout(kept);
    assert_int_equal(close(pipe_fds[1]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    struct tide_sink_counts counts;
    ops->counts(sink, &counts);
    assert_int_equal(counts.bytes, reader.got.len);
    assert_true(reader.got.len > 500000);
    assert_int_equal(reader.got.ptr[reader.got.len - 1], '\n');
    ops->close(sink);
    tide_buf_done(&reader.got);
    assert_int_equal(close(pipe_fds[0]), 0);
}

static void open_with_a_path_is_invalid(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = kit_options("out");
    assert_int_equal(ops->open(&options, &sink, &err), TIDE_INVALID);
    assert_string_equal(err.message, "- is standard output and takes no path; write - alone");
    ops->close(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(flush_writes_the_frames_of_the_golden_file),
        TEST(flush_into_a_closed_pipe_says_so),
        TEST(write_batch_into_a_slow_pipe_waits),
        TEST(open_with_a_path_is_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
