/* tidemark archive subscribe: an archive that is made of the stream of another. */
#include "app/archive/archive_commands.h"
#include "app/archive/network_arguments.h"
#include "app/number_argument.h"
#include "app/pipeline/progress.h"
#include "app/signals.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "net/follow.h"
#include "replication/subscriber.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_FIRST_US 200000
#define WAIT_MOST_US  30000000
#define SHOW_US       10000000
#define US_A_SECOND   1000000

struct subscribe_command {
    struct tide_network_arguments network;
    const char *from;
    const char *place; /* as the user has it */
    struct tide_address address;
    int64_t wait_most_us;
    struct tide_subscriber *subscriber;
    bool has_begun; /* a connection, before this one */
    int64_t show_at_us;
    uint64_t shown_bytes;
    uint64_t connections;
    bool is_stopped; /* by its user, who need not be told that there is more */
};

enum {
    OPTION_MAX_WAIT = 256,
};

static const struct argp_option argp_options[] = {
    {"follow", TIDE_NETWORK_OPTION_FOLLOW, NULL, 0,
     "Go on with what comes until stopped, over as many connections as it takes", 0},
    {"max-wait", OPTION_MAX_WAIT, "SECONDS", 0,
     "The longest time from one attempt to connect to the next (30)", 0},
    TIDE_NETWORK_OPTIONS("ca", "Of tls://: whom to trust (PEM), in place of the system's choice"),
    {0},
};

static error_t take_argument(struct subscribe_command *command, char *arg, struct argp_state *state)
{
    if (state->arg_num == 0) {
        command->from = arg;
    } else if (state->arg_num == 1) {
        command->place = arg;
    } else {
        argp_error(state, "too many arguments: \"%s\"", arg);
    }
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct subscribe_command *command = state->input;
    switch (key) {
    case OPTION_MAX_WAIT:
        command->wait_most_us =
            (int64_t)tide_number_argument(arg, 1, TIDE_NET_SECONDS_MAX, "--max-wait", state) *
            US_A_SECOND;
        return 0;
    case ARGP_KEY_ARG:
        return take_argument(command, arg, state);
    case ARGP_KEY_END:
        if (command->place == NULL) {
            argp_error(state, "an ADDRESS and an ARCHIVE are needed, e.g. tcp://127.0.0.1:9465 "
                              "copy.tide");
        }
        if (command->place != NULL && strcmp(command->place, "-") == 0) {
            argp_error(state, "an archive is a file, and cannot be written to standard output; "
                              "for a file of that name: ./-");
        }
        return 0;
    default:
        return tide_network_arguments_take(&command->network, key, arg, state);
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ADDRESS ARCHIVE",
    .doc = "Makes ARCHIVE of what is published at ADDRESS (tidemark archive publish), or goes on "
           "with it: what it holds is not sent again.\vADDRESS is tcp://127.0.0.1:PORT, unix:PATH, "
           "tls://HOST:PORT, or -, a stream on standard input. Without --follow it ends when it "
           "has what the publisher had.\n\nINT and TERM end it in order: what has come is "
           "kept.\n\nExit status: 0 done, 1 rows have come that could not be used, or the "
           "publisher has left some out, 2 wrong usage, 3 failed.",
};

/* What the stream is handed to. */

static tide_status begin(void *context, struct tide_buf *hello, struct tide_error *err)
{
    struct subscribe_command *command = context;
    if (command->has_begun) {
        TIDE_TRY(tide_subscriber_restart(command->subscriber, err));
    }
    command->has_begun = true;
    return hello == NULL ? TIDE_OK : tide_subscriber_hello(command->subscriber, hello, err);
}

static char *room(void *context, size_t size)
{
    struct subscribe_command *command = context;
    return tide_subscriber_room(command->subscriber, size);
}

static void show_progress(struct subscribe_command *command)
{
    struct tide_subscriber_counts counts;
    char bytes[32];
    char rows[32];
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us < command->show_at_us) {
        return;
    }
    command->show_at_us = now_us + SHOW_US;
    tide_subscriber_counts(command->subscriber, &counts);
    tide_format_bytes(bytes, counts.bytes);
    tide_format_count(rows, counts.rows);
    tide_log(TIDE_LOG_INFO, "%s: %" PRIu64 " segments and %s single rows so far, of %s",
             command->place, counts.segments, rows, bytes);
}

/* Where what the publisher has sent is invalid, that is no wrong usage. */
static tide_status of_publisher(tide_status status, struct tide_error *err)
{
    if (status == TIDE_INVALID) {
        err->status = TIDE_REMOTE;
        return TIDE_REMOTE;
    }
    return status;
}

