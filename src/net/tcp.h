/*
 * Sockets of TCP, for tcp:// and tls:// alike. They do not block. What is not encrypted stays
 * within the machine: a tcp:// address that leads out of it is refused, with what to use instead.
 */
#pragma once

#include "base/status.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdint.h>

/** Listens there; port 0 is any that is free. Errors: TIDE_INVALID a tcp:// address beyond the
 * machine; TIDE_IO. */
tide_status tide_tcp_listen(const struct tide_address *address, int *ret_fd,
                            struct tide_error *err);

/**
 * Connects, trying each address that the host has, for `patience_us` at most.
 * Errors: TIDE_CANCELLED `stop_fd` can be read meanwhile; TIDE_INVALID as above; TIDE_CLOSED,
 * TIDE_TIMEOUT (both retriable), TIDE_IO.
 */
tide_status tide_tcp_connect(const struct tide_address *address, int64_t patience_us, int stop_fd,
                             int *ret_fd, struct tide_error *err);

/** Sets up a connected socket: what is written goes at once, and when nothing of it was taken for
 * twice `patience_us`, as by a machine that is gone, the connection ends. Fine for sockets of other
 * kinds. */
void tide_tcp_settle(int fd, int64_t patience_us);

/** The number of the port that a socket listens on. */
unsigned tide_tcp_port(int fd);

/* Characters of what tide_tcp_name writes, with NUL. */
#define TIDE_TCP_NAME_SIZE 80

/** Who is at the other end of an accepted socket, for messages: "127.0.0.1:40112", "pid 4711". */
void tide_tcp_name(int fd, char ret_name[TIDE_TCP_NAME_SIZE]);
