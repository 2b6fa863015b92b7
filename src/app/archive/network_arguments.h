/* What publish and subscribe are given alike: of TLS, a token, how long to wait. */
#pragma once

#include "base/buf.h"
#include "net/address.h"
#include "net/tls.h"

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct tide_network_arguments {
    const char *token_file;
    const char *certificate;
    const char *key;
    const char *authorities;
    const char *authorities_option; /* "--ca", "--client-ca" */
    int64_t patience_us;            /* 0: the usual one */
    bool is_json;
    bool is_quiet;
    bool goes_on;
};

/* Keys of the options below; those of the commands themselves begin at 256. */
enum {
    TIDE_NETWORK_OPTION_FOLLOW = 'f',
    TIDE_NETWORK_OPTION_QUIET = 'q',
    TIDE_NETWORK_OPTION_TOKEN_FILE = 768,
    TIDE_NETWORK_OPTION_CERTIFICATE,
    TIDE_NETWORK_OPTION_KEY,
    TIDE_NETWORK_OPTION_AUTHORITIES,
    TIDE_NETWORK_OPTION_TIMEOUT,
    TIDE_NETWORK_OPTION_JSON,
};

/* Lines of a command's option table. */
#define TIDE_NETWORK_OPTIONS(authorities, authorities_help)                                        \
    {"token-file",                                                                                 \
     TIDE_NETWORK_OPTION_TOKEN_FILE,                                                               \
     "FILE",                                                                                       \
     0,                                                                                            \
     "The secret that a follower has to name (0600)",                                              \
     0},                                                                                           \
        {"certificate",                                                                            \
         TIDE_NETWORK_OPTION_CERTIFICATE,                                                          \
         "FILE",                                                                                   \
         0,                                                                                        \
         "Of tls://: our certificate, and the chain behind it (PEM)",                              \
         0},                                                                                       \
        {"key", TIDE_NETWORK_OPTION_KEY, "FILE", 0, "Its key (PEM, without a passphrase)", 0},     \
        {authorities, TIDE_NETWORK_OPTION_AUTHORITIES, "FILE", 0, authorities_help, 0},            \
        {"timeout",                                                                                \
         TIDE_NETWORK_OPTION_TIMEOUT,                                                              \
         "SECONDS",                                                                                \
         0,                                                                                        \
         "How long the other side may let us wait (30)",                                           \
         0},                                                                                       \
        {"json", TIDE_NETWORK_OPTION_JSON, NULL, 0, "Print what was done as a line of JSON", 0},   \
    {                                                                                              \
        "quiet", TIDE_NETWORK_OPTION_QUIET, NULL, 0, "Say only what is wrong", 0                   \
    }

/** Takes the keys above; the others are ARGP_ERR_UNKNOWN. */
error_t tide_network_arguments_take(struct tide_network_arguments *arguments, int key, char *arg,
                                    struct argp_state *state);

/* What they name. */
struct tide_network {
    struct tide_tls_context *tls; /* NULL: the address is none of tls:// */
    struct tide_buf token;        /* empty: none */
};

/**
 * Reads what is named, and looks whether it fits the address. A server that can be reached over a
 * network has a certificate, and asks for a token or for certificates.
 * Errors: TIDE_INVALID.
 */
tide_status tide_network_open(const struct tide_network_arguments *arguments,
                              const struct tide_address *address, bool is_server,
                              struct tide_network *ret_network, struct tide_error *err);

/** `{0}` is fine. For TIDE_CLEANUP too. */
void tide_network_close(struct tide_network *network);

/** Logs a line of a connection: `say` of servers and followers. */
void tide_network_say(void *context, bool is_problem, const char *line);
