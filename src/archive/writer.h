/*
 * The one writer of an archive. It drops nothing: what it cannot write fails the whole call, and
 * nothing of that call is in the file. A call that returns has its rows on the disk (synced).
 *
 * Rows of a series have times of their own, each at most once, behind what has been sealed. Their
 * order among what is not sealed is free; tide_archive_row_times makes them rise.
 *
 * Any thread may call, one at a time gets in; a writer may keep a thread of its own that beats
 * hearts and folds the log into the file. Rows, their times and sealing belong to one thread.
 * Errors: TIDE_TIMEOUT and TIDE_IO marked retriable may pass (in use, disk full, I/O), the same
 * call may be made again; after TIDE_STALE (another program has written) and TIDE_CORRUPT every
 * call fails with the same error.
 */
#pragma once

#include "archive/catalogue.h"
#include "archive/compact.h"
#include "archive/encoder.h"
#include "archive/metadata.h"
#include "archive/retain.h"
#include "archive/seal_policy.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_archive_writer;
struct tide_archive_series;

struct tide_archive_writer_options {
    const struct tide_archive_encoder *encoder; /* NULL: nothing can be sealed; must outlive it */
    int64_t heartbeat_us;                       /* 0: every 5 s */
    int64_t checkpoint_us;                      /* 0: every 10 s at least */
    bool has_keeper;                            /* a thread calls tide_archive_tend when due */
    bool allows_edits; /* others may forget and join beside it (TIDE_ARCHIVE_EDIT_BESIDE) */
    bool is_copy; /* hearts and clock offsets are another's: none is beaten, nor noted on sealing */
};

/** Opens an archive for writing, mends what a kill between sealing and pruning left. Errors as
 * tide_archive_open. */
tide_status tide_archive_writer_open(const char *path,
                                     const struct tide_archive_writer_options *options,
                                     struct tide_archive_writer **ret_writer,
                                     struct tide_error *err);

/** Where every source it opened is finalized, free pages are given back first (2 s at most). NULL
 * is fine. */
void tide_archive_writer_close(struct tide_archive_writer *writer);
void tide_archive_writer_close_ptr(struct tide_archive_writer **writer);

/** tide_archive_held_read, by the writer's own connection. */
tide_status tide_archive_writer_held(struct tide_archive_writer *writer, int64_t source,
                                     tide_str name, bool *ret_is_any, struct tide_buf *ret_bytes,
                                     struct tide_error *err);

/** tide_archive_catalogue_read, by the writer's own connection. */
tide_status tide_archive_writer_catalogue(struct tide_archive_writer *writer,
                                          struct tide_arena *arena,
                                          struct tide_archive_catalogue *ret_catalogue,
                                          struct tide_error *err);

struct tide_archive_new_source {
    struct tide_archive_pairs labels;
    struct tide_archive_pairs metadata; /* without the keys the archive writes itself */
    int64_t clock_anchor_wall_ns;       /* the wall clock now */
};

/** Adds a source with a first session, in one transaction. TIDE_INVALID for metadata keys that are
 * the archive's. */
tide_status tide_archive_add_source(struct tide_archive_writer *writer,
                                    const struct tide_archive_new_source *source, int64_t *ret_id,
                                    struct tide_error *err);

/** The anchor with which a source can be gone on with now: `now_ns`, or just behind its
 * newest row where that is later. */
tide_status tide_archive_resume_anchor(struct tide_archive_writer *writer, int64_t id,
                                       int64_t now_ns, int64_t *ret_anchor_ns,
                                       struct tide_error *err);

/**
 * Goes on with a source, in a new session. Rows at or before its newest row are refused from then
 * on.
 * Errors: TIDE_INVALID no such source, or the anchor is not behind its newest row;
 * TIDE_UNSUPPORTED another encoder version. Nothing is written then.
 */
tide_status tide_archive_resume_source(struct tide_archive_writer *writer, int64_t id,
                                       int64_t clock_anchor_wall_ns, struct tide_error *err);

/** Says that a source is whole: it takes no more rows, until it is resumed. */
tide_status tide_archive_finalize_source(struct tide_archive_writer *writer, int64_t id, int64_t ts,
                                         int64_t wall_offset, struct tide_error *err);

/** Sets keys of a source's metadata. TIDE_INVALID for those that are the archive's. */
tide_status tide_archive_set_metadata(struct tide_archive_writer *writer, int64_t id,
                                      const struct tide_archive_pairs *pairs,
                                      struct tide_error *err);

/**
 * A series of a source that this writer has added or resumed, made when it has not been used yet.
 * The handle is the writer's. TIDE_INVALID another source, or a name that is empty, too long, not
 * UTF-8 or holds NUL; TIDE_UNSUPPORTED more series than TIDE_ARCHIVE_SERIES_MAX.
 */
