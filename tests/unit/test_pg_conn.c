#include "cmocka_prelude.h"

#include "base/clock.h"
#include "source/postgres/pg_conn.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static tide_status open_url(const char *url, struct tide_pg_wait wait, struct tide_error *err)
{
    struct tide_pg_conn *conn = NULL;
    tide_status status = tide_pg_open(tide_str_from(url), TIDE_PG_NORMAL, wait, &conn, err);
    assert_null(conn);
    return status;
}

static void open_of_a_malformed_url_is_invalid_and_tells_no_secret(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "postgres:",
        "postgres:/u:Secret@h/d",
        "mysql://u:Secret@h/d",
        "postgres://u:Secret%zz@h/d",
        "postgres://u:x%00Secret@h/d",
        "postgres://u:a@Secret@h/d",
        "postgres://u:Secret/x@h/d",
        "postgres://u:1/Secret@h/d",
        "postgres://u:p@h:Secret/d",
        "postgres://u:p@[Secret/d",
        "postgres://u:p@h/d?Secret",
        "postgres://u:p@h/d?Secret=1",
        "postgres://u:p@h/d?port=Secret",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct tide_error err = {0};
        assert_int_equal(open_url(urls[i], tide_pg_wait_for(1000000), &err), TIDE_INVALID);
        assert_false(err.retriable);
        assert_non_null(strstr(err.message, "PostgreSQL URL"));
        assert_null(strstr(err.message, "Secret"));
    }
}

/* A port where nobody listens: it was given to us and closed again. */
static int socket_on(uint16_t *ret_port, bool listens)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(listens ? listen(fd, 4) : 0, 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void open_where_nobody_listens_is_retriable(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = socket_on(&port, false);
    char url[100];
    struct tide_error err = {0};
    (void)snprintf(url, sizeof(url), "postgres://u:Secret@127.0.0.1:%u/d", port);
    assert_int_equal(open_url(url, tide_pg_wait_for(5000000), &err), TIDE_IO);
    assert_true(err.retriable);
    assert_null(strstr(err.message, "Secret"));
    assert_non_null(strstr(err.message, "127.0.0.1:"));
    (void)close(fd);
}

static void open_of_a_server_that_says_nothing_ends_at_the_deadline(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = socket_on(&port, true);
    char url[100];
    struct tide_error err = {0};
    (void)snprintf(url, sizeof(url), "postgres://u:Secret@127.0.0.1:%u/d", port);
    int64_t start = tide_clock_monotonic_us();
    assert_int_equal(open_url(url, tide_pg_wait_for(100000), &err), TIDE_TIMEOUT);
    int64_t took = tide_clock_monotonic_us() - start;
    assert_true(took >= 100000 && took < 5000000);
    assert_true(err.retriable);
    assert_null(strstr(err.message, "Secret"));
    (void)close(fd);
}

static void open_is_called_off_by_the_waker(void **state)
{
    (void)state;
    uint16_t port = 0;
    int fd = socket_on(&port, true);
    char url[100];
    struct tide_error err = {0};
    struct tide_waker waker;
    tide_waker_init(&waker);
    tide_waker_wake(&waker);
    (void)snprintf(url, sizeof(url), "postgres://u@127.0.0.1:%u/d", port);
    struct tide_pg_wait wait = {.waker = &waker, .deadline_us = TIDE_NO_DEADLINE};
    assert_int_equal(open_url(url, wait, &err), TIDE_CANCELLED);
    assert_false(tide_waker_wait(&waker, 0));
    tide_waker_done(&waker);
    (void)close(fd);
}

/* A server that answers the start of a connection with one message and hangs up. */
struct answerer {
    int fd;
    const char *bytes;
    size_t len;
};

static void *answer(void *arg)
{
    const struct answerer *answerer = arg;
    char request[4096];
    int fd = accept(answerer->fd, NULL, NULL);
    assert_true(fd >= 0);
    assert_true(read(fd, request, sizeof(request)) > 0);
    assert_int_equal(write(fd, answerer->bytes, answerer->len), (ssize_t)answerer->len);
    (void)shutdown(fd, SHUT_WR);
    while (read(fd, request, sizeof(request)) > 0) {
    }
    (void)close(fd);
    return NULL;
}

/* The status of opening when the server's answer is an ErrorResponse with these fields. */
static tide_status open_answered(const char *sqlstate, const char *message, struct tide_error *err)
{
    char bytes[512] = "E";
    size_t len = 5;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "SSCHWER") + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "VFATAL") + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "C%s", sqlstate) + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "M%s", message) + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "Fx.c") + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "L12") + 1;
    len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, "Rauth") + 1;
    bytes[len++] = '\0';
    uint32_t length = htonl((uint32_t)len - 1);
    memcpy(bytes + 1, &length, sizeof(length));

    uint16_t port = 0;
    struct answerer answerer = {.fd = socket_on(&port, true), .bytes = bytes, .len = len};
    pthread_t thread;
    tide_thread_start(&thread, answer, &answerer);
    char url[100];
    (void)snprintf(url, sizeof(url), "postgres://u@127.0.0.1:%u/d?sslmode=disable", port);
    tide_status status = open_url(url, tide_pg_wait_for(5000000), err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(answerer.fd);
    return status;
}

static void open_that_the_server_refuses_goes_by_its_sqlstate_in_every_language(void **state)
{
    (void)state;

    static const struct {
        const char *sqlstate;
        tide_status status;
        bool is_retriable;
    } cases[] = {
        {"28P01", TIDE_IO, false},      {"28000", TIDE_IO, false}, {"42501", TIDE_IO, false},
        {"3D000", TIDE_IO, false},      {"57P03", TIDE_IO, true},  {"53300", TIDE_IO, true},
        {"42704", TIDE_INVALID, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_error err = {0};
        assert_int_equal(open_answered(cases[i].sqlstate, "Das geht nicht", &err), cases[i].status);
        assert_int_equal(err.retriable, cases[i].is_retriable);
        assert_non_null(strstr(err.message, "connect: Das geht nicht (SQLSTATE "));
        assert_non_null(strstr(err.message, cases[i].sqlstate));
        assert_null(strstr(err.message, "SCHWER"));
        assert_null(strstr(err.message, "LOCATION"));
    }
}

static void open_through_a_pooler_says_so(void **state)
{
    (void)state;
    struct tide_error err = {0};
    assert_int_equal(open_answered("08P01", "unsupported startup parameter: options", &err),
                     TIDE_INVALID);
    assert_non_null(strstr(err.message, "pooler"));
}

int main(void)
{
    (void)unsetenv("PGOPTIONS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_of_a_malformed_url_is_invalid_and_tells_no_secret),
        cmocka_unit_test(open_where_nobody_listens_is_retriable),
        cmocka_unit_test(open_of_a_server_that_says_nothing_ends_at_the_deadline),
        cmocka_unit_test(open_is_called_off_by_the_waker),
        cmocka_unit_test(open_that_the_server_refuses_goes_by_its_sqlstate_in_every_language),
        cmocka_unit_test(open_through_a_pooler_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
