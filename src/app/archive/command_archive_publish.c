/* tidemark archive publish: an archive as a stream, to those that follow it. */
#include "app/archive/archive_commands.h"
#include "app/archive/network_arguments.h"
#include "app/number_argument.h"
#include "app/pipeline/progress.h"
#include "app/signals.h"
#include "app/time_argument.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/local.h"
#include "net/server.h"
#include "net/tcp.h"
#include "replication/publisher.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_US       4000
#define SILENCE_US    1000000
#define KEEP_ALIVE_US 5000000
#define US_A_SECOND   1000000

struct publish_command {
    struct tide_archive_arguments arguments;
    struct tide_network_arguments network;
    const char *listen;
    struct tide_address address;
    enum tide_publish_from from;
    int64_t since_ts;
    size_t followers_max;
    int64_t silence_us;
    int64_t keep_alive_us;
    bool has_followers_max;
};

enum {
    OPTION_LISTEN = 256,
    OPTION_SINCE,
    OPTION_MAX_FOLLOWERS,
    OPTION_KEEP_ALIVE,
    OPTION_HELLO_WAIT,
};

static const struct argp_option argp_options[] = {
    {"listen", OPTION_LISTEN, "ADDRESS", 0, "Where followers come from (needed)", 0},
    {"since", OPTION_SINCE, "TIME|AGE|all|now", 0,
     "What those are sent that do not say what they hold (all)", 0},
    {"follow", TIDE_NETWORK_OPTION_FOLLOW, NULL, 0,
     "Go on with what is written until stopped, also on standard output", 0},
    {"max-followers", OPTION_MAX_FOLLOWERS, "NUMBER", 0, "More are refused (32)", 0},
    {"keep-alive", OPTION_KEEP_ALIVE, "SECONDS", 0,
     "When there is nothing, say so after this time (5)", 0},
    {"hello-wait", OPTION_HELLO_WAIT, "SECONDS", 0,
     "For followers to say what they hold, before it is taken that they never do (1)", 0},
    TIDE_NETWORK_OPTIONS("client-ca",
                         "Of tls://: followers need a certificate of these authorities (PEM)"),
    {0},
};

static void take_since(struct publish_command *command, const char *arg, struct argp_state *state)
{
    int64_t us = 0;
    if (strcmp(arg, "all") == 0 || strcmp(arg, "now") == 0) {
        command->from = arg[0] == 'a' ? TIDE_PUBLISH_ALL : TIDE_PUBLISH_NOW;
        return;
    }
    if (!tide_time_argument_parse(tide_str_from(arg), tide_clock_utc_us(), &us)) {
        argp_error(state, "--since wants all, now, " TIDE_TIME_ARGUMENT_HELP ", not \"%s\"", arg);
    }
    command->from = TIDE_PUBLISH_SINCE;
    command->since_ts = us > INT64_MAX / 1000   ? INT64_MAX
                        : us < INT64_MIN / 1000 ? INT64_MIN
                                                : us * 1000;
}

static int64_t seconds(const char *arg, const char *option, struct argp_state *state)
{
    return (int64_t)tide_number_argument(arg, 1, TIDE_NET_SECONDS_MAX, option, state) * US_A_SECOND;
}

