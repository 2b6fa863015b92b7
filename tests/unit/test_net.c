/* A server and those that follow it: what is sent is a pattern of bytes, no archive. */
#include "cmocka_prelude.h"

#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/thread.h"
#include "format/wire/opening.h"
#include "net/follow.h"
#include "net/local.h"
#include "net/server.h"
#include "net/tcp.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOON_US       60000000 /* far beyond what anything here takes */
#define BIG           ((uint64_t)32 << 20)
#define ALIVE         '.' /* is no byte of the pattern */
#define TOKEN         "0123456789abcdef"
#define HELLO_OF_NONE 22

/* -- what is sent */

struct pattern {
    _Atomic uint64_t size; /* what there is now */
    atomic_uint opened;
    atomic_uint closed;
    atomic_uint hellos;
    atomic_bool fails; /* from now on, to go on */
    atomic_bool fails_to_open;
};

struct feed {
    struct pattern *pattern;
    uint64_t pos;
};

static char byte_at(uint64_t pos)
{
    return (char)('a' + pos % 23);
}

static tide_status feed_open(void *context, const struct tide_wire_hello *hello, void **ret_feed,
                             struct tide_error *err)
{
    struct pattern *pattern = context;
    if (atomic_load(&pattern->fails_to_open)) {
        return tide_fail(err, TIDE_IO, "there is no pattern");
    }
    struct feed *feed = calloc(1, sizeof(*feed));
    feed->pattern = pattern;
    atomic_fetch_add(&pattern->hellos, hello != NULL);
    atomic_fetch_add(&pattern->opened, 1);
    *ret_feed = feed;
    return TIDE_OK;
}

static tide_status feed_next(void *context, struct tide_buf *out, size_t bytes_max,
                             bool *ret_is_caught_up, struct tide_error *err)
{
    struct feed *feed = context;
    uint64_t size = atomic_load(&feed->pattern->size);
    if (atomic_load(&feed->pattern->fails)) {
        return tide_fail_retriable(err, TIDE_STALE, "the pattern has faded");
    }
    for (size_t i = 0; i < bytes_max && feed->pos < size; i++) {
        tide_buf_append_char(out, byte_at(feed->pos++));
    }
    *ret_is_caught_up = feed->pos == size;
    return TIDE_OK;
}

static tide_status feed_keep_alive(void *context, struct tide_buf *out, struct tide_error *err)
{
    (void)context;
    (void)err;
    tide_buf_append_char(out, ALIVE);
    return TIDE_OK;
}

static void feed_close(void *context)
{
    struct feed *feed = context;
    atomic_fetch_add(&feed->pattern->closed, 1);
    free(feed);
}

static const struct tide_feed_ops feeds = {feed_open, feed_next, feed_keep_alive, feed_close};

/* -- who serves it */

struct serving {
    struct pattern pattern;
    struct tide_server_options options;
    struct tide_server *server;
    struct tide_server_counts counts; /* when it has ended */
    struct tide_waker stop;
    struct tide_address address;
    char folder[64];
    char text[128];
    int listener;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what was said */
    char said[65536];
    atomic_uint lines;
};

static void keep_line(void *context, bool is_problem, const char *line)
{
    struct serving *self = context;
    (void)is_problem;
    tide_mutex_lock(&self->mutex);
    size_t len = strlen(self->said);
    (void)snprintf(self->said + len, sizeof(self->said) - len, "%s\n", line);
    tide_mutex_unlock(&self->mutex);
    atomic_fetch_add(&self->lines, 1);
}

static bool has_said(struct serving *self, const char *words)
{
    tide_mutex_lock(&self->mutex);
    bool has = strstr(self->said, words) != NULL;
    tide_mutex_unlock(&self->mutex);
    return has;
}

static void wait_until_said(struct serving *self, const char *words)
{
    int64_t deadline_us = tide_clock_deadline_us(SOON_US);
    while (!has_said(self, words)) {
        if (tide_clock_monotonic_us() > deadline_us) {
            fail_msg("it has not said \"%s\" but:\n%s", words, self->said);
        }
        (void)usleep(1000);
    }
}

static void wait_for_count(atomic_uint *count, unsigned wanted)
{
    int64_t deadline_us = tide_clock_deadline_us(SOON_US);
    while (atomic_load(count) < wanted) {
        assert_true(tide_clock_monotonic_us() < deadline_us);
        (void)usleep(1000);
    }
}

