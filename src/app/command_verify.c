/* tidemark verify: complete, truncated, open or conflicting, a snapshot a line. */
#include "app/commands.h"
#include "app/verify_input.h"
#include "app/verify_print.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/frame.h"
#include "format/reassembler.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAME_BYTES_LIMIT ((uint64_t)1 << 32)

struct verify_options {
    bool is_all;
    bool is_json;
    size_t frame_bytes_max;
    char **paths;
    size_t path_count;
};

enum {
    OPTION_ALL = 256,
    OPTION_JSON,
    OPTION_MAX_FRAME_BYTES,
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct verify_options *options = state->input;
    uint64_t bytes = 0;
    switch (key) {
    case OPTION_ALL:
        options->is_all = true;
        return 0;
    case OPTION_JSON:
        options->is_json = true;
        return 0;
    case OPTION_MAX_FRAME_BYTES:
        if (!tide_str_to_u64(tide_str_from(arg), &bytes) || bytes < 1 ||
            bytes > FRAME_BYTES_LIMIT) {
            argp_error(state, "--max-frame-bytes wants a number of bytes within 1 and %" PRIu64,
                       FRAME_BYTES_LIMIT);
        }
        options->frame_bytes_max = (size_t)bytes;
        return 0;
    case ARGP_KEY_ARGS:
        options->paths = state->argv + state->next;
        options->path_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "an INPUT is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option argp_options[] = {
    {"all", OPTION_ALL, NULL, 0, "Judge every snapshot, not only the newest of each store", 0},
    {"json", OPTION_JSON, NULL, 0, "Print a JSON object a snapshot", 0},
    {"max-frame-bytes", OPTION_MAX_FRAME_BYTES, "BYTES", 0,
     "Longest frame that is read (default 67108864)", 0},
    {0},
};

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "INPUT...",
    .doc = "Tells complete snapshots from truncated ones.\vINPUT is a file of frames, a directory "
           "with *.ndjson and *.json files, or - for standard input.\n\nExit status: 0 all are "
           "complete, 1 one is not or there is none, 2 wrong usage, 3 an input could not be read.",
};

/* Reading */

typedef void take_frame(struct tide_reassembler *reassembler, const struct tide_frame *frame,
                        uint64_t input);

static void feed(struct tide_reassembler *reassembler, const struct tide_frame *frame,
                 uint64_t input)
{
    tide_reassembler_feed(reassembler, frame, input);
}

static void recheck(struct tide_reassembler *reassembler, const struct tide_frame *frame,
                    uint64_t input)
{
    (void)input;
    tide_reassembler_recheck(reassembler, frame);
}

static bool is_blank(tide_str line)
{
    return line.len == 0 || (line.len == 1 && line.ptr[0] == '\r');
}

struct reading {
    struct tide_reassembler *reassembler;
    const struct verify_options *options;
    take_frame *take;
    bool is_first_pass;
};

/* A frame that is cut off at the end of a file does not count: its writer may still be at it. */
static tide_status read_file(const struct reading *reading, const struct tide_input *input,
                             uint64_t number, struct tide_error *err)
{
    struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
    struct tide_frame_decoder decoder = {0};
    struct tide_frame frame;
    TIDE_TRY(tide_lines_open(&lines, input->path, reading->options->frame_bytes_max, err));
    for (;;) {
        tide_str line;
        uint64_t at = 0;
        bool is_ended = false;
        tide_status status = tide_lines_next(&lines, &line, &at, &is_ended, err);
        if (status != TIDE_OK) {
            return status == TIDE_END ? TIDE_OK : status;
        }
        if (is_blank(line)) {
            continue;
        }
        if (tide_frame_decode(&decoder, line, &frame, err) == TIDE_OK) {
            reading->take(reading->reassembler, &frame, number);
        } else if (is_ended || !tide_frame_is_cut_off(line)) {
            return tide_fail_context(err, "%s: byte %" PRIu64 ": the frame that starts here",
                                     lines.path, at);
        } else if (reading->is_first_pass) {
            tide_log(TIDE_LOG_WARN,
                     "%s: byte %" PRIu64 ": the last frame is cut off and does not count",
                     lines.path, at);
        }
    }
}

static tide_status read_all(const struct reading *reading, const struct tide_inputs *inputs,
                            struct tide_error *err)
{
    for (size_t i = 0; i < inputs->count; i++) {
        TIDE_TRY(read_file(reading, &inputs->items[i], i, err));
    }
    return TIDE_OK;
}

