#include "app/control/control_server.h"

#include "app/control/control_socket.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fsio.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 32
#define ACCEPTS_MAX 16 /* in one go, before the others have their turn */
#define READ_STEP   4096
#define PATIENCE_US 5000000
#define COOLING_US  100000 /* after the process ran out of descriptors */

enum client_state {
    CLIENT_NONE,
    CLIENT_READING, /* its line is not complete */
    CLIENT_WAITING, /* for its turn */
    CLIENT_ASKED,   /* its line is with the main thread */
    CLIENT_WRITING,
};

struct client {
    enum client_state state;
    int fd;
    int64_t deadline_us;  /* READING and WRITING */
    uint64_t turn;        /* WAITING: the lowest is next */
    struct tide_buf line; /* what came, then what goes */
    size_t written;
};

struct tide_control_server {
    char *dir;
    struct tide_waker *waker; /* of the main thread */
    int64_t patience_us;
    pthread_t thread;
    struct tide_waker own_waker;

    /* of the thread */
    int listener;
    int64_t cooling_until_us;
    struct client clients[CLIENTS_MAX];
    uint64_t turns;

    pthread_mutex_t mutex; /* of what follows */
    bool is_stopping;
    struct client *asked; /* NULL: the main thread has nothing of ours */
    bool is_taken;
    bool has_answer;
    struct tide_buf request; /* the main thread's while it is taken */
    struct tide_buf answer;
    struct tide_buf excuse;
};

static void client_close(struct client *client)
{
    tide_fd_close(&client->fd);
    tide_buf_done(&client->line);
    client->state = CLIENT_NONE;
}

static void client_answer(struct tide_control_server *server, struct client *client,
                          tide_str answer)
{
    tide_buf_reset(&client->line);
    tide_buf_append_str(&client->line, answer);
    tide_buf_append_char(&client->line, '\n');
    client->written = 0;
    client->state = CLIENT_WRITING;
    client->deadline_us = tide_clock_deadline_us(server->patience_us);
}

/* READING: takes in what is there. True: the line is whole. */
static bool client_read(struct tide_control_server *server, struct client *client)
{
    size_t before = client->line.len;
    char *to = tide_buf_reserve(&client->line, READ_STEP);
    ssize_t got = recv(client->fd, to, READ_STEP, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        client_close(client);
        return false;
    }
    client->line.len += (size_t)got;
    const char *end = memchr(to, '\n', (size_t)got);
    if (end != NULL) {
        client->line.len = before + (size_t)(end - to);
        client->state = CLIENT_WAITING;
        client->turn = ++server->turns;
        return true;
    }
    if (client->line.len > TIDE_CONTROL_REQUEST_BYTES_MAX) {
        client_close(client);
    }
    return false;
}

static void client_write(struct client *client)
{
    size_t left = client->line.len - client->written;
    ssize_t sent =
        send(client->fd, client->line.ptr + client->written, left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    client->written += sent > 0 ? (size_t)sent : 0;
    if (sent < 0 || client->written == client->line.len) {
        client_close(client);
    }
}

static struct client *next_waiting(struct tide_control_server *server)
{
    struct client *next = NULL;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];
        if (client->state == CLIENT_WAITING && (next == NULL || client->turn < next->turn)) {
            next = client;
        }
    }
    return next;
}

static void take_answer(struct tide_control_server *server)
{
    if (server->has_answer) {
        client_answer(server, server->asked, tide_buf_str(&server->answer));
        server->asked = NULL;
        server->has_answer = false;
        server->is_taken = false;
    }
}

/* What the main thread has not taken yet it would not take for a while. */
static void make_excuses(struct tide_control_server *server)
{
    tide_str excuse = tide_buf_str(&server->excuse);
    if (server->asked != NULL && !server->is_taken) {
        client_answer(server, server->asked, excuse);
        server->asked = NULL;
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (server->clients[i].state == CLIENT_WAITING) {
            client_answer(server, &server->clients[i], excuse);
        }
    }
}

static void ask(struct tide_control_server *server)
{
    struct client *client = server->asked == NULL ? next_waiting(server) : NULL;
    if (client != NULL) {
        client->state = CLIENT_ASKED;
        server->asked = client;
        tide_buf_reset(&server->request);
        tide_buf_append_str(&server->request, tide_buf_str(&client->line));
        tide_waker_wake(server->waker);
    }
}

/* Moves lines between clients and the main thread. False: it is time to end. */
static bool exchange(struct tide_control_server *server)
{
    tide_mutex_lock(&server->mutex);
    take_answer(server);
    if (server->excuse.len > 0) {
        make_excuses(server);
    } else {
        ask(server);
    }
    bool goes_on = !server->is_stopping;
    tide_mutex_unlock(&server->mutex);
    return goes_on;
}

/* A place for a new client: one that is free, or that of the one that has said nothing for longest.
 */
static struct client *find_place(struct tide_control_server *server)
{
    struct client *place = NULL;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];
        if (client->state == CLIENT_NONE) {
            return client;
        }
        if (client->state == CLIENT_READING &&
            (place == NULL || client->deadline_us < place->deadline_us)) {
            place = client;
        }
    }
    return place;
}

/* False: nobody waits, or cannot be let in now. */
static bool accept_one(struct tide_control_server *server)
{
    struct client *client = find_place(server);
    if (client == NULL) {
        return false;
    }
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            server->cooling_until_us = tide_clock_deadline_us(COOLING_US);
        }
        return false;
    }
    if (client->state != CLIENT_NONE) {
        client_close(client);
    }
    *client = (struct client){.state = CLIENT_READING,
                              .fd = fd,
                              .deadline_us = tide_clock_deadline_us(server->patience_us)};
    (void)client_read(server, client); /* most have sent it already */
    return true;
}

