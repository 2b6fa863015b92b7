#include "app/verify/verify_read.h"

#include "app/verify/frame_lines.h"
#include "base/log.h"
#include "format/frame.h"

#include <inttypes.h>
#include <stdio.h>

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
    struct tide_inputs *inputs;
    size_t frame_bytes_max;
    take_frame *take;
    bool is_first_pass;
};

/* A frame that is cut off at the end of a file does not count: its writer may still be at it. */
static tide_status read_lines(const struct reading *reading, struct tide_lines *lines,
                              uint64_t number, struct tide_error *err)
{
    struct tide_frame_decoder decoder = {0};
    struct tide_frame frame;
    for (;;) {
        tide_str line;
        uint64_t at = 0;
        bool is_ended = false;
        tide_status status = tide_lines_next(lines, &line, &at, &is_ended, err);
        if (status != TIDE_OK) {
            return status == TIDE_END ? TIDE_OK : status;
        }
        if (is_blank(line)) {
            continue;
        }
        if (tide_frame_decode(&decoder, line, &frame, err) == TIDE_OK) {
            reading->take(reading->reassembler, &frame, number);
        } else if (is_ended || !tide_frame_is_cut_off(line)) {
            return tide_fail_context(err, "%s: %s %" PRIu64 ": the frame that starts here",
                                     lines->path, lines->byte_word, at);
        } else if (reading->is_first_pass) {
            tide_log(TIDE_LOG_WARN,
                     "%s: %s %" PRIu64 ": the last frame is cut off and does not count",
                     lines->path, lines->byte_word, at);
        }
    }
}

/* The second time no more is read than the first time, and no less. */
static tide_status read_input(const struct reading *reading, size_t number, struct tide_error *err)
{
    struct tide_input *input = &reading->inputs->items[number];
    struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
    uint64_t wanted = reading->is_first_pass ? UINT64_MAX : input->bytes;
    if (input->error != NULL) {
        return tide_fail(err, TIDE_IO, "%s", input->error);
    }
    TIDE_TRY(tide_lines_open(&lines, input->path, reading->frame_bytes_max, wanted, err));
    TIDE_TRY(read_lines(reading, &lines, number, err));
    if (reading->is_first_pass) {
        input->bytes = lines.file_bytes;
    }
    return TIDE_OK;
}

static void report(const struct tide_error *err, size_t in_doubt)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "tidemark: verify: %s", err->message);
    if (in_doubt > 0) {
        (void)fprintf(stderr, "; %zu %s with frames in it %s not judged", in_doubt,
                      in_doubt == 1 ? "snapshot" : "snapshots", in_doubt == 1 ? "is" : "are");
    }
    (void)fputc('\n', stderr);
}

/* What a file says before a frame that cannot be read proves nothing. */
static size_t read_first(const struct reading *reading)
{
    struct tide_error err;
    size_t failed = 0;
    for (size_t i = 0; i < reading->inputs->count; i++) {
        if (read_input(reading, i, &err) != TIDE_OK) {
            reading->inputs->items[i].is_abandoned = true;
            report(&err, tide_reassembler_doubt(reading->reassembler, i));
            failed++;
        }
    }
    return failed;
}

static bool may_read_again(const struct tide_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        if (!inputs->items[i].is_regular && !inputs->items[i].is_abandoned) {
            return false; /* what came twice is reported as not compared */
        }
    }
    return true;
}

static tide_status read_again(const struct reading *reading, struct tide_error *err)
{
    while (tide_reassembler_recheck_next(reading->reassembler)) {
        for (size_t i = 0; i < reading->inputs->count; i++) {
            if (!reading->inputs->items[i].is_abandoned) {
                TIDE_TRY(read_input(reading, i, err));
            }
        }
    }
    return TIDE_OK;
}

size_t tide_verify_read(struct tide_reassembler *reassembler, struct tide_inputs *inputs,
                        size_t frame_bytes_max)
{
    struct reading reading = {reassembler, inputs, frame_bytes_max, feed, true};
    struct tide_error err;
    size_t failed = read_first(&reading);
    if (!may_read_again(inputs)) {
        return failed;
    }
    reading.take = recheck;
    reading.is_first_pass = false;
    if (read_again(&reading, &err) != TIDE_OK) {
        report(&err, 0); /* nothing is compared then, and the lines say so */
        failed++;
    }
    return failed;
}
