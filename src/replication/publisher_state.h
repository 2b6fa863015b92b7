/* Private to this folder: what the files of the publisher share. */
#pragma once

#include "archive/container.h"
#include "archive/tail.h"
#include "base/arena.h"
#include "base/map.h"
#include "format/wire/wire.h"
#include "replication/publisher.h"

/* Caller rows of which the marks are kept, to go on from where the newest have been removed. */
#define TIDE_PUBLISHER_MARKS 256

struct tide_publisher_source {
    int64_t id;
    uint32_t number; /* in the stream */
    uint64_t digest; /* of what it was introduced with */
    bool is_complete;
    bool is_end_said; /* it was introduced as complete behind all of its rows */
    bool is_of_tables;
    bool has_full;
    uint64_t seq;
    struct tide_wire_state state;
    const struct tide_wire_hello_source *hello; /* what the follower has of it, or NULL */
};

struct tide_publisher_series {
    struct tide_publisher_source *source;
    tide_str name;
    bool is_due; /* segments may have come */
    bool wants_full;
    /* Segments that end at or before it need not be sent. */
    bool has_sealed;
    int64_t sealed_to;
    /* Rows that were there at the opening and are before it are not sent. */
    bool has_skip;
    int64_t skip_below;
    /* Of the rows that were sent: the newest, and, of those sent after it, the times. */
    bool has_rows; /* some were, ever: then no segment may follow to one who said nothing */
    bool has_sent;
    int64_t sent_to;
    int64_t *late;
    size_t late_count;
    int64_t sent_rows;    /* of those in the live tail at the last sealing, as far as is known */
    int64_t skipped_rows; /* likewise */
    /* As of a round. */
    uint64_t round;
    bool is_sealed_now;
    int64_t sealed_now;
    struct tide_publisher_series *next_due;
};

/* A segment that is being sent. */
struct tide_publisher_sending {
    struct tide_publisher_series *series; /* NULL: none is */
    struct tide_archive_mark mark;
    struct tide_archive_written segment;
    bool is_index; /* its bytes have been sent, and now its index is */
    size_t offset;
};

/* A frame of rows that is being written. `{0}`: none is. */
struct tide_publisher_run {
    struct tide_publisher_source *source; /* NULL: none is */
    struct tide_wire_draft draft;
};

struct tide_publisher {
    struct tide_archive *archive;
    struct tide_publisher_options options;
    bool has_hello;
    struct tide_arena arena;
    struct tide_archive_tail *tails[TIDE_ARCHIVE_TABLES];
    struct tide_archive_mark marks[TIDE_ARCHIVE_TABLES];
    bool is_begun;
    bool is_caught_up;
    int64_t version;        /* of the archive when it last caught up */
    int64_t look_at_us;     /* for another file of its name */
    int64_t opening_number; /* of the newest live row at the opening */
    int64_t opening_offset; /* of the newest clock offset */
    uint64_t round;
    struct tide_publisher_source **sources;
    size_t source_count;
    uint32_t next_number;
    struct tide_publisher_series **series;
    size_t series_count;
    struct tide_map by_name;                 /* "<source id> <series>" */
    struct tide_publisher_series *first_due; /* with segments that may have come */
    struct tide_publisher_series *last_due;
    struct tide_publisher_series *last; /* that was found: rows come in runs */
    struct tide_buf key;
    struct tide_publisher_sending sending;
    struct tide_archive_mark index_marks[TIDE_PUBLISHER_MARKS]; /* by index_count, in turn */
    uint64_t index_count;
    size_t limit; /* of `out`, in this call */
};

static inline bool tide_publisher_is_full(const struct tide_publisher *publisher,
                                          const struct tide_buf *out)
{
    return out->len >= publisher->limit;
}

/** The source of that id, or NULL: it has not been introduced. */
struct tide_publisher_source *tide_publisher_source(const struct tide_publisher *publisher,
                                                    int64_t id);

/** The series of a source that has been introduced, made with what need not be sent of it.
 * TIDE_CORRUPT its source has not been. */
tide_status tide_publisher_series(struct tide_publisher *publisher, int64_t source, tide_str name,
                                  struct tide_publisher_series **ret_series,
                                  struct tide_error *err);

/** Introduces all sources at the opening, and looks at what is there then. */
tide_status tide_publisher_begin(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err);

/** Introduces sources that are new. */
tide_status tide_publisher_introduce(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err);

/** Introduces anew those that have changed or ended, now that all they have was sent. */
tide_status tide_publisher_renew(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err);

/** Sends caller rows that are new, as long as there is room. */
tide_status tide_publisher_send_index(struct tide_publisher *publisher, struct tide_buf *out,
                                      struct tide_error *err);

/** The same of clock offsets. */
tide_status tide_publisher_send_offsets(struct tide_publisher *publisher, struct tide_buf *out,
                                        struct tide_error *err);

/** Looks which live rows have been sent, before anything goes by that; sends nothing. */
tide_status tide_publisher_check_rows(struct tide_publisher *publisher, struct tide_buf *out,
                                      struct tide_error *err);

/** The same of segments. */
tide_status tide_publisher_send_segments(struct tide_publisher *publisher, struct tide_buf *out,
                                         struct tide_error *err);

/** The same of live rows. */
tide_status tide_publisher_send_rows(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err);

/** Adds a row that fits a frame to the run, which goes on with another one where it has to. */
tide_status tide_publisher_send_row(struct tide_publisher_series *series,
                                    const struct tide_wire_row *row, struct tide_publisher_run *run,
                                    struct tide_buf *out, struct tide_error *err);

/** Ends the frame of the run. */
void tide_publisher_end_run(struct tide_publisher_run *run, struct tide_buf *out);

/** Sends rows of a segment of tables that have not been sent as rows before: those behind the
 * newest. */
tide_status tide_publisher_send_sealed(struct tide_publisher *publisher,
                                       struct tide_publisher_series *series,
                                       const struct tide_archive_written *segment,
                                       struct tide_buf *out, struct tide_error *err);

/** Something larger than a frame is left out: that is said, and counts as a gap. */
void tide_publisher_leave_out(struct tide_publisher *publisher,
                              struct tide_publisher_series *series, const char *what, int64_t ts,
                              size_t size);

/** Goes on with the segment that is being sent. */
tide_status tide_publisher_go_on(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err);

/** Where the series is sealed to in this round. */
tide_status tide_publisher_sealed_now(struct tide_publisher *publisher,
                                      struct tide_publisher_series *series, struct tide_error *err);
