/*
 * Where a stream goes or comes from, as users write it:
 *
 *     tcp://HOST:PORT   within the machine    unix:PATH   a socket of the user's alone
 *     tls://HOST:PORT   beyond it             -           standard input and output
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>

enum tide_address_kind {
    TIDE_ADDRESS_STANDARD,
    TIDE_ADDRESS_UNIX,
    TIDE_ADDRESS_TCP,
    TIDE_ADDRESS_TLS,
};

struct tide_address {
    enum tide_address_kind kind;
    char host[256]; /* TCP and TLS; without brackets */
    char port[8];
    const char *path; /* of a unix socket; borrows from the text */
};

/** Reads an address. TIDE_INVALID with what is wrong with it, and how it is written. */
tide_status tide_address_parse(const char *text, struct tide_address *ret_address,
                               struct tide_error *err);

/** Appends it as users write it; "standard input" and such is for the caller to say. */
void tide_address_append(const struct tide_address *address, struct tide_buf *buf);

/** Whether it is reached over a network: TCP or TLS. */
static inline bool tide_address_has_host(const struct tide_address *address)
{
    return address->kind == TIDE_ADDRESS_TCP || address->kind == TIDE_ADDRESS_TLS;
}