static void *run_server(void *arg)
{
    struct serving *self = arg;
    struct tide_error err;
    tide_status status = tide_server_run(self->server, self->stop.fd, &err);
    TIDE_ASSERT(status == TIDE_OK);
    tide_server_counts(self->server, &self->counts);
    return NULL;
}

/* Serves `size` bytes on a port of its own; what is not set in `options` has a value that tests
 * need not wait for. */
static void serve(struct serving *self, uint64_t size, struct tide_server_options options)
{
    struct tide_error err;
    memset(self, 0, sizeof(*self));
    atomic_store(&self->pattern.size, size);
    (void)pthread_mutex_init(&self->mutex, NULL);
    options.feeds = &feeds;
    options.context = &self->pattern;
    options.say = keep_line;
    options.say_context = self;
    options.followers_max = options.followers_max == 0 ? 8 : options.followers_max;
    options.piece_bytes = 64 * TIDE_KIB;
    options.look_us = 1000;
    options.silence_us = options.silence_us == 0 ? SOON_US : options.silence_us;
    options.keep_alive_us = options.keep_alive_us == 0 ? SOON_US : options.keep_alive_us;
    options.patience_us = options.patience_us == 0 ? SOON_US : options.patience_us;
    self->options = options;
    self->server = tide_server_new(&options);
    assert_int_equal(tide_address_parse("tcp://127.0.0.1:0", &self->address, &err), TIDE_OK);
    assert_int_equal(tide_tcp_listen(&self->address, &self->listener, &err), TIDE_OK);
    (void)snprintf(self->address.port, sizeof(self->address.port), "%u",
                   tide_tcp_port(self->listener));
    tide_server_listen(self->server, self->listener);
    tide_waker_init(&self->stop);
    tide_thread_start(&self->thread, run_server, self);
}

static void serve_no_more(struct serving *self)
{
    tide_waker_wake(&self->stop);
    (void)pthread_join(self->thread, NULL);
    tide_server_free(self->server);
    tide_waker_done(&self->stop);
    tide_fd_close(&self->listener);
    (void)pthread_mutex_destroy(&self->mutex);
    assert_int_equal(atomic_load(&self->pattern.opened), atomic_load(&self->pattern.closed));
}

/* -- who follows it */

struct taker {
    struct tide_follow_options options;
    char room[TIDE_PIECE_BYTES];
    _Atomic uint64_t bytes;
    atomic_uint alive; /* in this connection */
    atomic_uint begins;
    unsigned ends;
    unsigned rests;
    unsigned idles;
    bool is_cut; /* what `end` says */
    bool says_nothing;
    uint64_t connections;
    struct tide_waker stop;
    pthread_t thread;
    tide_status status;
    struct tide_error err;
    char said[65536];
    atomic_uint lines;
};

static tide_status taker_begin(void *context, struct tide_buf *hello, struct tide_error *err)
{
    struct taker *self = context;
    atomic_store(&self->bytes, 0);
    atomic_store(&self->alive, 0);
    atomic_fetch_add(&self->begins, 1);
    return hello == NULL ? TIDE_OK
                         : tide_wire_hello_encode(&(struct tide_wire_hello){0}, hello, err);
}

static char *taker_room(void *context, size_t size)
{
    struct taker *self = context;
    assert_true(size <= sizeof(self->room));
    return self->room;
}

static tide_status taker_came(void *context, size_t size, struct tide_error *err)
{
    struct taker *self = context;
    uint64_t bytes = atomic_load(&self->bytes);
    unsigned alive = 0;
    for (size_t i = 0; i < size; i++) {
        if (self->room[i] == ALIVE) {
            alive++;
        } else if (self->room[i] != byte_at(bytes++)) {
            return tide_fail(err, TIDE_CORRUPT, "this is not the pattern");
        }
    }
    atomic_store(&self->bytes, bytes);
    atomic_fetch_add(&self->alive, alive);
    return TIDE_OK;
}

/* Is busy a few times, before it rests for want of more. */
static tide_status taker_idle(void *context, bool *ret_is_busy, struct tide_error *err)
{
    struct taker *self = context;
    (void)err;
    self->idles++;
    *ret_is_busy = self->idles % 4 != 0;
    return TIDE_OK;
}

static tide_status taker_rest(void *context, struct tide_error *err)
{
    struct taker *self = context;
    (void)err;
    self->rests++;
    return TIDE_OK;
}

