#include "net/follow.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/wire/opening.h"
#include "net/link.h"
#include "net/local.h"
#include "net/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define READS_A_TURN 8      /* before it is looked whether to stop */
#define REST_US      500000 /* from one rest to the next, until it has caught up */
#define BUSY_US      1000   /* from one look at what was put off to the next */

struct following {
    const struct tide_follow_options *options;
    const struct tide_follower_ops *ops;
    void *context;
    int stop_fd;
    struct tide_link link;
    bool is_pipe;
    bool has_begun;       /* the first bytes of the stream have come */
    struct tide_buf head; /* of them, until they are known to be no refusal */
    int64_t rest_at_us;
    uint64_t connections;
};

static void say(const struct following *self, bool is_problem, const char *line)
{
    self->options->say(self->options->say_context, is_problem, line);
}

static tide_status fail_stopped(struct tide_error *err)
{
    return tide_fail(err, TIDE_CANCELLED, "stopped before all had come");
}

/* Waits for `fd`, where there is one. */
static tide_status wait_until(const struct following *self, int fd, short events,
                              int64_t deadline_us, bool *ret_is_ready, struct tide_error *err)
{
    struct pollfd fds[] = {{.fd = self->stop_fd, .events = POLLIN}, {.fd = fd, .events = events}};
    for (;;) {
        int ready = poll(fds, 2, tide_clock_timeout_ms(deadline_us));
        if (ready > 0 && fds[0].revents != 0) {
            return fail_stopped(err);
        }
        *ret_is_ready = ready > 0 && fds[1].revents != 0;
        if (*ret_is_ready || tide_clock_monotonic_us() >= deadline_us) {
            return TIDE_OK;
        }
    }
}

static tide_status wait_for(const struct following *self, int fd, short events, int64_t deadline_us,
                            struct tide_error *err)
{
    bool is_ready = false;
    TIDE_TRY(wait_until(self, fd, events, deadline_us, &is_ready, err));
    return is_ready
               ? TIDE_OK
               : tide_fail_retriable(err, TIDE_TIMEOUT, "nothing has come for %.1f s (--timeout)",
                                     (double)self->options->patience_us / 1e6);
}

static int64_t deadline(const struct following *self)
{
    return self->is_pipe ? TIDE_NO_DEADLINE : tide_clock_deadline_us(self->options->patience_us);
}

/* The beginning of a connection. */

static tide_status reach(struct following *self, struct tide_error *err)
{
    const struct tide_address *address = &self->options->address;
    int fd = -1;
    if (address->kind == TIDE_ADDRESS_STANDARD) {
        self->link = tide_link_of_input();
        return TIDE_OK;
    }
    if (address->kind == TIDE_ADDRESS_UNIX) {
        tide_status status = tide_local_reach(address->path, deadline(self), &fd, err);
        if (status != TIDE_OK) {
            err->retriable = status != TIDE_INVALID;
            return status;
        }
        (void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    } else {
        TIDE_TRY(tide_tcp_connect(address, self->options->patience_us, self->stop_fd, &fd, err));
    }
    self->link = tide_link_of_socket(fd);
    if (address->kind == TIDE_ADDRESS_TLS) {
        return tide_tls_open(self->options->tls, fd, address->host, &self->link.tls, err);
    }
    return TIDE_OK;
}

static tide_status shake_hands(struct following *self, struct tide_error *err)
{
    int64_t deadline_us = deadline(self);
    for (;;) {
        bool is_done = false;
        TIDE_TRY(tide_link_handshake(&self->link, &is_done, err));
        if (is_done) {
            return TIDE_OK;
        }
        TIDE_TRY(wait_for(self, self->link.fd, self->link.wants, deadline_us, err));
    }
}

static tide_status send_all(struct following *self, tide_str bytes, struct tide_error *err)
{
    int64_t deadline_us = deadline(self);
    while (bytes.len > 0) {
        size_t put = 0;
        TIDE_TRY(tide_link_write(&self->link, bytes.ptr, bytes.len, &put, err));
        bytes = tide_str_of(bytes.ptr + put, bytes.len - put);
        if (put == 0) {
            TIDE_TRY(wait_for(self, self->link.fd, self->link.wants, deadline_us, err));
        }
    }
    return TIDE_OK;
}

/* Secrets do not stay in memory that is given back. */
static void wipe(struct tide_buf *buf)
{
    if (buf->ptr != NULL) {
        explicit_bzero(buf->ptr, buf->cap);
    }
    tide_buf_done(buf);
}

static tide_status say_hello(struct following *self, tide_str hello, struct tide_error *err)
{
    TIDE_CLEANUP(wipe) struct tide_buf words = {0};
    const struct tide_wire_opening opening = {.ends = !self->options->goes_on,
                                              .has_token = self->options->token.len > 0,
                                              .token = self->options->token};
    tide_wire_opening_append(&opening, &words);
    tide_buf_append_str(&words, hello);
    return send_all(self, tide_buf_str(&words), err);
}

/* The stream. */

static tide_status fail_refused(const struct tide_wire_refusal *refusal, struct tide_error *err)
{
    (void)tide_fail(err, TIDE_REMOTE, "the publisher refuses: %.*s", TIDE_STR_ARG(refusal->reason));
    tide_log_make_safe(err->message, strlen(err->message));
    err->retriable = refusal->is_retriable;
    return TIDE_REMOTE;
}

static tide_status hand_over(struct following *self, tide_str bytes, struct tide_error *err)
{
    memcpy(self->ops->room(self->context, bytes.len), bytes.ptr, bytes.len);
    self->has_begun = true;
    return self->ops->came(self->context, bytes.len, err);
}

/* The first bytes may be a refusal in the place of a stream. */
static tide_status take_head(struct following *self, size_t size, struct tide_error *err)
{
    struct tide_wire_refusal refusal;
    size_t wanted = 0;
    self->head.len += size;
    tide_str have = tide_buf_str(&self->head);
    if (!tide_wire_refusal_may_be(have)) {
        return hand_over(self, have, err);
    }
    TIDE_TRY(tide_wire_refusal_size(have, &wanted, err));
    if (wanted == 0 || have.len < wanted) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_wire_refusal_decode(tide_str_of(have.ptr, wanted), &refusal, err));
    return fail_refused(&refusal, err);
}