static void accept_some(struct tide_control_server *server)
{
    for (unsigned i = 0; i < ACCEPTS_MAX && accept_one(server); i++) {
    }
}

/* The earlier of the two; those that have passed end their client. */
static int64_t check_deadlines(struct tide_control_server *server, int64_t earliest_us)
{
    int64_t now_us = tide_clock_monotonic_us();
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];
        if (client->state != CLIENT_READING && client->state != CLIENT_WRITING) {
            continue;
        }
        if (client->deadline_us <= now_us) {
            client_close(client);
        } else if (client->deadline_us < earliest_us) {
            earliest_us = client->deadline_us;
        }
    }
    return earliest_us;
}

/* Our waker, the listener, then the clients in their places. */
static void wait_for_any(struct tide_control_server *server, struct pollfd fds[CLIENTS_MAX + 2])
{
    bool is_cooling = server->cooling_until_us > tide_clock_monotonic_us();
    int64_t until_us =
        check_deadlines(server, is_cooling ? server->cooling_until_us : TIDE_NO_DEADLINE);
    bool has_place = !is_cooling && find_place(server) != NULL;
    fds[0] = (struct pollfd){.fd = server->own_waker.fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = has_place ? server->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        const struct client *client = &server->clients[i];
        bool reads = client->state == CLIENT_READING;
        bool writes = client->state == CLIENT_WRITING;
        fds[i + 2] = (struct pollfd){.fd = reads || writes ? client->fd : -1,
                                     .events = reads ? POLLIN : POLLOUT};
    }
    if (poll(fds, CLIENTS_MAX + 2, tide_clock_timeout_ms(until_us)) < 0) {
        for (size_t i = 0; i < CLIENTS_MAX + 2; i++) {
            fds[i].revents = 0;
        }
    }
}

static void serve_clients(struct tide_control_server *server, const struct pollfd *fds)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *client = &server->clients[i];
        if (fds[i].revents == 0) {
            continue;
        }
        if (client->state == CLIENT_READING) {
            (void)client_read(server, client);
        } else if (client->state == CLIENT_WRITING) {
            client_write(client);
        }
    }
}

static void *run_server(void *arg)
{
    struct tide_control_server *server = arg;
    struct pollfd fds[CLIENTS_MAX + 2];
    while (exchange(server)) {
        wait_for_any(server, fds);
        (void)tide_waker_wait(&server->own_waker, 0);
        serve_clients(server, fds + 2);
        if (fds[1].revents != 0) {
            accept_some(server);
        }
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (server->clients[i].state == CLIENT_WRITING) {
            client_write(&server->clients[i]); /* what was answered just before the end */
        }
    }
    return NULL;
}

tide_status tide_control_server_start(const char *dir, struct tide_waker *waker,
                                      int64_t patience_us, struct tide_control_server **ret_server,
                                      struct tide_error *err)
{
    int listener = -1;
    TIDE_TRY(tide_control_listen(dir, &listener, err));
    struct tide_control_server *server = tide_alloc(1, sizeof(*server));
    server->dir = tide_strndup(dir, strlen(dir));
    server->waker = waker;
    server->patience_us = patience_us > 0 ? patience_us : PATIENCE_US;
    server->listener = listener;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        server->clients[i].fd = -1;
    }
    tide_waker_init(&server->own_waker);
    int rc = pthread_mutex_init(&server->mutex, NULL);
    TIDE_ASSERT(rc == 0);
    tide_thread_start(&server->thread, run_server, server);
    *ret_server = server;
    return TIDE_OK;
}

void tide_control_server_stop(struct tide_control_server *server)
{
    if (server == NULL) {
        return;
    }
    tide_mutex_lock(&server->mutex);
    server->is_stopping = true;
    tide_mutex_unlock(&server->mutex);
    tide_waker_wake(&server->own_waker);
    int rc = pthread_join(server->thread, NULL);
    TIDE_ASSERT(rc == 0);
    tide_control_remove(server->dir);
    tide_fd_close(&server->listener);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        client_close(&server->clients[i]);
    }
    tide_waker_done(&server->own_waker);
    (void)pthread_mutex_destroy(&server->mutex);
    tide_buf_done(&server->request);
    tide_buf_done(&server->answer);
    tide_buf_done(&server->excuse);
    free(server->dir);
    free(server);
}

bool tide_control_server_take(struct tide_control_server *server, tide_str *ret_request)
{
    tide_mutex_lock(&server->mutex);
    bool is_there = server->asked != NULL && !server->is_taken;
    if (is_there) {
        server->is_taken = true;
        *ret_request = tide_buf_str(&server->request);
    }
    tide_mutex_unlock(&server->mutex);
    return is_there;
}

void tide_control_server_answer(struct tide_control_server *server, tide_str answer)
{
    tide_mutex_lock(&server->mutex);
    TIDE_ASSERT(server->is_taken && !server->has_answer);
    tide_buf_reset(&server->answer);
    tide_buf_append_str(&server->answer, answer);
    server->has_answer = true;
    tide_mutex_unlock(&server->mutex);
    tide_waker_wake(&server->own_waker);
}

void tide_control_server_excuse(struct tide_control_server *server, tide_str excuse)
{
    tide_mutex_lock(&server->mutex);
    TIDE_ASSERT(!server->is_taken || server->has_answer);
    tide_buf_reset(&server->excuse);
    tide_buf_append_str(&server->excuse, excuse);
    tide_mutex_unlock(&server->mutex);
    tide_waker_wake(&server->own_waker);
}