static bool taker_is_caught_up(void *context)
{
    struct taker *self = context;
    return atomic_load(&self->alive) > 0;
}

static tide_status taker_end(void *context, struct tide_error *err)
{
    struct taker *self = context;
    self->ends++;
    return self->is_cut ? tide_fail_retriable(err, TIDE_CLOSED, "it was cut") : TIDE_OK;
}

static const struct tide_follower_ops takers = {
    .begin = taker_begin,
    .room = taker_room,
    .came = taker_came,
    .idle = taker_idle,
    .rest = taker_rest,
    .is_caught_up = taker_is_caught_up,
    .end = taker_end,
};

static void taker_say(void *context, bool is_problem, const char *line)
{
    struct taker *self = context;
    size_t len = strlen(self->said);
    (void)is_problem;
    (void)snprintf(self->said + len, sizeof(self->said) - len, "%s\n", line);
    atomic_fetch_add(&self->lines, 1);
}

static struct taker *taker_of(const struct tide_address *address)
{
    struct taker *self = calloc(1, sizeof(*self));
    self->options = (struct tide_follow_options){
        .address = *address,
        .patience_us = SOON_US,
        .wait_first_us = 1000,
        .wait_most_us = 8000,
        .say = taker_say,
        .say_context = self,
    };
    tide_waker_init(&self->stop);
    return self;
}

static void *run_taker(void *arg)
{
    struct taker *self = arg;
    self->status = tide_follow_run(&self->options, &takers, self, self->stop.fd, &self->connections,
                                   &self->err);
    return NULL;
}

static void taker_start(struct taker *self)
{
    tide_thread_start(&self->thread, run_taker, self);
}

static tide_status taker_join(struct taker *self)
{
    (void)pthread_join(self->thread, NULL);
    return self->status;
}

static void taker_free(struct taker *self)
{
    tide_waker_done(&self->stop);
    free(self);
}

static void wait_for_bytes(struct taker *self, uint64_t wanted)
{
    int64_t deadline_us = tide_clock_deadline_us(SOON_US);
    while (atomic_load(&self->bytes) < wanted) {
        assert_true(tide_clock_monotonic_us() < deadline_us);
        (void)usleep(500);
    }
}

/* A plain connection, by hand. */
static int connect_to(const struct serving *self)
{
    struct tide_error err;
    int fd = -1;
    assert_int_equal(tide_tcp_connect(&self->address, SOON_US, -1, &fd, &err), TIDE_OK);
    (void)fcntl(fd, F_SETFL, O_RDWR);
    return fd;
}

/* All that comes until the other side ends; a reset counts as an end. */
static size_t read_to_end(int fd, char *to, size_t size)
{
    size_t len = 0;
    ssize_t got;
    while (len < size && (got = read(fd, to + len, size - len)) > 0) {
        len += (size_t)got;
    }
    return len;
}

/* -- tests */

static void follow_until_caught_up_brings_all_once(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, BIG, (struct tide_server_options){0});
    struct taker *taker = taker_of(&serving.address);
    assert_int_equal((run_taker(taker), taker->status), TIDE_OK);
    assert_int_equal(taker->bytes, BIG);
    assert_int_equal(taker->alive, 1);
    assert_int_equal(taker->ends, 1);
    assert_int_equal(taker->connections, 1);
    serve_no_more(&serving);
    assert_int_equal(serving.pattern.hellos, 1);
    assert_int_equal(serving.counts.bytes, BIG + 1);
    assert_non_null(strstr(serving.said, "it has said what it holds"));
    taker_free(taker);
}

static void follow_on_brings_what_comes_later_and_is_stopped(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){0});
    struct taker *taker = taker_of(&serving.address);
    taker->options.goes_on = true;
    taker_start(taker);
    for (uint64_t size = 10; size < 1000; size += 90) {
        atomic_store(&serving.pattern.size, size);
        wait_for_bytes(taker, size);
    }
    tide_waker_wake(&taker->stop);
    assert_int_equal(taker_join(taker), TIDE_OK);
    assert_int_equal(taker->ends, 1);
    assert_true(taker->rests > 0);
    assert_true(taker->idles >= 4);
    taker_free(taker);
    wait_until_said(&serving, "has gone");
    serve_no_more(&serving);
}

