/*
 * TLS (1.2 and later) over sockets that do not block. A context is one side's certificate, and whom
 * it trusts; a session is one connection. One thread at a time has a context and its sessions.
 *
 * Calls that would block return TIDE_OK with nothing done, and `wants`: what poll() is to wait for
 * (POLLIN or POLLOUT), whatever the call was.
 */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_tls_context;
struct tide_tls;

struct tide_tls_options {
    bool is_server;
    const char *certificate; /* PEM, with the chain behind it; NULL: none */
    const char *key;         /* PEM, of the certificate, without a passphrase */
    const char *authorities; /* PEM: whose certificates of the other side are trusted. NULL: of a
                                client's, those of the system; of a server's, none is asked for */
};

/**
 * Reads what is named. Errors: TIDE_INVALID a file that is missing, is not what it should be, or a
 * key that others may read.
 */
tide_status tide_tls_context_open(const struct tide_tls_options *options,
                                  struct tide_tls_context **ret_context, struct tide_error *err);

/** NULL is fine. */
void tide_tls_context_close(struct tide_tls_context *context);
void tide_tls_context_close_ptr(struct tide_tls_context **context);

/** A session on a connected socket, which stays the caller's. `host`: for a client, whom the
 * server's certificate must name; NULL for servers. */
tide_status tide_tls_open(struct tide_tls_context *context, int fd, const char *host,
                          struct tide_tls **ret_tls, struct tide_error *err);

/** NULL is fine. */
void tide_tls_close(struct tide_tls *tls);

/**
 * Goes on with the handshake; done when `wants` is 0.
 * Errors: TIDE_REMOTE the other's certificate is not trusted, or ours is not by it; TIDE_CLOSED
 * (retriable) it ended; TIDE_CORRUPT that is no TLS.
 */
tide_status tide_tls_handshake(struct tide_tls *tls, short *ret_wants, struct tide_error *err);

/** Reads up to `size` bytes. TIDE_END: the other side said that it has ended; other errors as in
 * the handshake. */
tide_status tide_tls_read(struct tide_tls *tls, char *to, size_t size, size_t *ret_size,
                          short *ret_wants, struct tide_error *err);

/** Writes some of `size` bytes. */
tide_status tide_tls_write(struct tide_tls *tls, const char *from, size_t size, size_t *ret_size,
                           short *ret_wants, struct tide_error *err);

/** Says that nothing more is written; done when `wants` is 0. */
tide_status tide_tls_end(struct tide_tls *tls, short *ret_wants, struct tide_error *err);

/** Whether two secrets are the same, in a time that does not depend on where they differ. */
bool tide_tls_secrets_equal(const char *a, size_t a_size, const char *b, size_t b_size);
