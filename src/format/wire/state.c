/*
 * FNV-1a of 64 bits in two lanes, over the time and the bytes of each caller row. The first is the
 * crate's. The crate's second multiplies by an even number, so that all but the last bytes are
 * shifted out of it: this one's is odd.
 */
#include "format/wire/state.h"

#define BASIS_A 0xcbf29ce484222325u
#define BASIS_B 0x9e3779b97f4a7c15u
#define PRIME_A 0x00000100000001b3u
#define PRIME_B 0xd1342543de82ef95u

static struct tide_wire_state fold(struct tide_wire_state state, tide_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        state.a = (state.a ^ (unsigned char)bytes.ptr[i]) * PRIME_A;
        state.b = (state.b ^ (unsigned char)bytes.ptr[i]) * PRIME_B;
    }
    return state;
}

struct tide_wire_state tide_wire_state_fold(struct tide_wire_state state, int64_t ts,
                                            tide_str bytes)
{
    if (tide_wire_state_is_none(state)) {
        state = (struct tide_wire_state){BASIS_A, BASIS_B};
    }
    state = fold(state, tide_str_of(&ts, sizeof(ts))); /* little-endian: see base/reader.c */
    state = fold(state, bytes);
    return tide_wire_state_is_none(state) ? (struct tide_wire_state){1, 0} : state;
}