static void follow_stopped_before_it_has_caught_up_is_cancelled(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){.followers_max = 1});
    struct taker *first = taker_of(&serving.address);
    first->options.goes_on = true;
    taker_start(first);
    wait_for_bytes(first, 10);
    serve_no_more(&serving); /* nobody answers now */
    struct taker *taker = taker_of(&serving.address);
    tide_waker_wake(&taker->stop);
    run_taker(taker);
    assert_true(taker->status == TIDE_CANCELLED || taker->status == TIDE_CLOSED);
    tide_waker_wake(&first->stop);
    assert_int_equal(taker_join(first), TIDE_OK);
    taker_free(first);
    taker_free(taker);
}

static void follow_many_at_once_each_gets_all(void **state)
{
    (void)state;
    struct serving serving;
    struct taker *many[8];
    serve(&serving, BIG / 4, (struct tide_server_options){0});
    for (size_t i = 0; i < 8; i++) {
        many[i] = taker_of(&serving.address);
        taker_start(many[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(taker_join(many[i]), TIDE_OK);
        assert_int_equal(many[i]->bytes, BIG / 4);
        taker_free(many[i]);
    }
    serve_no_more(&serving);
}

static void silent_connection_gets_the_stream_after_a_while(void **state)
{
    (void)state;
    struct serving serving;
    char got[200];
    serve(&serving, 100, (struct tide_server_options){.silence_us = 10000, .keep_alive_us = 5000});
    int fd = connect_to(&serving);
    assert_int_equal(recv(fd, got, 110, MSG_WAITALL), 110); /* and ten times that nothing came */
    for (size_t i = 0; i < 110; i++) {
        assert_int_equal(got[i], i < 100 ? byte_at(i) : ALIVE);
    }
    tide_fd_close(&fd);
    wait_until_said(&serving, "it has said nothing");
    wait_until_said(&serving, "has gone");
    serve_no_more(&serving);
    assert_int_equal(serving.pattern.hellos, 0);
}

static void hello_without_an_opening_is_one(void **state)
{
    (void)state;
    struct serving serving;
    struct tide_buf hello = {0};
    struct tide_error err;
    char got[11];
    serve(&serving, 10, (struct tide_server_options){0});
    assert_int_equal(tide_wire_hello_encode(&(struct tide_wire_hello){0}, &hello, &err), TIDE_OK);
    int fd = connect_to(&serving);
    for (size_t i = 0; i < hello.len; i++) { /* byte by byte */
        assert_int_equal(write(fd, hello.ptr + i, 1), 1);
    }
    assert_int_equal(recv(fd, got, 11, MSG_WAITALL), 11);
    assert_int_equal(got[10], ALIVE);
    tide_buf_done(&hello);
    tide_fd_close(&fd);
    serve_no_more(&serving);
    assert_int_equal(serving.pattern.hellos, 1);
}

static void token_is_asked_for_and_compared(void **state)
{
    (void)state;

    static const struct {
        const char *token;
        tide_status want;
        const char *says;
    } cases[] = {
        {TOKEN, TIDE_OK, ""},
        {"", TIDE_REMOTE, "a token is needed"},
        {"0123456789abcdeF", TIDE_REMOTE, "not the one"},
        {"0123456789abcde", TIDE_REMOTE, "not the one"},
        {"0123456789abcdef0", TIDE_REMOTE, "not the one"},
    };
    struct serving serving;
    serve(&serving, 10,
          (struct tide_server_options){.token = TIDE_STR(TOKEN), .silence_us = 1000000});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct taker *taker = taker_of(&serving.address);
        taker->options.goes_on = cases[i].want != TIDE_OK; /* nor is it tried again */
        taker->options.token = tide_str_from(cases[i].token);
        run_taker(taker);
        assert_int_equal(taker->status, cases[i].want);
        assert_int_equal(taker->bytes, cases[i].want == TIDE_OK ? 10 : 0);
        if (cases[i].want != TIDE_OK) {
            assert_non_null(strstr(taker->err.message, cases[i].says));
            assert_null(strstr(taker->err.message, TOKEN));
        }
        taker_free(taker);
    }
    serve_no_more(&serving);
    assert_int_equal(serving.counts.followers, 1);
    assert_int_equal(serving.counts.refused, 4);
    assert_null(strstr(serving.said, "0123456789"));
}

static void silent_connection_where_a_token_is_needed_is_refused(void **state)
{
    (void)state;
    struct serving serving;
    char got[512] = {0};
    serve(&serving, 10,
          (struct tide_server_options){.token = TIDE_STR(TOKEN), .silence_us = 10000});
    int fd = connect_to(&serving);
    size_t len = read_to_end(fd, got, sizeof(got) - 1);
    assert_true(tide_wire_refusal_may_be(tide_str_of(got, len)) && len > 40);
    tide_fd_close(&fd);
    serve_no_more(&serving);
    assert_int_equal(serving.counts.followers, 0);
}

static void one_follower_too_many_is_told_so_and_comes_again(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){.followers_max = 1});
    struct taker *first = taker_of(&serving.address);
    struct taker *second = taker_of(&serving.address);
    first->options.goes_on = true;
    second->options.goes_on = true;
    taker_start(first);
    wait_for_bytes(first, 10);
    taker_start(second);
    wait_for_count(&second->lines, 5);
    assert_int_equal(atomic_load(&second->bytes), 0);
    tide_waker_wake(&first->stop);
    assert_int_equal(taker_join(first), TIDE_OK);
    wait_for_bytes(second, 10); /* its place is free now */
    tide_waker_wake(&second->stop);
    assert_int_equal(taker_join(second), TIDE_OK);
    assert_non_null(strstr(second->said, "as many followers as may be (--max-followers)"));
    assert_non_null(strstr(second->said, "tried again in 0.0 s"));
    taker_free(first);
    taker_free(second);
    serve_no_more(&serving);
}

