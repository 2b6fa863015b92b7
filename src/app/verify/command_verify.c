/* tidemark verify: complete, truncated, open or conflicting, a snapshot a line. */
#include "app/commands.h"
#include "app/verify/verify_input.h"
#include "app/verify/verify_print.h"
#include "app/verify/verify_read.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
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
           "with *.ndjson and *.json files in it or below it, or - for standard input; each may "
           "be compressed with zstd.\n\nExit status: 0 all are complete, 1 one is not or there "
           "is none, 2 wrong usage, 3 an input could not be read; the others are judged all the "
           "same.",
};

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
        if ((!is_newest && !options->is_all) || reports[i].is_in_doubt) {
            continue;
        }
        print_report(options, &reports[i], inputs);
        if (reports[i].status != TIDE_SNAPSHOT_COMPLETE) {
            exit_status = TIDE_EXIT_NO;
        }
    }
    return exit_status;
}

static int verify(struct tide_reassembler *reassembler, const struct verify_options *options,
                  struct tide_inputs *inputs)
{
    size_t failed = tide_verify_read(reassembler, inputs, options->frame_bytes_max);
    int exit_status = report_all(reassembler, options, inputs);
    if (failed > 0) {
        return TIDE_EXIT_FAILED;
    }
    if (tide_reassembler_count(reassembler) == 0) {
        (void)fprintf(stderr, "tidemark: verify: no snapshot in the input: nothing is complete\n");
    }
    return exit_status;
}

int tide_command_verify(int argc, char **argv)
{
    struct verify_options options = {.frame_bytes_max = TIDE_FRAME_BYTES_MAX};
    struct tide_inputs inputs TIDE_CLEANUP(tide_inputs_done) = {0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return TIDE_EXIT_USAGE;
    }
    for (size_t i = 0; i < options.path_count; i++) {
        tide_inputs_add(&inputs, options.paths[i]);
    }
    struct tide_reassembler *reassembler = tide_reassembler_new();
    int exit_status = verify(reassembler, &options, &inputs);
    tide_reassembler_free(reassembler);
    return exit_status;
}
