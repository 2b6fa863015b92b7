/* Opens a connection: the URL is looked at before libpq may put any of it into a message. */
#include "base/alloc.h"
#include "base/clock.h"
#include "source/postgres/pg_cancel.h"
#include "source/postgres/pg_conn_private.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What the text of a value, the meaning of a statement or its life depend on. row_security off: a
 * policy that would hide rows from us makes the statement fail instead. synchronous_commit local:
 * what we write must not wait for a standby that may be away.
 */
static const char pinned_options[] =
    "-c DateStyle=ISO,MDY -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=3"
    " -c bytea_output=hex -c lc_monetary=C -c search_path= -c standard_conforming_strings=on"
    " -c quote_all_identifiers=off -c row_security=off -c client_min_messages=warning"
    " -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0"
    " -c idle_session_timeout=0 -c default_transaction_read_only=off"
    " -c default_transaction_isolation=read\\ committed -c default_transaction_deferrable=off"
    " -c synchronous_commit=local -c synchronize_seqscans=on -c jit=off";

static void options_done(PQconninfoOption **options)
{
    PQconninfoFree(*options);
}

static const char *option_of(const PQconninfoOption *options, const char *keyword)
{
    TIDE_ASSERT(options != NULL);
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        if (strcmp(option->keyword, keyword) == 0) {
            return option->val == NULL ? "" : option->val;
        }
    }
    return "";
}

static tide_status fail_url(struct tide_error *err, const char *why, size_t why_len)
{
    return tide_fail(err, TIDE_INVALID,
                     "the PostgreSQL URL is not well-formed (%.*s); write it as "
                     "postgres://user@host:port/database, and special characters of a name or a "
                     "password as %%XX, e.g. %%40 for @, %%2F for / and %%25 for %%",
                     (int)why_len, why);
}

/* Each of "5432,5433" is one, or empty: the usual. */
static bool are_ports(const char *ports)
{
    for (const char *at = ports; *at != '\0'; at += *at == ',') {
        size_t len = strcspn(at, ",");
        uint64_t port = 1;
        if (len > 0 &&
            (!tide_str_to_u64(tide_str_of(at, len), &port) || port == 0 || port > 65535)) {
            return false;
        }
        at += len;
    }
    return true;
}

/* Parts of a password that was not escaped would end up in the host or the port, and those end up
 * in messages. */
static tide_status refuse_odd_parts(const char *url, const PQconninfoOption *options,
                                    struct tide_error *err)
{
    const char *host = option_of(options, "host");
    const char *port = option_of(options, "port");
    const char *rest = strstr(url, "://");
    size_t authority = strcspn(rest + 3, "/?");
    const char *tail = rest + 3 + authority;
    if (strchr(host, '@') != NULL) {
        return fail_url(err, "an @ in the host", strlen("an @ in the host"));
    }
    if (port[strspn(port, "0123456789,")] != '\0') {
        return fail_url(err, "a port that is no number", strlen("a port that is no number"));
    }
    if (!are_ports(port)) {
        return fail_url(err, "a port past 65535", strlen("a port past 65535"));
    }
    bool is_cut =
        memchr(rest + 3, '@', authority) == NULL && memchr(tail, '@', strcspn(tail, "?")) != NULL;
    if (is_cut) {
        return fail_url(err, "an @ behind a slash", strlen("an @ behind a slash"));
    }
    return TIDE_OK;
}

static tide_status parse_url(const char *url, PQconninfoOption **ret_options,
                             struct tide_error *err)
{
    if (strncmp(url, "postgres://", 11) != 0 && strncmp(url, "postgresql://", 13) != 0) {
        return fail_url(err, "it must begin with postgres://",
                        strlen("it must begin with postgres://"));
    }
    char *why = NULL;
    TIDE_CLEANUP(options_done) PQconninfoOption *options = PQconninfoParse(url, &why);
    if (options == NULL) {
        /* What libpq quotes in its message may be the password. */
        TIDE_ASSERT(why != NULL);
        tide_status status = fail_url(err, why, strcspn(why, ":\"\n"));
        PQfreemem(why);
        return status;
    }
    TIDE_TRY(refuse_odd_parts(url, options, err));
    *ret_options = options;
    options = NULL;
    return TIDE_OK;
}

