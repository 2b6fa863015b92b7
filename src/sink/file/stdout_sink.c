#include "sink/file/stdout_sink.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "port/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)256 * 1024)

struct tide_sink {
    struct tide_frames frames;
    struct tide_buf buf;
};

/* Started without a standard output, a program has none, or one that takes nothing. */
static bool is_writable(void)
{
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static tide_status stdout_valid(tide_str place, struct tide_error *err)
{
    return place.len == 0 || tide_str_equal(place, TIDE_STR("-"))
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "- is standard output and takes no path; write - alone");
}

static tide_status stdout_open(const struct tide_sink_options *options, struct tide_sink **ret_sink,
                               struct tide_error *err)
{
    TIDE_TRY(stdout_valid(options->place, err));
    if (!is_writable()) {
        return tide_fail(err, TIDE_CLOSED, "standard output was closed");
    }
    struct tide_sink *sink = tide_alloc(1, sizeof(*sink));
    tide_frames_init(&sink->frames, options, TIDE_STR("-"));
    *ret_sink = sink;
    return TIDE_OK;
}

static void stdout_close(struct tide_sink *sink)
{
    if (sink != NULL) {
        tide_frames_done(&sink->frames);
        tide_buf_done(&sink->buf);
        free(sink);
    }
}

static void stdout_held(struct tide_sink *sink, struct tide_sink_held *ret_held)
{
    (void)sink;
    *ret_held = (struct tide_sink_held){0};
}

static tide_status fail_write(struct tide_error *err)
{
    if (errno == EPIPE) {
        return tide_fail(err, TIDE_CLOSED, "standard output was closed");
    }
    return tide_fail_retriable(err, TIDE_IO, "cannot write to standard output: %s",
                               strerror(errno));
}

/* Writes the buffer whole; whoever gave us the descriptor may have made it non-blocking. */
static tide_status write_out(struct tide_sink *sink, struct tide_error *err)
{
    size_t done = 0;
    while (done < sink->buf.len) {
        ssize_t put = write(STDOUT_FILENO, sink->buf.ptr + done, sink->buf.len - done);
        if (put >= 0) {
            done += (size_t)put;
        } else if (errno == EAGAIN) {
            struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return fail_write(err);
        }
    }
    tide_buf_reset(&sink->buf);
    return TIDE_OK;
}

static tide_status stdout_write_batch(struct tide_sink *sink, const struct tide_batch *batch,
                                      size_t first_change, struct tide_error *err)
{
    tide_frames_start(&sink->frames, batch, first_change);
    while (tide_frames_peek(&sink->frames) != NULL) {
        TIDE_TRY(tide_frames_append(&sink->frames, &sink->buf, err));
        if (sink->buf.len >= BUFFER_BYTES) {
            TIDE_TRY(write_out(sink, err));
        }
    }
    return TIDE_OK;
}

static tide_status stdout_flush(struct tide_sink *sink, bool is_caught_up, struct tide_error *err)
{
    (void)is_caught_up;
    return write_out(sink, err);
}

static void stdout_counts(const struct tide_sink *sink, struct tide_sink_counts *ret_counts)
{
    tide_frames_counts(&sink->frames, ret_counts);
}

const struct tide_sink_ops tide_stdout_sink_ops = {
    .scheme = "-",
    .valid = stdout_valid,
    .open = stdout_open,
    .close = stdout_close,
    .held = stdout_held,
    .write_batch = stdout_write_batch,
    .flush = stdout_flush,
    .counts = stdout_counts,
};
