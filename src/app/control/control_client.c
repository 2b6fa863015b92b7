#include "app/control/control_client.h"

#include "app/control/control_socket.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define READ_STEP ((size_t)65536)

/* The request is short against what a socket takes in at once: this does not block for long. */
static tide_status send_all(int fd, tide_str bytes, struct tide_error *err)
{
    while (bytes.len > 0) {
        ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return tide_fail(err, errno == EAGAIN ? TIDE_TIMEOUT : TIDE_IO,
                             "the pipeline did not take the request: %s", strerror(errno));
        }
        size_t passed = sent > 0 ? (size_t)sent : 0;
        bytes = tide_str_of(bytes.ptr + passed, bytes.len - passed);
    }
    return TIDE_OK;
}

static tide_status wait_readable(int fd, int64_t deadline_us, struct tide_error *err)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left_us = deadline_us - tide_clock_monotonic_us();
        if (left_us <= 0) {
            return tide_fail(
                err, TIDE_TIMEOUT,
                "the pipeline does not answer: its process is stopped, or has too much to do");
        }
        if (poll(&one, 1, (int)(left_us / 1000) + 1) > 0) {
            return TIDE_OK;
        }
    }
}

static tide_status receive_line(int fd, int64_t deadline_us, struct tide_buf *line,
                                struct tide_error *err)
{
    for (;;) {
        TIDE_TRY(wait_readable(fd, deadline_us, err));
        char *to = tide_buf_reserve(line, READ_STEP);
        ssize_t got = recv(fd, to, READ_STEP, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return tide_fail(err, TIDE_IO,
                             "the pipeline ended before it answered; see tidemark status");
        }
        line->len += (size_t)got;
        if (to[got - 1] == '\n') { /* nothing comes behind it */
            line->len--;
            return TIDE_OK;
        }
        if (line->len > TIDE_FRAME_BYTES_MAX) {
            return tide_fail(err, TIDE_CORRUPT, "the pipeline's answer is longer than %zu bytes",
                             TIDE_FRAME_BYTES_MAX);
        }
    }
}

tide_status tide_control_ask(const char *dir, const struct tide_control_request *request,
                             int64_t deadline_us, struct tide_arena *arena,
                             struct tide_control_answer *ret_answer, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf line = {0};
    tide_control_request_encode(request, &line);
    if (line.len > TIDE_CONTROL_REQUEST_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "the names are longer than %zu bytes; use * and ?",
                         TIDE_CONTROL_REQUEST_BYTES_MAX);
    }
    tide_buf_append_char(&line, '\n');
    TIDE_TRY(tide_control_connect(dir, deadline_us, &fd, err));
    TIDE_TRY(send_all(fd, tide_buf_str(&line), err));
    tide_buf_reset(&line);
    TIDE_TRY(receive_line(fd, deadline_us, &line, err));
    tide_str kept = tide_arena_str(arena, tide_buf_str(&line));
    if (tide_control_answer_decode(kept, arena, ret_answer, err) != TIDE_OK) {
        return tide_fail_context(err, "the pipeline's answer");
    }
    return TIDE_OK;
}
