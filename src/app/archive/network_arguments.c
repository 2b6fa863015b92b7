#include "app/archive/network_arguments.h"

#include "app/number_argument.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_US 30000000
#define US_A_SECOND 1000000

static int64_t seconds(const char *arg, const char *option, struct argp_state *state)
{
    return (int64_t)tide_number_argument(arg, 1, TIDE_NET_SECONDS_MAX, option, state) * US_A_SECOND;
}

error_t tide_network_arguments_take(struct tide_network_arguments *arguments, int key, char *arg,
                                    struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        arguments->patience_us = PATIENCE_US;
        return 0;
    case TIDE_NETWORK_OPTION_FOLLOW:
        arguments->goes_on = true;
        return 0;
    case TIDE_NETWORK_OPTION_QUIET:
        arguments->is_quiet = true;
        return 0;
    case TIDE_NETWORK_OPTION_JSON:
        arguments->is_json = true;
        return 0;
    case TIDE_NETWORK_OPTION_TOKEN_FILE:
        arguments->token_file = arg;
        return 0;
    case TIDE_NETWORK_OPTION_CERTIFICATE:
        arguments->certificate = arg;
        return 0;
    case TIDE_NETWORK_OPTION_KEY:
        arguments->key = arg;
        return 0;
    case TIDE_NETWORK_OPTION_AUTHORITIES:
        arguments->authorities = arg;
        return 0;
    case TIDE_NETWORK_OPTION_TIMEOUT:
        arguments->patience_us = seconds(arg, "--timeout", state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The token. */

static tide_status check_token_file(const char *path, int fd, struct tide_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return tide_fail(err, TIDE_INVALID, "%s is not a file; the token is in one", path);
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: others on this machine may read the token: chmod 0600 it", path);
    }
    return TIDE_OK;
}

static tide_status check_token(const char *path, tide_str token, struct tide_error *err)
{
    bool is_printable = true;
    for (size_t i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.ptr[i];
        is_printable = is_printable && c > ' ' && c < 0x7f;
    }
    if (!is_printable || token.len < TIDE_TOKEN_BYTES_MIN || token.len > TIDE_TOKEN_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: a token is one line of %zu to %zu letters and digits, e.g. of "
                         "openssl rand -hex 32",
                         path, TIDE_TOKEN_BYTES_MIN, TIDE_TOKEN_BYTES_MAX);
    }
    return TIDE_OK;
}

static tide_status read_token(const char *path, struct tide_buf *token, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return tide_fail(err, TIDE_INVALID, "cannot read the token in %s: %s", path,
                         strerror(errno));
    }
    TIDE_TRY(check_token_file(path, fd, err));
    size_t size = TIDE_TOKEN_BYTES_MAX + 2; /* one too many is noticed, and a line end fits */
    ssize_t got = read(fd, tide_buf_reserve(token, size), size);
    if (got < 0) {
        return tide_fail(err, TIDE_INVALID, "cannot read the token in %s: %s", path,
                         strerror(errno));
    }
    token->len = (size_t)got;
    if (token->len > 0 && token->ptr[token->len - 1] == '\n') {
        token->len--;
    }
    return check_token(path, tide_buf_str(token), err);
}

/* TLS. */

static tide_status check_plain(const struct tide_network_arguments *arguments,
                               const struct tide_address *address, struct tide_error *err)
{
    const char *option = arguments->certificate != NULL   ? "--certificate"
                         : arguments->key != NULL         ? "--key"
                         : arguments->authorities != NULL ? arguments->authorities_option
                                                          : NULL;
    if (option != NULL) {
        return tide_fail(err, TIDE_INVALID, "%s is for tls:// alone", option);
    }
    if (arguments->token_file != NULL && address->kind == TIDE_ADDRESS_STANDARD) {
        return tide_fail(err, TIDE_INVALID,
                         "--token-file is for sockets: nobody is asked who they are on a pipe");
    }
    return TIDE_OK;
}

static tide_status check_tls(const struct tide_network_arguments *arguments, bool is_server,
                             struct tide_error *err)
{
    bool has_both = arguments->certificate != NULL && arguments->key != NULL;
    bool has_one = arguments->certificate != NULL || arguments->key != NULL;
    if (has_one && !has_both) {
        return tide_fail(err, TIDE_INVALID, "--certificate and --key belong together");
    }
    if (is_server && !has_both) {
        return tide_fail(err, TIDE_INVALID,
                         "tls:// needs --certificate and --key, to show followers who we are");
    }
    if (is_server && arguments->token_file == NULL && arguments->authorities == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "tls:// would be open to everybody: ask for a token (--token-file) or for "
                         "certificates (%s)",
                         arguments->authorities_option);
    }
    return TIDE_OK;
}

tide_status tide_network_open(const struct tide_network_arguments *arguments,
                              const struct tide_address *address, bool is_server,
                              struct tide_network *ret_network, struct tide_error *err)
{
    if (address->kind != TIDE_ADDRESS_TLS) {
        TIDE_TRY(check_plain(arguments, address, err));
    } else {
        TIDE_TRY(check_tls(arguments, is_server, err));
    }
    if (arguments->token_file != NULL) {
        TIDE_TRY(read_token(arguments->token_file, &ret_network->token, err));
    }
    if (address->kind != TIDE_ADDRESS_TLS) {
        return TIDE_OK;
    }
    const struct tide_tls_options options = {.is_server = is_server,
                                             .certificate = arguments->certificate,
                                             .key = arguments->key,
                                             .authorities = arguments->authorities};
    return tide_tls_context_open(&options, &ret_network->tls, err);
}

void tide_network_close(struct tide_network *network)
{
    if (network->token.ptr != NULL) {
        explicit_bzero(network->token.ptr, network->token.cap);
    }
    tide_buf_done(&network->token);
    tide_tls_context_close(network->tls);
    *network = (struct tide_network){0};
}

void tide_network_say(void *context, bool is_problem, const char *line)
{
    (void)context;
    tide_log(is_problem ? TIDE_LOG_WARN : TIDE_LOG_INFO, "%s", line);
}