static void check_command(const struct publish_command *command, struct argp_state *state)
{
    if (command->listen == NULL) {
        argp_error(state, "--listen is missing: tcp://127.0.0.1:9465, tls://HOST:PORT, unix:PATH, "
                          "or - for standard output");
        return;
    }
    if (strcmp(command->listen, "-") == 0 && command->has_followers_max) {
        argp_error(state, "--max-followers is for sockets: standard output has one follower");
    }
    if (strcmp(command->listen, "-") == 0 && command->network.is_json) {
        argp_error(state, "--json and the stream would both be on standard output");
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct publish_command *command = state->input;
    switch (key) {
    case OPTION_LISTEN:
        if (command->listen != NULL) {
            argp_error(state, "--listen is given twice: one publisher listens at one address");
        }
        command->listen = arg;
        return 0;
    case OPTION_SINCE:
        take_since(command, arg, state);
        return 0;
    case OPTION_MAX_FOLLOWERS:
        command->followers_max =
            tide_number_argument(arg, 1, TIDE_FOLLOWERS_MAX, "--max-followers", state);
        command->has_followers_max = true;
        return 0;
    case OPTION_KEEP_ALIVE:
        command->keep_alive_us = seconds(arg, "--keep-alive", state);
        return 0;
    case OPTION_HELLO_WAIT:
        command->silence_us = seconds(arg, "--hello-wait", state);
        return 0;
    case ARGP_KEY_SUCCESS:
        check_command(command, state);
        return 0;
    default:
        return tide_network_arguments_take(&command->network, key, arg, state) == 0 &&
                       key != ARGP_KEY_INIT
                   ? 0
                   : tide_archive_arguments_take(&command->arguments, key, arg, state);
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc =
        "Sends an archive to others, which follow it (tidemark archive subscribe), also while it "
        "is written.\vADDRESS is tcp://127.0.0.1:PORT (any loopback address; port 0 takes one that "
        "is free), unix:PATH (a socket of yours alone), tls://HOST:PORT, with --certificate, --key "
        "and --token-file or --client-ca, or -, standard output: that ends when all is sent, "
        "without --follow.\n\nTIME is " TIDE_TIME_ARGUMENT_HELP ".\n\nINT and TERM end it in "
        "order.\n\nExit status: 0 done, 2 wrong usage, or no archive, 3 failed.",
};

/* The feed. */

static void warn(void *context, const char *message)
{
    tide_network_say(context, true, message);
}

static tide_status feed_open(void *context, const struct tide_wire_hello *hello, void **ret_feed,
                             struct tide_error *err)
{
    const struct publish_command *command = context;
    const struct tide_publisher_options options = {
        .from = command->from, .since_ts = command->since_ts, .hello = hello, .warn = warn};
    struct tide_publisher *publisher = NULL;
    TIDE_TRY(tide_publisher_open(command->arguments.path, &options, &publisher, err));
    *ret_feed = publisher;
    return TIDE_OK;
}

static tide_status feed_next(void *feed, struct tide_buf *out, size_t bytes_max,
                             bool *ret_is_caught_up, struct tide_error *err)
{
    return tide_publisher_next(feed, out, bytes_max, ret_is_caught_up, err);
}

static tide_status feed_keep_alive(void *feed, struct tide_buf *out, struct tide_error *err)
{
    return tide_publisher_keepalive(feed, out, err);
}

static void feed_close(void *feed)
{
    tide_publisher_close(feed);
}

static const struct tide_feed_ops feed_ops = {
    .open = feed_open,
    .next = feed_next,
    .keep_alive = feed_keep_alive,
    .close = feed_close,
};

/* Serving. */

static void say_where(const struct publish_command *command, const struct tide_address *address)
{
    struct tide_buf shown = {0};
    tide_address_append(address, &shown);
    tide_log(TIDE_LOG_INFO, "%s is published at %s", command->arguments.place,
             tide_buf_cstr(&shown));
    tide_buf_done(&shown);
}

static tide_status serve_unix(const struct publish_command *command, struct tide_server *server,
                              int stop_fd, struct tide_error *err)
{
    TIDE_CLEANUP(tide_local_close) struct tide_local local = {.fd = -1};
    TIDE_TRY(tide_local_open(command->address.path, &local, err));
    tide_server_listen(server, local.fd);
    say_where(command, &command->address);
    return tide_server_run(server, stop_fd, err);
}

static tide_status serve_tcp(const struct publish_command *command, struct tide_server *server,
                             int stop_fd, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = -1;
    struct tide_address address = command->address;
    TIDE_TRY(tide_tcp_listen(&address, &fd, err));
    (void)snprintf(address.port, sizeof(address.port), "%u", tide_tcp_port(fd));
    tide_server_listen(server, fd);
    say_where(command, &address);
    return tide_server_run(server, stop_fd, err);
}

static tide_status serve_output(const struct publish_command *command, struct tide_server *server,
                                int stop_fd, struct tide_error *err)
{
    if (isatty(STDOUT_FILENO) == 1) {
        return tide_fail(err, TIDE_INVALID,
                         "standard output is a terminal, and the stream is not for people: lead it "
                         "into a file or a program (| zstd > a.stream.zst)");
    }
    TIDE_TRY(tide_server_feed(server, tide_link_of_output(), "standard output",
                              !command->network.goes_on, err));
    return tide_server_run(server, stop_fd, err);
}

static tide_status serve(const struct publish_command *command, struct tide_server *server,
                         int stop_fd, struct tide_error *err)
{
    switch (command->address.kind) {
    case TIDE_ADDRESS_STANDARD:
        return serve_output(command, server, stop_fd, err);
    case TIDE_ADDRESS_UNIX:
        return serve_unix(command, server, stop_fd, err);
    case TIDE_ADDRESS_TCP:
    case TIDE_ADDRESS_TLS:
    default:
        return serve_tcp(command, server, stop_fd, err);
    }
}

static void show_counts(const struct publish_command *command, const struct tide_server *server)
{
    struct tide_server_counts counts;
    char bytes[32];
    tide_server_counts(server, &counts);
    tide_format_bytes(bytes, counts.bytes);
    tide_log(TIDE_LOG_INFO, "%s sent", bytes);
    if (command->network.is_json) {
        (void)printf("{\"connections\":%" PRIu64 ",\"followers\":%" PRIu64 ",\"refused\":%" PRIu64
                     ",\"dropped\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
                     counts.connections, counts.followers, counts.refused, counts.dropped,
                     counts.bytes);
    }
}

/* What is not there, or is no archive, is said before anybody connects. */
static tide_status check_archive(const struct publish_command *command, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    return tide_archive_open(command->arguments.path, TIDE_ARCHIVE_READ, &archive, err);
}

static tide_status run(struct publish_command *command, struct tide_error *err)
{
    TIDE_CLEANUP(tide_network_close) struct tide_network network = {0};
    TIDE_CLEANUP(tide_server_free_ptr) struct tide_server *server = NULL;
    TIDE_CLEANUP(tide_signals_done) struct tide_signals signals;
    tide_signals_init(&signals);
    TIDE_TRY(tide_address_parse(command->listen, &command->address, err));
    TIDE_TRY(tide_network_open(&command->network, &command->address, true, &network, err));
    TIDE_TRY(check_archive(command, err));
    const struct tide_server_options options = {
        .feeds = &feed_ops,
        .context = command,
        .tls = network.tls,
        .token = tide_buf_str(&network.token),
        .followers_max = command->followers_max,
        .piece_bytes = TIDE_PIECE_BYTES,
        .look_us = LOOK_US,
        .silence_us = command->silence_us,
        .keep_alive_us = command->keep_alive_us,
        .patience_us = command->network.patience_us,
        .say = tide_network_say,
    };
    server = tide_server_new(&options);
    tide_status status = serve(command, server, signals.fd, err);
    if (status == TIDE_OK) {
        show_counts(command, server);
    }
    return status;
}

int tide_archive_command_publish(int argc, char **argv)
{
    struct publish_command command = {
        .network.authorities_option = "--client-ca",
        .followers_max = TIDE_FOLLOWERS_DEFAULT,
        .silence_us = SILENCE_US,
        .keep_alive_us = KEEP_ALIVE_US,
    };
    struct tide_error err = {0};
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    tide_log_set_level(command.network.is_quiet ? TIDE_LOG_WARN : TIDE_LOG_INFO);
    return tide_command_end("archive publish", run(&command, &err), &err);
}