static void follower_that_takes_nothing_is_dropped_alone(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, BIG, (struct tide_server_options){.silence_us = 1000, .patience_us = 200000});
    int fd = connect_to(&serving);
    wait_until_said(&serving, "was dropped: it did not take what was sent in time");
    struct taker *taker = taker_of(&serving.address);
    run_taker(taker);
    assert_int_equal(taker->status, TIDE_OK);
    assert_int_equal(taker->bytes, BIG);
    taker_free(taker);
    tide_fd_close(&fd);
    serve_no_more(&serving);
    assert_int_equal(serving.counts.dropped, 1);
}

static void words_that_are_none_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *words;
        size_t len;
        const char *says;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "not a hello"},
        {"\0", 1, "not a hello"},
        {"tidemark-hi\0\2\0\0\0\0\0", 18, "version 2"},
        {"tidemark-hi\0\1\0\0\0\0\x7f", 18, "claims 2130706432 bytes"},
        {"tidemark-hi\0\1\0\4\0\0\0\1\0\0\0", 22, "malformed hello"},
        {"tidemark-go\0\1\0\2\0\0\0\2\0", 20, "malformed opening"},
        {"tidemark-go\0\1\0\2\0\0\0\0\0GET / HTTP/1.1", 34, "not a hello"},
    };
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){0});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char got[512];
        int fd = connect_to(&serving);
        assert_int_equal(write(fd, cases[i].words, cases[i].len), cases[i].len);
        size_t len = read_to_end(fd, got, sizeof(got));
        assert_true(tide_wire_refusal_may_be(tide_str_of(got, len)) && len > 40);
        wait_until_said(&serving, cases[i].says);
        tide_fd_close(&fd);
    }
    serve_no_more(&serving);
    assert_int_equal(serving.counts.followers, 0);
}

static void hello_that_does_not_come_whole_is_not_waited_for(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){.silence_us = 10000, .patience_us = 100000});
    int fd = connect_to(&serving);
    assert_int_equal(write(fd, "tidemark-", 9), 9);
    wait_until_said(&serving, "did not come whole in time");
    tide_fd_close(&fd);
    fd = connect_to(&serving);
    tide_fd_close(&fd); /* without a word */
    wait_until_said(&serving, "ended before its stream began");
    serve_no_more(&serving);
    assert_int_equal(serving.counts.followers, 0);
}

static void crowd_of_strangers_does_not_keep_followers_out(void **state)
{
    (void)state;
    struct serving serving;
    int crowd[500];
    serve(&serving, 10, (struct tide_server_options){0});
    for (size_t i = 0; i < 500; i++) {
        crowd[i] = connect_to(&serving);
        if (i % 2 == 0) {
            assert_int_equal(write(crowd[i], "tidemark-hi", 11), 11);
        }
    }
    struct taker *taker = taker_of(&serving.address);
    run_taker(taker);
    assert_int_equal(taker->status, TIDE_OK);
    assert_int_equal(taker->bytes, 10);
    for (size_t i = 0; i < 500; i++) {
        tide_fd_close(&crowd[i]);
    }
    taker_free(taker);
    serve_no_more(&serving);
    assert_true(serving.counts.refused >= 400);
    assert_true(serving.lines < 300); /* not a line for each */
}

