/*
 * Reading a table of an archive in the order in which it was written, from where the last reading
 * has ended, so that no snapshot need be held between two readings. All calls are made within a
 * snapshot. One thread at a time.
 *
 * What is written later has a greater row number, as long as the last row that was read is there
 * still. Where that has been removed (rows that were sealed, history that was forgotten), numbers
 * may have been given again: then the tail is broken, and its reader says where it goes on.
 */
#pragma once

#include "archive/container.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tide_archive_table {
    TIDE_ARCHIVE_SEGMENTS, /* without their bytes */
    TIDE_ARCHIVE_LIVE_ROWS,
    TIDE_ARCHIVE_CALLER_ROWS,
    TIDE_ARCHIVE_CLOCK_OFFSETS,
    TIDE_ARCHIVE_SOURCES, /* all that is said of one, but its heart, as `bytes` */
};

#define TIDE_ARCHIVE_TABLES 5

/* A row of one of the tables; what its table does not have is zero. */
struct tide_archive_written {
    int64_t number; /* of the row in its table */
    int64_t source;
    tide_str series;
    int64_t ts;          /* of a segment its end */
    int64_t wall_offset; /* of a live row or a clock offset */
    tide_str bytes;      /* of a live row or a caller row */
    int64_t seq;         /* of a segment, as all that follows */
    int64_t rows;
    int64_t first_ts;
    int64_t bytes_size;
    bool has_index;
    int64_t index_size;
};

/* A row that was read: its number, and a digest of what else there is of it. */
struct tide_archive_mark {
    int64_t number; /* INT64_MIN: before the first */
    uint64_t digest;
};

#define TIDE_ARCHIVE_MARK_FIRST ((struct tide_archive_mark){.number = INT64_MIN})

/** The mark of a row. */
struct tide_archive_mark tide_archive_mark_of(const struct tide_archive_written *written);

struct tide_archive_tail;

/** A tail of a table, from its beginning. The archive must stay. */
tide_status tide_archive_tail_open(struct tide_archive *archive, enum tide_archive_table table,
                                   struct tide_archive_tail **ret_tail, struct tide_error *err);

/** NULL is fine. */
void tide_archive_tail_close(struct tide_archive_tail *tail);

/** Whether the row of that mark is there still; the first one always is. */
tide_status tide_archive_tail_has(struct tide_archive_tail *tail, struct tide_archive_mark mark,
                                  bool *ret_is_there, struct tide_error *err);

/** Begins behind the row of that mark. */
void tide_archive_tail_begin(struct tide_archive_tail *tail, struct tide_archive_mark mark);

/** The next row, valid until the next call; `ret_is_any` says whether there was one. */
tide_status tide_archive_tail_next(struct tide_archive_tail *tail,
                                   struct tide_archive_written *ret_written, bool *ret_is_any,
                                   struct tide_error *err);

/** Ends the reading, before its snapshot ends. */
void tide_archive_tail_rest(struct tide_archive_tail *tail);

/** The mark of the row of that number; of the first where there is none. */
tide_status tide_archive_tail_mark(struct tide_archive_tail *tail, int64_t number,
                                   struct tide_archive_mark *ret_mark, struct tide_error *err);

/** The mark of the newest row of the table. */
tide_status tide_archive_tail_newest(struct tide_archive_tail *tail,
                                     struct tide_archive_mark *ret_mark, struct tide_error *err);

/** The number of the live row of that time, or whether there is none. */
tide_status tide_archive_live_number(struct tide_archive *archive, int64_t source, tide_str series,
                                     int64_t ts, bool *ret_is_any, int64_t *ret_number,
                                     struct tide_error *err);

/** Where the series is sealed to; `ret_is_any`: it has segments. */
tide_status tide_archive_sealed_to(struct tide_archive *archive, int64_t source, tide_str series,
                                   bool *ret_is_any, int64_t *ret_ts, struct tide_error *err);

/** The time of the first row of the series that there is, sealed or live. */
tide_status tide_archive_oldest(struct tide_archive *archive, int64_t source, tide_str series,
                                bool *ret_is_any, int64_t *ret_ts, struct tide_error *err);

/** How many rows of the tail behind `after_ts` have a number up to that of the mark. */
tide_status tide_archive_live_count(struct tide_archive *archive, int64_t source, tide_str series,
                                    bool has_after, int64_t after_ts, struct tide_archive_mark mark,
                                    int64_t *ret_count, struct tide_error *err);

/** The least time of a live row of the series that was written after one of a later time. */
tide_status tide_archive_live_disorder(struct tide_archive *archive, int64_t source,
                                       tide_str series, bool *ret_is_any, int64_t *ret_ts,
                                       struct tide_error *err);

/** The first segment of a series, by time, that ends behind `after_ts` (`has_after`). */
tide_status tide_archive_next_segment(struct tide_archive *archive, int64_t source, tide_str series,
                                      bool has_after, int64_t after_ts,
                                      struct tide_archive_written *ret_segment, bool *ret_is_any,
                                      struct tide_error *err);

/** Appends some bytes of a segment, or of its index. TIDE_STALE it does not have so many. */
tide_status tide_archive_segment_piece(struct tide_archive *archive, int64_t number, bool is_index,
                                       size_t offset, size_t size, struct tide_buf *out,
                                       struct tide_error *err);

/** A number that changes when somebody else has written. Within a snapshot, of its moment. */
tide_status tide_archive_version(struct tide_archive *archive, int64_t *ret_version,
                                 struct tide_error *err);

/** Lets the connection remember so much of the file. */
tide_status tide_archive_set_cache(struct tide_archive *archive, int kib, struct tide_error *err);
