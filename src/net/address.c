#include "net/address.h"

#include "base/limits.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define FORMS "tcp://HOST:PORT, tls://HOST:PORT, unix:PATH or -"

/* Text after a prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

static tide_status take_port(const char *port, const char *text, struct tide_address *address,
                             struct tide_error *err)
{
    uint64_t number;
    if (!tide_str_to_u64(tide_str_from(port), &number) || number > 65535) {
        return tide_fail(err, TIDE_INVALID, "\"%s\": the port is a number from 0 to 65535", text);
    }
    (void)snprintf(address->port, sizeof(address->port), "%u", (unsigned)number);
    return TIDE_OK;
}

static bool is_host(tide_str host, bool is_bracketed)
{
    for (size_t i = 0; i < host.len; i++) {
        unsigned char c = (unsigned char)host.ptr[i];
        if (c <= ' ' || c >= 0x7f || strchr("/@?#[]\\\"", c) != NULL ||
            (c == ':' && !is_bracketed)) {
            return false;
        }
    }
    return host.len > 0;
}

/* "HOST:PORT", "[HOST]:PORT" */
static tide_status take_host(const char *rest, const char *text, struct tide_address *address,
                             struct tide_error *err)
{
    bool is_bracketed = rest[0] == '[';
    const char *end = is_bracketed ? strchr(rest, ']') : strrchr(rest, ':');
    const char *colon = end == NULL ? NULL : is_bracketed ? end + 1 : end;
    if (colon == NULL || *colon != ':') {
        return tide_fail(err, TIDE_INVALID, "\"%s\": a port is missing, as in tcp://127.0.0.1:9465",
                         text);
    }
    tide_str host = tide_str_of(rest + is_bracketed, (size_t)(end - rest) - is_bracketed);
    if (host.len >= sizeof(address->host) || !is_host(host, is_bracketed)) {
        return tide_fail(err, TIDE_INVALID,
                         "\"%s\": the host is a name or an address (of IPv6 in brackets, [::1]) "
                         "and nothing else",
                         text);
    }
    memcpy(address->host, host.ptr, host.len);
    address->host[host.len] = '\0';
    return take_port(colon + 1, text, address, err);
}

static tide_status take_path(const char *path, const char *text, struct tide_address *address,
                             struct tide_error *err)
{
    size_t len = strlen(path);
    if (len == 0 || path[len - 1] == '/') {
        return tide_fail(err, TIDE_INVALID, "\"%s\": the path of a socket is missing", text);
    }
    address->path = path;
    return TIDE_OK;
}

tide_status tide_address_parse(const char *text, struct tide_address *ret_address,
                               struct tide_error *err)
{
    struct tide_address address = {0};
    const char *rest;
    if (strlen(text) > TIDE_ADDRESS_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "the address has more than %zu bytes",
                         TIDE_ADDRESS_BYTES_MAX);
    }
    if (strcmp(text, "-") == 0) {
        address.kind = TIDE_ADDRESS_STANDARD;
    } else if ((rest = behind(text, "unix:")) != NULL) {
        address.kind = TIDE_ADDRESS_UNIX;
        TIDE_TRY(take_path(rest, text, &address, err));
    } else if ((rest = behind(text, "tcp://")) != NULL) {
        address.kind = TIDE_ADDRESS_TCP;
        TIDE_TRY(take_host(rest, text, &address, err));
    } else if ((rest = behind(text, "tls://")) != NULL) {
        address.kind = TIDE_ADDRESS_TLS;
        TIDE_TRY(take_host(rest, text, &address, err));
    } else {
        return tide_fail(err, TIDE_INVALID, "\"%.200s\" is no address: say " FORMS, text);
    }
    *ret_address = address;
    return TIDE_OK;
}

void tide_address_append(const struct tide_address *address, struct tide_buf *buf)
{
    const char *scheme = address->kind == TIDE_ADDRESS_TLS ? "tls" : "tcp";
    bool is_bracketed = strchr(address->host, ':') != NULL;
    switch (address->kind) {
    case TIDE_ADDRESS_STANDARD:
        tide_buf_append_char(buf, '-');
        break;
    case TIDE_ADDRESS_UNIX:
        tide_buf_printf(buf, "unix:%s", address->path);
        break;
    case TIDE_ADDRESS_TCP:
    case TIDE_ADDRESS_TLS:
        tide_buf_printf(buf, "%s://%s%s%s:%s", scheme, is_bracketed ? "[" : "", address->host,
                        is_bracketed ? "]" : "", address->port);
        break;
    }
}