static tide_status came(void *context, size_t size, struct tide_error *err)
{
    struct subscribe_command *command = context;
    TIDE_TRY(of_publisher(tide_subscriber_came(command->subscriber, size, err), err));
    show_progress(command);
    return TIDE_OK;
}

static tide_status idle(void *context, bool *ret_is_busy, struct tide_error *err)
{
    struct subscribe_command *command = context;
    return of_publisher(tide_subscriber_go_on(command->subscriber, ret_is_busy, err), err);
}

static tide_status rest(void *context, struct tide_error *err)
{
    struct subscribe_command *command = context;
    return of_publisher(tide_subscriber_sync(command->subscriber, err), err);
}

static bool is_caught_up(void *context)
{
    struct subscribe_command *command = context;
    return tide_subscriber_is_caught_up(command->subscriber);
}

static tide_status end(void *context, struct tide_error *err)
{
    struct subscribe_command *command = context;
    return of_publisher(tide_subscriber_end(command->subscriber, err), err);
}

static const struct tide_follower_ops follower_ops = {
    .begin = begin,
    .room = room,
    .came = came,
    .idle = idle,
    .rest = rest,
    .is_caught_up = is_caught_up,
    .end = end,
};

static void warn(void *context, const char *message)
{
    tide_network_say(context, true, message);
}

/* What is said at the end. */

static void append_count(struct tide_buf *line, uint64_t count, const char *one, const char *what)
{
    char text[32];
    if (count > 0) {
        tide_format_count(text, count);
        tide_buf_printf(line, ", %s %s%s%s", text, one, count == 1 ? "" : "s", what);
    }
}

static void show_end(const struct subscribe_command *command,
                     const struct tide_subscriber_counts *counts)
{
    struct tide_buf line = {0};
    char rows[32];
    char segments[32];
    tide_format_count(rows, counts->rows);
    tide_format_count(segments, counts->segments);
    tide_buf_printf(&line, "%s: %s segment%s and %s single row%s came", command->place, segments,
                    counts->segments == 1 ? "" : "s", rows, counts->rows == 1 ? "" : "s");
    append_count(&line, counts->rows_held, "row", " held before");
    append_count(&line, counts->segments_held, "segment", " held before");
    append_count(&line, counts->segments_opened, "segment", " taken row by row");
    append_count(&line, counts->sealed, "segment", " made here");
    append_count(&line, counts->rows_skipped, "row", " skipped, as their columns were not sent");
    append_count(&line, counts->gaps, "gap", " that the publisher has left");
    append_count(&line, counts->unknown_frames, "frame", " of unknown kinds");
    tide_log(TIDE_LOG_INFO, "%s", tide_buf_cstr(&line));
    tide_buf_done(&line);
}

static void print_json(const struct subscribe_command *command,
                       const struct tide_subscriber_counts *counts)
{
    (void)printf("{\"caught_up\":%s,\"connections\":%" PRIu64 ",\"bytes\":%" PRIu64
                 ",\"rows\":%" PRIu64 ",\"rows_held\":%" PRIu64 ",\"rows_skipped\":%" PRIu64
                 ",\"segments\":%" PRIu64 ",\"segments_held\":%" PRIu64
                 ",\"segments_opened\":%" PRIu64 ",\"sealed\":%" PRIu64 ",\"gaps\":%" PRIu64
                 ",\"unknown_frames\":%" PRIu64 "}\n",
                 tide_subscriber_is_caught_up(command->subscriber) ? "true" : "false",
                 command->connections, counts->bytes, counts->rows, counts->rows_held,
                 counts->rows_skipped, counts->segments, counts->segments_held,
                 counts->segments_opened, counts->sealed, counts->gaps, counts->unknown_frames);
}

static bool is_pipe(const struct subscribe_command *command)
{
    return command->address.kind == TIDE_ADDRESS_STANDARD;
}

/* A pipe's stream ends well wherever a frame does: whether that is all, only its sender knows, who
 * says so when it has no more. Whether that was the last it said, or it was killed, tells the end.
 */
static bool ends_early(const struct subscribe_command *command)
{
    return is_pipe(command) && !command->is_stopped &&
           !tide_subscriber_is_at_rest(command->subscriber);
}

static bool is_whole(const struct subscribe_command *command,
                     const struct tide_subscriber_counts *counts)
{
    return !ends_early(command) &&
           (command->network.goes_on || (counts->rows_skipped == 0 && counts->gaps == 0));
}

