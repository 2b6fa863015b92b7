/*
 * The socket `control` in the state directory of a running pipeline, by which commands reach it.
 * The path of the directory may be longer than a socket's address can be. Where /proc is missing
 * only short ones work.
 */
#pragma once

#include "base/status.h"

#include <stdint.h>

#define TIDE_CONTROL_SOCKET "control"

/* A longer request is refused. */
#define TIDE_CONTROL_REQUEST_BYTES_MAX ((size_t)64 * 1024)

/**
 * Listens there, without blocking, for the user alone (0600). What a killed process has left under
 * the name is replaced: the caller holds the lock of the directory. Errors: TIDE_IO.
 */
tide_status tide_control_listen(const char *dir, int *ret_fd, struct tide_error *err);

/** Removes the socket, while the lock is still held. */
void tide_control_remove(const char *dir);

/**
 * Connects, waiting until `deadline_us` (monotonic) at most. Errors: TIDE_CLOSED nobody listens
 * there; TIDE_TIMEOUT; TIDE_IO.
 */
tide_status tide_control_connect(const char *dir, int64_t deadline_us, int *ret_fd,
                                 struct tide_error *err);
