/*
 * Speed of the replication wire on one core: segments of a MiB, and rows of 200 bytes.
 *
 *     bench_wire [SECONDS]     how long each measurement takes; 1 when left out
 *
 * Decoding is the decoder that is fed in pieces of 64 KiB, as from a socket, and counts the copy.
 */
#include "base/clock.h"
#include "format/wire/stream.h"

#include <stdio.h>
#include <stdlib.h>

#define SEGMENT_BYTES TIDE_MIB
#define SEGMENT_COUNT 32
#define ROW_BYTES     200
#define ROW_COUNT     1000 /* in a frame */
#define FRAME_COUNT   100
#define PIECE_BYTES   ((size_t)65536)

/* What is sent again and again, and what has been counted of it. */
struct work {
    struct tide_buf payload;
    struct tide_buf stream;
    struct tide_wire_decoder decoder;
    uint64_t frames;
    uint64_t rows;
    uint64_t bytes; /* of payloads */
};

static void die(const struct tide_error *err)
{
    (void)fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void encode_segments(struct work *work)
{
    struct tide_error err = {0};
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_SEGMENT,
                                    .segment = {TIDE_STR("orders"), 65536, 1, 65536,
                                                tide_buf_str(&work->payload), false, TIDE_STR("")}};
    tide_buf_reset(&work->stream);
    tide_wire_preamble_append(&work->stream);
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        if (tide_wire_encode(&frame, &work->stream, &err) != TIDE_OK) {
            die(&err);
        }
        work->bytes += work->payload.len;
        work->frames++;
    }
}

static void encode_rows(struct work *work)
{
    struct tide_error err = {0};
    struct tide_wire_row row = {TIDE_STR("orders"), 0, 0,
                                tide_str_of(work->payload.ptr, ROW_BYTES)};
    tide_buf_reset(&work->stream);
    tide_wire_preamble_append(&work->stream);
    for (uint64_t seq = 0; seq < FRAME_COUNT; seq++) {
        struct tide_wire_state none = {0};
        struct tide_wire_draft draft = tide_wire_rows_begin(0, seq, none, &work->stream);
        for (int i = 0; i < ROW_COUNT; i++) {
            row.ts++;
            if (tide_wire_rows_add(&draft, &row, &work->stream, &err) != TIDE_OK) {
                die(&err);
            }
        }
        tide_wire_rows_end(&draft, &work->stream);
        work->rows += ROW_COUNT;
        work->bytes += (uint64_t)ROW_COUNT * ROW_BYTES;
    }
}

static void count_frame(struct work *work, const struct tide_wire_frame *frame)
{
    work->frames++;
    if (frame->kind == TIDE_WIRE_SEGMENT) {
        work->bytes += frame->segment.bytes.len;
    } else if (frame->kind == TIDE_WIRE_ROWS) {
        struct tide_reader walk = tide_wire_rows_walk(&frame->rows);
        for (struct tide_wire_row row; tide_wire_rows_next(&walk, &row);) {
            work->rows++;
            work->bytes += row.bytes.len;
        }
    }
}

static void decode(struct work *work)
{
    struct tide_error err = {0};
    struct tide_wire_frame frame;
    tide_wire_decoder_reset(&work->decoder);
    for (size_t at = 0; at < work->stream.len; at += PIECE_BYTES) {
        size_t left = work->stream.len - at;
        bool is_frame = true;
        tide_wire_decoder_feed(
            &work->decoder,
            tide_str_of(work->stream.ptr + at, left < PIECE_BYTES ? left : PIECE_BYTES));
        while (is_frame) {
            if (tide_wire_decoder_next(&work->decoder, &frame, &is_frame, &err) != TIDE_OK) {
                die(&err);
            }
            if (is_frame) {
                count_frame(work, &frame);
            }
        }
    }
    if (tide_wire_decoder_end(&work->decoder, &err) != TIDE_OK) {
        die(&err);
    }
}

static void measure(const char *name, void (*run)(struct work *), struct work *work, double seconds)
{
    int64_t start_us = tide_clock_monotonic_us();
    double took = 0;
    run(work); /* memory grows once */
    work->frames = work->rows = work->bytes = 0;
    start_us = tide_clock_monotonic_us();
    while (took < seconds) {
        run(work);
        took = (double)(tide_clock_monotonic_us() - start_us) / 1e6;
    }
    (void)printf("wire_%s %.2f GB/s", name, (double)work->bytes / took / 1e9);
    if (work->rows > 0) {
        (void)printf(", %.2f million rows/s", (double)work->rows / took / 1e6);
    }
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    struct work work = {0};
    char *at = tide_buf_reserve(&work.payload, SEGMENT_BYTES);
    for (size_t i = 0; i < SEGMENT_BYTES; i++) {
        at[i] = (char)(i * 2654435761u >> 13);
    }
    work.payload.len = SEGMENT_BYTES;
    measure("encode_segments", encode_segments, &work, seconds);
    measure("decode_segments", decode, &work, seconds);
    measure("encode_rows", encode_rows, &work, seconds);
    measure("decode_rows", decode, &work, seconds);
    tide_wire_decoder_done(&work.decoder);
    tide_buf_done(&work.stream);
    tide_buf_done(&work.payload);
    return 0;
}
