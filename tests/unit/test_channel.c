#include "cmocka_prelude.h"

#include "stream/channel.h"
#include "stream_conformance.h"

static struct tide_stream *make(size_t lane_items, size_t lane_bytes)
{
    struct tide_error err;
    struct tide_stream *stream = NULL;
    const struct tide_channel_options options = {.lane_items = lane_items,
                                                 .lane_bytes = lane_bytes};
    assert_int_equal(tide_channel_new(&options, &stream, &err), TIDE_OK);
    return stream;
}

int main(void)
{
    const struct stream_factory factory = {.make = make, .random_runs = 5000};
    return stream_conformance_run(&factory);
}