static void strangers_cannot_fill_the_memory(void **state)
{
    (void)state;
    struct serving serving;
    static const char head[] = "tidemark-hi\0\1\0\0\0\x40"; /* and 4 MiB are to follow */
    char *body = calloc(1, TIDE_WIRE_HELLO_BYTES_MAX);
    int crowd[6];
    serve(&serving, 10, (struct tide_server_options){0});
    for (size_t i = 0; i < 6; i++) {
        crowd[i] = connect_to(&serving);
        assert_int_equal(write(crowd[i], head, 18), 18);
        /* nearly all of it; the server may have hung up before */
        (void)!send(crowd[i], body, TIDE_WIRE_HELLO_BYTES_MAX - 1, MSG_NOSIGNAL);
    }
    wait_until_said(&serving, "too much is being said by too many at once");
    struct taker *taker = taker_of(&serving.address);
    taker->options.goes_on = true; /* its first attempt may meet the crowd */
    taker_start(taker);
    wait_for_bytes(taker, 10);
    tide_waker_wake(&taker->stop);
    assert_int_equal(taker_join(taker), TIDE_OK);
    for (size_t i = 0; i < 6; i++) {
        tide_fd_close(&crowd[i]);
    }
    taker_free(taker);
    free(body);
    serve_no_more(&serving);
}

static void feed_that_fails_ends_connections_and_is_tried_again(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){0});
    struct taker *taker = taker_of(&serving.address);
    taker->options.goes_on = true;
    taker_start(taker);
    wait_for_bytes(taker, 10);
    atomic_store(&serving.pattern.fails, true);
    wait_for_count(&taker->begins, 4);
    atomic_store(&serving.pattern.fails_to_open, true);
    wait_until_said(&serving, "there is no pattern");
    atomic_store(&serving.pattern.fails, false);
    atomic_store(&serving.pattern.fails_to_open, false);
    wait_for_bytes(taker, 10);
    tide_waker_wake(&taker->stop);
    (void)taker_join(taker);
    /* one that could not be opened at all is refused for good */
    assert_true(taker->status == TIDE_OK || taker->status == TIDE_REMOTE);
    taker_free(taker);
    serve_no_more(&serving);
    assert_non_null(strstr(serving.said, "the pattern has faded"));
}

static void server_that_is_away_is_waited_for_longer_and_longer(void **state)
{
    (void)state;
    struct tide_address address;
    struct tide_error err;
    int listener = -1;
    assert_int_equal(tide_address_parse("tcp://127.0.0.1:0", &address, &err), TIDE_OK);
    assert_int_equal(tide_tcp_listen(&address, &listener, &err), TIDE_OK);
    (void)snprintf(address.port, sizeof(address.port), "%u", tide_tcp_port(listener));
    tide_fd_close(&listener);
    struct taker *taker = taker_of(&address);
    taker->options.goes_on = true;
    taker->options.wait_first_us = 100000;
    taker->options.wait_most_us = 300000;
    taker_start(taker);
    wait_for_count(&taker->lines, 4);
    tide_waker_wake(&taker->stop);
    assert_int_equal(taker_join(taker), TIDE_OK);
    static const char *const waits[] = {"in 0.1 s\n", "in 0.2 s\n", "in 0.3 s\n", "in 0.3 s\n"};
    const char *at = taker->said;
    for (size_t i = 0; i < 4 && at != NULL; i++) {
        at = strstr(at, waits[i]);
        at = at == NULL ? NULL : at + strlen(waits[i]);
    }
    assert_non_null(at);
    assert_int_equal(taker->begins, 0);
    taker->options.goes_on = false;
    assert_true(tide_waker_wait(&taker->stop, 0)); /* the wake from before is still there */
    run_taker(taker);
    assert_int_equal(taker->status, TIDE_CLOSED);
    assert_non_null(strstr(taker->err.message, "cannot reach tcp://127.0.0.1:"));
    taker_free(taker);
}

