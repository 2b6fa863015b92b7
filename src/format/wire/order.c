#include "format/wire/order.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

void tide_wire_order_done(struct tide_wire_order *order)
{
    tide_map_done(&order->numbers);
    free(order->places);
    *order = (struct tide_wire_order){0};
}

static tide_str number_key(const uint32_t *number)
{
    return tide_str_of(number, sizeof(*number));
}

static void add_place(struct tide_wire_order *order, uint32_t source)
{
    if (order->count == order->cap) {
        order->cap = order->cap == 0 ? 4 : 2 * order->cap;
        order->places = tide_realloc(order->places, order->cap, sizeof(*order->places));
    }
    tide_map_put(&order->numbers, number_key(&source), NULL)->number = order->count;
    order->places[order->count++] = (struct tide_wire_place){.source = source};
}

static tide_status introduce(struct tide_wire_order *order, uint32_t source,
                             struct tide_wire_verdict *ret_verdict, struct tide_error *err)
{
    if (tide_map_get(&order->numbers, number_key(&source)) != NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "a second handshake introduces source %" PRIu32 " in one stream", source);
    }
    if (order->count >= TIDE_WIRE_SOURCES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the stream introduces more than %zu sources, which is the limit",
                         TIDE_WIRE_SOURCES_MAX);
    }
    *ret_verdict = (struct tide_wire_verdict){.place = order->count, .is_new = true};
    add_place(order, source);
    return TIDE_OK;
}

/* Towards the crate the first lane tells alone: its second one is another. */
static void compare_state(struct tide_wire_place *place, uint64_t lane,
                          struct tide_wire_state state, struct tide_wire_verdict *verdict)
{
    verdict->is_missing = place->is_folded && !place->has_missed && state.a != lane;
    place->has_missed = place->has_missed || verdict->is_missing;
}

static void take_index(struct tide_wire_place *place, const struct tide_wire_index *index,
                       struct tide_wire_verdict *verdict)
{
    struct tide_wire_state folded =
        place->is_folded ? tide_wire_state_fold(place->state, index->ts, index->bytes)
                         : index->state;
    compare_state(place, folded.a, index->state, verdict);
    place->state = index->state;
    place->has_full = place->has_full || !index->is_delta;
}

/* A seq that falls or stays is no gap; the next one is compared with it all the same. */
static void take_rows(struct tide_wire_place *place, const struct tide_wire_rows *rows,
                      struct tide_wire_verdict *verdict)
{
    verdict->is_gap = place->has_seq
                          ? place->last_seq < UINT64_MAX && rows->seq > place->last_seq + 1
                          : rows->seq >= TIDE_WIRE_SEQ_BEHIND_GAP;
    compare_state(place, place->state.a, rows->state, verdict);
    verdict->is_unmatched = place->has_missed ||
                            !tide_wire_state_equal(rows->state, place->state) ||
                            (!place->has_full && !tide_wire_state_is_none(rows->state));
    place->has_seq = true;
    place->last_seq = rows->seq;
}

tide_status tide_wire_order_take(struct tide_wire_order *order, const struct tide_wire_frame *frame,
                                 struct tide_wire_verdict *ret_verdict, struct tide_error *err)
{
    if (frame->kind == TIDE_WIRE_HANDSHAKE) {
        return introduce(order, frame->source, ret_verdict, err);
    }
    const union tide_map_value *found = tide_map_get(&order->numbers, number_key(&frame->source));
    if (found == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "a replication frame (%s) is for source %" PRIu32
                         ", which no handshake has introduced",
                         tide_wire_kind_name(frame->kind), frame->source);
    }
    struct tide_wire_place *place = &order->places[found->number];
    *ret_verdict = (struct tide_wire_verdict){.place = found->number};
    if (frame->kind == TIDE_WIRE_INDEX) {
        take_index(place, &frame->index, ret_verdict);
    } else if (frame->kind == TIDE_WIRE_SEGMENT) {
        ret_verdict->is_unmatched = place->has_missed;
    } else if (frame->kind == TIDE_WIRE_ROWS) {
        take_rows(place, &frame->rows, ret_verdict);
    }
    return TIDE_OK;
}
