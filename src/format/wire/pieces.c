#include "format/wire/pieces.h"

bool tide_wire_take_bool(struct tide_wire_take *take)
{
    uint8_t value = tide_reader_u8(&take->reader);
    if (value > 1) {
        take->wrong = "a byte that says yes or no is neither 0 nor 1";
    }
    return value == 1;
}

tide_status tide_wire_take_done(const struct tide_wire_take *take, const char *what,
                                struct tide_error *err)
{
    if (take->wrong != NULL) {
        return tide_fail(err, TIDE_CORRUPT, "malformed %s: %s", what, take->wrong);
    }
    if (take->reader.failed) {
        return tide_fail(err, TIDE_CORRUPT, "malformed %s: it ends within its fields", what);
    }
    if (!tide_reader_is_done(&take->reader)) {
        return tide_fail(err, TIDE_CORRUPT, "malformed %s: %zu bytes are left behind its fields",
                         what, tide_reader_left(&take->reader));
    }
    return TIDE_OK;
}