static void peer_that_says_nothing_more_is_dropped(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){0}); /* says nothing for a minute */
    struct taker *taker = taker_of(&serving.address);
    taker->options.goes_on = true;
    taker->options.patience_us = 50000;
    taker_start(taker);
    wait_for_count(&taker->begins, 3);
    tide_waker_wake(&taker->stop);
    assert_int_equal(taker_join(taker), TIDE_OK);
    assert_non_null(strstr(taker->said, "nothing has come for 0.1 s"));
    taker_free(taker);
    serve_no_more(&serving);
}

static void stopping_lets_followers_catch_up(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, BIG / 16, (struct tide_server_options){0});
    struct taker *taker = taker_of(&serving.address);
    taker->options.goes_on = true;
    taker->options.wait_first_us = SOON_US;
    taker_start(taker);
    wait_for_bytes(taker, 1);
    serve_no_more(&serving);
    wait_for_bytes(taker, BIG / 16);
    wait_for_count(&taker->lines, 1);
    tide_waker_wake(&taker->stop);
    assert_int_equal(taker_join(taker), TIDE_OK);
    assert_non_null(strstr(taker->said, "the publisher has ended the connection"));
    taker_free(taker);
}

static void feed_that_fails_at_once_is_said(void **state)
{
    (void)state;
    struct serving serving;
    serve(&serving, 10, (struct tide_server_options){0});
    atomic_store(&serving.pattern.fails, true);
    struct taker *taker = taker_of(&serving.address);
    run_taker(taker);
    assert_int_equal(taker->status, TIDE_REMOTE);
    assert_non_null(strstr(taker->err.message, "cannot be read just now"));
    assert_true(taker->err.retriable);
    taker_free(taker);
    serve_no_more(&serving);
}

