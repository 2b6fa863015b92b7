/* What is said around a stream: an opening or a refusal, which is written again as it was, or
 * corrupt, or of another version. */
#include "format/wire/opening.h"

#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_opening(tide_str bytes)
{
    struct tide_buf again TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_wire_opening opening;
    struct tide_error err;
    size_t whole = 0;
    if (tide_wire_opening_decode(bytes, &opening, &err) == TIDE_OK) {
        TIDE_ASSERT(tide_wire_opening_may_be(bytes) && !tide_wire_refusal_may_be(bytes));
        TIDE_ASSERT(tide_wire_opening_size(bytes, &whole, &err) == TIDE_OK && whole == bytes.len);
        tide_wire_opening_append(&opening, &again);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&again), bytes));
    } else {
        TIDE_ASSERT(err.status == TIDE_CORRUPT || err.status == TIDE_UNSUPPORTED);
    }
}

static void check_refusal(tide_str bytes)
{
    struct tide_buf again TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_wire_refusal refusal;
    struct tide_error err;
    if (tide_wire_refusal_decode(bytes, &refusal, &err) == TIDE_OK) {
        TIDE_ASSERT(tide_wire_refusal_may_be(bytes) && !tide_wire_opening_may_be(bytes));
        tide_wire_refusal_append(&refusal, &again);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&again), bytes));
    } else {
        TIDE_ASSERT(err.status == TIDE_CORRUPT || err.status == TIDE_UNSUPPORTED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tide_str bytes = tide_str_of(data, size);
    check_opening(bytes);
    check_refusal(bytes);
    return 0;
}
