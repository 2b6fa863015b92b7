#include "cmocka_prelude.h"

#include "net/address.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void parse_good_addresses_are_shown_as_they_were(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        enum tide_address_kind kind;
        const char *host;
        const char *port;
    } cases[] = {
        {"-", TIDE_ADDRESS_STANDARD, "", ""},
        {"unix:a.sock", TIDE_ADDRESS_UNIX, "", ""},
        {"unix:/run/a b.sock", TIDE_ADDRESS_UNIX, "", ""},
        {"tcp://127.0.0.1:9465", TIDE_ADDRESS_TCP, "127.0.0.1", "9465"},
        {"tcp://localhost:0", TIDE_ADDRESS_TCP, "localhost", "0"},
        {"tcp://[::1]:65535", TIDE_ADDRESS_TCP, "::1", "65535"},
        {"tls://archive.example.org:9465", TIDE_ADDRESS_TLS, "archive.example.org", "9465"},
        {"tls://[fe80::1%eth0]:1", TIDE_ADDRESS_TLS, "fe80::1%eth0", "1"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf shown = {0};
        struct tide_address address;
        struct tide_error err;
        assert_int_equal(tide_address_parse(cases[i].text, &address, &err), TIDE_OK);
        assert_int_equal(address.kind, cases[i].kind);
        assert_string_equal(address.host, cases[i].host);
        assert_string_equal(address.port, cases[i].port);
        tide_address_append(&address, &shown);
        assert_string_equal(tide_buf_cstr(&shown), cases[i].text);
    }
}

static void parse_wrong_addresses_say_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "is no address"},
        {"--", "is no address"},
        {"a.tide", "tcp://HOST:PORT"},
        {"http://127.0.0.1:9465", "is no address"},
        {"tcp:127.0.0.1:9465", "is no address"},
        {"TCP://127.0.0.1:9465", "is no address"},
        {"unix:", "path of a socket is missing"},
        {"unix:run/", "path of a socket is missing"},
        {"tcp://", "a port is missing"},
        {"tcp://127.0.0.1", "a port is missing"},
        {"tcp://[::1]", "a port is missing"},
        {"tcp://[::1", "a port is missing"},
        {"tcp://:9465", "the host"},
        {"tcp://[]:9465", "the host"},
        {"tcp://::1:9465", "in brackets"},
        {"tcp://user:pass@host:9465", "and nothing else"},
        {"tcp://user@host:9465", "and nothing else"},
        {"tcp://a b:9465", "the host"},
        {"tcp://a/b:9465", "the host"},
        {"tcp://host:", "the port is a number"},
        {"tcp://host:http", "the port is a number"},
        {"tcp://host:65536", "the port is a number"},
        {"tcp://host:-1", "the port is a number"},
        {"tcp://host:9465/", "the port is a number"},
        {"tls://host:09465", "the port is a number"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tide_address address = {.kind = TIDE_ADDRESS_TLS};
        struct tide_error err;
        assert_int_equal(tide_address_parse(cases[i].text, &address, &err), TIDE_INVALID);
        if (strstr(err.message, cases[i].says) == NULL) {
            fail_msg("%s: %s", cases[i].text, err.message);
        }
        assert_int_equal(address.kind, TIDE_ADDRESS_TLS); /* untouched */
    }
}

static void parse_too_long_addresses_are_refused(void **state)
{
    (void)state;
    char text[3000] = "tcp://";
    struct tide_address address;
    struct tide_error err;
    for (size_t len = 200; len < sizeof(text) - 10; len += 400) {
        memset(text + 6, 'a', len);
        memcpy(text + 6 + len, ":1", 3);
        tide_status want = len < sizeof(address.host) ? TIDE_OK : TIDE_INVALID;
        assert_int_equal(tide_address_parse(text, &address, &err), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_good_addresses_are_shown_as_they_were),
        cmocka_unit_test(parse_wrong_addresses_say_what_is_wrong),
        cmocka_unit_test(parse_too_long_addresses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
