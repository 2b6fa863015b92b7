/* What of a source's caller rows its rows were written against: two numbers that are compared, and
 * say nothing else. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_wire_state {
    uint64_t a;
    uint64_t b;
};

static inline bool tide_wire_state_equal(struct tide_wire_state x, struct tide_wire_state y)
{
    return x.a == y.a && x.b == y.b;
}

/** {0, 0}: against none. */
static inline bool tide_wire_state_is_none(struct tide_wire_state state)
{
    return state.a == 0 && state.b == 0;
}

/**
 * The state of a source after one more caller row, of whichever series, in the order in which they
 * are sent. Never {0, 0}. Whoever receives it does not compute it.
 */
struct tide_wire_state tide_wire_state_fold(struct tide_wire_state state, int64_t ts,
                                            tide_str bytes);