static void foreign_bytes_end_a_follower_for_good(void **state)
{
    (void)state;
    struct tide_address address;
    struct tide_error err;
    int listener = -1;
    assert_int_equal(tide_address_parse("tcp://127.0.0.1:0", &address, &err), TIDE_OK);
    assert_int_equal(tide_tcp_listen(&address, &listener, &err), TIDE_OK);
    (void)snprintf(address.port, sizeof(address.port), "%u", tide_tcp_port(listener));

    static const struct {
        const char *bytes;
        size_t len;
        tide_status want;
    } cases[] = {
        {"HTTP/1.1 400", 12, TIDE_CORRUPT},
        {"tidemark-no\0\1\0\6\0\0\0\0\1\0\0\0!", 24, TIDE_REMOTE},
        {"tidemark-no\0\1\0\6\0\0\0\0\1\0\0\0\x1b", 24, TIDE_REMOTE},
        {"tidemark-no\0\1\0\xff\xff\xff\xff", 18, TIDE_CORRUPT},
        {"tidemark-no\0\2\0\6\0\0\0", 18, TIDE_UNSUPPORTED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct taker *taker = taker_of(&address);
        taker->options.goes_on = true;
        taker_start(taker);
        struct pollfd pfd = {.fd = listener, .events = POLLIN};
        assert_int_equal(poll(&pfd, 1, 60000), 1);
        int fd = accept(listener, NULL, NULL);
        assert_int_equal(write(fd, cases[i].bytes, cases[i].len), cases[i].len);
        assert_int_equal(taker_join(taker), cases[i].want);
        assert_null(strchr(taker->err.message, 0x1b));
        tide_fd_close(&fd);
        taker_free(taker);
    }
    tide_fd_close(&listener);
}

static void beyond_the_machine_is_refused_without_tls(void **state)
{
    (void)state;
    static const char *const texts[] = {"tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:9465"};
    for (size_t i = 0; i < 3; i++) {
        struct tide_address address;
        struct tide_error err;
        int fd = -1;
        assert_int_equal(tide_address_parse(texts[i], &address, &err), TIDE_OK);
        assert_int_equal(tide_tcp_listen(&address, &fd, &err), TIDE_INVALID);
        assert_non_null(strstr(err.message, "use tls://"));
        assert_int_equal(tide_tcp_connect(&address, 0, -1, &fd, &err), TIDE_INVALID);
        assert_int_equal(fd, -1);
    }
}

/* -- standard streams */

static void *read_pipe(void *arg)
{
    struct taker *taker = arg;
    char byte;
    while (read(taker->stop.fd, &byte, 0) == 0) {
        ssize_t got = read(taker->stop.fd, taker->room, sizeof(taker->room));
        if (got <= 0) {
            break;
        }
        taker->status = taker_came(taker, (size_t)got, &taker->err);
        if (taker->status != TIDE_OK) {
            break;
        }
    }
    return NULL;
}

static tide_status feed_pipe(struct pattern *pattern, bool ends, int write_fd, int stop_fd,
                             struct tide_error *err)
{
    struct tide_server_options options = {.feeds = &feeds,
                                          .context = pattern,
                                          .followers_max = 1,
                                          .piece_bytes = 64 * TIDE_KIB,
                                          .look_us = 1000,
                                          .keep_alive_us = SOON_US,
                                          .patience_us = 1000,
                                          .say = keep_line,
                                          .say_context = calloc(1, sizeof(struct serving))};
    struct tide_server *server = tide_server_new(&options);
    (void)fcntl(write_fd, F_SETFL, O_WRONLY | O_NONBLOCK);
    tide_status status =
        tide_server_feed(server, (struct tide_link){.fd = write_fd}, "the pipe", ends, err);
    status = status == TIDE_OK ? tide_server_run(server, stop_fd, err) : status;
    tide_server_free(server);
    free(options.say_context);
    return status;
}

static void pipe_is_fed_until_it_has_all(void **state)
{
    (void)state;
    struct pattern pattern = {.size = BIG};
    struct taker *reader = calloc(1, sizeof(*reader));
    struct tide_error err;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    reader->stop.fd = fds[0];
    tide_thread_start(&reader->thread, read_pipe, reader);
    assert_int_equal(feed_pipe(&pattern, true, fds[1], -1, &err), TIDE_OK);
    (void)pthread_join(reader->thread, NULL);
    assert_int_equal(reader->bytes, BIG);
    assert_int_equal(reader->alive, 1);
    (void)close(fds[0]);
    free(reader);
}

static void pipe_that_nobody_reads_any_more_is_an_error(void **state)
{
    (void)state;
    struct pattern pattern = {.size = 10};
    struct tide_error err;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    (void)close(fds[0]);
    assert_int_equal(feed_pipe(&pattern, false, fds[1], -1, &err), TIDE_CLOSED);
}

static void pipe_that_is_stopped_before_its_end_is_cancelled(void **state)
{
    (void)state;
    struct pattern pattern = {.size = BIG};
    struct tide_error err;
    struct tide_waker stop;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    tide_waker_init(&stop);
    tide_waker_wake(&stop);
    assert_int_equal(feed_pipe(&pattern, true, fds[1], stop.fd, &err), TIDE_CANCELLED);
    tide_waker_done(&stop);
    (void)close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follow_until_caught_up_brings_all_once),
        cmocka_unit_test(follow_on_brings_what_comes_later_and_is_stopped),
        cmocka_unit_test(follow_stopped_before_it_has_caught_up_is_cancelled),
        cmocka_unit_test(follow_many_at_once_each_gets_all),
        cmocka_unit_test(silent_connection_gets_the_stream_after_a_while),
        cmocka_unit_test(hello_without_an_opening_is_one),
        cmocka_unit_test(token_is_asked_for_and_compared),
        cmocka_unit_test(silent_connection_where_a_token_is_needed_is_refused),
        cmocka_unit_test(one_follower_too_many_is_told_so_and_comes_again),
        cmocka_unit_test(follower_that_takes_nothing_is_dropped_alone),
        cmocka_unit_test(words_that_are_none_are_refused),
        cmocka_unit_test(hello_that_does_not_come_whole_is_not_waited_for),
        cmocka_unit_test(crowd_of_strangers_does_not_keep_followers_out),
        cmocka_unit_test(strangers_cannot_fill_the_memory),
        cmocka_unit_test(feed_that_fails_ends_connections_and_is_tried_again),
        cmocka_unit_test(server_that_is_away_is_waited_for_longer_and_longer),
        cmocka_unit_test(peer_that_says_nothing_more_is_dropped),
        cmocka_unit_test(stopping_lets_followers_catch_up),
        cmocka_unit_test(feed_that_fails_at_once_is_said),
        cmocka_unit_test(foreign_bytes_end_a_follower_for_good),
        cmocka_unit_test(beyond_the_machine_is_refused_without_tls),
        cmocka_unit_test(pipe_is_fed_until_it_has_all),
        cmocka_unit_test(pipe_that_nobody_reads_any_more_is_an_error),
        cmocka_unit_test(pipe_that_is_stopped_before_its_end_is_cancelled),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
