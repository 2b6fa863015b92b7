#include "replication/subscriber.h"

tide_status tide_subscriber_open(const char *path, const struct tide_subscriber_options *options,
                                 struct tide_subscriber **ret_subscriber, struct tide_error *err)
{
    (void)options;
    (void)ret_subscriber;
    return tide_fail(err, TIDE_UNSUPPORTED, "%s: archives cannot be followed yet", path);
}

void tide_subscriber_close(struct tide_subscriber *subscriber)
{
    TIDE_ASSERT(subscriber == NULL);
}

void tide_subscriber_close_ptr(struct tide_subscriber **subscriber)
{
    tide_subscriber_close(*subscriber);
}

tide_status tide_subscriber_hello(struct tide_subscriber *subscriber, struct tide_buf *out,
                                  struct tide_error *err)
{
    (void)subscriber;
    (void)out;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be followed yet");
}

char *tide_subscriber_room(struct tide_subscriber *subscriber, size_t size)
{
    (void)subscriber;
    (void)size;
    return NULL;
}

tide_status tide_subscriber_came(struct tide_subscriber *subscriber, size_t size,
                                 struct tide_error *err)
{
    (void)subscriber;
    (void)size;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be followed yet");
}

tide_status tide_subscriber_sync(struct tide_subscriber *subscriber, struct tide_error *err)
{
    (void)subscriber;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be followed yet");
}

tide_status tide_subscriber_end(struct tide_subscriber *subscriber, struct tide_error *err)
{
    (void)subscriber;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be followed yet");
}

tide_status tide_subscriber_restart(struct tide_subscriber *subscriber, struct tide_error *err)
{
    (void)subscriber;
    return tide_fail(err, TIDE_UNSUPPORTED, "archives cannot be followed yet");
}

void tide_subscriber_counts(const struct tide_subscriber *subscriber,
                            struct tide_subscriber_counts *ret_counts)
{
    (void)subscriber;
    *ret_counts = (struct tide_subscriber_counts){0};
}