/* Reads what is there; 0: nothing is. */
static tide_status read_some(struct following *self, size_t *ret_size, struct tide_error *err)
{
    bool is_head = !self->has_begun;
    char *to = is_head ? tide_buf_reserve(&self->head, TIDE_REFUSAL_BYTES_MAX)
                       : self->ops->room(self->context, TIDE_PIECE_BYTES);
    size_t size = is_head ? TIDE_REFUSAL_BYTES_MAX : TIDE_PIECE_BYTES;
    TIDE_TRY(tide_link_read(&self->link, to, size, ret_size, err));
    if (*ret_size == 0) {
        return TIDE_OK;
    }
    return is_head ? take_head(self, *ret_size, err)
                   : self->ops->came(self->context, *ret_size, err);
}

static short wanted(const struct following *self)
{
    return self->link.wants != 0 ? self->link.wants : POLLIN;
}

static bool is_enough(const struct following *self)
{
    return !self->options->goes_on && !self->is_pipe && self->ops->is_caught_up(self->context);
}

/* A standard stream that is a file always has more, and one that is shared may block. */
static bool may_read(struct following *self)
{
    struct pollfd pfd = {.fd = self->link.fd, .events = POLLIN};
    return self->link.is_socket || poll(&pfd, 1, 0) > 0;
}

/* Some of what is there. 0: nothing is. */
static tide_status read_turn(struct following *self, size_t *ret_size, struct tide_error *err)
{
    size_t got = 1;
    for (unsigned i = 0; i < READS_A_TURN && got > 0; i++) {
        got = 0;
        if (may_read(self)) {
            TIDE_TRY(read_some(self, &got, err));
        }
    }
    *ret_size = got;
    return TIDE_OK;
}

static tide_status rest(struct following *self, struct tide_error *err)
{
    self->rest_at_us = tide_clock_deadline_us(REST_US);
    return self->ops->rest(self->context, err);
}

/* Where more is there to be read than can be taken at once, too, what came is made durable. */
static tide_status keep_up(struct following *self, struct tide_error *err)
{
    struct pollfd pfd = {.fd = self->stop_fd, .events = POLLIN};
    if (poll(&pfd, 1, 0) > 0) {
        return fail_stopped(err);
    }
    return tide_clock_monotonic_us() >= self->rest_at_us ? rest(self, err) : TIDE_OK;
}

/* Nothing is there to be read, and what was put off may be done by now. */
static tide_status do_what_waits(const struct following *self, bool *ret_is_busy,
                                 struct tide_error *err)
{
    bool is_ready = false;
    TIDE_TRY(self->ops->idle(self->context, ret_is_busy, err));
    return *ret_is_busy ? wait_until(self, self->link.fd, wanted(self),
                                     tide_clock_deadline_us(BUSY_US), &is_ready, err)
                        : TIDE_OK;
}

/*
 * Nothing is there to be read. Once it has caught up, what came is to be seen at once; before, a
 * little later, with what comes then: many small steps take longer.
 */