static tide_status read_inputs(struct tide_reassembler *reassembler,
                               const struct verify_options *options,
                               const struct tide_inputs *inputs, struct tide_error *err)
{
    struct reading reading = {reassembler, options, feed, true};
    TIDE_TRY(read_all(&reading, inputs, err));
    for (size_t i = 0; i < inputs->count; i++) {
        if (!inputs->items[i].is_regular) {
            return TIDE_OK; /* what came twice is reported as not compared */
        }
    }
    reading.take = recheck;
    reading.is_first_pass = false;
    while (tide_reassembler_recheck_next(reassembler)) {
        TIDE_TRY(read_all(&reading, inputs, err));
    }
    return TIDE_OK;
}

/* Reporting */

/* By store, the newest last. */
static int compare_reports(const void *a, const void *b)
{
    const struct tide_snapshot_report *left = a;
    const struct tide_snapshot_report *right = b;
    int order = tide_str_compare(left->store, right->store);
    if (order == 0) {
        order = (left->at_us > right->at_us) - (left->at_us < right->at_us);
    }
    return order != 0 ? order : tide_str_compare(left->snapshot_id, right->snapshot_id);
}

static int64_t last_frame_us(const struct tide_snapshot_report *report,
                             const struct tide_inputs *inputs)
{
    if (report->received_ms > 0 && report->received_ms < INT64_MAX / 1000) {
        return (int64_t)report->received_ms * 1000;
    }
    TIDE_ASSERT(report->last_mark < inputs->count);
    return inputs->items[report->last_mark].mtime_us;
}

static void print_report(const struct verify_options *options,
                         const struct tide_snapshot_report *report,
                         const struct tide_inputs *inputs)
{
    struct tide_buf line TIDE_CLEANUP(tide_buf_done) = {0};
    int64_t last = last_frame_us(report, inputs);
    if (options->is_json) {
        tide_verify_append_json(&line, report, last, tide_clock_utc_us());
    } else {
        tide_verify_append_text(&line, report, last, tide_clock_utc_us());
    }
    tide_buf_append_char(&line, '\n');
    (void)fwrite(line.ptr, 1, line.len, stdout);
}

/* Prints what was asked for; TIDE_EXIT_DONE when there is something and all of it is complete. */
static int report_all(struct tide_reassembler *reassembler, const struct verify_options *options,
                      const struct tide_inputs *inputs)
{
    size_t count = tide_reassembler_count(reassembler);
    struct tide_snapshot_report *reports TIDE_CLEANUP(tide_free_ptr) =
        tide_alloc(count + 1, sizeof(*reports));
    for (size_t i = 0; i < count; i++) {
        reports[i] = tide_reassembler_judge(reassembler, tide_reassembler_id(reassembler, i));
    }
    qsort(reports, count, sizeof(*reports), compare_reports);
    int exit_status = count > 0 ? TIDE_EXIT_DONE : TIDE_EXIT_NO;
    for (size_t i = 0; i < count; i++) {
        bool is_newest = i + 1 == count || !tide_str_equal(reports[i].store, reports[i + 1].store);
        if (!is_newest && !options->is_all) {
            continue;
        }
        print_report(options, &reports[i], inputs);
        if (reports[i].status != TIDE_SNAPSHOT_COMPLETE) {
            exit_status = TIDE_EXIT_NO;
        }
    }
    return exit_status;
}

int tide_command_verify(int argc, char **argv)
{
    struct verify_options options = {.frame_bytes_max = TIDE_FRAME_BYTES_MAX};
    struct tide_inputs inputs TIDE_CLEANUP(tide_inputs_done) = {0};
    struct tide_error err;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return TIDE_EXIT_USAGE;
    }
    for (size_t i = 0; i < options.path_count; i++) {
        tide_status status = tide_inputs_add(&inputs, options.paths[i], &err);
        if (status != TIDE_OK) {
            return tide_command_end("verify", status, &err);
        }
    }
    struct tide_reassembler *reassembler = tide_reassembler_new();
    tide_status status = read_inputs(reassembler, &options, &inputs, &err);
    int exit_status = status == TIDE_OK ? report_all(reassembler, &options, &inputs)
                                        : tide_command_end("verify", status, &err);
    if (status == TIDE_OK && tide_reassembler_count(reassembler) == 0) {
        (void)fprintf(stderr, "tidemark: verify: no snapshot in the input: nothing is complete\n");
    }
    tide_reassembler_free(reassembler);
    return exit_status;
}
