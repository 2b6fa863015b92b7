#include "model/position.h"

int tide_position_compare(struct tide_position a, struct tide_position b)
{
    if (a.hi != b.hi) {
        return a.hi < b.hi ? -1 : 1;
    }
    return (a.lo > b.lo) - (a.lo < b.lo);
}

int tide_place_compare(struct tide_place a, struct tide_place b)
{
    if (!a.known || !b.known) {
        return (int)a.known - (int)b.known;
    }
    int order = tide_position_compare(a.position, b.position);
    return order != 0 ? order : (a.index > b.index) - (a.index < b.index);
}

static void write_integer(struct tide_position position, struct tide_buf *buf)
{
    tide_buf_append_u64(buf, position.lo);
}

static tide_status parse_integer(tide_str json, struct tide_position *ret_position,
                                 struct tide_error *err)
{
    uint64_t value = 0;
    if (!tide_str_to_u64(json, &value) || value > INT64_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "position is not an integer within 0 and 2^63-1");
    }
    *ret_position = (struct tide_position){.lo = value};
    return TIDE_OK;
}

const struct tide_position_kind tide_position_integer = {
    .name = "integer",
    .write = write_integer,
    .parse = parse_integer,
};
