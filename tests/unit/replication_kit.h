/* What tests of replication share: a publisher and a subscriber beside an archive_kit, joined by
 * their bytes, and two archives compared table by table. */
#pragma once

#include "archive_kit.h"

#include "replication/publisher.h"
#include "replication/subscriber.h"

struct follow {
    struct archive_kit *kit;
    char path[KIT_PATH_MAX]; /* of the copy */
    struct tide_publisher_options from;
    const struct tide_archive_seal_policy *policy;
    size_t group_bytes; /* of the subscriber; 0: the usual */
    size_t piece_max;   /* bytes the publisher is asked for; 0: 64 KiB */
    bool is_quiet;      /* it says no hello */
    size_t bytes_left;  /* of the connection, with is_cut */
    bool is_cut;
    struct tide_publisher *publisher; /* NULL: not connected */
    struct tide_subscriber *subscriber;
    struct tide_subscriber_counts counts; /* of the subscribers before */
    char warning[512];                    /* the last one */
    struct tide_error err;
};

/** A copy `name` in the kit's folder, with an open subscriber. */
void follow_open(struct follow *follow, struct archive_kit *one, const char *name);
void follow_close(struct follow *follow);

/** Connects: with a hello, unless it is quiet. */
void follow_connect(struct follow *follow);

/** Connects where it is not, and moves bytes until the publisher has caught up, or the connection's
 * bytes are used up (then it is cut). The first failure of either side. */
tide_status follow_pump(struct follow *follow);

/** The stream ends here for the subscriber, between frames or not; it is ready for the next. */
void follow_cut(struct follow *follow);

/** Ends the stream as one that is whole. */
void follow_end(struct follow *follow);

/** Feeds bytes of any stream. */
tide_status follow_feed(struct follow *follow, tide_str bytes);

/** Joins the segments of a series of the source's archive. */
void kit_join(struct archive_kit *one, int64_t source, const char *series);

/** All that an archive sends. */
void stream_of(const char *path, const struct tide_publisher_options *options,
               struct tide_buf *out);

/** What differs between two archives, in all five tables but for ids, numbers of segments and
 * hearts; NULL: nothing. In a static buffer. */
const char *archives_differ(const char *a, const char *b);

/** The same of sources, clock offsets and caller rows alone. */
const char *rest_differs(const char *a, const char *b);

/** A row, or a caller row, of `a` that `b` has not. */
const char *row_missing(struct archive_kit *one, const char *a, const char *b);

/** What differs in the rows of their series, sealed or live, and in what they are read by. */
const char *rows_differ(struct archive_kit *one, const char *a, const char *b);

/** Fails the test when they differ. */
void follow_is_equal(const struct follow *follow);
void follow_has_same_rows(const struct follow *follow);
