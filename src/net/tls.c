#include "net/tls.h"

#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tide_tls_context {
    SSL_CTX *ctx;
    bool is_server;
};

struct tide_tls {
    SSL *ssl;
};

/* The newest reason that the library has, or the system's. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code == 0 ? NULL : ERR_reason_error_string(code);
    int saved = errno;
    ERR_clear_error();
    return text != NULL ? text : saved != 0 ? strerror(saved) : "no reason is known";
}

static tide_status fail_file(struct tide_error *err, const char *path, const char *what)
{
    return tide_fail(err, TIDE_INVALID, "%s: %s: %s", path, what, reason());
}

/* Contexts. */

static int no_passphrase(char *to, int size, int is_writing, void *context)
{
    (void)to;
    (void)size;
    (void)is_writing;
    (void)context;
    return -1; /* nobody is asked: that would be on the terminal */
}

static tide_status check_key_rights(const char *path, struct tide_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return tide_fail(err, TIDE_INVALID, "%s: %s", path, strerror(errno));
    }
    if ((info.st_mode & S_IRWXO) != 0) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: everybody on this machine may read the key: chmod 0600 it", path);
    }
    return TIDE_OK;
}

static tide_status check_readable(const char *path, struct tide_error *err)
{
    return access(path, R_OK) == 0 ? TIDE_OK
                                   : tide_fail(err, TIDE_INVALID, "%s: %s", path, strerror(errno));
}

static tide_status take_certificate(SSL_CTX *ctx, const struct tide_tls_options *options,
                                    struct tide_error *err)
{
    TIDE_TRY(check_key_rights(options->key, err));
    TIDE_TRY(check_readable(options->certificate, err));
    if (SSL_CTX_use_certificate_chain_file(ctx, options->certificate) != 1) {
        return fail_file(err, options->certificate, "it is no certificate that can be used");
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, options->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1) {
        return fail_file(err, options->key,
                         "it is no key of the certificate, without a passphrase");
    }
    return TIDE_OK;
}

static tide_status take_authorities(SSL_CTX *ctx, const struct tide_tls_options *options,
                                    struct tide_error *err)
{
    bool is_asked = options->authorities != NULL || !options->is_server;
    if (options->authorities != NULL) {
        TIDE_TRY(check_readable(options->authorities, err));
    }
    if (options->authorities != NULL &&
        SSL_CTX_load_verify_locations(ctx, options->authorities, NULL) != 1) {
        return fail_file(err, options->authorities, "it holds no certificates of authorities");
    }
    if (options->authorities == NULL && !options->is_server) {
        (void)SSL_CTX_set_default_verify_paths(ctx);
    }
    if (options->is_server && is_asked) {
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(options->authorities));
    }
    SSL_CTX_set_verify(
        ctx, is_asked ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE, NULL);
    return TIDE_OK;
}

/* Sessions are never taken up again, and memory of a connection that rests is given back. */
static void settle(SSL_CTX *ctx)
{
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(ctx,
                              SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_num_tickets(ctx, 0);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
}

tide_status tide_tls_context_open(const struct tide_tls_options *options,
                                  struct tide_tls_context **ret_context, struct tide_error *err)
{
    TIDE_CLEANUP(tide_tls_context_close_ptr)
    struct tide_tls_context *context = tide_alloc(1, sizeof(*context));
    ERR_clear_error();
    errno = 0;
    context->is_server = options->is_server;
    context->ctx = SSL_CTX_new(options->is_server ? TLS_server_method() : TLS_client_method());
    if (context->ctx == NULL) {
        return tide_fail(err, TIDE_IO, "cannot begin with TLS: %s", reason());
    }
    settle(context->ctx);
    if (options->certificate != NULL) {
        TIDE_TRY(take_certificate(context->ctx, options, err));
    }
    TIDE_TRY(take_authorities(context->ctx, options, err));
    *ret_context = context;
    context = NULL;
    return TIDE_OK;
}

void tide_tls_context_close(struct tide_tls_context *context)
{
    if (context != NULL) {
        SSL_CTX_free(context->ctx);
        free(context);
    }
}

void tide_tls_context_close_ptr(struct tide_tls_context **context)
{
    tide_tls_context_close(*context);
}

/* Sessions. */

/* A name is asked for, and must be in the certificate; an address likewise. */
static bool expect_host(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1) {
        return true;
    }
    ERR_clear_error();
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

tide_status tide_tls_open(struct tide_tls_context *context, int fd, const char *host,
                          struct tide_tls **ret_tls, struct tide_error *err)
{
    SSL *ssl = SSL_new(context->ctx);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || (host != NULL && !expect_host(ssl, host))) {
        SSL_free(ssl);
        return tide_fail(err, TIDE_IO, "cannot begin a TLS connection: %s", reason());
    }
    if (context->is_server) {
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
    }
    struct tide_tls *tls = tide_alloc(1, sizeof(*tls));
    tls->ssl = ssl;
    *ret_tls = tls;
    return TIDE_OK;
}