tide_status tide_archive_series_open(struct tide_archive_writer *writer, int64_t source,
                                     tide_str name, struct tide_archive_series **ret_series,
                                     struct tide_error *err);

/** TIDE_INVALID for a name that no series can have. */
tide_status tide_archive_check_name(tide_str name, struct tide_error *err);

/** The name of a series; the writer's. */
tide_str tide_archive_series_name(const struct tide_archive_series *series);

struct tide_archive_series_state {
    bool has_newest;
    int64_t newest_ts; /* of all its rows, ever */
    bool is_sealed;
    int64_t sealed_to; /* rows up to here are in segments */
    int64_t next_seq;
    int64_t live_rows;
    int64_t live_bytes;
    int64_t oldest_live_ts; /* with live rows */
};

/** What the writer knows of a series. */
void tide_archive_series_state(const struct tide_archive_series *series,
                               struct tide_archive_series_state *ret_state);

/** Whether its live tail should be sealed at the time `now_ts`. */
bool tide_archive_series_is_due(const struct tide_archive_series *series,
                                const struct tide_archive_seal_policy *policy, int64_t now_ts);

struct tide_archive_row {
    struct tide_archive_series *series;
    int64_t ts;
    int64_t wall_offset; /* ts + wall_offset is the wall clock */
    tide_str bytes;
};

struct tide_archive_note {
    struct tide_archive_series *series;
    int64_t ts;
    tide_str bytes;
};

/* Bytes of whoever writes, such as what it holds: one under a name, replaced each time. */
struct tide_archive_held {
    int64_t source;
    tide_str name;
    tide_str bytes;
};

/* What is written together: all of it, or nothing. */
struct tide_archive_tick {
    const struct tide_archive_row *rows;
    size_t row_count;
    const struct tide_archive_note *notes; /* become caller rows */
    size_t note_count;
    const struct tide_archive_held *held; /* into a table that other programs pass over */
    size_t held_count;
};

/**
 * Makes the times of rows that are about to be written rise strictly in each series: a time that is
 * not behind the newest row becomes the next one behind it. The wall clock of the row stays what it
 * was. Deciding again, after a call that failed, gives the same.
 * Errors: TIDE_INVALID when there is no later time.
 */
tide_status tide_archive_row_times(struct tide_archive_row *rows, size_t count,
                                   struct tide_error *err);

/**
 * Writes a tick in one transaction and syncs it. An empty one writes nothing, and still says when
 * the writer has failed for good.
 * Errors: TIDE_INVALID a row is not behind what is sealed or was there on resuming, its series has
 * one of that time already, or its source is finalized.
 */
tide_status tide_archive_write(struct tide_archive_writer *writer,
                               const struct tide_archive_tick *tick, struct tide_error *err);

struct tide_archive_seal_counts {
    int64_t segments;
    int64_t rows;
    int64_t bytes;
};

/**
 * Seals live tails of series of one source: of each the oldest rows, as many as one segment takes
 * (`policy`; NULL: 64 Ki rows or 8 MiB). All segments are written in one transaction; the rows in
 * them are removed from the live tail after it.
 * Errors: TIDE_INVALID no encoder, or a segment that is not made of its rows; what the encoder
 * fails with. Rows stay live then.
 */
tide_status tide_archive_seal(struct tide_archive_writer *writer,
                              struct tide_archive_series *const *series, size_t count,
                              const struct tide_archive_seal_policy *policy,
                              struct tide_archive_seal_counts *ret_counts, struct tide_error *err);

/** tide_archive_retain_in by this writer. */
tide_status tide_archive_writer_retain(struct tide_archive_writer *writer,
                                       const struct tide_archive_retention *retention,
                                       struct tide_archive_retained *ret_retained,
                                       struct tide_error *err);

/** tide_archive_merge_put by this writer. */
tide_status tide_archive_writer_put_merge(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series, const struct tide_archive_merge *merge,
                                          bool *ret_is_put, struct tide_error *err);

/** Gives up to `pages` free pages back to the file system, if more than a tenth of the file is
 * free; `ret_is_more`: there may be more to give. */
tide_status tide_archive_writer_give_back(struct tide_archive_writer *writer, int pages,
                                          bool *ret_is_more, struct tide_error *err);

/** Beats the hearts of open sources and folds the log into the file, what is due of it.
 * `ret_next_us` is when to call again (monotonic). */
tide_status tide_archive_tend(struct tide_archive_writer *writer, int64_t *ret_next_us,
                              struct tide_error *err);