tide_status tide_pg_url_valid(tide_str url, struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr) char *text = tide_strndup(url.ptr, url.len);
    TIDE_CLEANUP(options_done) PQconninfoOption *parsed = NULL;
    return parse_url(text, &parsed, err);
}

static void set_place(struct tide_pg_conn *conn)
{
    const char *host = PQhost(conn->pg);
    const char *port = PQport(conn->pg);
    const char *database = PQdb(conn->pg);
    bool has_host = host != NULL && host[0] != '\0'; /* else it failed before libpq looked for it */
    (void)snprintf(conn->place, sizeof(conn->place), "%s:%s/%s", has_host ? host : "?",
                   port == NULL ? "" : port, database == NULL ? "" : database);
}

/*
 * The message of a connection that failed is text alone, in the server's language; with VERBOSE
 * the SQLSTATE stands in it as "  28P01: ". The last one counts: several hosts may have been tried.
 */
static const char *find_sqlstate(const char *message)
{
    const char *found = NULL;
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        size_t len = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (len == 5 && at[8] == ':') {
            found = at + 3;
        }
    }
    return found;
}

/* The sentence in libpq's message: the server's own words, else what happened behind the address,
 * which `place` tells. */
static tide_str reason_in(const char *message, const char *sqlstate)
{
    if (sqlstate != NULL) {
        const char *text = sqlstate + strlen("28P01: ");
        return tide_str_of(text, strcspn(text, "\n"));
    }
    size_t len = strcspn(message, "\n");
    const char *failed = strstr(message, " failed: ");
    if (failed != NULL && failed < message + len) {
        const char *text = failed + strlen(" failed: ");
        return tide_str_of(text, strcspn(text, "\n"));
    }
    return tide_str_of(message, len);
}

/*
 * Who is not let in has not reached the database, whatever the reason: no such role or database, a
 * wrong password or none, pg_hba.conf, no right to connect. What the server takes amiss in the
 * settings that a URL asks for is the URL's fault.
 */
static tide_status connect_status(tide_status status)
{
    if (status == TIDE_INVALID) {
        return TIDE_IO;
    }
    return status == TIDE_REMOTE ? TIDE_INVALID : status;
}

static tide_status fail_connect(struct tide_pg_conn *conn, struct tide_error *err)
{
    const char *message = PQerrorMessage(conn->pg);
    const char *sqlstate = find_sqlstate(message);
    tide_str reason = reason_in(message, sqlstate);
    bool is_retriable = false;
    set_place(conn);
    if (sqlstate != NULL) {
        memcpy(conn->sqlstate, sqlstate, 5);
    }
    tide_status status = tide_pg_sqlstate_status(conn->sqlstate, &is_retriable);
    bool is_pooler = strstr(message, "unsupported startup parameter") != NULL;
    if (is_pooler) {
        return tide_fail(err, TIDE_INVALID,
                         "PostgreSQL %s: a pooler stands there, which does not pass on what "
                         "following needs (%.*s); give the address of the server itself",
                         conn->place, TIDE_STR_ARG(reason));
    }
    status = tide_fail(err, connect_status(status), "PostgreSQL %s: connect: %.*s%s%s%s",
                       conn->place, TIDE_STR_ARG(reason), sqlstate == NULL ? "" : " (SQLSTATE ",
                       conn->sqlstate, sqlstate == NULL ? "" : ")");
    err->retriable = is_retriable;
    if (sqlstate == NULL && PQconnectionNeedsPassword(conn->pg)) {
        err->retriable = false;
    }
    return err->status;
}

/* Waits until the connection stands; libpq may change its socket between two steps. */
static tide_status await_connected(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                   struct tide_error *err)
{
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;
    while (step != PGRES_POLLING_OK) {
        if (step == PGRES_POLLING_FAILED) {
            return fail_connect(conn, err);
        }
        short events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (tide_pg_await(conn, events, wait, err) != TIDE_OK) {
            set_place(conn);
            return tide_fail_context(err, "PostgreSQL %s: connect", conn->place);
        }
        step = PQconnectPoll(conn->pg);
    }
    return TIDE_OK;
}

static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

