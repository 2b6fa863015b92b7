/*
 * Any bytes as a stream of the replication wire, with and without its preamble, as one frame, and
 * as a hello. What must hold:
 *   - the decoder that is fed in pieces gives what the reader of the whole gives: the same frames
 *     or the same error, whatever the cuts;
 *   - what is decoded lies within the input, and is sent on as it came;
 *   - a frame that decodes does not without its last byte, nor with one more.
 */
#include "base/arena.h"
#include "base/status.h"
#include "format/wire/hello.h"
#include "format/wire/order.h"
#include "format/wire/stream.h"
#include "wire_kit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_order(tide_str stream)
{
    TIDE_CLEANUP(tide_wire_order_done) struct tide_wire_order order = {0};
    struct tide_wire_reader reader = tide_wire_reader_of(stream);
    struct tide_wire_frame frame;
    struct tide_wire_verdict verdict;
    struct tide_error err;
    while (tide_wire_reader_next(&reader, &frame, &err) == TIDE_OK) {
        tide_status status = tide_wire_order_take(&order, &frame, &verdict, &err);
        TIDE_ASSERT(status == TIDE_OK || status == TIDE_INVALID);
        TIDE_ASSERT(status != TIDE_OK || order.places[verdict.place].source == frame.source);
    }
}

/* Cuts are drawn from the input, so that one input is one test. */
static void check_stream(tide_str stream, struct wire_maker *cutter)
{
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome whole = {0};
    TIDE_CLEANUP(wire_outcome_done) struct wire_outcome pieces = {0};
    wire_read(stream, &whole);
    wire_push(stream, cutter, (size_t)1 << wire_random(cutter, 9), &pieces);
    TIDE_ASSERT(wire_differ(&whole, &pieces) == NULL);
    TIDE_ASSERT(whole.status == TIDE_END || whole.status == TIDE_CORRUPT ||
                whole.status == TIDE_CLOSED || whole.status == TIDE_UNSUPPORTED);
    check_order(stream);
}

static tide_status decode(tide_str body, struct tide_wire_frame *ret_frame)
{
    struct tide_error err;
    tide_status status = tide_wire_decode(body, ret_frame, &err);
    TIDE_ASSERT(status == TIDE_OK || status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
    return status;
}

static void check_map(const struct tide_wire_map *map)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_wire_pair *pairs = NULL;
    struct tide_error err;
    size_t count = 0;
    TIDE_ASSERT(tide_wire_map_read(map, &arena, &pairs, &count, &err) == TIDE_OK);
    TIDE_ASSERT(count <= map->count && (count > 0 || map->count == 0));
    for (size_t i = 1; i < count; i++) {
        TIDE_ASSERT(tide_str_compare(pairs[i - 1].key, pairs[i].key) < 0);
    }
}

static void check_frame(tide_str body)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
    struct tide_wire_frame frame;
    struct tide_error err;
    if (decode(body, &frame) != TIDE_OK) {
        return;
    }
    tide_status status = tide_wire_encode(&frame, &again, &err);
    if (frame.kind == TIDE_WIRE_HANDSHAKE) {
        check_map(&frame.handshake.labels);
        check_map(&frame.handshake.metadata);
        TIDE_ASSERT(status == TIDE_OK || status == TIDE_INVALID); /* keys came in any order */
    } else {
        TIDE_ASSERT(status == TIDE_OK);
    }
    if (status == TIDE_OK) {
        TIDE_ASSERT(tide_str_equal(body, tide_str_of(again.ptr + 4, again.len - 4)));
        tide_buf_append_char(&again, '\0');
        TIDE_ASSERT(decode(tide_str_of(again.ptr + 4, again.len - 4), &frame) == TIDE_CORRUPT);
    }
    TIDE_ASSERT(decode(tide_str_of(body.ptr, body.len - 1), &frame) == TIDE_CORRUPT);
}

static void check_hello(tide_str bytes)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
    struct tide_wire_hello hello;
    struct tide_error err;
    if (tide_wire_hello_decode(bytes, &arena, &hello, &err) == TIDE_OK) {
        TIDE_ASSERT(tide_wire_hello_encode(&hello, &again, &err) == TIDE_OK);
        TIDE_ASSERT(tide_str_equal(bytes, tide_buf_str(&again)));
    } else {
        TIDE_ASSERT(err.status == TIDE_CORRUPT || err.status == TIDE_UNSUPPORTED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf begun = {0};
    tide_str bytes = tide_str_of(data, size);
    struct tide_wire_state seed = tide_wire_state_fold((struct tide_wire_state){0}, 0, bytes);
    struct wire_maker cutter = {.state = seed.a | 1};
    tide_wire_preamble_append(&begun);
    tide_buf_append_str(&begun, bytes);
    check_stream(bytes, &cutter);
    check_stream(tide_buf_str(&begun), &cutter);
    check_frame(bytes);
    check_hello(bytes);
    return 0;
}