static void report(const struct subscribe_command *command,
                   const struct tide_subscriber_counts *counts)
{
    show_end(command, counts);
    if (command->network.is_json) {
        print_json(command, counts);
    }
    if (ends_early(command)) {
        tide_log(TIDE_LOG_WARN,
                 "the stream ends where its publisher does not say that it had no more: it may "
                 "have been killed; go on with another stream");
    }
}

static tide_status follow(struct subscribe_command *command, const struct tide_network *network,
                          int stop_fd, struct tide_error *err)
{
    const struct tide_follow_options options = {
        .address = command->address,
        .tls = network->tls,
        .token = tide_buf_str(&network->token),
        .goes_on = command->network.goes_on,
        .patience_us = command->network.patience_us,
        .wait_first_us =
            command->wait_most_us < WAIT_FIRST_US ? command->wait_most_us : WAIT_FIRST_US,
        .wait_most_us = command->wait_most_us,
        .say = tide_network_say,
    };
    if (command->address.kind == TIDE_ADDRESS_STANDARD && isatty(STDIN_FILENO) == 1) {
        return tide_fail(err, TIDE_INVALID,
                         "standard input is a terminal: lead a stream into it (zstd -d < "
                         "a.stream.zst | …)");
    }
    command->show_at_us = tide_clock_deadline_us(SHOW_US);
    return tide_follow_run(&options, &follower_ops, command, stop_fd, &command->connections, err);
}

static bool wait_for_stop(int stop_fd, int64_t wait_us)
{
    struct pollfd pfd = {.fd = stop_fd, .events = POLLIN};
    return poll(&pfd, 1, (int)(wait_us / 1000)) > 0;
}

/* Whoever goes on waits for room on a full disk also where there is no copy yet. NULL: stopped. */
static tide_status open_copy(struct subscribe_command *command, int stop_fd,
                             struct tide_subscriber **ret_subscriber, struct tide_error *err)
{
    const struct tide_subscriber_options options = {.warn = warn};
    int64_t wait_us = WAIT_FIRST_US;
    for (;;) {
        tide_status status =
            tide_subscriber_open(tide_archive_path(command->place), &options, ret_subscriber, err);
        bool is_lasting = status != TIDE_IO || !err->retriable;
        if (is_lasting || !command->network.goes_on) {
            return status;
        }
        wait_us = wait_us < command->wait_most_us ? wait_us : command->wait_most_us;
        tide_log(TIDE_LOG_WARN, "%s; tried again in %.1f s", err->message, (double)wait_us / 1e6);
        if (wait_for_stop(stop_fd, wait_us)) {
            return TIDE_OK;
        }
        wait_us *= 2;
    }
}

static tide_status run(struct subscribe_command *command, bool *ret_is_whole,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_network_close) struct tide_network network = {0};
    TIDE_CLEANUP(tide_subscriber_close_ptr) struct tide_subscriber *subscriber = NULL;
    TIDE_CLEANUP(tide_signals_done) struct tide_signals signals;
    struct tide_subscriber_counts counts;
    tide_signals_init(&signals);
    TIDE_TRY(tide_address_parse(command->from, &command->address, err));
    TIDE_TRY(tide_network_open(&command->network, &command->address, false, &network, err));
    TIDE_TRY(open_copy(command, signals.fd, &subscriber, err));
    if (subscriber == NULL) {
        return TIDE_OK;
    }
    command->subscriber = subscriber;
    tide_status status = follow(command, &network, signals.fd, err);
    tide_subscriber_counts(subscriber, &counts);
    command->is_stopped = wait_for_stop(signals.fd, 0);
    if (status == TIDE_OK) {
        report(command, &counts);
    }
    *ret_is_whole = is_whole(command, &counts);
    if (status != TIDE_OK || !*ret_is_whole) {
        tide_subscriber_leave_nothing(subscriber);
    }
    return status;
}

int tide_archive_command_subscribe(int argc, char **argv)
{
    struct subscribe_command command = {
        .network.authorities_option = "--ca",
        .wait_most_us = WAIT_MOST_US,
    };
    struct tide_error err = {0};
    bool is_whole = true;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    tide_log_set_level(command.network.is_quiet ? TIDE_LOG_WARN : TIDE_LOG_INFO);
    tide_status status = run(&command, &is_whole, &err);
    return status == TIDE_OK && !is_whole ? TIDE_EXIT_NO
                                          : tide_command_end("archive subscribe", status, &err);
}
