/*
 * One connection, of whatever kind: a socket with or without TLS, or a standard stream. A socket
 * never blocks; a standard stream does only where it is a file, or a pipe that is written to and
 * cannot be opened anew.
 *
 * A call that would block does nothing; `wants` then says what to wait for.
 */
#pragma once

#include "base/status.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_link {
    int fd;
    bool is_socket;
    struct tide_tls *tls; /* NULL: none */
    short wants;          /* for poll(): after a call that would have blocked */
};

/** A socket that does not block, which is the link's from then on. */
struct tide_link tide_link_of_socket(int fd);

/** Standard input or output, which stays open when the link is closed. */
struct tide_link tide_link_of_input(void);
struct tide_link tide_link_of_output(void);

/** Closes it; `{.fd = -1}` is fine. */
void tide_link_close(struct tide_link *link);

/** Goes on with the TLS handshake, if there is one. Errors as tide_tls_handshake. */
tide_status tide_link_handshake(struct tide_link *link, bool *ret_is_done, struct tide_error *err);

/** The connection goes on without TLS, for a handshake that failed: to be ended in order. */
void tide_link_end_tls(struct tide_link *link);

/**
 * Reads what is there, up to `size` bytes; 0: it would block.
 * Errors: TIDE_END the other side has ended; TIDE_CLOSED it was cut, TIDE_IO (both retriable);
 * those of TLS.
 */
tide_status tide_link_read(struct tide_link *link, char *to, size_t size, size_t *ret_size,
                           struct tide_error *err);

/** Writes some of it; 0: it would block. Errors as of reading. */
tide_status tide_link_write(struct tide_link *link, const char *from, size_t size, size_t *ret_size,
                            struct tide_error *err);

/** Says that nothing more is written. The other side may still write. */
tide_status tide_link_end(struct tide_link *link, bool *ret_is_done, struct tide_error *err);