void tide_tls_close(struct tide_tls *tls)
{
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}

/* Alerts by which the other side says that it does not take our certificate, or that there is none.
 */
static bool is_refused_by_peer(unsigned long code)
{
    switch (ERR_GET_REASON(code)) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return true;
    default:
        return false;
    }
}

static bool is_no_tls(int why)
{
    return why == SSL_R_WRONG_VERSION_NUMBER || why == SSL_R_HTTP_REQUEST ||
           why == SSL_R_HTTPS_PROXY_REQUEST;
}

static tide_status fail_library(const struct tide_tls *tls, struct tide_error *err)
{
    unsigned long code = ERR_peek_last_error();
    long verified = SSL_get_verify_result(tls->ssl);
    int why = ERR_GET_REASON(code);
    if (why == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        ERR_clear_error();
        return tide_fail(err, TIDE_REMOTE, "the other side's certificate is not trusted: %s",
                         X509_verify_cert_error_string(verified));
    }
    if (why == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        ERR_clear_error();
        return tide_fail(err, TIDE_REMOTE, "the other side has shown no certificate");
    }
    if (why == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        ERR_clear_error();
        return tide_fail_retriable(err, TIDE_CLOSED, "the TLS connection was cut");
    }
    if (is_no_tls(why)) {
        ERR_clear_error();
        return tide_fail(err, TIDE_CORRUPT, "the other side does not speak TLS");
    }
    tide_status status = is_refused_by_peer(code) ? TIDE_REMOTE : TIDE_UNSUPPORTED;
    return tide_fail(err, status, "%s: %s",
                     status == TIDE_REMOTE ? "the other side does not take our certificate, or "
                                             "that we have none"
                                           : "this is not TLS as it should be",
                     reason());
}

/* What a call that did not succeed means; `ret_wants` when it only waits. */
static tide_status judge(const struct tide_tls *tls, int result, short *ret_wants,
                         struct tide_error *err)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        *ret_wants = POLLIN;
        return TIDE_OK;
    case SSL_ERROR_WANT_WRITE:
        *ret_wants = POLLOUT;
        return TIDE_OK;
    case SSL_ERROR_ZERO_RETURN:
        return tide_fail(err, TIDE_END, "the other side has ended");
    case SSL_ERROR_SYSCALL:
        return tide_fail_retriable(err, TIDE_CLOSED, "the TLS connection was cut: %s", reason());
    default:
        return fail_library(tls, err);
    }
}

static void before_call(void)
{
    ERR_clear_error();
    errno = 0;
}

tide_status tide_tls_handshake(struct tide_tls *tls, short *ret_wants, struct tide_error *err)
{
    before_call();
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1) {
        *ret_wants = 0;
        return TIDE_OK;
    }
    return judge(tls, result, ret_wants, err);
}

tide_status tide_tls_read(struct tide_tls *tls, char *to, size_t size, size_t *ret_size,
                          short *ret_wants, struct tide_error *err)
{
    size_t got = 0;
    before_call();
    int result = SSL_read_ex(tls->ssl, to, size, &got);
    if (result == 1) {
        *ret_size = got;
        *ret_wants = 0;
        return TIDE_OK;
    }
    TIDE_TRY(judge(tls, result, ret_wants, err));
    *ret_size = 0;
    return TIDE_OK;
}

tide_status tide_tls_write(struct tide_tls *tls, const char *from, size_t size, size_t *ret_size,
                           short *ret_wants, struct tide_error *err)
{
    size_t put = 0;
    before_call();
    int result = SSL_write_ex(tls->ssl, from, size, &put);
    if (result == 1) {
        *ret_size = put;
        *ret_wants = 0;
        return TIDE_OK;
    }
    TIDE_TRY(judge(tls, result, ret_wants, err));
    *ret_size = 0;
    return TIDE_OK;
}

tide_status tide_tls_end(struct tide_tls *tls, short *ret_wants, struct tide_error *err)
{
    before_call();
    int result = SSL_shutdown(tls->ssl);
    if (result >= 0) { /* 0: said, and the other side has not ended yet */
        *ret_wants = 0;
        return TIDE_OK;
    }
    return judge(tls, result, ret_wants, err);
}

/* Hashes have one length, whatever the secrets have. */
bool tide_tls_secrets_equal(const char *a, size_t a_size, const char *b, size_t b_size)
{
    unsigned char a_hash[SHA256_DIGEST_LENGTH];
    unsigned char b_hash[SHA256_DIGEST_LENGTH];
    (void)SHA256((const unsigned char *)a, a_size, a_hash);
    (void)SHA256((const unsigned char *)b, b_size, b_hash);
    return CRYPTO_memcmp(a_hash, b_hash, sizeof(a_hash)) == 0;
}