static tide_status wait_for_more(struct following *self, struct tide_error *err)
{
    short wants = wanted(self);
    if (!self->ops->is_caught_up(self->context)) {
        bool is_ready = false;
        TIDE_TRY(wait_until(self, self->link.fd, wants, self->rest_at_us, &is_ready, err));
        if (is_ready) {
            return TIDE_OK;
        }
    }
    TIDE_TRY(rest(self, err));
    return wait_for(self, self->link.fd, wants, deadline(self), err);
}

/* Until the other side ends (TIDE_END), all has come (TIDE_OK), or something fails. */
static tide_status take_stream(struct following *self, struct tide_error *err)
{
    size_t got = 0;
    self->link.wants = POLLIN;
    self->rest_at_us = tide_clock_deadline_us(REST_US);
    for (;;) {
        bool is_busy = false;
        if (got == 0) {
            TIDE_TRY(do_what_waits(self, &is_busy, err));
        }
        if (is_enough(self)) {
            return TIDE_OK;
        }
        if (got > 0) {
            TIDE_TRY(keep_up(self, err));
        } else if (!is_busy) {
            TIDE_TRY(wait_for_more(self, err));
        }
        TIDE_TRY(read_turn(self, &got, err));
    }
}

/* One connection, from the first to the last. */

static tide_status converse(struct following *self, tide_str hello, struct tide_error *err)
{
    if (!self->is_pipe) {
        TIDE_TRY(shake_hands(self, err));
        TIDE_TRY(say_hello(self, hello, err));
    }
    self->connections++;
    return take_stream(self, err);
}

/* TIDE_OK: nothing more is to be done. */
static tide_status judge_end(const struct following *self, tide_status status,
                             tide_status end_status, const struct tide_error *end_err,
                             struct tide_error *err)
{
    bool has_ended = status == TIDE_OK || status == TIDE_END;
    if (end_status != TIDE_OK && (has_ended || !end_err->retriable)) {
        *err = *end_err;
        return end_status;
    }
    if (!has_ended) {
        return status;
    }
    if (self->is_pipe || (!self->options->goes_on && self->ops->is_caught_up(self->context))) {
        return TIDE_OK;
    }
    return tide_fail_retriable(err, TIDE_CLOSED, "the publisher has ended the connection%s",
                               self->options->goes_on ? ""
                                                      : ", and has not said that it had no more");
}

static tide_status connect_once(struct following *self, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf hello = {0};
    struct tide_error end_err = {0};
    self->has_begun = false;
    tide_buf_reset(&self->head);
    TIDE_TRY(reach(self, err));
    TIDE_TRY(self->ops->begin(self->context, self->is_pipe ? NULL : &hello, err));
    tide_status status = converse(self, tide_buf_str(&hello), err);
    tide_status end_status = self->ops->end(self->context, &end_err);
    return judge_end(self, status, end_status, &end_err, err);
}

/* Where another attempt may help. */
static tide_status wait_again(const struct following *self, int64_t wait_us,
                              const struct tide_error *why, struct tide_error *err)
{
    char line[640];
    (void)snprintf(line, sizeof(line), "%s; tried again in %.1f s", why->message,
                   (double)wait_us / 1e6);
    say(self, true, line);
    tide_status status = wait_for(self, -1, 0, tide_clock_deadline_us(wait_us), err);
    return status == TIDE_TIMEOUT ? TIDE_OK : status;
}

static tide_status follow(struct following *self, struct tide_error *err)
{
    int64_t wait_us = self->options->wait_first_us;
    for (;;) {
        struct tide_error why = {0};
        int64_t began_us = tide_clock_monotonic_us();
        tide_status status = connect_once(self, &why);
        tide_link_close(&self->link);
        bool goes_on = self->options->goes_on && !self->is_pipe;
        if (status == TIDE_CANCELLED && self->options->goes_on) {
            return TIDE_OK;
        }
        if (status == TIDE_OK || !why.retriable || !goes_on) {
            *err = why;
            return status;
        }
        bool has_lasted = self->has_begun && tide_clock_monotonic_us() - began_us > wait_us;
        wait_us = has_lasted ? self->options->wait_first_us : wait_us;
        if (wait_again(self, wait_us, &why, err) != TIDE_OK) {
            return TIDE_OK; /* stopped */
        }
        wait_us =
            wait_us * 2 < self->options->wait_most_us ? wait_us * 2 : self->options->wait_most_us;
    }
}

tide_status tide_follow_run(const struct tide_follow_options *options,
                            const struct tide_follower_ops *ops, void *context, int stop_fd,
                            uint64_t *ret_connections, struct tide_error *err)
{
    struct following self = {
        .options = options,
        .ops = ops,
        .context = context,
        .stop_fd = stop_fd,
        .link = {.fd = -1},
        .is_pipe = options->address.kind == TIDE_ADDRESS_STANDARD,
    };
    tide_status status = follow(&self, err);
    tide_buf_done(&self.head);
    *ret_connections = self.connections;
    return status;
}
