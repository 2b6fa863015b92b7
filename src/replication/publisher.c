#include "replication/publisher.h"

tide_status tide_publisher_open(const char *path, const struct tide_publisher_options *options,
                                struct tide_publisher **ret_publisher, struct tide_error *err)
{
    (void)options;
    (void)ret_publisher;
    return tide_fail(err, TIDE_UNSUPPORTED, "%s: archives cannot be published yet", path);
}

void tide_publisher_close(struct tide_publisher *publisher)
{
    TIDE_ASSERT(publisher == NULL);
}

void tide_publisher_close_ptr(struct tide_publisher **publisher)
{
    tide_publisher_close(*publisher);
}

tide_status tide_publisher_next(struct tide_publisher *publisher, struct tide_buf *out,
                                size_t bytes_max, bool *ret_is_caught_up, struct tide_error *err)
{
    (void)publisher;
    (void)out;
    (void)bytes_max;
    (void)ret_is_caught_up;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be published yet");
}

tide_status tide_publisher_keepalive(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err)
{
    (void)publisher;
    (void)out;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be published yet");
}

void tide_publisher_counts(const struct tide_publisher *publisher,
                           struct tide_publisher_counts *ret_counts)
{
    (void)publisher;
    *ret_counts = (struct tide_publisher_counts){0};
}
