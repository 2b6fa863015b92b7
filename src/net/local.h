/*
 * Unix sockets of the user alone (0600), also where their path is longer than a socket's address
 * can be (by /proc, which short ones do without).
 */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * Listens on `name` in `dir`, without blocking. Whatever has the name is replaced: the caller knows
 * that nobody listens there. Errors: TIDE_IO.
 */
tide_status tide_local_listen(const char *dir, const char *name, int *ret_fd,
                              struct tide_error *err);

/** Removes the name, while nobody else can have taken it. */
void tide_local_remove(const char *dir, const char *name);

/**
 * Connects, waiting until `deadline_us` (monotonic) at most. Errors: TIDE_CLOSED nobody listens
 * there; TIDE_TIMEOUT; TIDE_IO.
 */
tide_status tide_local_connect(const char *dir, const char *name, int64_t deadline_us, int *ret_fd,
                               struct tide_error *err);

/* A socket that is listened on at a path of the user's. */
struct tide_local {
    char *dir;
    char *name;
    int fd;               /* to accept from */
    struct timespec made; /* its name, so that another program's is not removed */
};

/**
 * Listens at `path`. A socket that a killed program has left there is replaced.
 * Errors: TIDE_INVALID somebody listens there, something else has the name, or others could put a
 *         socket of theirs in its place; TIDE_IO.
 */
tide_status tide_local_open(const char *path, struct tide_local *ret_local, struct tide_error *err);

/** Stops listening and removes the socket; `{.fd = -1}` is fine. */
void tide_local_close(struct tide_local *local);

/** Connects to the socket at `path`; errors as tide_local_connect. */
tide_status tide_local_reach(const char *path, int64_t deadline_us, int *ret_fd,
                             struct tide_error *err);