/* What cannot be said while connecting. */
static tide_status pin_more(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                            struct tide_error *err)
{
    if (PQserverVersion(conn->pg) < 140000) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "PostgreSQL %s: the server is version %d.%d; 14 and later can be followed",
                         conn->place, PQserverVersion(conn->pg) / 10000,
                         PQserverVersion(conn->pg) % 10000);
    }
    /* libpq sends PGTZ and PGDATESTYLE in a way that counts for more than the options. */
    const char *sql = PQserverVersion(conn->pg) >= 170000
                          ? "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY';"
                            " SET transaction_timeout = 0; SHOW extra_float_digits"
                          : "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY';"
                            " SHOW extra_float_digits";
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(conn, sql, "set up", wait, &result, err));
    if (!tide_str_equal(tide_pg_result_str(result, 0, 0), TIDE_STR("3"))) {
        return tide_fail(err, TIDE_INVALID,
                         "PostgreSQL %s: the settings that were asked for do not hold: a pooler "
                         "stands there; give the address of the server itself",
                         conn->place);
    }
    return TIDE_OK;
}

static tide_status connect_to(struct tide_pg_conn *conn, const char *url, const char *options,
                              struct tide_pg_wait wait, struct tide_error *err)
{
    bool is_replication = conn->kind == TIDE_PG_REPLICATION;
    const char *const keywords[] = {"dbname",
                                    "client_encoding",
                                    "application_name",
                                    "options",
                                    is_replication ? "replication" : NULL,
                                    NULL};
    const char *const values[] = {url, "UTF8", "tidemark", options, "database", NULL};
    conn->pg = PQconnectStartParams(keywords, values, 1);
    TIDE_ASSERT(conn->pg != NULL);
    (void)PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE);
    (void)PQsetNoticeReceiver(conn->pg, ignore_notice, NULL);
    if (PQstatus(conn->pg) == CONNECTION_BAD) {
        return fail_connect(conn, err);
    }
    TIDE_TRY(await_connected(conn, wait, err));
    (void)PQsetErrorVerbosity(conn->pg, PQERRORS_DEFAULT);
    set_place(conn);
    conn->canceller = tide_pg_canceller_new(conn->pg);
    TIDE_ASSERT(PQsetnonblocking(conn->pg, 1) == 0);
    return pin_more(conn, wait, err);
}

tide_status tide_pg_open_told(tide_str url, enum tide_pg_conn_kind kind, struct tide_pg_wait wait,
                              struct tide_pg_conn **ret_conn, char ret_sqlstate[6],
                              struct tide_error *err)
{
    ret_sqlstate[0] = '\0';
    TIDE_CLEANUP(tide_free_ptr) char *text = tide_strndup(url.ptr, url.len);
    TIDE_CLEANUP(options_done) PQconninfoOption *parsed = NULL;
    TIDE_TRY(parse_url(text, &parsed, err));

    /* What the user gave comes first: ours hold. */
    const char *given = option_of(parsed, "options");
    const char *environment = getenv("PGOPTIONS");
    TIDE_CLEANUP(tide_buf_done) struct tide_buf options = {0};
    tide_buf_printf(&options, "%s %s",
                    given[0] == '\0' && environment != NULL ? environment : given, pinned_options);

    TIDE_CLEANUP(tide_pg_conn_done) struct tide_pg_conn *conn = tide_alloc(1, sizeof(*conn));
    conn->kind = kind;
    tide_status status = connect_to(conn, text, tide_buf_cstr(&options), wait, err);
    if (status != TIDE_OK) {
        memcpy(ret_sqlstate, conn->sqlstate, sizeof(conn->sqlstate));
        return status;
    }
    *ret_conn = conn;
    conn = NULL;
    return TIDE_OK;
}

tide_status tide_pg_open(tide_str url, enum tide_pg_conn_kind kind, struct tide_pg_wait wait,
                         struct tide_pg_conn **ret_conn, struct tide_error *err)
{
    char sqlstate[6];
    return tide_pg_open_told(url, kind, wait, ret_conn, sqlstate, err);
}

void tide_pg_close(struct tide_pg_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    tide_pg_canceller_free(conn->canceller);
    PQfinish(conn->pg);
    free(conn);
}
